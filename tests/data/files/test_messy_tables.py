from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sixfold.data.columns.schema import TableSchema, infer_schema, infer_task
from sixfold.data.files.tables import read_table, table_batches
from tests.data.files.messy_tables import MESSY_TABLES


@pytest.mark.parametrize("name", MESSY_TABLES)
@pytest.mark.parametrize(("rows", "seed"), [(300, 0), (1000, 1)])
def test_kinds_values_and_batches(tmp_path: Path, name: str, rows: int, seed: int) -> None:
    messy = MESSY_TABLES[name](tmp_path, rows, seed)
    table = read_table(messy.path)
    assert table.frame.height == rows
    schema = infer_schema(table.frame, messy.target)
    assert {one.name: one.kind for one in schema.columns if one.role != "target"} == messy.kinds
    assert infer_task(schema) == messy.task
    typed = schema.typed(table.frame)
    assert set(typed.dtypes) <= {pl.Float64, pl.String, pl.Datetime("ms")}
    for column, values in messy.values.items():
        assert typed[column].head(20).to_list() == values
    batches = list(table_batches(messy.path, schema, rows=70))
    assert pl.concat(schema.typed(batch) for batch in batches).equals(typed)
    targets = np.concatenate([schema.target_values(batch) for batch in batches])
    np.testing.assert_array_equal(targets, schema.target_values(table.frame))
    assert TableSchema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@pytest.mark.parametrize("name", MESSY_TABLES)
def test_every_kind_that_is_set_aside_has_a_reason(tmp_path: Path, name: str) -> None:
    messy = MESSY_TABLES[name](tmp_path, 200, 2)
    schema = infer_schema(read_table(messy.path).frame, messy.target)
    assert schema.set_aside or name == "sales"
    assert all(one.reason for one in schema.set_aside)
