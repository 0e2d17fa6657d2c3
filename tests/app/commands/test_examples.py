"""`sixfold examples`: every built-in table, with its size."""

import json

from sixfold.app.commands import examples
from sixfold.data.files.tables import read_table


def test_every_table_is_listed_and_can_be_read(printed):
    assert examples.run(as_json=True) == 0
    found = json.loads(printed()[0])
    assert {"example:iris", "example:breast_cancer"} <= {one["name"] for one in found}
    for one in found:
        table = read_table(one["name"])
        assert (table.frame.height, table.frame.width - 1) == (one["rows"], one["columns"])
        assert table.target == one["target"]


def test_people_read_a_table(printed):
    assert examples.run() == 0
    out, _ = printed()
    assert "sixfold fit example:iris" in " ".join(out.split())
