"""The commands on what `sixfold fit` itself has written, from a file as other programs export them."""

import gzip
import json

import numpy as np
import polars as pl
import pytest

from sixfold.app.cli import main

CITIES = ["Köln", "Bern", "Genève"]


def export(rows=300, seed=0):
    """Return bytes of a table with semicolons, amounts, dates, gaps, weights and groups, in Latin-1."""
    random = np.random.default_rng(seed)
    lines = ["Nr;Umsatz;Datum;Stadt;Aktiv;Gewicht;Gruppe;Kündigt"]
    for k in range(rows):
        amount, city = random.gamma(2.0, 800.0), random.choice(CITIES)
        leaves = "ja" if (amount > 1500) != (city == "Bern") else "nein"
        money = f"{amount:,.2f} €".translate(str.maketrans(",.", ".,")) if k % 19 else "N/A"
        day = f"{random.integers(1, 29):02d}.{random.integers(1, 13):02d}.{random.integers(2018, 2025)}"
        active, weight = random.choice(["ja", "nein"]), random.integers(1, 4)
        answer = leaves if k % 53 else ""
        lines.append(f"K{k:05d};{money};{day};{city};{active};{weight};g{k % 30};{answer}")
    return "\r\n".join(lines).encode("cp1252")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with the table and two models of it."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "kunden.csv").write_bytes(export())
    for learner in ("tree", "logistic regression"):
        name = learner.split()[0]
        asked = ["--weights", "Gewicht", "--groups", "Gruppe", "--learner", learner, "--name", name, "-q"]
        asked += ["--output", str(folder)]
        assert main(["fit", str(folder / "kunden.csv"), "--target", "Kündigt", *asked]) == 0
    return folder


@pytest.fixture(autouse=True)
def there(place, monkeypatch):
    monkeypatch.chdir(place)


@pytest.mark.parametrize("name", ["tree.sixfold", "logistic.sixfold"])
def test_the_model_is_shown_and_its_certificate_confirmed(name, printed):
    assert main(["show", name]) == 0
    out, _ = printed()
    assert "predicts 'Kündigt' (classification)" in out
    assert "Gewicht  number          0  weight" in out
    assert main(["verify", name, "kunden.csv"]) == 0
    assert "Confirmed." in printed()[0]
    assert main(["show", name, "--json"]) == 0
    facts = json.loads(printed()[0])["facts"]
    assert facts["categories"]["Stadt"] == sorted(CITIES)


def test_one_answer_that_was_changed_is_found(place, printed):
    lines = (place / "kunden.csv").read_bytes().split(b"\r\n")
    for number in range(1, len(lines)):
        if lines[number].endswith(b";ja"):
            lines[number] = lines[number][:-3] + b";nein"
            break
    (place / "changed.csv").write_bytes(b"\r\n".join(lines))
    main(["verify", "logistic.sixfold", "changed.csv"])
    assert "fingerprint" in " ".join(printed()[0].split())


def test_new_rows_need_neither_weights_nor_groups_nor_answers(place, printed):
    lines = export(50, seed=1).decode("cp1252").replace("Bern", "Oslo").split("\r\n")
    few = "\r\n".join(";".join(line.split(";")[:5]) for line in lines)
    (place / "new.csv.gz").write_bytes(gzip.compress(few.encode()))
    assert main(["predict", "logistic.sixfold", "new.csv.gz", "-o", "out.parquet", "--keep", "Nr"]) == 0
    found = pl.read_parquet("out.parquet")
    assert found.columns == ["Nr", "prediction", "probability of ja", "probability of nein"]
    assert found["Nr"].to_list() == [f"K{k:05d}" for k in range(50)]
    oslo = few.count("Oslo")
    assert f"{oslo} rows with a category that the model has not met: Stadt ('Oslo')" in printed()[0]


def test_two_models_are_compared_on_the_rows_that_neither_has_seen(printed):
    assert main(["compare", "tree.sixfold", "logistic.sixfold", "kunden.csv"]) == 0
    out, _ = printed()
    assert "only the" in out
    assert "better" in out


def test_errors_are_sentences_with_an_exit_code(place, capsys):
    (place / "other.csv").write_text("a,b\n1,2\n")
    (place / "broken.sixfold").write_bytes(b"not a model")
    for asked, code, said in (
        (["predict", "tree.sixfold", "other.csv"], 3, "'Umsatz'"),
        (["predict", "tree.sixfold", "kunden.csv", "-o", "nowhere/out.csv"], 2, "does not exist"),
        (["predict", "tree.sixfold", "kunden.csv", "-o", "out.xls"], 2, "says no format"),
        (["predict", "missing.sixfold", "kunden.csv"], 2, "missing.sixfold"),
        (["predict", "broken.sixfold", "kunden.csv"], 3, "broken.sixfold"),
        (["predict", "tree.sixfold", "missing.csv"], 2, "missing.csv"),
        (["show", "broken.sixfold"], 3, "broken.sixfold"),
        (["verify", "tree.sixfold", "other.csv"], 3, "'Umsatz'"),
        (["compare", "tree.sixfold", "tree.sixfold", "other.csv"], 3, "no column 'Kündigt'"),
    ):
        assert main(asked) == code, asked
        out, err = capsys.readouterr()
        assert said in err
        assert err.startswith("sixfold: ")
        assert not out
