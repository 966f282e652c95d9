"""What MkDocs does not do by itself for the site of docs/.

- CHANGELOG.md and CONTRIBUTING.md of the top level are pages of it.
- A link to a file of the repository leads to a page that shows that file: the site is whole without the repository.
- Headings of a translation have the anchors of the English page, so that one link does for both.
- A page says at its top where it is not translated, or was translated from an older text.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
OF_THE_TOP = ("CHANGELOG.md", "CONTRIBUTING.md")
_COPIES = TemporaryDirectory(prefix="oomwatch-site-")

_LINK = re.compile(r"\]\((?!https?://|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$")
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")
# A line's end between two Chinese characters would be shown as a space.
_BROKEN = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef”])\n *(?=[\u3000-\u9fff\uff00-\uffef“])")
# Read as text, and not as YAML: to that a digest without a letter is a number.
HEAD = re.compile(r"\A---\ntranslates: (\w+)\n---\n+")
_FENCE = re.compile(r"^\s*(```|~~~)")

_UNSOUGHT = "---\nsearch: {exclude: true}\n---\n\n"
UNTRANSLATED = '!!! note "此页尚无中文翻译"\n    以下为英文原文。\n\n'
OUTDATED = '!!! warning "英文原文在翻译之后有改动"\n    如有出入，以英文为准，可用页首的语言菜单切换。\n\n'


def english_of(translation: Path) -> str:
    """The text of the page that it is a translation of."""
    return translation.with_name(translation.name.removesuffix(".zh.md") + ".md").read_text(encoding="utf-8")


def digest(english: str) -> str:
    """What a translation names as the text that it was made from: `translates: DIGEST` in its head."""
    return hashlib.sha256(english.encode()).hexdigest()[:12]


def is_older(translation: Path) -> bool:
    """Whether the English text has changed since the translation was read against it."""
    head = HEAD.match(translation.read_text(encoding="utf-8"))
    return not head or head[1] != digest(english_of(translation))


def headings(text: str) -> Iterator[tuple[int, str, int]]:
    """Each heading outside of code: its line, its words and its level."""
    fenced = False
    for line, words in enumerate(text.splitlines()):
        fenced ^= bool(_FENCE.match(words))
        if not fenced and (found := _HEADING.match(words)):
            yield line, found[2], len(found[1])


def anchors(text: str) -> list[str]:
    """The anchors that Markdown gives the headings of a page, in their order."""
    given: list[str] = []
    for _, words, _ in headings(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).replace("`", "")
        slug = slugify(plain, "-")
        given.append(next(one for one in _numbered(slug) if one not in given))
    return given


def _numbered(slug: str) -> Iterator[str]:
    yield slug
    yield from (f"{slug}_{number}" for number in count(1))


def with_anchors(translation: str, english: str) -> str:
    """The translation, each of its headings with the anchor of the English heading in its place.

    Where the English page has got headings since, their anchors stand at the end: links to them lead to the page.
    """
    lines, left = translation.splitlines(), anchors(english)
    for line, _, _ in headings(translation):
        if left:
            lines[line] += f" {{#{left.pop(0)}}}"
    return "\n".join([*lines, *(f'\n<a id="{anchor}"></a>' for anchor in left)])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Has the site made from a copy of docs/ that holds what is missing there."""
    copy = Path(_COPIES.name) / "docs"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(DOCS, copy)
    for path in sorted({path for page in _written() for path in _led_to(page)}):
        _write(copy / _place_of(path), _shown(path))
    for page in _written():
        place = copy / (page.name if page.parent == ROOT else page.relative_to(DOCS))
        _write(place, with_links_of_the_site(page.read_text(encoding="utf-8"), page))
    config.docs_dir = str(copy)
    return config


def on_shutdown() -> None:
    """Removes the copy."""
    _COPIES.cleanup()


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def _written() -> list[Path]:
    return [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in OF_THE_TOP)]


def _led_to(page: Path) -> Iterator[str]:
    for link in _LINK.finditer(page.read_text(encoding="utf-8")):
        path = _of_repository(page.parent.relative_to(ROOT).as_posix(), link["path"])
        if not _is_page(path) and (ROOT / path).exists():
            yield path


def _of_repository(folder: str, target: str) -> str:
    return PurePosixPath(os.path.normpath(f"{folder}/{target}")).as_posix()


def _is_page(path: str) -> bool:
    return path in OF_THE_TOP or path.startswith("docs/")


def _place_of(path: str) -> str:
    """Where the page of a file stands. Without dots: to the plugin for languages ".py.md" is a language."""
    return f"source/{path.replace('.', '-')}.md"


def _shown(path: str) -> str:
    place = ROOT / path
    if place.is_dir():
        names = "\n".join(f"- `{one.name}`" for one in sorted(place.iterdir()) if one.name != "__pycache__")
        return f"{_UNSOUGHT}# `{path}`\n\n{names}\n"
    kind = {".py": "python", ".yaml": "yaml", ".yml": "yaml"}.get(place.suffix, "text")
    return f"{_UNSOUGHT}# `{path}`\n\n````{kind}\n{place.read_text(encoding='utf-8')}\n````\n"


def with_links_of_the_site(text: str, page: Path) -> str:
    """The text, its links leading to where their targets stand on the site, its tables as Python's Markdown reads them.

    To GitHub a bar in a cell's code is written "\\|"; here it would be shown so.
    """
    folder = page.parent.relative_to(ROOT).as_posix()
    here = "." if page.parent == ROOT else page.parent.relative_to(DOCS).as_posix()
    linked = _LINK.sub(lambda link: _on_the_site(link, folder, here), text)
    return _ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), linked)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """What is to be said at the top of a Chinese page, and its anchors."""
    del files
    if config.theme["language"] != "zh" or page.file.src_uri.startswith("source/"):
        return markdown
    if not page.file.src_uri.endswith(".zh.md"):
        return _noted(markdown, UNTRANSLATED)
    return translated(markdown, DOCS / page.file.src_uri)


def translated(markdown: str, translation: Path) -> str:
    """The translation's text without its head, as it is shown."""
    marked = _BROKEN.sub("", with_anchors(markdown, english_of(translation)))
    return _noted(marked, OUTDATED) if is_older(translation) else marked


def _noted(markdown: str, note: str) -> str:
    """The page with a note below its heading, which names the page in the navigation only where it stands first."""
    head, _, rest = markdown.lstrip().partition("\n")
    return f"{head}\n\n{note}{rest}" if head.startswith("# ") else note + markdown


def _on_the_site(link: re.Match[str], folder: str, here: str) -> str:
    path = _of_repository(folder, link["path"])
    if path == "docs/decisions":
        path = "docs/decisions/index.md"
    target = path.removeprefix("docs/") if _is_page(path) else _place_of(path)
    return f"]({os.path.relpath(target, here)}{link['anchor'] or ''})"
