"""Everything else, through the Apprise library: Feishu, DingTalk, WeCom, mail, Teams, PagerDuty, Telegram, ...

One address says which service, where and as whom (https://appriseit.com/services/). Apprise is slow to load and blocks,
so it is loaded for those who use it and runs in a thread; its log is kept from everybody, for it names addresses and
tokens.
"""

import asyncio
import contextvars
import logging
import re
import warnings
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from oomwatch import options
from oomwatch.notify import plain
from oomwatch.notify.channel import AddressedSection, Surroundings
from oomwatch.notify.message import Message, compose
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret, find_secret
from oomwatch.notify.words import Frame

if TYPE_CHECKING:
    import apprise
    from apprise.plugins.base import NotifyBase

SEND_SECONDS = 40.0  # mail alone may take 15 s to connect and 4 s for each answer
JOIN_BYTES = 8  # what Apprise puts between a title and a body where a service has no titles
REASON_CHARS = 200
SHORTEST_SECRET = 4
# They end on the server's own machine, or in its log, where nobody is told.
LOCAL = frozenset({"blink1", "dbus", "glib", "gnome", "macosx", "syslog", "windows"})
_STATUS = re.compile(r"\berror=(4\d\d)\b")
_PASSING = frozenset({"408", "425", "429"})

_heard: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("heard", default=None)


class AppriseChannel(AddressedSection, frozen=True, kw_only=True, tag="apprise"):
    """An address as Apprise writes it. Most hold a token, so prefer url_env or url_file."""

    def open(self, around: Surroundings) -> "AppriseService":
        """Raises SettingError where the address cannot be found, or is none of a service that can be used."""
        url = find_secret(self.url, self.url_env, self.url_file, environ=around.environ, place=self.place)
        return AppriseService(self, url, service_of(url, self.place), around.frame)


class AppriseService:
    pause_seconds = 3.0  # DingTalk and WeCom take 20 messages a minute
    edits = False

    def __init__(self, config: AppriseChannel, url: Secret, service: "NotifyBase", frame: Frame) -> None:
        self.config = config
        self._url = url
        self._service = service
        self._frame = frame
        self._work: asyncio.Future[Outcome] | None = None
        self._working_on = ""  # the id of the notice that a thread is busy with

    async def send(self, notice: Notice) -> Outcome:
        """One attempt. Of a message whose thread is still busy it is the end that is awaited, and not sent again."""
        if self._work is not None and self._working_on != notice.id:
            if not self._work.done():
                return TryAgain("the message before is still on its way")
            self._work = None
        if self._work is None:
            self._working_on = notice.id
            self._work = asyncio.ensure_future(asyncio.to_thread(self._notify, notice))
        try:
            outcome = await asyncio.wait_for(asyncio.shield(self._work), SEND_SECONDS)
        except asyncio.TimeoutError:
            return TryAgain(f"{self._name} did not answer within {SEND_SECONDS:g} s")
        self._work = None
        return outcome

    @property
    def _name(self) -> str:
        return str(self._service.service_name)

    def _notify(self, notice: Notice) -> Outcome:
        """In a thread. Never raises."""
        heard: list[str] = []
        _heard.set(heard)
        try:
            if _send(self._service, self._url, compose(notice, self._frame), notice, self._frame):
                return Delivered()
        except Exception as error:
            heard.append(type(error).__name__)
        return self._judge(heard)

    def _judge(self, heard: list[str]) -> Outcome:
        """What Apprise's log says of a failure, without anything that stands in the address."""
        said = harmless(" ".join(heard[-2:]), self._url)
        status = _STATUS.search(said)
        reason = f"{self._name}: {said or 'Apprise does not say why'}"
        if status is not None and status[1] not in _PASSING:
            return Failed(f"{reason} Check the address and its secret in alerts.yaml")
        return TryAgain(reason)


def service_of(url: Secret, place: str) -> "NotifyBase":
    """What Apprise makes of an address. Raises SettingError, which never shows it."""
    service = _instantiated(url)
    if service is None:
        raise options.SettingError(
            f"{place}: Apprise cannot use its address (not shown: it may be secret); "
            "how each service's is written stands at https://appriseit.com/services/"
        )
    kind = type(service).__module__.rpartition(".")[2]
    if kind in LOCAL:
        raise options.SettingError(
            f"{place}: {kind} would tell only this server's own machine, where nobody looks; give a service that does"
        )
    return service


def _instantiated(url: Secret) -> "NotifyBase | None":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Apprise looks for modules that its Python is about to lose
        import apprise  # noqa: PLC0415 - half a second, and only for those who use it

        _keep_quiet()
        return apprise.Apprise.instantiate(url.reveal(), asset=_asset())


def _asset() -> "apprise.AppriseAsset":
    import apprise  # noqa: PLC0415

    wanted: dict[str, Any] = {
        "app_id": "oomwatch",
        "app_desc": "oomwatch",
        "app_url": "",
        "async_mode": False,
        "http_redirects": False,
        "interpret_emojis": False,
        "interpret_escapes": False,
        "pem_autogen": False,
        "pgp_autogen": False,
    }
    known = {name: value for name, value in wanted.items() if hasattr(apprise.AppriseAsset, name)}
    return apprise.AppriseAsset(**known, secure_logging=True, storage_mode="memory", plugin_paths=[])


def _send(service: "NotifyBase", url: Secret, message: Message, notice: Notice, frame: Frame) -> bool:
    import apprise  # noqa: PLC0415

    if "dedup" in vars(service):  # PagerDuty: all that is said of an incident is one incident there
        vars(service)["dedup"] = notice.incident
    is_markdown = _takes_markdown(service, url)
    title = plain.title(message, int(service.title_maxlen) or 250)
    room = int(service.body_maxlen) - (0 if service.title_maxlen else len(title.encode()) + JOIN_BYTES)
    body = (plain.markdown if is_markdown else plain.text)(message, frame.language, max(room, 100))
    carrier = apprise.Apprise(asset=service.asset)
    carrier.add(service)
    form = apprise.NotifyFormat.MARKDOWN if is_markdown else apprise.NotifyFormat.TEXT
    return bool(carrier.notify(body=body, title=title, notify_type=_gravity(notice), body_format=form))


def _takes_markdown(service: "NotifyBase", url: Secret) -> bool:
    """Where the service prefers it, or can read it and the address asks for it."""
    formats: Any = service.notify_format  # one, or in newer releases several
    known = [str(getattr(one, "value", one)) for one in (formats if isinstance(formats, tuple) else (formats,))]
    asked = re.search(r"[?&]format=(markdown|md)\b", url.reveal(), re.IGNORECASE) is not None
    return known[0] == "markdown" or (asked and "markdown" in known)


def _gravity(notice: Notice) -> "apprise.NotifyType":
    import apprise  # noqa: PLC0415

    kinds = apprise.NotifyType
    if notice.state == "resolved":
        return kinds.SUCCESS
    return {"info": kinds.INFO, "warning": kinds.WARNING, "critical": kinds.FAILURE}[notice.severity]


# ---------------------------------------------------------------- what Apprise says


class _Ear(logging.Handler):
    """Gives what Apprise says to the attempt that made it say so, and to nobody else."""

    def emit(self, record: logging.LogRecord) -> None:
        heard = _heard.get()
        if heard is not None:
            heard.append(record.getMessage())


def _keep_quiet() -> None:
    """Apprise's log, and that of the HTTP library below it, show addresses and what is in them."""
    logger = logging.getLogger("apprise")
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    if not any(isinstance(handler, _Ear) for handler in logger.handlers):
        logger.handlers = [_Ear()]
    logging.getLogger("urllib3").setLevel(logging.ERROR)


def harmless(words: str, url: Secret) -> str:
    """One short printable line in which nothing stands that stands in the address, but for the service's name."""
    rest = url.reveal().partition("://")[2]
    written = {rest, *re.split(r"[/:@?&=#,+]+", rest)}
    parts = written | {unquote(part) for part in written}
    for part in sorted((one for one in parts if len(one) >= SHORTEST_SECRET), key=len, reverse=True):
        words = words.replace(part, "(secret)")
    line = " ".join(words.split())
    return "".join(char for char in line if char.isprintable())[:REASON_CHARS]
