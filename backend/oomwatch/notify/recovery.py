"""A channel goes on where it was when the server stopped: nothing is told twice, and nothing is left out. Pure."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from oomwatch import wire
from oomwatch.letters import Account, key_of
from oomwatch.notify.outbox import Mail, mail_again
from oomwatch.notify.pool import Pool
from oomwatch.notify.route import Target

RESEND_SECONDS = 3600.0  # what was over for longer when the server starts, and nobody was told of, is no news any more


def recover(
    pool: Pool,
    account: Account,
    stories: Mapping[str, Sequence[wire.Transition]],
    targets: Mapping[str, Target],
    now: float,
    wall: float,
) -> list[Mail]:
    """Fill an empty pool; gives the messages that were on their way.

    `stories`: the transitions of each alert, oldest first; `targets`: those that are routed here. `now` is the pool's
    time and `wall` the same moment in Unix seconds.
    """
    mails = [mail for letter in account.waiting if (mail := mail_again(letter)) is not None]
    for mail in mails:
        pool.hold(mail.letter.incident)
    horizon = max(wall - RESEND_SECONDS, account.standing.known_since)
    for alert, story in stories.items():
        if alert in targets:
            _recall(pool, account, story, targets[alert], horizon, now, wall)
    for incident, letter in account.last.items():
        last = mail_again(letter)
        told = last.notice.everything if last is not None else ()
        pool.resume(incident, told, now, letter.made_at, max(0.0, wall - letter.made_at))
    return mails


def _recall(
    pool: Pool,
    account: Account,
    story: Sequence[wire.Transition],
    target: Target,
    horizon: float,
    now: float,
    wall: float,
) -> None:
    """What came before the last that was told is known with it; what came after is news, unless it is long over."""
    untold = list(takewhile(lambda one: key_of(one) not in account.told, reversed(story)))
    told = story[: len(story) - len(untold)]
    incidents = [account.told[key] for key in map(key_of, told) if key in account.told]
    for one in told:
        pool.recall(one, target, now - max(0.0, wall - one.at), incidents[-1])
    if not told and _ended_before(story, horizon):
        return
    for one in reversed(untold):
        pool.add(one, target, now, max(0.0, wall - one.at))


def _ended_before(story: Sequence[wire.Transition], moment: float) -> bool:
    ends = [one.at for one in story if one.state == "resolved" and one.change == "state"]
    return bool(ends) and ends[-1] < moment
