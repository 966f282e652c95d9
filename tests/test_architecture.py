"""The import arrows of docs/explanation/architecture.md, read from the source of every module."""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ROOTS = [ROOT / "backend", ROOT / "agent", ROOT / "frontend"]
OURS = {"oomwatch", "oomwatch_agent", "oomwatch_frontend", "oomwatch_probe"}

# The rooms of the house, and what each may import of our own besides itself. A module belongs to the room with the
# longest name that it starts with; a room that is not here is not in the architecture page either.
SHARED = {"oomwatch", "oomwatch.wire", "oomwatch.options", "oomwatch.oserror", "oomwatch.units", "oomwatch.yamltext"}
READERS = {
    "oomwatch.access",
    "oomwatch.advice",
    "oomwatch.catalogue",
    "oomwatch.figures",
    "oomwatch.letters",
    "oomwatch.listener",
    "oomwatch.rulefile",
    "oomwatch.scorecard",
    "oomwatch.settings",
    "oomwatch.story",
    "oomwatch.trace",
    "oomwatch.wording",
    "oomwatch.yamlread",
}
OUTER = {"oomwatch.hub", "oomwatch.metrics", "oomwatch.notify", "oomwatch.store"}
INSIDE = SHARED | READERS | {"oomwatch.core", "oomwatch.plan", "oomwatch.tasks"}
WIRED = (
    INSIDE
    | OUTER
    | {
        "oomwatch.cluster",
        "oomwatch.incident",
        "oomwatch.oidc",
        "oomwatch.senders",
        "oomwatch.service",
        "oomwatch_frontend",
    }
)
STORED = {"oomwatch.store", "oomwatch.commands.stored"}  # of commands that work on the server's database
MAY_IMPORT: dict[str, set[str]] = {
    "oomwatch": set(),  # the version, and nothing else
    "oomwatch.wire": {"oomwatch.units"},
    "oomwatch.options": {"oomwatch.oserror", "oomwatch.units", "oomwatch.yamltext"},
    "oomwatch.oserror": set(),
    "oomwatch.yamltext": set(),
    "oomwatch.units": set(),
    "oomwatch.tasks": set(),
    "oomwatch.core": {"oomwatch.wire", "oomwatch.units", "oomwatch.plan"},
    "oomwatch.plan": {"oomwatch.wire", "oomwatch.units"},
    **dict.fromkeys(READERS, INSIDE),
    "oomwatch.rulefile": INSIDE | {"oomwatch.notify"},  # the section that says whom to tell: each channel has its own
    "oomwatch.service": INSIDE,
    **dict.fromkeys(OUTER, INSIDE | {"oomwatch.service"}),
    "oomwatch.notify": INSIDE - {"oomwatch.rulefile"},
    "oomwatch.incident": INSIDE | {"oomwatch.service", "oomwatch.store"},
    "oomwatch.senders": INSIDE | {"oomwatch.notify"},
    "oomwatch.oidc": INSIDE | {"oomwatch.notify"},  # the way out has one gate
    "oomwatch.cluster": INSIDE
    | {"oomwatch.service"},  # the store by protocols of its own; web/clustered.py joins the two
    "oomwatch.web": WIRED | {"oomwatch.doctor", "oomwatch.doctor.read", "oomwatch.ruleedit", "oomwatch.tryout"},
    "oomwatch.up": INSIDE,  # it starts the programs, and is none
    # Logs of runs that are over are read by the agent's own parsers, which are pure.
    "oomwatch.backtest": INSIDE | {"oomwatch_agent.logs"},
    "oomwatch.doctor": INSIDE | {"oomwatch.doctor.read"},
    "oomwatch.doctor.read": INSIDE | {"oomwatch.doctor.read.printed"},
    "oomwatch.doctor.read.printed": INSIDE | {"oomwatch.doctor.read", "oomwatch_agent.logs"},  # as for backtest
    "oomwatch.ruletest": INSIDE,
    "oomwatch.metrics": INSIDE | {"oomwatch.service", "oomwatch.metrics.names"},
    "oomwatch.metrics.names": INSIDE,  # what a signal is called outside, for who writes rules on it too
    "oomwatch.promrules": INSIDE | {"oomwatch.metrics.names"},
    "oomwatch.ruleedit": INSIDE | {"oomwatch.notify"},
    "oomwatch.tryout": INSIDE | {"oomwatch.backtest", "oomwatch.store"},
    "oomwatch.commands": INSIDE | {"oomwatch.backtest", "oomwatch.ruletest", "oomwatch.promrules"},
    "oomwatch.commands.stored": INSIDE | {"oomwatch.store"},
    "oomwatch.commands.scorecard": INSIDE | STORED | {"oomwatch.commands.client"},
    "oomwatch.commands.backup": INSIDE | STORED,
    "oomwatch.commands.anew": INSIDE | STORED,
    "oomwatch.commands.access": INSIDE | STORED | {"oomwatch.commands", "oomwatch.commands.alerts"},
    "oomwatch.commands.users": INSIDE
    | {"oomwatch.commands", "oomwatch.commands.access", "oomwatch.commands.alerts", "oomwatch.store"},
    "oomwatch.commands.export": INSIDE | STORED | {"oomwatch.tryout"},
    "oomwatch.commands.incident": INSIDE | STORED | {"oomwatch.incident"},
    "oomwatch.commands.client": INSIDE,
    "oomwatch.commands.doctor": INSIDE
    | {"oomwatch.commands", "oomwatch.commands.client", "oomwatch.doctor", "oomwatch.doctor.read"},
    # It does what agent and server do when they start, and keeps nothing of it.
    "oomwatch.commands.installation": INSIDE
    | {"oomwatch.commands", "oomwatch.notify", "oomwatch.store", "oomwatch_agent"},
    # What each agent of a Ray cluster is to be told is read by the agent's own settings.
    "oomwatch.commands.ray": INSIDE | {"oomwatch.commands", "oomwatch_agent"},
    "oomwatch.commands.alerts": INSIDE | {"oomwatch.commands", "oomwatch.commands.client"},
    "oomwatch.commands.silence": INSIDE | {"oomwatch.commands", "oomwatch.commands.alerts", "oomwatch.commands.client"},
    "oomwatch.commands.storage": INSIDE | {"oomwatch.commands", "oomwatch.commands.alerts", "oomwatch.commands.client"},
    "oomwatch.commands.rules": INSIDE | {"oomwatch.commands", "oomwatch.commands.client", "oomwatch.ruleedit"},
    "oomwatch.commands.rules_try": INSIDE
    | STORED
    | {"oomwatch.commands", "oomwatch.commands.client", "oomwatch.tryout"},
    **dict.fromkeys(
        ("oomwatch.commands.rule_check", "oomwatch.commands.notify_trial"),
        INSIDE | {"oomwatch.commands", "oomwatch.notify"},
    ),
    "oomwatch.commandline": INSIDE | {"oomwatch.commands"},
    "oomwatch.serve": INSIDE | {"oomwatch.store", "oomwatch.web"},
    "oomwatch.__main__": {"oomwatch.commandline", "oomwatch.options", "oomwatch.oserror"},
    "oomwatch_agent": SHARED | {"oomwatch_agent.logs"},
    "oomwatch_agent.logs": SHARED,
    "oomwatch_probe": set(),  # it runs inside the trainer
    "oomwatch_frontend": set(),
}

# Pure modules of the standard library: they give the same for the same, whatever the machine or the moment.
PURE = {
    "abc", "array", "ast", "base64", "bisect", "collections", "contextlib", "dataclasses", "difflib", "enum", "fnmatch",
    "fractions", "functools", "hashlib", "heapq", "hmac", "ipaddress", "itertools", "json", "math", "operator", "re",
    "statistics", "string", "struct", "textwrap", "types", "typing", "unicodedata", "zlib",
}  # fmt: skip
PURE_PACKAGES = {"msgspec", "re2"}
PURE_ROOMS = {
    "oomwatch.core",
    "oomwatch.plan",
    "oomwatch.doctor",
    "oomwatch.doctor.read",
    "oomwatch.doctor.read.printed",
}
# The driver's library, the heap, and the end of a child with its parent.
CALLERS_OF_NATIVE_CODE = {
    "oomwatch_agent.cards.nvml_calls",
    "oomwatch_agent.cards.nvml_gpu",
    "oomwatch_agent.heap",
    "oomwatch.up",
    "oomwatch.web.heap",
}
_YAML_TEXT = {"yaml"}  # text in, values out
PURE_IN = {
    "oomwatch.core.mute.times": {"datetime"},  # calendars; that it asks no clock the test below sees to
    "oomwatch.tryout.table": {"datetime"},
    "oomwatch.oidc.discovery": {"urllib"},  # addresses taken apart
    "oomwatch.plan.verlkeys": {"importlib"},  # its own file, which belongs to the code
    "oomwatch.doctor.templates.template": {"importlib"},  # the same
    "oomwatch.doctor.read.yamlfile": _YAML_TEXT,
    "oomwatch.store.columns": {"sys"},  # the order of bytes
    **dict.fromkeys((f"oomwatch.ruleedit.{name}" for name in ("marks", "mask", "switch", "unmask")), _YAML_TEXT),
}
# Which nodes of one tree are the same, and nothing beyond it.
BY_IDENTITY = {"oomwatch.ruleedit.marks", "oomwatch.ruleedit.unmask"}


class Module(NamedTuple):
    name: str
    tree: ast.Module
    imports: tuple[str, ...]  # full names of the modules, as far as the source alone can tell
    says_pure: bool  # its first paragraph does


@cache
def _modules() -> tuple[Module, ...]:
    """All of ours."""
    found = tuple(_read())
    assert len(found) > 5, "the source was not found, so that nothing would be tested"
    return found


def _read() -> Iterator[Module]:
    for root in ROOTS:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            tree = ast.parse(path.read_text(encoding="utf-8"))
            first = (ast.get_docstring(tree) or "").split("\n\n", maxsplit=1)[0]
            yield Module(name, tree, tuple(_imports(tree)), re.search(r"\bPURE\b", first) is not None)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # "from oomwatch import wire" imports oomwatch.wire; "from oomwatch import __version__" only oomwatch.
            yield from (_full_name(node.module, alias.name) for alias in node.names)


def _full_name(module: str, member: str) -> str:
    if module.split(".", maxsplit=1)[0] not in OURS:
        return module
    whole = Path(*module.split("."), member)
    is_module = any((root / whole).is_dir() or (root / whole).with_suffix(".py").is_file() for root in ROOTS)
    return f"{module}.{member}" if is_module else module


def _room(module: str) -> str | None:
    fitting = [room for room in MAY_IMPORT if module == room or module.startswith(room + ".")]
    room = max(fitting, key=len, default=None)
    return None if room == "oomwatch" and module != "oomwatch" else room


def _is_ours(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in OURS


def _pure() -> list[Module]:
    return [module for module in _modules() if module.says_pure or _room(module.name) in PURE_ROOMS]


def _others(module: Module) -> set[str]:
    """What it imports that is not ours, by the names of packages."""
    return {name.split(".")[0] for name in module.imports if not _is_ours(name)}


def _found(wrong: Iterable[tuple[Module, Collection[object]]]) -> dict[str, list[str]]:
    """What was found of each module, of those of which anything was: each is told by its name."""
    return {module.name: sorted(map(str, what)) for module, what in wrong if what}


ON_A_NODE = SHARED | {"oomwatch_agent", "oomwatch_agent.logs"}


def test_every_module_has_a_room_in_the_architecture() -> None:
    homeless = [module.name for module in _modules() if _room(module.name) is None]
    assert not homeless, "say in architecture.md and here where they belong"


def test_the_arrows_between_our_packages_never_turn_back() -> None:
    def turned_back(module: Module) -> list[str]:
        home = _room(module.name)
        allowed = set() if home is None else {home} | MAY_IMPORT[home]
        return [name for name in module.imports if _is_ours(name) and _room(name) not in allowed]

    assert _found((module, turned_back(module)) for module in _modules()) == {}, "these must not be imported there"


def test_the_agent_needs_only_what_a_trainers_image_is_given() -> None:
    """The agent and what it shares with the server import the standard library and [project] dependencies only.

    tensorboard is an extra, and event_files.py says so to whoever lacks it.
    """
    promised = {"msgspec", "pynvml", "websockets", "yaml"} | set(sys.stdlib_module_names)
    extra = {"oomwatch_agent.event_files": {"tensorboard"}}
    on_a_node = [module for module in _modules() if _room(module.name) in ON_A_NODE]
    assert _found((one, _others(one) - promised - extra.get(one.name, set())) for one in on_a_node) == {}
    assert len(on_a_node) > 50


def test_the_probe_needs_the_standard_library_alone() -> None:
    probe = [module for module in _modules() if _room(module.name) == "oomwatch_probe"]
    assert _found((module, _others(module) - set(sys.stdlib_module_names) - {"__future__"}) for module in probe) == {}
    assert probe


def test_only_nvml_calls_py_imports_the_driver_binding() -> None:
    assert [module.name for module in _modules() if "pynvml" in _others(module)] == ["oomwatch_agent.cards.nvml_calls"]


def test_native_code_is_called_in_few_places() -> None:
    callers = {module.name for module in _modules() if _others(module) & {"ctypes", "_ctypes"}}
    assert callers == CALLERS_OF_NATIVE_CODE


def test_what_is_pure_imports_only_messages_and_pure_modules() -> None:
    impure = ((one, _others(one) - PURE - PURE_PACKAGES - PURE_IN.get(one.name, set())) for one in _pure())
    assert _found(impure) == {}
    assert len(_pure()) > 50


def test_what_is_pure_asks_no_clock() -> None:
    def asked(module: Module) -> set[str]:
        attributes = {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
        return attributes & {"today", "utcnow", "now"} if "datetime" in PURE_IN.get(module.name, ()) else set()

    assert _found((module, asked(module)) for module in _pure()) == {}


def test_what_is_pure_touches_no_file_and_no_terminal() -> None:
    def called(module: Module) -> set[str]:
        calls = (node.func for node in ast.walk(module.tree) if isinstance(node, ast.Call))
        by_process = {"hash"} if module.name in BY_IDENTITY else {"id", "hash"}
        forbidden = {"open", "print", "input", "eval", "exec", "__import__"} | by_process
        return {one.id for one in calls if isinstance(one, ast.Name)} & forbidden

    assert _found((module, called(module)) for module in _pure()) == {}


def test_only_the_judge_has_what_it_works_out_kept() -> None:
    """What conditions find is kept for the next judgement, which must not depend on who else asked (core/memo.py)."""

    def keeps(module: Module) -> bool:
        withs = (node for node in ast.walk(module.tree) if isinstance(node, ast.With))
        entered = [item.context_expr for one in withs for item in one.items]
        return any(isinstance(one, ast.Attribute) and one.attr == "keeping" for one in entered)

    assert [module.name for module in _modules() if keeps(module)] == ["oomwatch.core.judge"]


def test_a_server_alone_loads_nothing_of_several(tmp_path: Path) -> None:
    code = "import sys, oomwatch.__main__, oomwatch.web.server; print(*sorted(sys.modules))"
    paths = ":".join(str(root) for root in ROOTS)
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    names = loaded.stdout.split()
    assert "oomwatch.web.app" in names
    assert [name for name in names if name.split(".")[0] in ("nats", "psycopg") or "cluster" in name] == [
        "oomwatch.metrics.cluster"
    ]
    assert not [name for name in names if "postgresql" in name]


def test_the_agent_loads_without_the_server(tmp_path: Path) -> None:
    """In a fresh interpreter: what the agent's program imports brings no part of the server with it."""
    code = "import sys, oomwatch_agent.__main__; print(*sorted(m for m in sys.modules if m.startswith('oomwatch.')))"
    program = [sys.executable, "-c", code]
    paths = [str(root) for root in ROOTS]
    loaded = subprocess.run(
        program, cwd=tmp_path, env={"PYTHONPATH": ":".join(paths)}, capture_output=True, text=True, check=True
    )
    assert set(loaded.stdout.split()) <= SHARED


def test_the_architecture_page_names_every_room() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`([a-z_.]+)`", table))
    rooms = {room.removeprefix("oomwatch.") for room in MAY_IMPORT} - {"oomwatch"}
    assert rooms - {name.removeprefix("oomwatch.") for name in named} == set()
