"""A test message, to find out whether a channel works before an alert has to."""

import os
import time
from collections.abc import Mapping

from oomwatch import options, wire
from oomwatch.catalogue import say
from oomwatch.notify import http
from oomwatch.notify.channel import ChannelSection, Feed, Item, Surroundings
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Delivered, Failed, Outcome
from oomwatch.notify.words import Frame

TEST_SECONDS = 60.0  # how long a test alert fires where alerts have to end


async def send_test(
    channel: ChannelSection,
    language: wire.Language,
    *,
    external_url: str | None = None,
    environ: Mapping[str, str] = os.environ,
    allow_private_addresses: bool = False,
) -> Outcome:
    """Send one harmless message to a channel, once. A setting that cannot be used is a failure with its reason."""
    frame = Frame(language=language, external_url=external_url)
    async with http.client() as client:
        client.allow_private_addresses(allow_private_addresses)
        around = Surroundings(frame, client, environ)
        try:
            opened = channel.open(around)
            if isinstance(opened, Feed):
                return await _feed(opened, time.time())
            return await opened.send(_message(time.time()))
        except options.SettingError as error:
            return Failed(str(error))


async def _feed(feed: Feed, now: float) -> Outcome:
    """The test as an alert that ends in a minute; what the first receiver says that does not take it."""
    test = _transition(now)
    alert = wire.Alert(
        id=test.id,
        alert=test.alert,
        severity=test.severity,
        state="firing",
        labels=test.labels,
        started_at=now,
        fired_at=now,
        texts=test.texts,
    )
    outcomes = [await feed.post(address, [Item(alert, now + TEST_SECONDS)], now) for address in feed.addresses]
    return next((one for one in outcomes if not isinstance(one, Delivered)), Delivered())


def _transition(now: float) -> wire.Transition:
    texts: dict[str, wire.AlertText] = {
        language: wire.AlertText(
            summary=say("notify.test_summary", language),
            description=say("notify.test_description", language),
            advice=(say("notify.test_advice", language),),
        )
        for language in wire.LANGUAGES
    }
    return wire.Transition(
        id="test",
        alert="oomwatch_test",
        severity="info",
        state="firing",
        at=now,
        started_at=now,
        labels={},
        texts=texts,
    )


def _message(now: float) -> Notice:
    test = _transition(now)
    return Notice(
        id=f"test_{int(now * 1000)}",
        kind="firing",
        incident=f"test_{int(now * 1000)}",
        made_at=now,
        labels={"alert": test.alert, "severity": test.severity},
        severity=test.severity,
        state="firing",
        news=(test,),
        everything=(test,),
    )
