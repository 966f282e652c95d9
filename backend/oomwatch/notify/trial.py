"""A test message, to find out whether a channel works before an alert has to."""

import os
import time
from collections.abc import Mapping

from oomwatch import options, wire
from oomwatch.catalogue import say
from oomwatch.notify import http
from oomwatch.notify.channel import ChannelSection, Surroundings
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Failed, Outcome
from oomwatch.notify.words import Frame


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
        try:
            opened = channel.open(Surroundings(frame, client, environ))
        except options.SettingError as error:
            return Failed(str(error))
        return await opened.send(_message(time.time()))


def _message(now: float) -> Notice:
    texts: dict[str, wire.AlertText] = {
        language: wire.AlertText(
            summary=say("notify.test_summary", language),
            description=say("notify.test_description", language),
            advice=(say("notify.test_advice", language),),
        )
        for language in wire.LANGUAGES
    }
    test = wire.Transition(
        id="test",
        alert="oomwatch_test",
        severity="info",
        state="firing",
        at=now,
        started_at=now,
        labels={},
        texts=texts,
    )
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
