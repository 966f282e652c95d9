"""Pages of docs/reference that are made from the code say what the code says."""

import re
from pathlib import Path

import pytest
from scripts.reference.pages import PAGES, written
from tests.site.conftest import ROOT

from oomwatch.web.guard import AGENT_PATH
from oomwatch.web.live import LIVE_PATH
from oomwatch.web.oidcdoor import OIDC_BACK
from oomwatch.web.signin import SIGN_IN, SIGN_OUT
from oomwatch.web.signinpage import OIDC_START

# Named in texts that say how variables are named, and by the tests of other programs.
_NO_VARIABLES = {"OOMWATCH_"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_is_made_from_the_code_is_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == written(PAGES[page]), "run: make docs-reference"


def test_every_variable_that_the_code_reads_is_documented() -> None:
    sources = [*ROOT.glob("backend/**/*.py"), *ROOT.glob("agent/**/*.py")]
    named = {name for one in sources for name in re.findall(r"\bOOMWATCH_[A-Z_]*", one.read_text(encoding="utf-8"))}
    told = set(re.findall(r"\bOOMWATCH_[A-Z_0-9]*", (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")))
    assert named - told - _NO_VARIABLES == set()


def test_every_route_beside_the_interface_is_documented() -> None:
    sources = [one.read_text(encoding="utf-8") for one in (ROOT / "backend/oomwatch/web").glob("*.py")]
    paths = {path for text in sources for path in re.findall(r'Route\("(/[a-z]+)"', text)}
    paths |= {SIGN_IN, SIGN_OUT, OIDC_START, OIDC_BACK, LIVE_PATH, AGENT_PATH}
    told = (ROOT / "docs/reference/routes.md").read_text(encoding="utf-8")
    assert paths
    assert [path for path in paths if path not in told] == []
