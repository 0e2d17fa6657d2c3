"""What the README and the chapters say in Python runs as it stands, each page from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_on_a_page_runs(page, capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page):
    named = set(re.findall(r"[\w./-]+\.(?:py|cpp|hpp)\b", page.read_text(encoding="utf-8")))
    folders = (ROOT, ROOT / "src/sixfold", page.parent)
    known = {path.name for folder in ("src", "native") for path in (ROOT / folder).rglob("*.*")}
    missing = [name for name in named if not any((folder / name).exists() for folder in folders)]
    assert not [name for name in missing if "/" in name or name not in known]


@pytest.mark.parametrize("folder", ["src", "native"])
def test_files_that_the_code_names_are_there(folder):
    folders = (ROOT, ROOT / "src/sixfold", ROOT / "native")
    missing = [
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".cpp", ".hpp")
        for name in re.findall(r"[\w./-]*/[\w.-]+\.(?:py|cpp|hpp)\b", path.read_text(encoding="utf-8"))
        if not any((place / name).exists() for place in folders)
    ]
    assert not missing


def test_the_drawn_tree_is_the_one_there_is():
    drawn = "\n".join([*branches("src"), *branches("native")])
    assert f"```\n{drawn}\n```" in (ROOT / "docs/design.md").read_text(encoding="utf-8")


def branches(folder):
    """Return the lines of ``tree -L 3 folder``, without what is built."""

    def below(path, indent, levels):
        built = re.compile(r"__pycache__|v\d|.*\.so")
        inside = sorted(one for one in path.iterdir() if not built.fullmatch(one.name))
        for number, one in enumerate(inside, 1):
            last = number == len(inside)
            yield f"{indent}{'└── ' if last else '├── '}{one.name}"
            if one.is_dir() and levels > 1:
                yield from below(one, indent + ("    " if last else "│   "), levels - 1)

    return [folder, *below(ROOT / folder, "", 3)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for name, place in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        target = page.parent / name if name else page
        assert target.exists(), name
        assert not place or place in anchors(target), f"{name}#{place}"


def anchors(page):
    """Return the places of a page that can be linked to: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
