"""The tables of docs/reference/metrics.md, from what the families say of themselves.

python -m tests.server.write_metrics_page     writes them anew
"""

import re
from collections.abc import Iterable
from pathlib import Path

from oomwatch.metrics import dcgm
from oomwatch.metrics.family import LARGE_FLEET, Family
from oomwatch.metrics.page import families

PAGE = Path(__file__).resolve().parent.parent.parent / "docs/reference/metrics.md"


TABLES = {"families": families(), "dcgm": dcgm.ROOM.families}


def row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "none"
    per = " and ".join(family.per) or "server"
    kind = family.kind if family.kind == "histogram" else ""
    per += f", {LARGE_FLEET['bucket'] + 3} each" if kind else ""
    return f"| `{family.shown_name}` | {labels} | {per} | {family.bound(LARGE_FLEET):,} | {family.about} |"


def table(told: Iterable[Family]) -> str:
    head = "| metric | labels | one per | at 1,024 GPUs | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(f"{row(family)}\n" for family in told)


def page_with(name: str, content: str) -> str:
    """The page with this between the marks of that name."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    marked = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    text = PAGE.read_text(encoding="utf-8")
    assert marked.search(text), f"the page has no marks for {name}"
    return marked.sub(lambda _: f"{start}\n{content}\n{end}", text)


if __name__ == "__main__":
    for name, told in TABLES.items():
        PAGE.write_text(page_with(name, table(told)), encoding="utf-8")
