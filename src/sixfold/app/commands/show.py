"""``sixfold show``: what a model file holds, without building the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sixfold.app.plain_text import figure, labelled, listed, paragraph, print_json, table, visible
from sixfold.plain_words import counted

MOST = 40  # columns of a table that are listed one by one


def run(model: str, *, as_json: bool = False) -> int:
    """Say what is in a model file, and return the exit code."""
    from sixfold.app.model_file import read_header

    file = read_header(model)
    header, facts = file.header, file.facts or {}
    if as_json:
        print_json({"file": model, "header": header, "facts": facts})
        return 0
    name = Path(model).name
    parts = [
        _summary(name, header, facts),
        _leaderboard(facts),
        _columns(facts),
        _set_aside(facts),
        _cautions(facts),
        _versions(header, facts),
    ]
    print("\n\n".join("\n".join(part) for part in map(list, parts) if part))
    return 0


def _summary(name: str, header: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    """Give what it is, trained on what, how good, how exact."""
    learner = facts.get("learner") or header.get("learner") or header.get("class", "a model")
    what = f"{visible(name)}: {visible(learner)}"
    if facts.get("target"):
        what += f", predicts {visible(facts['target'])!r} ({facts.get('task', 'task unknown')})"
    yield paragraph(what, "  ", "")
    yield ""
    data, split = _part(facts, "data"), _part(facts, "split")
    if data:
        yield labelled("trained on", _trained_on(data, split))
        if data.get("fingerprint"):
            yield labelled("fingerprint", visible(data["fingerprint"]))
    else:
        yield labelled("trained on", "unknown: it was written by sixfold.save, not by `sixfold fit`")
    classes = facts.get("classes")
    if isinstance(classes, Sequence) and not isinstance(classes, str):
        yield labelled("classes", listed(classes, 10))
    parameters = _part(facts, "parameters")
    if parameters:
        yield labelled("parameters", ", ".join(f"{visible(k)}={_value(v)}" for k, v in parameters.items()))
    if facts.get("choice"):
        yield labelled("chosen", visible(facts["choice"]))
    if scores := _part(facts, "scores"):
        yield labelled("scores", _scores(scores, facts, split))
    certificate = _part(facts, "certificate")
    if text := certificate.get("plain") or certificate.get("text"):
        yield labelled("certificate", visible(text))


def _trained_on(data: Mapping[str, Any], split: Mapping[str, Any]) -> str:
    """Return name and size of the table, and how many rows were learnt from and held out."""
    said = f"{visible(data.get('name', 'unknown'))}: {_count(data, 'rows', 'row')}, "
    said += _count(data, "columns", "column")
    if isinstance(split.get("train_rows"), int):
        said += f"; {split['train_rows']:,} to learn from"
        if split.get("test_rows"):
            said += f", {split['test_rows']:,} held out"
    if split.get("sample"):
        said += f"; sample of {split['sample']:,} rows" if isinstance(split["sample"], int) else "; a sample"
    if split.get("seed") is not None:
        said += f"; seed {split['seed']}"
    return said


def _scores(scores: Mapping[str, Any], facts: Mapping[str, Any], split: Mapping[str, Any]) -> str:
    """Return the scores of cross-validation, of the test and of the baseline."""
    said = [f"{_metric(facts)}:"]
    if scores.get("cv_mean") is not None:
        folds = f" on {split['folds']} folds" if split.get("folds") else ""
        said.append(f"{_with_spread(scores['cv_mean'], scores.get('cv_std'))} in cross-validation{folds},")
    if scores.get("test") is not None:
        said.append(f"{figure(scores['test'])} on the test rows,")
    if scores.get("baseline") is not None:
        said.append(f"{figure(scores['baseline'])} for a baseline that ignores the columns,")
    return " ".join(said).rstrip(",")


def _leaderboard(facts: Mapping[str, Any]) -> Iterator[str]:
    """Give the learners that took part."""
    entries = [one for one in facts.get("leaderboard") or [] if isinstance(one, Mapping)]
    there = [one for one in entries if not one.get("left_out")]
    rows = []
    for one in there:
        p = one.get("p_value")
        rows.append(
            (
                one.get("name") or one.get("learner") or "",
                _with_spread(one.get("mean"), one.get("std")),
                "" if one.get("test") is None else figure(one["test"]),
                f"{p:.3f}" if isinstance(p, float) else "",
                ", ".join(f"{k}={_value(v)}" for k, v in _part(one, "parameters").items()),
            )
        )
    if rows:
        yield table(("learner", _metric(facts), "test", "p", "parameters"), rows, shorten=4)
    for one in entries:
        if one.get("left_out"):
            name = one.get("name") or one.get("learner") or ""
            yield paragraph(visible(f"{name} was left out: {one['left_out']}"), "    ", "")


def _columns(facts: Mapping[str, Any]) -> Iterator[str]:
    """Give the columns that are read, with their kinds."""
    used = [one for one in _schema(facts) if one.get("role") != "set aside"]
    rows = []
    for one in used[:MOST]:
        role = one.get("role", "feature")
        about = [] if role == "feature" else [str(role)]
        about += [str(one["reason"])] if one.get("reason") else []
        values = one.get("examples") or ()
        about += [f"such as {listed(values, 3)}"] if values and not about else []
        rows.append((one["name"], one.get("kind", ""), one.get("missing", 0), "; ".join(about)))
    if rows:
        yield table(("column", "kind", "missing", ""), rows, right=[2], shorten=3)
    if len(used) > MOST:
        yield f"and {counted(len(used) - MOST, 'column')} more (--json lists all)"


def _set_aside(facts: Mapping[str, Any]) -> Iterator[str]:
    """Give the columns that are not used, and why."""
    unused = [one for one in _schema(facts) if one.get("role") == "set aside"]
    if unused:
        yield "set aside"
    for one in unused[:MOST]:
        why = one.get("reason") or one.get("kind", "")
        yield paragraph(f"{visible(one['name'])}: {visible(why)}", "    ", "  ")
    if len(unused) > MOST:
        yield f"  and {counted(len(unused) - MOST, 'column')} more (--json lists all)"


def _cautions(facts: Mapping[str, Any]) -> Iterator[str]:
    """Give what to be careful about."""
    cautions = facts.get("cautions") or []
    if cautions:
        yield "be careful"
    for one in cautions:
        text = (one.get("text") or one.get("title") or "") if isinstance(one, Mapping) else one
        yield paragraph(visible(text), "    ", "  - ")


def _versions(header: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    """Give what wrote the file."""
    versions = {"sixfold": header.get("sixfold"), **_part(header, "versions"), **_part(facts, "versions")}
    said = [f"{visible(name)} {visible(one)}" for name, one in versions.items() if one]
    if header.get("format") is not None:
        said.append(f"model file format {visible(header['format'])}")
    if isinstance(header.get("bytes"), int):
        said.append(f"{header['bytes']:,} bytes")
    if said:
        yield labelled("written by", ", ".join(said))


def _part(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def _schema(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    columns = _part(facts, "schema").get("columns") or []
    return [one for one in columns if isinstance(one, Mapping) and "name" in one]


def _metric(facts: Mapping[str, Any]) -> str:
    return visible(facts.get("metric") or "score")


def _count(data: Mapping[str, Any], key: str, name: str) -> str:
    count = data.get(key)
    return counted(count, name) if isinstance(count, int) else f"an unknown number of {name}s"


def _with_spread(mean: Any, spread: Any) -> str:
    """Return a mean with its deviation, to as many decimals."""
    shown = figure(mean)
    if not isinstance(spread, float):
        return shown
    return (
        f"{shown} ± {spread:.3f}" if shown.count(".") and "e" not in shown else f"{shown} ± {figure(spread)}"
    )


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else visible(value)
