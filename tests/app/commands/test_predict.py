"""`sixfold predict`: the answers of the model, in any format, in pieces, with every error a sentence."""

import io
import json
import os
import sys
from functools import partial

import numpy as np
import polars as pl
import pytest

from sixfold import KNeighborsClassifier
from sixfold.app.commands import predict
from sixfold.app.many_files import Piece
from sixfold.data.columns.schema import TableSchema
from sixfold.errors import InputError, UsageError


def typed(frame):
    return frame.select(
        pl.col("months").cast(pl.Float64), pl.col("price").cast(pl.Float64), pl.col("city").cast(pl.String)
    )


def test_labels_and_probabilities_are_those_of_the_model(data, model, printed):
    assert predict.run("churn.sixfold", "churn.csv", "out.csv") == 0
    found = pl.read_csv("out.csv")
    assert found.columns == ["prediction", "probability of no", "probability of yes"]
    assert found["prediction"].to_list() == model.predict(typed(data)).tolist()
    np.testing.assert_array_equal(found[:, 1:].to_numpy(), model.predict_proba(typed(data)))
    right = (model.predict(typed(data)) == data["churned"].to_numpy()).mean()
    out, err = printed()
    assert out.startswith(f"400 rows predicted, written to out.csv\naccuracy {right:.3f} on 400 rows\n")
    assert err == ""


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.arrow", "a.csv.gz"])
def test_pieces_give_what_the_whole_gives(data, model, name, monkeypatch):
    predict.run("churn.sixfold", "churn.csv", "whole.parquet", keep_all=True, quiet=True)
    monkeypatch.setattr(predict, "BATCH", 64)
    predict.run("churn.sixfold", "churn.csv", name, keep_all=True, quiet=True)
    whole = pl.read_parquet("whole.parquet")
    readers = {"parquet": pl.read_parquet, "arrow": pl.read_ipc, "jsonl": pl.read_ndjson}
    separator = "\t" if "tsv" in name else ","
    found = readers.get(name.split(".")[1], partial(pl.read_csv, separator=separator))(name)
    assert found.columns == [*data.columns, "prediction", "probability of no", "probability of yes"]
    assert found["customer"].to_list() == data["customer"].to_list()
    assert found["probability of yes"].to_list() == whole["probability of yes"].to_list()


def test_numbers_are_predicted(data, price_model, printed):
    assert predict.run("price.sixfold", "churn.csv", "out.parquet", id_columns=("customer", "customer")) == 0
    found = pl.read_parquet("out.parquet")
    assert found.columns == ["customer", "prediction"]
    assert found["prediction"].dtype == pl.Float64
    out, _ = printed()
    assert "R-squared" in out
    assert "(24 without a value in 'price' left out)" in out


def test_without_an_output_csv_goes_to_stdout_and_remarks_to_stderr(data, model, capsys):
    assert predict.run("churn.sixfold", "churn.csv", probabilities=False) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "prediction"
    assert len(out.splitlines()) == 401
    assert err.startswith("accuracy")


def test_json_without_an_output_is_lines(data, model, capsys):
    assert predict.run("churn.sixfold", "churn.csv", id_columns=["customer"], as_json=True, quiet=True) == 0
    out, err = capsys.readouterr()
    first = json.loads(out.splitlines()[0])
    assert first["customer"] == "c00000"
    assert set(first) == {"customer", "prediction", "probability of no", "probability of yes"}
    assert err == ""


def test_the_outcome_is_told_as_json(data, model, printed):
    predict.run("churn.sixfold", "churn.csv", "out.csv", as_json=True)
    told = json.loads(printed()[0])
    assert told["rows"] == 400
    assert told["score"]["metric"] == "accuracy"
    assert told["unseen_categories"] == {"rows": 0, "columns": {}}


def test_no_target_is_no_score(data, model, printed):
    data.drop("churned").write_csv("new.csv")
    predict.run("churn.sixfold", "new.csv", "out.csv")
    assert printed()[0] == "400 rows predicted, written to out.csv\n"


def test_a_target_that_cannot_be_read_does_not_matter(data, model, printed, monkeypatch):
    def refused(self, raw, first_row=0):
        raise InputError("Column 'churned', row 7: 'perhaps' is not a number.")

    monkeypatch.setattr(TableSchema, "target_values", refused)
    assert predict.run("churn.sixfold", "churn.csv", "out.csv") == 0
    assert "No score: Column 'churned', row 7" in printed()[0]
    assert pl.read_csv("out.csv").height == 400


def test_unseen_categories_are_counted_once(data, model, printed, monkeypatch):
    monkeypatch.setattr(predict, "BATCH", 150)
    rows = pl.int_range(pl.len())
    city = (
        pl.when(rows % 100 == 0).then(pl.lit("Roma")).when(rows == 7).then(pl.lit("Oslo")).otherwise("city")
    )
    data.with_columns(city=city).write_csv("new.csv")
    predict.run("churn.sixfold", "new.csv", "out.csv")
    assert "5 rows with a category that the model has not met: city ('Roma', 'Oslo')" in printed()[0]


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.arrow", "none.tsv"])
def test_no_rows_give_a_header(data, model, name, printed):
    writers = {"parquet": pl.DataFrame.write_parquet, "arrow": pl.DataFrame.write_ipc}
    separator = "\t" if "tsv" in name else ","
    writers.get(name[5:], partial(pl.DataFrame.write_csv, separator=separator))(data.head(0), name)
    assert predict.run("churn.sixfold", name, "out.csv", id_columns=["customer"]) == 0
    with open("out.csv") as file:
        assert file.read() == "customer,prediction,probability of no,probability of yes\n"
    assert printed()[0] == "0 rows predicted, written to out.csv\n"


def test_no_rows_and_other_columns_are_still_an_error(data, model):
    data.head(0).drop("months").write_csv("none.csv")
    with pytest.raises(InputError, match="months"):
        predict.run("churn.sixfold", "none.csv", "out.csv")


def test_values_that_do_not_fit_are_named_by_column_and_row(data, model, monkeypatch):
    monkeypatch.setattr(predict, "BATCH", 64)
    wrong = pl.when(pl.int_range(pl.len()) == 233).then(pl.lit("many")).otherwise("months")
    data.with_columns(months=wrong).write_csv("wrong.csv")
    with pytest.raises(InputError, match=r"'months', row 234: 'many' is not a number"):
        predict.run("churn.sixfold", "wrong.csv", "out.csv")
    assert not os.path.exists("out.csv")


def test_columns_in_another_order_and_more_of_them(data, model, capsys):
    predict.run("churn.sixfold", "churn.csv", quiet=True)
    as_they_were = capsys.readouterr().out
    data.select(*reversed(data.columns), pl.lit("x").alias("more")).write_csv("other.csv", separator=";")
    predict.run("churn.sixfold", "other.csv", quiet=True)
    assert capsys.readouterr().out == as_they_were


def test_one_row_is_enough(data, model, printed):
    data.head(1).write_csv("one.csv")
    predict.run("churn.sixfold", "one.csv", "out.csv")
    assert printed()[0].startswith("1 row predicted")
    assert pl.read_csv("out.csv").height == 1


def test_names_that_are_taken_get_a_number(data, model):
    data.with_columns(prediction=pl.lit("mine")).write_csv("new.csv")
    predict.run("churn.sixfold", "new.csv", "out.csv", keep_all=True, quiet=True)
    found = pl.read_csv("out.csv")
    assert found["prediction"].unique().to_list() == ["mine"]
    assert set(found["prediction (2)"].unique()) <= {"no", "yes"}


def test_a_column_that_is_not_there_cannot_be_kept(data, model):
    with pytest.raises(UsageError, match="column 'costumer', which was to be kept, is not in the data"):
        predict.run("churn.sixfold", "churn.csv", "out.csv", id_columns=["costumer"])
    assert not os.path.exists("out.csv")


@pytest.mark.parametrize("name", ["churn.csv", "./churn.csv"])
def test_the_data_are_not_overwritten(data, model, name):
    with pytest.raises(UsageError, match="is the file of the data"):
        predict.run("churn.sixfold", "churn.csv", name)
    assert pl.read_csv("churn.csv").height == 400


def test_the_output_is_looked_at_before_the_model(folder):
    with pytest.raises(UsageError, match="output folder 'nowhere' does not exist"):
        predict.run("no.sixfold", "no.csv", "nowhere/out.csv")


def test_ctrl_c_leaves_nothing_and_says_so(data, model, printed, monkeypatch):
    def stopped(*args):
        yield Piece(data.head(100), "churn.csv", 0, False)
        raise KeyboardInterrupt

    monkeypatch.setattr(predict, "pieces", stopped)
    before = set(os.listdir())
    assert predict.run("churn.sixfold", "churn.csv", "out.parquet") == 130
    assert set(os.listdir()) == before
    assert printed()[1] == "Stopped by Ctrl-C: out.parquet was not written.\n"


class ClosedPipe(io.RawIOBase):
    """A stream whose reader has left."""

    def writable(self):
        return True

    def write(self, data):
        raise BrokenPipeError(32, "Broken pipe")


def test_a_reader_that_leaves_early_is_no_error(data, model, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(ClosedPipe(), write_through=True))
    assert predict.run("churn.sixfold", "churn.csv") == 0
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("batch", [64, 1000])
def test_a_score_on_the_rows_of_the_fit_is_said_to_be_one(data, price_model, batch, printed, monkeypatch):
    monkeypatch.setattr(predict, "BATCH", batch)
    predict.run("price.sixfold", "churn.csv", "out.csv")
    assert "Careful: these are the rows of the fit" in printed()[0]
    data.head(399).write_csv("fewer.csv")
    data.with_columns(months=pl.col("months").shift(1).fill_null("3")).write_csv("others.csv")
    pl.concat([data, data.head(1)]).write_csv("more.csv")
    for name in ("fewer.csv", "others.csv", "more.csv"):
        predict.run("price.sixfold", name, "out.csv")
        assert "Careful" not in printed()[0]


@pytest.mark.parametrize("neighbors", [2, 4])
def test_neighbours_are_searched_once_and_tied_votes_are_the_model_s(data, fit, neighbors, monkeypatch):
    model = fit(data, "near.sixfold", KNeighborsClassifier(neighbors))
    expected = model.predict(typed(data)).tolist()
    assert (model.predict_proba(typed(data))[:, 0].round(6) == 0.5).any()
    monkeypatch.delattr(KNeighborsClassifier, "predict")
    predict.run("near.sixfold", "churn.csv", "out.csv", quiet=True)
    assert pl.read_csv("out.csv")["prediction"].to_list() == expected
