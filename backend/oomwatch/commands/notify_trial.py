"""`oomwatch test-notify`: a harmless message to the channels of a rule file."""

import argparse
import asyncio
import sys

from oomwatch.commands.given import rules_file
from oomwatch.notify.channel import ChannelSection
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.outcome import Delivered
from oomwatch.notify.trial import send_test
from oomwatch.options import SettingError
from oomwatch.rulefile import RuleFileError, read_rules

FAILED = 1


def run(options: argparse.Namespace) -> int:
    """Send it, and say what became of it. Gives the exit status."""
    path = rules_file(options.rules)
    try:
        notify = read_rules(path).notify
    except RuleFileError as error:
        print(error, file=sys.stderr)
        return FAILED
    channels = [one for one in notify.channels if options.channel in (None, one.name)]
    if not notify.channels:
        raise SettingError(f"{path} has no channels: add them under notify: (docs/howto/notifications.md)")
    if not channels:
        known = ", ".join(one.name for one in notify.channels)
        raise SettingError(f'there is no channel "{options.channel}"; {path} has {known}')
    return max(asyncio.run(_send_test(channel, notify)) for channel in channels)


async def _send_test(channel: ChannelSection, notify: NotifyConfig) -> int:
    allowed = notify.allow_private_addresses
    outcome = await send_test(channel, notify.language, allow_private_addresses=allowed)
    print(f"{channel.name} ({channel.kind}): {'delivered' if isinstance(outcome, Delivered) else outcome.reason}")
    return 0 if isinstance(outcome, Delivered) else FAILED
