"""Tables in files: what is read, in which order, and what is said of files that cannot be."""

import gzip
import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from sixfold import TableEncoder, scan
from sixfold.errors import InputError


def write(folder, name="a.parquet", **columns):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    elif name.endswith(".arrow"):
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(table, path)
    else:
        table.to_pandas().to_csv(path, index=False)
    return path


def rows(table):
    found = table.read()
    return found.X.view(np.ndarray)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "csv", "csv.gz"])
def test_every_format_gives_the_same_rows(tmp_path, ending):
    path = write(tmp_path, f"a.{ending}", x=[1, 2, 3], z=[0.5, -1.0, 2.0], y=["u", "v", "u"])
    table = scan(path, target="y")
    found = table.read()
    np.testing.assert_array_equal(found.X, [[1, 0.5], [2, -1], [3, 2]])
    assert found.X.dtype == np.float64
    assert found.y.tolist() == ["u", "v", "u"]
    assert found.X.columns == table.columns == ["x", "z"]
    assert found.weight is None


def test_numbers_of_every_kind_are_numbers(tmp_path):
    path = write(
        tmp_path,
        whole=pa.array([1, None, 3], pa.int8()),
        yes=pa.array([True, False, None]),
        exact=pa.array([Decimal("1.5"), Decimal("2.5"), None]),
        nothing=pa.nulls(3),
        single=pa.array([1, 2, None], pa.float32()),
    )
    expected = [[1, 1, 1.5, np.nan, 1], [np.nan, 0, 2.5, np.nan, 2], [3, np.nan, np.nan, np.nan, np.nan]]
    np.testing.assert_array_equal(rows(scan(path)), expected)


def test_whole_numbers_beyond_float64_are_rounded_as_numpy_rounds_them(tmp_path):
    whole = np.array([2**53 + 1, 2**62 + 1, -(2**60) - 1])
    found = scan(write(tmp_path, x=whole, y=whole), target="y").read()
    np.testing.assert_array_equal(found.X[:, 0], whole.astype(float))
    np.testing.assert_array_equal(found.y, whole)


def test_float32_stays_float32_where_all_columns_are(tmp_path):
    single = pa.array([1.0, 2.0], pa.float32())
    assert rows(scan(write(tmp_path, x=single, z=single))).dtype == np.float32
    assert rows(scan(write(tmp_path, "b.parquet", x=single, z=[1.0, 2.0]))).dtype == np.float64


def test_folders_globs_and_lists_are_read_in_the_order_of_names(tmp_path):
    for number in (2, 0, 1):
        write(tmp_path, f"in/part-{number}.parquet", x=[10 * number, 10 * number + 1])
    write(tmp_path, "in/_metadata.parquet", other=[1])
    write(tmp_path, "in/.hidden/part-9.parquet", x=[9])
    together = [[0], [1], [10], [11], [20], [21]]
    np.testing.assert_array_equal(rows(scan(tmp_path / "in")), together)
    np.testing.assert_array_equal(rows(scan(str(tmp_path / "in" / "part-*.parquet"))), together)
    reverse = [tmp_path / "in" / f"part-{number}.parquet" for number in (1, 0)]
    np.testing.assert_array_equal(rows(scan(reverse)), [[10], [11], [0], [1]])


def test_empty_files_between_count_nothing(tmp_path):
    write(tmp_path, "a.parquet", x=pa.array([], pa.int64()), y=pa.array([], pa.string()))
    write(tmp_path, "b.parquet", x=[1], y=["only here"])
    write(tmp_path, "c.parquet", x=pa.array([], pa.int64()), y=pa.array([], pa.string()))
    write(tmp_path, "d.parquet", x=[2, 3], y=["b", "a"])
    found = scan(tmp_path, target="y").read()
    np.testing.assert_array_equal(found.X, [[1], [2], [3]])
    assert found.y.tolist() == ["only here", "b", "a"]


def test_targets_and_weights_of_files_of_other_types_are_joined(tmp_path):
    write(tmp_path, "a.parquet", x=[1.0], y=pa.array([1], pa.int8()), w=[1])
    write(tmp_path, "b.parquet", x=[2.0], y=pa.array([2.5]), w=[0.5])
    found = scan(tmp_path, target="y", weight="w").read()
    assert found.y.tolist() == [1.0, 2.5]
    assert found.weight.tolist() == [1.0, 0.5]
    y, weight = scan(tmp_path, target="y", weight="w").targets()
    assert (y.tolist(), weight.tolist()) == ([1.0, 2.5], [1.0, 0.5])


def test_categories_whose_dictionaries_differ_are_labels(tmp_path):
    write(tmp_path, "a.parquet", x=[1.0, 2.0], y=pa.array(["b", "a"]).dictionary_encode())
    write(tmp_path, "b.parquet", x=[3.0, 4.0], y=pa.array(["c", "b"]).dictionary_encode())
    assert scan(tmp_path, target="y").read().y.tolist() == ["b", "a", "c", "b"]


def test_columns_are_taken_in_the_order_asked_for(tmp_path):
    path = write(tmp_path, a=[1.0], b=[2.0], c=[3.0], text=["t"])
    assert scan(path, columns=["c", "a"]).columns == ["c", "a"]
    np.testing.assert_array_equal(rows(scan(path, columns=["c", "a"])), [[3, 1]])


def test_an_encoder_is_fitted_in_a_pass_of_its_own(tmp_path):
    write(tmp_path, "a.parquet", x=[1.0, None], town=["Ulm", "Bonn"])
    write(tmp_path, "b.parquet", x=[3.0, 5.0], town=["Kiel", "Ulm"])
    table = scan(tmp_path, encoder=TableEncoder())
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 5.0], "town": ["Ulm", "Bonn", "Kiel", "Ulm"]})
    own = TableEncoder().fit(frame)
    np.testing.assert_allclose(rows(table), own.transform(frame))
    assert table.read().X.columns == list(own.get_feature_names_out())


def test_large_tables_are_mapped_and_small_ones_are_not(tmp_path, monkeypatch):
    path = write(tmp_path, x=np.arange(1000.0))
    assert not scan(path).read().mapped
    monkeypatch.setattr("sixfold.data.scan.table.PLAIN", 0)
    found = scan(path, scratch=tmp_path).read()
    assert found.mapped
    np.testing.assert_array_equal(found.X[:, 0], np.arange(1000.0))
    assert os.listdir(tmp_path) == ["a.parquet"]  # the scratch file has no name


def test_it_says_what_it_is(tmp_path):
    path = write(tmp_path, x=[1.0, 2.0], y=[0, 1])
    assert repr(scan(path, target="y")) == f"<Scan of {str(path)!r}, 2 rows, 1 columns, target='y'>"
    assert scan(path).n_rows == 2
    assert scan(write(tmp_path, "b.csv", x=[1.0])).n_rows is None


# -- what cannot be read -------------------------------------------------------------------------------------


def refused(*words):
    return pytest.raises(InputError, match="(?s)" + ".*".join(words))


def test_files_that_are_not_there(tmp_path):
    with refused("no file", "nowhere.parquet", "Check the name"):
        scan(tmp_path / "nowhere.parquet")
    with refused("No file is called like", r"\*.parquet"):
        scan(str(tmp_path / "*.parquet"))
    with refused("holds no files"):
        scan(tmp_path)
    with refused("names no file"):
        scan([])
    with refused("path=3", "no path"):
        scan(3)


def test_files_of_other_kinds(tmp_path):
    (tmp_path / "a.txt").write_text("x\n1\n")
    with refused("a.txt", "'.txt'", "Rename"):
        scan(tmp_path / "a.txt")
    with refused("is csv and", "is parquet", "one format"):
        scan([write(tmp_path, "a.csv", x=[1]), write(tmp_path, "b.parquet", x=[1])])


def test_a_file_without_a_column_of_the_others_is_named(tmp_path):
    write(tmp_path, "a.parquet", x=[1.0], z=[1.0])
    write(tmp_path, "b.parquet", x=[1.0])
    with refused("b.parquet", "no column 'z'", "a.parquet"):
        scan(tmp_path)
    assert rows(scan(tmp_path, columns=["x"])).shape == (2, 1)


def test_text_where_another_file_has_numbers_is_named(tmp_path):
    write(tmp_path, "a.parquet", x=[1.0])
    write(tmp_path, "b.parquet", x=["one"])
    with refused("Column 'x' of", "b.parquet", "string", "a.parquet"):
        scan(tmp_path)


def test_text_needs_an_encoder(tmp_path):
    with refused("Column 'town' of", "string", "TableEncoder"):
        scan(write(tmp_path, x=[1.0], town=["Ulm"]))


def test_text_further_down_a_csv_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("sixfold.data.scan.files.CSV_BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_text("x,z\n" + "1,2\n" * 50 + "3,four\n")
    with refused("a.csv", "cannot be read", "four", "Write it anew"):
        rows(scan(path))


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_a_file_that_is_cut_off_is_named(tmp_path, part):
    path = write(tmp_path, x=np.random.default_rng(0).normal(size=5000))
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with refused("a.parquet", "cannot be read|is empty", "Write it anew|Leave it out"):
        scan(path).read()


def test_a_gzipped_file_that_is_cut_off_is_named(tmp_path):
    path = tmp_path / "a.csv.gz"
    text = "x\n" + "\n".join(map(str, range(100_000)))
    whole = gzip.compress(text.encode())
    path.write_bytes(whole[: len(whole) // 2])
    with refused("a.csv.gz", "cannot be read"):
        scan(path).read()


def test_columns_that_are_not_there(tmp_path):
    path = write(tmp_path, x=[1.0], y=[1.0])
    with refused("target names the column 'label'", "'x', 'y'"):
        scan(path, target="label")
    with refused("columns names the column 'w'"):
        scan(path, columns=["x", "w"])
    with refused("columns='x' is text", r"\['x'\]"):
        scan(path, columns="x")
    with refused("no column left"):
        scan(write(tmp_path, "b.parquet", y=[1.0]), target="y")
    with refused("several columns 'x'"):
        scan(path, columns=["x", "x"])


def test_a_target_or_weight_among_the_columns_is_named(tmp_path):
    path = write(tmp_path, x=[1.0], y=[1.0], w=[1.0])
    with refused("columns names 'y', and target does too"):
        scan(path, target="y", columns=["x", "y"])
    with refused("columns names 'w', and weight does too"):
        scan(path, weight="w", columns=["x", "w"])


def test_targets_and_weights_that_are_missing_are_named_by_file_and_row(tmp_path):
    write(tmp_path, "a.parquet", x=[1.0] * 3, y=[1.0, 2.0, 3.0], w=[1.0, 1.0, 1.0])
    write(tmp_path, "b.parquet", x=[1.0] * 3, y=[1.0, None, 3.0], w=[1.0, 1.0, np.inf])
    with refused("target='y' has no value in row 1", "b.parquet"):
        scan(tmp_path, target="y").read()
    with refused("weight='w' is inf in row 2", "b.parquet"):
        scan(tmp_path, weight="w").read()


def test_no_rows_at_all(tmp_path):
    with refused("has no rows"):
        scan(write(tmp_path, x=pa.array([], pa.float64()))).read()


def test_a_limit_that_python_alone_exceeds(tmp_path):
    with refused("memory_limit"):
        scan(write(tmp_path, x=[1.0]), memory_limit=1e6)


def test_a_folder_for_scratch_that_is_not_there(tmp_path):
    with refused("scratch=", "nowhere", "Name a folder"):
        scan(write(tmp_path, x=[1.0]), scratch=tmp_path / "nowhere").read()
