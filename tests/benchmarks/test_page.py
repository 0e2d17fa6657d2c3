"""docs/benchmarks.md: a run renews what it measured, and nothing else."""

from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.families import FAMILIES, chosen_cases, measured_means
from benchmarks.runner import Row

SETUP = {"processor": "one", "load before the run": "0.7"}
OLS, LASSO = (case.title for case in chosen_cases(["ols", "lasso"]))
TREE = chosen_cases(["tree_small"])[0].title
README = f"# Title\n\n| work | peer |  |  |\n|---|---|---|---|\n| {OLS} | scikit-learn | 1x | 0 / 0 |\nend\n"


def measured(title, peer, ratio, **parts):
    ours = Row(title, "sixfold", ratio=1.0, error=2e-31, accurate=True, memory=0.02)
    theirs = {"quartiles": (27.11, 28.9), "error": 2e-8, "accurate": True} | parts
    return [ours, Row(title, peer, ratio=ratio, **theirs)]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "README.md").write_text(README)
    return tmp_path / "benchmarks.md", tmp_path / "README.md"


def line(path, name):
    return next(cells for cells in map(page._cells, path.read_text().splitlines()) if name in cells)


def test_a_line_has_ratio_accuracies_memories_and_setup(files):
    page.update(*files, measured(OLS, "scikit-learn", 28.26, memory=1.5, remark="tol=1e-3"), SETUP)
    assert line(files[0], OLS) == [
        OLS,
        "scikit-learn (tol=1e-3)",
        "28x (27 to 29)",
        "2e-31 / 2e-8",
        "2% / 150%",
        "1",
    ]
    assert "1. processor: one\n" in files[0].read_text()


@pytest.mark.parametrize(
    ("ratio", "said"), [(0.0971, "0.097x"), (1.0, "1x"), (152.4, "150x"), (1520.0, "1500x")]
)
def test_ratios_have_two_digits(files, ratio, said):
    page.update(*files, measured(OLS, "scikit-learn", ratio, quartiles=None), SETUP)
    assert line(files[0], OLS)[2] == said


def test_unequal_work_and_no_answer_are_marked(files):
    page.update(*files, measured(OLS, "scikit-learn", 2.0, accurate=False, error=float("nan")), SETUP)
    assert line(files[0], OLS)[2:4] == ["2x † (27 to 29)", "2e-31 / none"]


def test_a_run_of_some_cases_renews_their_lines_and_keeps_the_others(files):
    page.update(*files, measured(OLS, "scikit-learn", 2.0) + measured(LASSO, "skglm", 3.0), SETUP)
    page.update(*files, measured(LASSO, "skglm", 4.0) + measured(TREE, "scikit-learn", 5.0), SETUP)
    assert [line(files[0], title)[2][:2] for title in (OLS, LASSO, TREE)] == ["2x", "4x", "5x"]
    text = files[0].read_text()
    assert text.index("## Linear regression") < text.index(OLS) < text.index(LASSO)
    assert text.index(LASSO) < text.index("## Decision trees") < text.index(TREE) < text.index("## Setups")
    assert text.count("\n1. ") == 1
    assert "\n2. " not in text


def test_peers_of_one_case_are_renewed_each_for_itself(files):
    ours, first = measured(OLS, "scikit-learn", 2.0)
    second = measured(OLS, "numpy lstsq", 3.0)[1]
    page.update(*files, [ours, first, second], SETUP)
    page.update(*files, [ours, first, Row(OLS, "numpy lstsq", installed=False)], SETUP)
    assert line(files[0], "numpy lstsq")[:3] == ["", "numpy lstsq", "3x (27 to 29)"]


def test_every_line_says_in_which_setup_it_was_measured(files):
    page.update(*files, measured(OLS, "scikit-learn", 2.0) + measured(LASSO, "skglm", 3.0), SETUP)
    page.update(*files, measured(LASSO, "skglm", 4.0), SETUP | {"processor": "two"})
    assert [line(files[0], title)[-1] for title in (OLS, LASSO)] == ["1", "2"]
    assert files[0].read_text().endswith("## Setups\n\n1. processor: one\n2. processor: two\n")
    page.update(*files, measured(OLS, "scikit-learn", 2.0), SETUP | {"processor": "two"})
    assert files[0].read_text().endswith("## Setups\n\n1. processor: two\n")


def test_the_load_of_the_moment_is_no_part_of_a_setup(files):
    for load in ("0.1", "0.9"):
        page.update(*files, measured(OLS, "scikit-learn", 2.0), SETUP | {"load before the run": load})
    assert files[0].read_text().endswith("## Setups\n\n1. processor: one\n")


def test_cases_and_peers_that_are_no_more_are_dropped(files):
    page.update(*files, measured("a case of old", "peer", 2.0) + measured(OLS, "a peer of old", 2.0), SETUP)
    assert "of old" not in files[0].read_text()


def test_data_that_are_not_there_leave_what_was_measured(files):
    page.update(*files, measured(OLS, "scikit-learn", 2.0), SETUP)
    before = files[0].read_text()
    absent = [Row(OLS, name, installed=False, remark="no data") for name in ("sixfold", "scikit-learn")]
    page.update(*files, absent, SETUP | {"processor": "two"})
    assert files[0].read_text() == before


def test_sixfold_alone_has_no_ratio(files):
    title = chosen_cases(["query_memory"])[0].title
    page.update(*files, [Row(title, "sixfold", ratio=1.0, error=0.0, accurate=True, memory=0.4)], SETUP)
    assert line(files[0], title) == [title, "sixfold", "", "0", "40%", "1"]


def test_a_peer_that_was_stopped_is_at_least_as_slow(files):
    page.update(*files, measured(OLS, "scikit-learn", 57.2, quartiles=None, at_least=True), SETUP)
    assert line(files[0], OLS)[2] == ">= 57x"


def test_a_mean_has_its_line_and_keeps_it(files):
    mean = next(mean for family in FAMILIES for mean in family.means)
    rows = [
        Row(title, name, ratio=2.0, accurate=True) for title in mean.cases for name in ("sixfold", mean.peer)
    ]
    page.update(*files, measured_means(rows), SETUP)
    assert line(files[0], mean.title) == [mean.title, mean.peer, "2x", "", "", "1"]
    page.update(*files, measured(OLS, "scikit-learn", 2.0) + measured_means(rows[2:]), SETUP)
    assert line(files[0], mean.title)[2] == "2x"


def test_the_short_table_of_the_readme_is_renewed_too(files):
    page.update(*files, measured(OLS, "scikit-learn", 2.0) + measured(LASSO, "skglm", 3.0), SETUP)
    assert files[1].read_text() == README.replace("| 1x | 0 / 0 |", "| 2x | 2e-31 / 2e-8 |")


def test_files_are_replaced_whole(files, monkeypatch):
    files[0].write_text("before")
    monkeypatch.setattr("pathlib.Path.replace", lambda *paths: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        page.update(*files, measured(OLS, "scikit-learn", 2.0), SETUP)
    assert files[0].read_text() == "before"


def test_reading_gives_back_what_was_written(files):
    page.update(*files, measured(OLS, "scikit-learn", 2.0, remark="solver=lbfgs (its own)"), SETUP)
    text = files[0].read_text()
    assert page.render(page.read(text)) == text


def test_a_room_a_file_and_a_case_can_be_asked_for():
    everything = [case for family in FAMILIES for case in family.cases]
    assert chosen_cases([]) == everything
    rooms = {family.file: list(family.cases) for family in FAMILIES}
    for room in ("linear", "trees"):
        files = [cases for file, cases in rooms.items() if file.startswith(f"{room}.")]
        assert len(files) > 1
        assert chosen_cases([room]) == [case for file in files for case in file]
    assert chosen_cases(["trees.cases"]) == rooms["trees.cases"]
    assert [case.name for case in chosen_cases(["lasso", "svm_iris"])] == ["lasso", "svm_iris"]
    with pytest.raises(ValueError, match=r"case is called tree; there are linear, linear\.regression, ols"):
        chosen_cases(["tree", "lasso"])


def test_half_an_hour_leaves_out_what_takes_long_unless_it_is_asked_for():
    cases = chosen_cases([])
    assert chosen_cases([], full=False) == [case for case in cases if not case.long] != cases
    assert [case.name for case in chosen_cases(["lmnn"], full=False)] == ["lmnn"]


def test_names_and_titles_of_cases_are_unique():
    cases = chosen_cases([])
    assert len({case.name for case in cases}) == len({case.title for case in cases}) == len(cases)
    means = [mean for family in FAMILIES for mean in family.means]
    titles = {case.title: {peer.name for peer in case.contenders[1:]} for case in cases}
    assert not titles.keys() & {mean.title for mean in means}
    assert all(mean.peer in titles[title] for mean in means for title in mean.cases)
    assert all(case.contenders[0].name == "sixfold" for case in cases)


def test_the_page_is_what_the_writer_writes_and_the_readme_has_its_figures():
    root = Path(__file__).parents[2]
    text, readme = ((root / name).read_text() for name in ("docs/benchmarks.md", "README.md"))
    lines = page.read(text)
    assert page.render(lines) == text
    assert page.renew_short_table(readme, lines) == readme
    short = [cells for cells in map(page._cells, readme.splitlines()) if len(cells) == 4]
    assert len(short) > 5
    assert all((cells[0], cells[1]) in lines for cells in short[2:])
