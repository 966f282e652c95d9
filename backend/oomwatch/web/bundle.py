"""The page's scripts in three files: what opens the connection, what else the first view needs, and the rest.

A browser asks for six files at once and takes a millisecond or two for each, from its cache too: with 160 small files
that is most of what a visit waits for. Here each script becomes a function, called when another one first imports it,
so the order in which they run is that of the modules. Those of the first two files are all called at once: the files
say so (`HINT`) and have them in parentheses, so a browser compiles them while the file arrives, and not one by one
while the page stands still. Comments, a third of the text, are left out. The scripts keep to few forms, which makes
this short:

    import { a, b as c } from "./name.js";      await import("./name.js")
    export const, function, async function, class          export { a, b };

Addresses made from import.meta.url are those of the folder of the first script, no two scripts import each other, and
no text has a line that begins as a comment does.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping

LATER = "later.js"  # beside the first script

HINT = "//# allFunctionsCalledOnLoad\n"  # Chromium from 136 on reads it; others have the parentheses

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.MULTILINE)
_FETCH = re.compile(r'await import\("(\.[^"]+)"\)(?!\.)')
_EXPORT = re.compile(r"^export (?=(?:const|(?:async )?function|class) (\w+))", re.MULTILINE)
_LISTED = re.compile(r"^export \{([^}]*)\};$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/[ \t]*)\n", re.MULTILINE)
_OTHER = re.compile(rf'^(?:import|export)\b.*$|await import\("(?!\./{LATER}").*$', re.MULTILINE)
_LOADER = """\
const scripts = new Map();
const ran = new Map();
export function add(more) {
  for (const [name, script] of Object.entries(more)) scripts.set(name, script);
}
export function need(name) {
  if (!ran.has(name)) ran.set(name, scripts.get(name)(need));
  return ran.get(name);
}
"""

Texts = Mapping[str, str]


def bundled(texts: Texts, first: str, main: str) -> dict[str, str]:
    """Three files that do what the scripts do.

    Args:
        texts: The scripts by their path, all in the folder of the first one or below it.
        first: The path of the one that the page runs before the rest of it is here.
        main: The path of the one that the page runs then. It alone may await something at its top level.

    Returns:
        Under these two paths the scripts which they need to run, themselves included; as LATER, beside, all others.

    Raises:
        ValueError: A script has an import or export of another form, imports what is not there, or itself in the end.
    """
    early = _needed(texts, first, ())
    then = [name for name in _needed(texts, main, ()) if name not in early]
    rest = sorted({*texts} - {*early, *then})
    functions = {name: f"({_function(name, texts[name], awaits=name == main)})" for name in [*early, *then]}
    functions |= {name: _function(name, texts[name]) for name in rest}
    begin = f'import {{ add, need }} from "./{posixpath.basename(first)}";\n'
    return {
        first: f'{HINT}{_LOADER}{_added(early, functions)}need("{first}");\n',
        main: f'{HINT}{begin}{_added(then, functions)}need("{main}");\n',
        posixpath.join(posixpath.dirname(first), LATER): f"{begin}{_added(rest, functions)}",
    }


def _added(names: Iterable[str], functions: Texts) -> str:
    return "add({\n" + "".join(f'"{name}": {functions[name]},\n' for name in names) + "});\n"


def _needed(texts: Texts, name: str, importers: tuple[str, ...]) -> list[str]:
    """A script and all that it imports, each once, in the order in which they run."""
    if name in importers or name not in texts:
        trouble = "imports itself in the end" if name in importers else "is not there"
        raise ValueError(f"the page's script {name} {trouble}; asked for by {' > '.join(importers)}")
    found: dict[str, None] = {}
    for imported in _IMPORT.finditer(texts[name]):
        found |= dict.fromkeys(_needed(texts, _beside(name, imported[2]), (*importers, name)))
    return [*found, name]


def _beside(name: str, relative: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), relative))


def _function(name: str, text: str, *, awaits: bool = False) -> str:
    """A script as a function that gives what the script exports."""

    def imported(match: re.Match[str]) -> str:
        return f'const {{{match[1].replace(" as ", ": ")}}} = $need("{_beside(name, match[2])}");'

    def fetched(match: re.Match[str]) -> str:
        return f'(await import("./{LATER}"), $need("{_beside(name, match[1])}"))'

    given = [*_EXPORT.findall(text), *(names.strip() for names in _LISTED.findall(text))]
    body = _FETCH.sub(fetched, _IMPORT.sub(imported, _LISTED.sub("", _EXPORT.sub("", _COMMENT.sub("", text)))))
    if (other := _OTHER.search(body)) is not None:
        raise ValueError(f"the page's script {name} has what cannot be bundled: {other[0]}")
    return f"{'async ' if awaits else ''}($need) => {{\n{body}\nreturn {{ {', '.join(given)} }};\n}}"
