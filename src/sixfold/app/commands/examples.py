"""``sixfold examples``: the built-in tables."""

from __future__ import annotations

from sixfold.app.plain_text import paragraph, print_json, table
from sixfold.data.examples import EXAMPLES, load_example
from sixfold.data.files.tables import read_table


def run(as_json: bool = False) -> int:
    """List the built-in tables, and return the exit code."""
    found = []
    for name in EXAMPLES:
        example = load_example(name)
        source = f"example:{name.replace(' ', '_')}"
        found.append(
            {
                "name": source,
                "rows": len(example.y),
                "columns": len(example.columns),
                "task": example.task,
                "target": str(read_table(source).target),
                "about": example.about,
            }
        )
    if as_json:
        print_json(found)
        return 0
    header = ("data", "rows", "columns", "task", "target")
    rows = [(one["name"], f"{one['rows']:,}", one["columns"], one["task"], one["target"]) for one in found]
    print(table(header, rows, right=[1, 2]))
    print()
    for one in found:
        print(paragraph(f"{one['name']}: {one['about']}", "    ", ""))
    print()
    print(
        paragraph(
            "To try one: sixfold fit example:iris. A table of your own: sixfold fit FILE --target COLUMN."
        )
    )
    return 0
