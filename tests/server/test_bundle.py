"""The page's scripts in three files: they do what the scripts do, each once and in the same order."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from oomwatch.web.bundle import HINT, bundled
from oomwatch_frontend import STATIC

SCRIPTS = {
    "js/live.js": 'console.log("live");\nexport const counted = { times: 0 };\n',
    "js/count.js": 'import { counted } from "./live.js";\n'
    "export function count() {\n  counted.times += 1;\n}\ncount();\n",
    "js/main.js": (
        'import { count as again } from "./count.js";\nimport {\n  counted,\n} from "./live.js";\n\nagain();\n'
        'console.log("main", await Promise.resolve(counted.times));\n'
        'const { View } = await import("./views/gpu.js");\nconsole.log(new View().name, counted.times);\n'
    ),
    "js/views/gpu.js": (
        'import { count } from "../count.js";\nimport { gpu } from "./name.js";\n'
        "count();\nexport class View {\n  name = gpu;\n}\n"
    ),
    "js/views/name.js": 'console.log("later");\nconst gpu = "gpu";\nexport { gpu };\n',
    "js/views/unused.js": 'console.log("never asked for");\n',
}  # fmt: skip


def changed(name: str, text: str) -> dict[str, str]:
    return bundled({**SCRIPTS, name: text}, "js/live.js", "js/main.js")


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_each_script_runs_once_in_the_order_of_the_modules_and_only_when_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "js").mkdir()
    for name, text in bundled(SCRIPTS, "js/live.js", "js/main.js").items():
        (tmp_path / name).write_text(text)
    ran = subprocess.run(["node", "js/main.js"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["live", "main 2", "later", "gpu 3"]


def test_what_the_first_view_does_not_need_is_a_file_of_its_own() -> None:
    files = bundled(SCRIPTS, "js/live.js", "js/main.js")
    held = {name: re.findall(r'^"(js/[^"]+)": ', text, re.MULTILINE) for name, text in files.items()}
    assert held == {
        "js/live.js": ["js/live.js"],
        "js/main.js": ["js/count.js", "js/main.js"],
        "js/later.js": ["js/views/gpu.js", "js/views/name.js", "js/views/unused.js"],
    }


def test_the_shipped_page_is_three_files() -> None:
    texts = {path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8") for path in STATIC.rglob("*.js")}
    files = bundled(texts, "js/live.js", "js/main.js")
    held = [name for text in files.values() for name in re.findall(r'^"(js/[^"]+\.js)": ', text, re.MULTILINE)]
    assert sorted(held) == sorted(texts)


def test_what_runs_at_once_is_said_to_be_compiled_while_it_arrives_and_the_rest_is_not() -> None:
    hinted = {name: text.startswith(HINT) for name, text in changed("js/count.js", SCRIPTS["js/count.js"]).items()}
    assert hinted == {"js/live.js": True, "js/main.js": True, "js/later.js": False}


def test_comments_are_left_out_and_what_only_looks_like_one_stays() -> None:
    commented = (
        "// First line.\n/**\n * @param {string} name\n * @returns {string}\n */\n"
        'export function count(name) {\n  // why\n  return /** @type {any} */ (name) + "// no comment"; // beside\n}\n'
        "/** @typedef {{ a: string }} A */\n"
    )
    files = changed("js/count.js", commented)
    kept = 'function count(name) {\n  return /** @type {any} */ (name) + "// no comment"; // beside\n}\n'
    assert f'"js/count.js": (($need) => {{\n{kept}\nreturn {{ count }};\n}}),\n' in files["js/main.js"]


@pytest.mark.parametrize(
    "form",
    [
        'import * as all from "./live.js";',
        'import "./live.js";',
        "export default 1;",
        "export let changing = 1;",
        'export * from "./live.js";',
        'await import("./live.js").catch(() => null);',
    ],
)
def test_a_form_that_would_mean_something_else_is_refused_by_name(form: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"js/count.js has what cannot be bundled: {form}")):
        changed("js/count.js", form + "\n")


def test_scripts_that_import_each_other_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"js/count\.js imports itself in the end; asked for by js/main.js > js/count.js"
    ):
        changed("js/count.js", 'import { count } from "./count.js";\n')


def test_a_script_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"js/gone\.js is not there; asked for by js/main.js > js/count.js"):
        changed("js/count.js", 'import { a } from "./gone.js";\n')
