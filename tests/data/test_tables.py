"""UCI's tables, read from files like the original ones."""

from __future__ import annotations

import numpy as np
import pytest

from attnknn.data import load_dataset
from attnknn.errors import DamagedData

WINE = '"fixed acidity";"b";"c";"d";"e";"f";"g";"h";"pH";"j";"alcohol";"quality"\n'
WINE_ROWS = [f"{i % 6}.5;{i}" + ";0.25" * 9 + f";{3 + i % 6}\n" for i in range(12)]
PEOPLE = [
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Husband, White, Male, 2174, 0, 40, Peru, <=50K",
    "50, ?, 83311, Bachelors, 13, Divorced, ?, Wife, White, Female, 0, 0, 13, ?, >50K",
]
TESTED = [
    "25, Private, 226802, 11th, 7, Divorced, Sales, Own-child, Black, Male, 0, 0, 40, Peru, <=50K.",
    PEOPLE[1] + ".",
]


@pytest.fixture
def uci(machine, resize):
    resize("wine_red", n_items=12)
    resize("adult", n_items=4)
    folder = machine / "data" / "uci"
    folder.mkdir(parents=True)
    (folder / "winequality-red.csv").write_text(WINE + "".join(WINE_ROWS), encoding="utf-8")
    (folder / "adult.data").write_text("\n".join([*PEOPLE, "", ""]), encoding="utf-8")
    (folder / "adult.test").write_text("\n".join(["|1x3 Cross validator", *TESTED, ""]), encoding="utf-8")
    return folder


def test_wines_are_their_measurements_and_grades(uci):
    wines = load_dataset("wine_red")
    assert (wines.inputs.shape, wines.inputs[7, :3].tolist()) == ((12, 11), [1.5, 7.0, 0.25])
    assert wines.feature_names[0::10] == ("fixed acidity", "alcohol")
    assert wines.class_names == tuple("345678")
    assert wines.labels.tolist() == [*range(6)] * 2


def test_equal_wines_are_on_one_side(uci):
    (uci / "winequality-red.csv").write_text(WINE + "".join(WINE_ROWS[:6] * 2), encoding="utf-8")
    wines = load_dataset("wine_red")
    assert wines.groups.tolist() == [*range(6)] * 2
    assert (wines.splits[:6] == wines.splits[6:]).all()


def test_a_copy_that_lost_its_decimal_points_is_read_as_the_original(uci):
    usual = [f"{i}.5;0.5;0.3;2;0.1;15;46;0.99{i};3.3;0.6;{9 + i / 4};{3 + i % 6}\n" for i in range(10)]
    odd = [
        "1;1.035;0.3;2;0.1;15;46;1.001;3.3;0.6;9.23333333333333;5\n",
        "2;1.185;0.3;2;0.1;15;46;1.00369;3.3;0.6;13.5666666666667;6\n",
    ]
    original, damaged = WINE + "".join(usual + odd), WINE + "".join(usual + odd)
    for number in ("1.035", "1.185", "1.001", "1.00369", "9.23333333333333", "13.5666666666667"):
        damaged = damaged.replace(number, number.replace(".", ""))
    hashes = []
    for text in (original, damaged):
        (uci / "winequality-red.csv").write_text(text, encoding="utf-8")
        load_dataset.cache_clear()
        hashes.append(load_dataset("wine_red").hash)
    assert original != damaged
    assert hashes[0] == hashes[1]
    assert load_dataset("wine_red").inputs[11, [1, 7, 10]].tolist() == [1.185, 1.00369, 13.5666666666667]


def test_people_keep_the_official_split_and_their_incomes(uci):
    adult = load_dataset("adult")
    assert adult.ids.tolist() == ["adult/train/0", "adult/train/1", "adult/test/0", "adult/test/1"]
    assert [adult.class_names[label] for label in adult.labels] == ["<=50K", ">50K", "<=50K", ">50K"]
    assert adult.groups.tolist() == [0, 1, 2, 1]


def test_categories_are_columns_of_zeros_and_ones_and_a_missing_answer_is_one_of_them(uci):
    adult = load_dataset("adult")
    columns = dict(zip(adult.feature_names, adult.inputs.T.tolist(), strict=True))
    assert list(columns)[:5] == ["age", "workclass=?", "workclass=Private", "workclass=State-gov", "fnlwgt"]
    assert columns["age"] == [39, 50, 25, 50]
    assert columns["fnlwgt"] == [77516, 83311, 226802, 83311]
    assert columns["workclass=?"] == columns["native-country=?"] == [0, 1, 0, 1]
    assert columns["native-country=Peru"] == [1, 0, 1, 0]
    for name in ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"):
        ones = [values for column, values in columns.items() if column.startswith(f"{name}=")]
        assert np.sum(ones, axis=0).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("winequality-red.csv", "", "Its first line must name eleven measurements and quality"),
        ("winequality-red.csv", WINE + "".join(WINE_ROWS[:6]), "must have 12 rows of 6 classes. There are 6 rows of 6"),
        ("winequality-red.csv", WINE + WINE_ROWS[0][:-5], "Every row must have 12 cells. One has 11"),
        (
            "winequality-red.csv",
            WINE + WINE_ROWS[0].replace("0.25", "nan"),
            "Measurements must be numbers. One is 'nan'",
        ),
        ("adult.data", PEOPLE[0], "must have 4 rows of 2 classes. There are 3 rows of 2"),
        ("adult.data", "\n".join(PEOPLE)[:-9], "Every row must have 15 cells"),
        ("adult.data", "\n".join([PEOPLE[0].replace("<=", "<"), PEOPLE[1]]), "There are 4 rows of 3"),
        ("adult.data", "\n".join([PEOPLE[0].replace("39", "old"), PEOPLE[1]]), "One is 'old'"),
    ],
)
def test_a_table_that_is_not_whole_is_refused(uci, file, content, sentence):
    (uci / file).write_text(content, encoding="utf-8")
    with pytest.raises(DamagedData, match=sentence):
        load_dataset("adult" if file == "adult.data" else "wine_red")


def test_a_file_that_is_no_text_is_refused(uci):
    (uci / "adult.test").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DamagedData, match="It must be a table as text"):
        load_dataset("adult")
