"""What a link may set, what it sets, and the sentence when it does not fit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnknn.config import NOISE_KINDS, LabelNoise
from attnknn.ui import state
from attnknn.ui.display import literal
from attnknn.ui.state import MOST_FLIPS, TEMPERATURES, Limits, Setting
from tests.ui.apps import plain

HEADS = ("nearest", "trusted", "typical")
ENTRIES = [f"digits/train/{row}" for row in range(200)]
LIMITS = Limits(16, 64, 10, HEADS, set(ENTRIES).__contains__, set(ENTRIES[:64]).__contains__, 63)
PLAIN = Setting(16)
NAMES = [one.name for one in state.parameters(LIMITS)]


def read_one(name, said, limits=LIMITS):
    """What a link that says one thing sets, and the complaints."""
    return state.read({name: said}, limits)


def list_of(n):
    return ",".join(ENTRIES[:n])


def flips_of(n):
    return ",".join(f"{entry}:3" for entry in ENTRIES[:n])


some_settings = st.builds(
    Setting,
    k=st.integers(1, 64),
    temperature=st.sampled_from(TEMPERATURES),
    noise=st.builds(
        LabelNoise,
        st.sampled_from(NOISE_KINDS),
        st.integers(0, 90).map(lambda stop: stop / 100),
        st.integers(0, state.LARGEST_SEED),
    ),
    flips=st.dictionaries(st.sampled_from(ENTRIES), st.integers(0, 9), max_size=MOST_FLIPS),
    dropped=st.lists(st.sampled_from(ENTRIES), unique=True, max_size=LIMITS.most_dropped).map(tuple),
    muted=st.lists(st.sampled_from(HEADS), unique=True, max_size=len(HEADS) - 1).map(tuple),
    averages=st.booleans(),
    neighbor=st.none() | st.sampled_from(ENTRIES[:64]),
)


@given(some_settings)
def test_what_is_written_is_what_is_read(setting):
    assert state.read(state.write(setting, LIMITS), LIMITS) == (setting, [])


@given(some_settings, st.sampled_from(NAMES))
def test_a_link_says_only_what_is_not_so_anyway(setting, name):
    link = state.write(setting, LIMITS)
    without = {other: said for other, said in link.items() if other != name}
    assert (state.read(without, LIMITS)[0] != setting) == (name in link)


def test_nothing_said_is_nothing_set():
    assert state.write(PLAIN, LIMITS) == {}
    assert state.read({}, LIMITS) == (PLAIN, [])
    assert state.read({"somebody": "else", "query": "digits/test/0"}, LIMITS) == (PLAIN, [])


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("k", "016", PLAIN),
        ("k", "9.0", Setting(9)),
        ("temperature", "2", Setting(16, 2.0)),
        ("noise", "0.30", Setting(16, noise=LabelNoise("symmetric", 0.3))),
        ("noise", "0.304", Setting(16, noise=LabelNoise("symmetric", 0.3))),
        ("kind", "pair", Setting(16, noise=LabelNoise("pair"))),
        ("seed", "5", Setting(16, noise=LabelNoise(seed=5))),
        ("flips", f"{ENTRIES[3]}:9,{ENTRIES[100]}:0", Setting(16, flips={ENTRIES[3]: 9, ENTRIES[100]: 0})),
        ("dropped", f"{ENTRIES[3]},{ENTRIES[3]}", Setting(16, dropped=(ENTRIES[3],))),
        ("muted", "typical,nearest", Setting(16, muted=("typical", "nearest"))),
        ("averages", "1", Setting(16, averages=True)),
        ("neighbor", ENTRIES[5], Setting(16, neighbor=ENTRIES[5])),
    ],
)
def test_a_link_sets_what_it_says(name, said, expected):
    assert read_one(name, said) == (expected, [])


COMPLAINTS = {
    "k": "k must be a whole number between 1 and 64; the link says k={}. Showing k = 16.",
    "temperature": "temperature must be one of 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.5, 7.0, 20.0; the link "
    "says temperature={}. Showing temperature = 1.0.",
    "noise": "noise must be a number between 0 and 0.9; the link says noise={}. Showing noise = 0.0.",
    "kind": "kind must be one of symmetric, pair, matrix; the link says kind={}. Showing kind = symmetric.",
    "seed": "seed must be a whole number between 0 and 9999; the link says seed={}. Showing seed = 0.",
    "flips": "flips must be ids of entries, each with a class from 0 to 9, as in id:9,id:0; at most 64; the link says "
    "flips={}. Showing flips = none.",
    "muted": "muted must be some of nearest, trusted, typical, not all; the link says muted={}. Showing muted = none.",
    "averages": "averages must be 1, for class averages at the table; the link says averages={}. Showing averages = "
    "none.",
    "neighbor": "neighbor must be the id of an entry that is shown; the link says neighbor={}. Showing neighbor = the "
    "nearest.",
}
UNFIT = {
    "k": ["banana", "", "0", "65", "1.5", "-1", "nan"],
    "temperature": ["6", "0", "nan", "", "warm"],
    "noise": ["nan", "inf", "-0.1", "0.91", "", "1e400"],
    "kind": ["Pair", "", "pair "],
    "seed": ["5.7", "-1", "10000", "x"],
    "flips": ["", ENTRIES[3], f"{ENTRIES[3]}:10", f"{ENTRIES[3]}:-1", f"{ENTRIES[3]}:", "nobody:1", f"{ENTRIES[3]}:1,"],
    "dropped": ["", "nobody", f"{ENTRIES[3]},", f"{ENTRIES[3]}, {ENTRIES[4]}"],
    "muted": ["", "nobody", "nearest,trusted,typical", "nearest,"],
    "averages": ["", "0", "yes"],
    "neighbor": ["", "nobody", ENTRIES[64]],
}


@pytest.mark.parametrize(("name", "said"), [(name, said) for name, texts in UNFIT.items() for said in texts])
def test_what_does_not_fit_is_not_set_and_one_sentence_says_so(name, said):
    setting, (complaint,) = read_one(name, said)
    assert setting == PLAIN
    assert complaint.startswith(f"{name} must be ")
    if name in COMPLAINTS:
        assert complaint == COMPLAINTS[name].format(state.shorten(said))


def test_every_parameter_can_be_complained_about():
    assert list(UNFIT) == NAMES


def test_complaints_come_in_the_order_of_the_controls_and_what_fits_is_set_all_the_same():
    setting, complaints = state.read({"seed": "x", "muted": "x", "k": "0", "kind": "pair", "averages": "1"}, LIMITS)
    assert setting == Setting(16, noise=LabelNoise("pair"), averages=True)
    assert [sentence.split()[0] for sentence in complaints] == ["k", "seed", "muted"]


@pytest.mark.parametrize("name", ["flips", "dropped"])
def test_only_so_much_can_be_changed_by_hand(name):
    write, most = {"flips": (flips_of, MOST_FLIPS), "dropped": (list_of, LIMITS.most_dropped)}[name]
    setting, complaints = read_one(name, write(most))
    assert (len(getattr(setting, name)), complaints) == (most, [])
    for n in (most + 1, most + 2, len(ENTRIES)):
        setting, complaints = read_one(name, write(n))
        assert (setting, len(complaints)) == (PLAIN, 1)


def test_the_only_head_cannot_be_muted():
    limits = Limits(1, 1, 2, ("nearest",), LIMITS.is_entry, LIMITS.is_shown, 0)
    assert read_one("muted", "nearest", limits)[0] == Setting(1)


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.text() | st.sampled_from([",", ":", "1", "٣", "1_0", f"{ENTRIES[0]}:1,"]))
def test_no_text_breaks_it_and_no_sentence_grows_with_it(name, said):
    for text in (said, (said * 30_000)[:30_000]):
        setting, complaints = read_one(name, text)
        assert (setting == PLAIN) or not complaints
        assert all(len(complaint) < 300 for complaint in complaints)
        assert state.read(state.write(setting, LIMITS), LIMITS) == (setting, [])


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_every_temperature_can_be_named_in_a_link(temperature):
    assert read_one("temperature", str(temperature)) == (Setting(16, temperature), [])


def test_one_is_among_the_temperatures_and_all_are_ascending():
    assert 1.0 in TEMPERATURES
    assert sorted(set(TEMPERATURES)) == list(TEMPERATURES)


def test_a_text_is_cut_only_where_it_is_too_long():
    assert state.shorten("x" * state.LONGEST) == "x" * state.LONGEST
    assert state.shorten("x" * (state.LONGEST + 1)) == "x" * state.LONGEST + "…"


@given(st.text())
def test_a_literal_is_read_as_it_was_written(text):
    assert plain(literal(text)).replace("\u2060", "") == text.replace("\u2060", "")


@given(st.text("![]()<>*_`$:#|~&-\\ ab"))
def test_a_literal_leaves_markdown_nothing_to_read(text):
    left = literal(text)
    for mark in "![]()<>*_`$:#|~&-":
        assert left.count(f"\\{mark}") == left.count(mark)
