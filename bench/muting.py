"""What it costs to know of every alert why nobody is sent word of it.

    python -m bench.muting [--alerts 1024] [--silences 50]

On each card a warning and a critical alert fire; each silence has a pattern for nodes, a severity and a run. Beside
them stand ten quiet hours, ten maintenance windows and the two inhibitions in force without a word. CPU time of
the service's part (service/muting.py); for the worst case with making the transitions that tell of it, but without the
database.
"""

import time
from collections.abc import Callable
from statistics import median
from zoneinfo import ZoneInfo

from bench._options import parser_of
from msgspec.structs import replace

from oomwatch import wire
from oomwatch.core.mute.matcher import parse_matcher
from oomwatch.core.mute.stages import Windows
from oomwatch.core.mute.times import Maintenance, QuietHours
from oomwatch.notify.config import NotifyConfig
from oomwatch.service.attention import Attention, Outside
from oomwatch.service.muting import Muting
from oomwatch.story import alert_of

NOW = 1_796_000_000.0
HOUR = 3600.0
GPUS_A_NODE = 8
WINDOWS = 10
ROUNDS = 9
SECONDS = 1000


def alerts(count: int) -> list[wire.Transition]:
    """As the engine says them."""
    return [
        wire.Transition(
            id=str(number),
            alert="gpu_memory_high" if number % 2 else "gpu_memory_full",
            severity="warning" if number % 2 else "critical",
            state="firing",
            at=NOW,
            started_at=NOW,
            labels={
                "node": f"gpu-{number // (2 * GPUS_A_NODE):03}",
                "gpu": str(number // 2 % GPUS_A_NODE),
                "run": f"run-{number // 128}",
            },
            texts={"en": wire.AlertText(summary="a full card", description="")},
        )
        for number in range(count)
    ]


def silence(number: int, *, node: str = "gpu-9") -> wire.Silence:
    texts = (f'node=~"{node}-{number:02}.*"', 'severity!="critical"', 'run!=""')
    return wire.Silence(
        id=f"s{number}",
        matchers=tuple(parse_matcher(text) for text in texts),
        starts_at=NOW - HOUR,
        ends_at=NOW + HOUR,
        created_by="lin",
        created_at=NOW,
    )


def windows() -> Windows:
    nowhere = (parse_matcher('node="nowhere"'),)
    return Windows(
        maintenance=tuple(Maintenance(f"m{n}", NOW - HOUR, NOW + HOUR, nowhere) for n in range(WINDOWS)),
        quiet_hours=tuple(
            QuietHours(f"q{n}", 1320, 420, frozenset(range(7)), ZoneInfo("Europe/Berlin"), nowhere)
            for n in range(WINDOWS)
        ),
        inhibitions=NotifyConfig().windows().inhibitions,
    )


class Scene:
    """Muting with everything open."""

    def __init__(self, count: int, silences: int) -> None:
        self.muting = Muting()
        self.muting.replace_windows(windows())
        self.muting.put_silences([silence(number) for number in range(silences)])
        self.said = self.muting.stamp(alerts(count), NOW)
        self.shown = {one.id: alert for one in self.said if (alert := alert_of([one])) is not None}
        self.told: list[wire.Transition] = []
        self.muting.settle(NOW)

    def change_one(self) -> None:
        """One alert is over, and fires again."""
        self.muting.stamp([replace(self.said[0], state="resolved")], NOW)
        self.muting.stamp(self.said[:1], NOW)
        self.muting.settle(NOW)

    def look_at_all(self) -> None:
        """An edge of a window or another silence."""
        self.muting.look_again()
        self.muting.settle(NOW)

    def hide_all(self) -> None:
        """One silence over everything, and its end: every warning is told of twice."""
        attention = Attention(self.muting, Outside(self.shown.get, self.told.extend, _Nobody(), lambda: NOW))
        everything = (parse_matcher('severity=~".*"'),)
        over_all = replace(silence(999), matchers=everything)
        attention.put_silences([over_all])
        attention.put_silences([replace(over_all, ends_at=NOW)])


class _Nobody:
    def publish(self, messages: object) -> None: ...


def _cpu_ms(work: Callable[[], object]) -> float:
    costs = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        costs.append(time.process_time() - began)
    return median(costs) * 1000


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--alerts", type=int, default=1024)
    parser.add_argument("--silences", type=int, default=50)
    options = parser.parse_args()
    scene = Scene(options.alerts, options.silences)
    muted = sum(bool(one.muted) for one in scene.said)
    print(f"{options.alerts} alerts ({muted} of them muted by a graver one), {options.silences} silences")
    quiet = _cpu_ms(lambda: [scene.muting.settle(NOW + n / SECONDS) for n in range(SECONDS)])
    print(f"a second in which nothing changes: {quiet / SECONDS * 1000:.1f} us")
    print(f"a second in which an alert ends and another fires: {_cpu_ms(scene.change_one):.2f} ms")
    print(f"a second with an edge of a window, or another silence: {_cpu_ms(scene.look_at_all):.1f} ms")
    fresh = _cpu_ms(lambda: Scene(options.alerts, options.silences))
    print(f"all alerts fire at once: {fresh:.1f} ms")
    print(f"a silence over everything begins and ends, told of twice: {_cpu_ms(scene.hide_all):.1f} ms")


if __name__ == "__main__":
    main()
