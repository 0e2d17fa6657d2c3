"""Five tables as real programs export them, with targets that can be learned and columns of known kinds.

    orders      German accounting: semicolons, Latin-1, 1.234,56 €, 31.12.2024, blank rows at the end
    sales       US spreadsheet: a mark of UTF-8, $1,234.50, (12.00) for losses, N/A, 12/31/2024, yes and no
    clinic      patients with gaps: free comments with line ends, ids, ?, Yes/No in any case, codes like 007
    churn       subscriptions: ISO dates with zones, percentages, nearly constant and empty columns, an index
    sensors     a logger: UTF-16, tabs, time stamps, -999, comments on top, a time of day

Each function writes one file and returns its :class:`MessyTable`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class MessyTable:
    """A file and what is true of it.

    ``kinds`` are those of all columns but the target, ``values`` some numbers as they really are.
    """

    path: Path
    target: str
    task: str
    kinds: dict[str, str]
    values: dict[str, list[float]]


def _german(value: float, digits: int = 2) -> str:
    return f"{value:,.{digits}f}".replace(",", "_").replace(".", ",").replace("_", ".")


def _american(value: float) -> str:
    return f"(${-value:,.2f})" if value < 0 else f"${value:,.2f}"


def _with_gaps(
    cells: Sequence[str], share: float, words: Sequence[str], rng: np.random.Generator
) -> list[str]:
    return [str(rng.choice(words)) if rng.random() < share else cell for cell in cells]


def _days(start: datetime.date, rows: int, span: int, rng: np.random.Generator) -> list[datetime.date]:
    return [start + datetime.timedelta(days=int(day)) for day in rng.integers(0, span, rows)]


def _quoted(cell: str, delimiter: str) -> str:
    if any(mark in cell for mark in (delimiter, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _lines(header: Sequence[str], columns: Sequence[Sequence[str]], delimiter: str) -> list[str]:
    rows = [header, *zip(*columns, strict=True)]
    return [delimiter.join(_quoted(cell, delimiter) for cell in row) for row in rows]


def write_orders(folder: Path, rows: int = 400, seed: int = 0) -> MessyTable:
    """Write a German export; the target is whether an order was returned (ja, nein)."""
    rng = np.random.default_rng(seed)
    amount = np.round(np.exp(rng.normal(6, 1.2, rows)), 2)
    weight = np.round(rng.gamma(2.0, 1.5, rows), 3)
    days = _days(datetime.date(2023, 1, 1), rows, 700, rng)
    city = rng.choice(["München", "Köln", "Hamburg", "Düsseldorf"], rows, p=[0.4, 0.3, 0.2, 0.1])
    way = rng.choice(["Rechnung", "Lastschrift", "Kreditkarte"], rows)
    late = (np.log(amount) - 6) + 1.5 * (way == "Rechnung") + rng.logistic(0, 0.5, rows)
    columns = {
        "Bestell-Nr.": [f"B-{100000 + k}" for k in range(rows)],
        "Bestelldatum": [f"{day:%d.%m.%Y}" for day in days],
        "Betrag": [f"{_german(value)} €" for value in amount],
        "Gewicht (kg)": _with_gaps([_german(value, 3) for value in weight], 0.05, ["", "k.A."], rng),
        "PLZ": [f"{code:05d}" for code in rng.choice([1067, 4109, 20095, 50667, 80331], rows)],
        "Ort": list(city),
        "Zahlungsart": _with_gaps(list(way), 0.03, ["", "-"], rng),
        "Währung": ["EUR"] * rows,
        "Zurückgesandt": ["ja" if one > 0.5 else "nein" for one in late],
    }
    lines = _lines(list(columns), list(columns.values()), ";")
    lines += [";" * (len(columns) - 1)] * 3
    path = folder / "bestellungen.csv"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
    kinds = {
        "Bestell-Nr.": "identifier", "Bestelldatum": "date", "Betrag": "number", "Gewicht (kg)": "number",
        "PLZ": "category", "Ort": "category", "Zahlungsart": "category", "Währung": "constant",
    }  # fmt: skip
    return MessyTable(path, "Zurückgesandt", "classification", kinds, {"Betrag": amount[:20].tolist()})


def write_sales(folder: Path, rows: int = 400, seed: int = 0) -> MessyTable:
    """Write a US spreadsheet; the target is the profit in dollars."""
    rng = np.random.default_rng(seed)
    price = np.round(rng.gamma(2.0, 900.0, rows), 2)
    units = rng.integers(1, 2500, rows)
    region = rng.choice(["East", "West", "South", "None"], rows)
    member = rng.random(rows) < 0.4
    discount = np.round(rng.uniform(0, 40, rows), 1)
    profit = np.round(
        0.2 * price - 12 * discount + 150 * member + 100 * (region == "West") - 30 + rng.normal(0, 40, rows),
        2,
    )
    days = _days(datetime.date(2022, 1, 1), rows, 900, rng)
    columns = {
        " Order Date ": [f"{day.month}/{day.day}/{day.year}" for day in days],
        "Unit Price": _with_gaps([_american(value) for value in price], 0.04, ["N/A", "", "#DIV/0!"], rng),
        "Units": [f"{count:,}" for count in units],
        "Discount": [f"{value}%" for value in discount],
        "Region": list(region),
        "Member?": [("YES" if rng.random() < 0.1 else "yes") if one else "no" for one in member],
        "Sales Rep": [
            f"Rep {k}, {word}" for k, word in zip(rng.integers(1, 12, rows), ["Inc."] * rows, strict=True)
        ],
        "Profit": [_american(value) for value in profit],
    }
    path = folder / "sales report.csv"
    path.write_text(
        "\n".join(_lines(list(columns), list(columns.values()), ",")) + "\n", encoding="utf-8-sig"
    )
    kinds = {
        "Order Date": "date", "Unit Price": "number", "Units": "number", "Discount": "number",
        "Region": "category", "Member?": "boolean", "Sales Rep": "category",
    }  # fmt: skip
    values = {"Units": units[:20].astype(float).tolist(), "Discount": discount[:20].tolist()}
    return MessyTable(path, "Profit", "regression", kinds, values)


def write_clinic(folder: Path, rows: int = 300, seed: int = 0) -> MessyTable:
    """Write patients with gaps; the target is one of three diagnoses."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 95, rows)
    glucose = np.round(rng.normal(105, 25, rows), 1)
    smoker = rng.random(rows) < 0.3
    score = 0.05 * (glucose - 105) + 0.03 * (age - 55) + 1.2 * smoker + rng.logistic(0, 0.5, rows)
    words = [
        "patient",
        "reports",
        "mild",
        "pain",
        "after",
        "meals,",
        "sleeps",
        "well",
        "and",
        "walks",
        "daily",
        "without",
        "help",
        "since",
        "spring",
    ]
    comments = []
    for k in range(rows):
        some = list(rng.permutation(words)[: rng.integers(5, 12)])
        comments.append(
            " ".join(some[:4]) + ("\n" if k % 5 == 0 else " ") + " ".join(some[4:]) + f' "visit {k}"'
        )
    yes = np.array(["yes", "Yes", "YES"])
    columns = {
        "patient_id": [f"{value}" for value in rng.permutation(np.arange(5000, 5000 + 7 * rows, 7))],
        "age": _with_gaps([str(value) for value in age], 0.05, ["", "unknown"], rng),
        "glucose": _with_gaps([str(value) for value in glucose], 0.15, ["NA", "?", "."], rng),
        "smoker": _with_gaps(
            [str(rng.choice(yes)) if one else "no" for one in smoker], 0.1, ["", "N/A"], rng
        ),
        "ward": [f"{code:03d}" for code in rng.integers(1, 9, rows)],
        "insurance": list(rng.choice(["public", "private", "Unknown"], rows)),
        "comment": comments,
        "admitted": [f"{day:%Y-%m-%d}" for day in _days(datetime.date(2020, 2, 1), rows, 1200, rng)],
        "diagnosis": ["type 2" if one > 1.2 else "at risk" if one > -0.2 else "healthy" for one in score],
    }
    columns["diagnosis"][rows // 2] = ""
    path = folder / "clinic.csv"
    path.write_text("\n".join(_lines(list(columns), list(columns.values()), ",")) + "\n\n", encoding="utf-8")
    kinds = {
        "patient_id": "identifier", "age": "number", "glucose": "number", "smoker": "boolean",
        "ward": "category", "insurance": "category", "comment": "text", "admitted": "date",
    }  # fmt: skip
    return MessyTable(path, "diagnosis", "classification", kinds, {})


def write_churn(folder: Path, rows: int = 500, seed: int = 0) -> MessyTable:
    """Write subscriptions; the target is 0 or 1."""
    rng = np.random.default_rng(seed)
    months = rng.integers(1, 60, rows)
    used = np.round(rng.beta(2, 3, rows) * 100, 1)
    plan = rng.choice(["basic", "plus", "family", "business"], rows)
    fee = np.round(np.where(plan == "basic", 9.99, 19.99) + rng.normal(0, 1, rows), 2)
    leaves = (
        -0.05 * (months - 20) - 0.03 * (used - 40) + 0.8 * (plan == "basic") + rng.logistic(0, 0.6, rows)
        > 0.3
    )
    starts = [
        datetime.datetime(2021, 1, 1) + datetime.timedelta(minutes=int(one))
        for one in rng.integers(0, 2_000_000, rows)
    ]
    nearly = np.where(rng.random(rows) < 0.01, "trial", "paid")
    columns = {
        "": [str(k) for k in range(rows)],
        "account": [f"{rng.integers(0, 2**32):08x}-{k:04x}" for k in range(rows)],
        "signed_up_at": [f"{one:%Y-%m-%dT%H:%M:%S}+00:00" for one in starts],
        "plan": list(plan),
        "monthly_fee": [f"{value:.2f}" for value in fee],
        "months": [str(value) for value in months],
        "share_used": _with_gaps([f"{value} %" for value in used], 0.08, ["", "null"], rng),
        "auto_renew": ["true" if one else "false" for one in rng.random(rows) < 0.7],
        "state": list(nearly),
        "coupon": [""] * rows,
        "version": ["v2"] * rows,
        "churned": [str(int(one)) for one in leaves],
    }
    path = folder / "churn.csv"
    path.write_text("\n".join(_lines(list(columns), list(columns.values()), ",")) + "\n", encoding="utf-8")
    kinds = {
        "column 1": "identifier", "account": "identifier", "signed_up_at": "date", "plan": "category",
        "monthly_fee": "number", "months": "number", "share_used": "number", "auto_renew": "boolean",
        "state": "category", "coupon": "empty", "version": "constant",
    }  # fmt: skip
    return MessyTable(path, "churned", "classification", kinds, {"monthly_fee": fee[:20].tolist()})


def write_sensors(folder: Path, rows: int = 600, seed: int = 0) -> MessyTable:
    """Write a logger's file; the target is a temperature."""
    rng = np.random.default_rng(seed)
    start = datetime.datetime(2024, 3, 1, 6, 0)
    times = [start + datetime.timedelta(seconds=90 * k) for k in range(rows)]
    load = np.round(rng.gamma(3.0, 10.0, rows), 2)
    flow = np.round(rng.normal(4.0, 0.5, rows), 3)
    outside = np.round(10 + 6 * np.sin(np.arange(rows) / 90) + rng.normal(0, 0.5, rows), 1)
    heat = np.round(20 + 0.4 * load - 2.5 * flow + 0.5 * outside + rng.normal(0, 0.8, rows), 2)
    gone = rng.random(rows) < 0.03
    columns = {
        "timestamp": [f"{one:%Y-%m-%d %H:%M:%S}.{one.second:03d}" for one in times],
        "clock": [f"{one:%I:%M %p}" for one in times],
        "load": [f" {value}" for value in load],
        "flow": ["-999" if lost else f"{value}" for lost, value in zip(gone, flow, strict=True)],
        "outside": _with_gaps([f"{value}" for value in outside], 0.02, ["error"], rng),
        "valve": list(rng.choice(["open", "closed", "half"], rows)),
        "unit": ["°C"] * rows,
        "temperature": [f"{value}" for value in heat],
    }
    lines = [
        "# logger 7, exported from the boiler room",
        "",
        *_lines(list(columns), list(columns.values()), "\t"),
    ]
    path = folder / "sensors.tsv"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("utf-16"))
    kinds = {
        "timestamp": "date", "clock": "number", "load": "number", "flow": "number", "outside": "number",
        "valve": "category", "unit": "constant",
    }  # fmt: skip
    return MessyTable(path, "temperature", "regression", kinds, {"load": load[:20].tolist()})


MESSY_TABLES: dict[str, Callable[[Path, int, int], MessyTable]] = {
    "orders": write_orders,
    "sales": write_sales,
    "clinic": write_clinic,
    "churn": write_churn,
    "sensors": write_sensors,
}
