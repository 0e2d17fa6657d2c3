"""A part of ``make gauntlet``: every learner, loss and penalty on every table, with one strength each.

Which of the strengths it is goes round from table to table, so that every group meets each of them.
"""

from itertools import groupby

import pytest

from benchmarks.gauntlet import families, fits, tables
from benchmarks.gauntlet.settings import settings

ROWS = 300  # of a real table
PENN_ROWS = 150
EXPECTED = ("RankWarning", "SeparationWarning")  # they say something about the data
GROUPS = [list(some) for _, some in groupby(settings(), lambda setting: setting.group)]
LEARNERS = list(dict.fromkeys(some[0].learner for some in GROUPS))
PLACES = [(name, kind, ROWS) for name in tables.BUNDLED for kind in tables.PREPARATIONS]
PLACES += [(name, "synthetic", 0) for name in families.FAMILIES]
PENN = [
    (name, kind, PENN_ROWS)
    for name in tables.TASKS
    if name not in tables.BUNDLED
    for kind in tables.PREPARATIONS
]


def cases():
    """Yield (learner, table, preparation, rows, the jobs of it)."""
    for number, place in enumerate(PLACES + PENN):
        for learner in LEARNERS:
            some = [group for group in GROUPS if group[0].learner == learner]
            if place in PENN:  # there are many of them: one group each
                some = [some[number % len(some)]]
            jobs = [fits.Job(*place, group[(number + k) % len(group)]) for k, group in enumerate(some)]
            jobs = [job for job in jobs if job.setting.task in tasks(place)]
            if jobs:
                yield pytest.param(jobs, id=f"{learner}, {place[0]}, {place[1]}")


def tasks(place):
    name, preparation, _ = place
    return families.FAMILIES[name].tasks if preparation == "synthetic" else (tables.TASKS[name],)


def limited(job):
    """Return the job with a limit of its time: one that hangs shall fail."""
    options = job.setting.options | {"time_limit": 30.0}
    return job._replace(setting=job.setting._replace(options=options))


def troubles(job):
    """Return what is wrong with a fit, in words."""
    fit, verify, _ = fits.stages(limited(job), with_peers=False)
    wrong = [fit.get("error") or f"gap {fit['gap']:.1e}"] * (not fit["certified"])
    wrong += [verify.get("verify_error", "not verified")] * (not verify["verified"])
    expected = EXPECTED + ("StoppedEarly: Stopped by max_iter",) * (job.setting.learner == "Perceptron")
    wrong += [text for text in fit["warnings"] if not text.startswith(expected)]
    return [f"{job.key}: {text}" for text in wrong]


@pytest.mark.parametrize("jobs", list(cases()))
def test_fits_are_certified_confirmed_and_silent(jobs):
    found = [text for job in jobs for text in troubles(job)]
    assert not found, "\n".join(found)
