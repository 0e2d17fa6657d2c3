from __future__ import annotations

import pytest

from sixfold.data.columns.schema import infer_schema, infer_task
from sixfold.data.examples import EXAMPLES, load_example
from sixfold.data.files.tables import read_table
from sixfold.errors import InputError


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_table_whose_task_is_found(name: str) -> None:
    example = load_example(name)
    assert example.X.shape == (len(example.y), len(example.columns))
    assert len(set(example.columns) | {example.target}) == len(example.columns) + 1
    table = read_table(f"example:{name.replace(' ', '_')}")
    assert table.target == example.target != "target"
    schema = infer_schema(table.frame, example.target)
    assert infer_task(schema) == example.task
    # Points of digits that are always white say nothing; all else is used.
    assert {one.kind for one in schema.set_aside} <= {"constant"}
    assert schema.typed(table.frame).height == len(example.y)


@pytest.mark.parametrize("name", ["breast cancer", "breast_cancer", "breast-cancer", "Breast Cancer"])
def test_names_may_be_written_in_several_ways(name: str) -> None:
    assert load_example(name).name == "breast cancer"
    assert read_table(f"example:{name}").name == "breast_cancer"


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(InputError, match=r"There is no example 'irs'\. Did you mean 'iris'\?"):
        read_table("example:irs")


def test_a_question_mark_of_the_strangers_is_an_answer() -> None:
    table = read_table("example:strangers")
    assert table.frame["shadow"].to_list().count("unknown") == 4
    assert infer_schema(table.frame, "vampire").columns[0].missing == 0
