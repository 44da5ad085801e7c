"""Every error is a sentence in three parts."""

from attnknn.errors import SchemaMismatch, UnknownCheckpoint


def test_an_unknown_checkpoint_names_the_nearest_one():
    error = UnknownCheckpoint("digit", ["digits", "iris"])
    assert 'There is no checkpoint "digit".' in str(error)
    assert 'Did you mean "digits"?' in str(error)
    assert "Choose from: digits, iris." in str(error)


def test_a_newer_card_asks_for_an_update_and_an_older_one_for_retraining():
    assert "Update" in str(SchemaMismatch("digits", 1, 2))
    assert "Train" in str(SchemaMismatch("digits", 2, 1))
