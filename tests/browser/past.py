"""A stand-in for what the server remembers of a run: the peaks of its steps, its alerts, and the incidents."""

import msgspec
from fastapi import FastAPI, Request, Response
from tests.browser.desk import Play

from oomwatch import wire
from oomwatch.incident.report import Entry
from oomwatch.plan.batches import batches_of
from oomwatch.store.sizes import HistorySize, Kept
from oomwatch.web.batches import Told, batches_of_run
from oomwatch.web.choosing import Wanted
from oomwatch.web.planrows import PlannedPhase, PlanOfRun
from oomwatch.web.rows import Peaks, PeaksOfRun, PeakSource, alert_row
from oomwatch.web.spans import AlertSpans, span_of
from oomwatch.web.storagewatch import Storage
from oomwatch.web.timeline import SPANS_MAX

GIB = 2**30
REMEMBERED_STEPS = 24
USABLE_BYTES = 79 * GIB
HEIGHTS_GIB = {"rollout": 61.0, "old_log_prob": 48.0, "update_actor": 55.0}


class Past:
    """`older`: steps that the database has and the snapshot has not."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self.older: tuple[wire.StepPoint, ...] = ()
        self.incidents: tuple[Entry, ...] = ()
        self.plan: PlanOfRun | None = None  # None: a usual one
        self.storage = storage(play.snapshot.at)
        self.problems: tuple[str, ...] = ()  # that the server notices of itself
        self.timelines: list[dict[str, str]] = []  # what was asked of them

    def install(self, app: FastAPI) -> None:
        app.add_api_route("/api/v1/runs/{name:path}/peaks", self._peaks)
        app.add_api_route("/api/v1/runs/{name:path}/plan", self._plan)
        app.add_api_route("/api/v1/runs/{name:path}/batches", self._batches)
        app.add_api_route("/api/v1/runs/{name:path}/steps", self._steps)
        app.add_api_route("/api/v1/storage", lambda: _answer(self.storage))
        app.add_api_route("/readyz", lambda: _answer({"ready": True, "problems": self.problems}))
        app.add_api_route("/api/v1/incidents", lambda: _answer(self.incidents))
        app.add_api_route("/api/v1/alerts/timeline", self._timeline)
        app.add_api_route("/api/v1/alerts", self._alerts)

    def _run(self, name: str) -> wire.Run | None:
        return next((one for one in self._play.snapshot.runs if one.run == name), None)

    def _peaks(self, name: str) -> Response:
        run = self._run(name)
        return _answer({"error": f'there is no run "{name}"'}, 404) if run is None else _answer(peaks(run))

    def _plan(self, name: str) -> Response:
        return _answer(self.plan or planned(name))

    def _batches(self, name: str, lang: wire.Language = "en") -> Response:
        """Worked out as the server does it."""
        run = self._run(name)
        config = run.config if run else {}
        return _answer(batches_of_run(Told(name, config, None, batches_of(config), has_run=False), lang))

    def _steps(self, name: str) -> Response:
        run = self._run(name)
        return _answer((*self.older, *(run.steps if run else ())))

    def _timeline(self, request: Request) -> Response:
        """As the server does: those of a time, the latest first."""
        query = request.query_params
        self.timelines.append(dict(query))
        labels = {name: query.get(name) for name in ("node", "run", "alert")}
        wanted = Wanted(labels, float(query["from"]), float(query.get("to", 1e12)))
        found = [one for one in (*self._play.ended, *self._play.snapshot.alerts) if wanted.has(one)]
        newest = sorted(found, key=lambda one: -one.started_at)
        limit = int(query.get("limit", SPANS_MAX))
        spans = tuple([span_of(one, "zh" if query.get("lang") == "zh" else "en") for one in newest[:limit]])
        told = AlertSpans(
            start_at=wanted.since or 0, end_at=wanted.until or 0, alerts=spans, complete=len(found) <= limit
        )
        return _answer(told)

    def _alerts(self, run: str) -> Response:
        rows = [alert_row(one, "en") for one in self._play.snapshot.alerts if one.labels.get("run") == run]
        return _answer(rows)


def peaks(run: wire.Run) -> PeaksOfRun:
    """Of the last steps; they climb by a fifth of a GiB a step, and the GPU that is fullest changes half way."""
    count = len(run.steps)
    known = range(max(0, count - REMEMBERED_STEPS), count)

    def column(gib: float) -> Peaks:
        return Peaks(
            peak_bytes=tuple([int((gib + place * 0.2) * GIB) if place in known else None for place in range(count)]),
            gpu=tuple([place % 2 if place in known else None for place in range(count)]),
        )

    nodes = run.nodes or ("gpu-01",)
    return PeaksOfRun(
        run=run.run,
        step=tuple([point.step.step for point in run.steps]),
        at=tuple([point.at for point in run.steps]),
        known_from_step=run.steps[known.start].step.step if known else None,
        gpus=tuple([PeakSource(node=nodes[0], gpu=str(gpu), usable_bytes=USABLE_BYTES) for gpu in (3, 5)]),
        phases={phase: column(gib) for phase, gib in HEIGHTS_GIB.items()},
        reshard_cycles=tuple([1 if place else None for place in range(count)]),
    )


def storage(at: float) -> Storage:
    """Of a server that has run for two days."""
    sizes: tuple[tuple[Kept, float, int, int], ...] = (
        ("raw", 86_400.0, 290, 241),
        ("10s", 176_400.0, 588, 92),
        ("1m", 172_800.0, 96, 18),
    )
    history = tuple(
        HistorySize(kept=kept, chunks=chunks, bytes=mib * 2**20, oldest_at=at - age, newest_at=at - 4000)
        for kept, age, chunks, mib in sizes
    )
    return Storage(
        measured_at=at - 130,
        database_bytes=497 * 2**20,
        used_bytes=412 * 2**20,
        growth_bytes_per_day=38.4 * 2**20,
        growth_since_at=at - 23_000,
        history=history,
    )


def planned(name: str) -> PlanOfRun:
    """A rollout above its plan, an update within it, and log-probabilities that were not measured."""

    def phase(name: str, gib: float, part: str, measured_gib: float | None, error: float | None) -> PlannedPhase:
        stands = None if measured_gib is None else "above" if measured_gib > gib * 1.1 else "within"
        return PlannedPhase(
            phase=name,
            moment="cache",
            low_bytes=int(gib * 0.9 * GIB),
            expected_bytes=int(gib * GIB),
            high_bytes=int(gib * 1.1 * GIB),
            verdict="fits",
            trouble=None,
            part=part,
            part_bytes=int(gib * 0.7 * GIB),
            measured_bytes=None if measured_gib is None else int(measured_gib * GIB),
            stands=stands,  # type: ignore[arg-type]  # as above
            at_lengths_bytes=int(gib * GIB),
            error_ratio=error,
            factor=None if error is None else 1 / (1 + error),
            next_bytes=None if measured_gib is None else int(measured_gib * GIB),
        )

    return PlanOfRun(
        run=name,
        capacity_bytes=USABLE_BYTES,
        model="Qwen3-8B",
        parameters=8_190_000_000,
        verdict="tight",
        peak_phase="update_actor",
        length_tokens=1020.4,
        assumed=("longest_batch",),
        phases=(
            phase("rollout", 55.0, "kv_pool", 72.8, -0.24),
            phase("old_log_prob", 48.0, "logits", None, None),
            phase("update_actor", 64.0, "optimizer", 60.0, 0.067),
        ),
    )


def _answer(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
