"""Who changes the rule file over the API comes here: one change at a time, each whole and in force, or refused."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from oomwatch.ruleedit.file import ChangedMeanwhileError, NotWritableError, Replacement
from oomwatch.ruleedit.marks import EditError
from oomwatch.ruleedit.mask import digest_of, masked, scrubbed
from oomwatch.ruleedit.switch import Switch, UnknownRuleError, switched
from oomwatch.ruleedit.unmask import restored
from oomwatch.rulefile import FILE_BYTES_MAX, RuleFile, RuleFileError, decoded, parse_rules, text_of
from oomwatch.service.rulewatch import RuleWatch
from oomwatch.settings import Settings, is_shipped
from oomwatch.units import counted
from oomwatch.web.answers import RefusedError

MISTAKES_TOLD = 100  # nobody reads more at once

READ_ONLY = (
    "this server does not let its rules be changed over the API; start it with --rules-editable "
    "(OOMWATCH_RULES_EDITABLE=true; with make run: ARGS=--rules-editable), or edit the file itself"
)


IN_CLUSTER = (
    "this is one of several servers, each of which reads a rule file of its own: change that file where it is deployed "
    "from, to all of them alike; each reads it again by itself"
)


class MistakeRow(Struct, frozen=True, kw_only=True):
    """Something wrong with a rule file, and where. Counted from 1."""

    line: int
    column: int
    message: str


class RuleFileShown(Struct, frozen=True, kw_only=True):
    """The rule file as it is on disk. `digest` is of the file itself, and names it in If-Match.

    `text` has a placeholder for each secret; sent back where they stand, they mean the secrets themselves.
    """

    path: str
    digest: str
    text: str
    secrets: int
    editable: bool
    why_not: str | None  # why it is not editable
    problem: str | None  # the file has mistakes: older rules are in force


class RulesTaken(Struct, frozen=True, kw_only=True):
    """The file as it is now, whose rules are in force."""

    digest: str
    changed: bool
    rules: int


class RuleDesk:
    """Use from the event loop. Reading and parsing are done in threads."""

    def __init__(self, path: Path, settings: Settings, watch: RuleWatch, problem: Callable[[], str | None]) -> None:
        self.path = path
        self._settings = settings
        self._watch = watch
        self._problem = problem
        self._lock = asyncio.Lock()

    def why_not(self) -> str | None:
        """Why nothing may be changed here; None where it may."""
        if self._settings.cluster_nats is not None:
            return IN_CLUSTER
        if not self._settings.rules_editable:
            return READ_ONLY
        if self._settings.rules is None and is_shipped(self.path):
            return (
                f"these are the rules that are shipped ({self.path}); start the server with --rules and a file of yours"
            )
        return None

    async def read(self) -> RuleFileShown:
        """Raises RefusedError where there is no file to read."""
        text = await self._text()
        shown = await asyncio.to_thread(masked, text)
        why_not = self.why_not()
        return RuleFileShown(
            path=str(self.path),
            digest=digest_of(text),
            text=shown.text,
            secrets=len(shown.secrets),
            editable=why_not is None,
            why_not=why_not,
            problem=self._problem(),
        )

    async def put(self, content: bytes, digest: str | None) -> RulesTaken:
        """Take this text instead of the file with this digest. Raises RefusedError."""
        self._check_editable()
        async with self._lock:
            before = await self._text()
            _check_digest(before, digest)
            text, rules = await asyncio.to_thread(_read, content, before)
            return await self._take(text, rules, before)

    async def switch(self, switch: Switch) -> RulesTaken:
        """Switch a rule in the file. Raises RefusedError."""
        self._check_editable()
        async with self._lock:
            before = await self._text()
            text, rules = await asyncio.to_thread(_switched, before, switch)
            return await self._take(text, rules, before)

    async def whole(self, content: bytes) -> str:
        """The text that was sent, with the secrets of the file where it has their placeholders. Raises RefusedError."""
        before = await self._text()
        text, _ = await asyncio.to_thread(_read, content, before)
        return text

    # ------------------------------------------------------------ parts of these

    def _check_editable(self) -> None:
        why_not = self.why_not()
        if why_not is not None:
            raise RefusedError(403, why_not)

    async def _text(self) -> str:
        try:
            return await asyncio.to_thread(text_of, self.path)
        except RuleFileError as error:
            raise RefusedError(409, str(error)) from error

    async def _take(self, text: str, rules: RuleFile, before: str) -> RulesTaken:
        taken = RulesTaken(digest=digest_of(text), changed=text != before, rules=len(rules.rules.rules))
        if not taken.changed:
            return taken
        try:
            new = await asyncio.to_thread(lambda: Replacement(self.path, text, instead_of=before))
            try:
                await self._watch.take(rules, new.take)
            finally:
                new.drop()
        except ChangedMeanwhileError as error:
            raise RefusedError(412, str(error)) from error
        except NotWritableError as error:
            raise RefusedError(409, str(error)) from error
        except ValueError as error:  # a channel that cannot be opened
            raise RefusedError(400, *scrubbed([str(error)], text)) from error
        return taken


def _check_digest(text: str, digest: str | None) -> None:
    if digest is None:
        raise RefusedError(428, "say which state of the file you changed: If-Match with the digest that GET gave")
    if digest.removeprefix("W/").strip('"') != digest_of(text):
        raise RefusedError(412, "the file was changed since you read it; read it again, and make your change to that")


def _read(content: bytes, before: str) -> tuple[str, RuleFile]:
    """The text with its secrets, and its rules."""
    if len(content) > FILE_BYTES_MAX:
        raise RefusedError(413, f"this is too large to be a rule file: more than {FILE_BYTES_MAX} bytes")
    try:
        text = restored(decoded(content), before)
        return text, parse_rules(text)
    except RuleFileError as error:
        raise _mistaken(error, text, before) from error
    except EditError as error:
        raise RefusedError(400, str(error)) from error
    except ValueError as error:
        raise RefusedError(400, f"this is no rule file: {error}") from error


def _mistaken(error: RuleFileError, *texts: str) -> RefusedError:
    shown = error.mistakes[:MISTAKES_TOLD]
    sentences = scrubbed([one.message for one in shown], *texts)
    rows = [
        MistakeRow(line=one.line, column=one.column, message=said) for one, said in zip(shown, sentences, strict=True)
    ]
    more = f", of which the first {len(rows)} are told" if len(rows) < len(error.mistakes) else ""
    return RefusedError(400, f"the file has {counted(len(error.mistakes), 'mistake')}{more}", rows)


def _switched(before: str, switch: Switch) -> tuple[str, RuleFile]:
    try:
        text = switched(before, switch)
        return text, parse_rules(text)
    except RuleFileError as error:
        raise RefusedError(409, "the file has mistakes, and is not touched; see GET /api/v1/rules/file") from error
    except UnknownRuleError as error:
        raise RefusedError(404, str(error)) from error
    except EditError as error:
        raise RefusedError(409, str(error)) from error
