"""Runs: their last step, and the phase that they are in."""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch.core.signals.of_run import last_step
from oomwatch.metrics.family import OF_RUN, Family, Reading, Room, Rows, View

STEP = Family("oomwatch_step", "gauge", "Number of the last training step.", OF_RUN, ("run",))
STEP_SECONDS = Family("oomwatch_step_seconds", "gauge", "Duration of the last training step.", OF_RUN, ("run",))
ROLLOUT = Family("oomwatch_rollout_seconds", "gauge", "Rollout time of the last training step.", OF_RUN, ("run",))
CYCLES = Family("oomwatch_reshard_cycles", "counter",
                "Switches from training to rollout since first sight.", OF_RUN, ("run",))  # fmt: skip
PHASE = Family("oomwatch_run_phase", "gauge",
               "1 for the phase that the run is in, 0 for all others; absent where no log line tells.",
               ("run", "phase"), ("run", "phase"))  # fmt: skip


OF_GPUS = Family("oomwatch_gpu_run", "gauge", "1: the run that works on the GPU, where that is known.",
                 ("node", "gpu", "run"), ("gpu",))  # fmt: skip
OF_NODES = Family("oomwatch_node_run", "gauge", "1: the run that works on the node, where there is one alone.",
                  ("node", "run"), ("node",))  # fmt: skip


def _read(view: View) -> Iterator[Reading]:
    lasts = [((run.name,), last_step(run, lambda _: 0.0)) for run in view.runs]
    steps = [(key, last.step) for key, last in lasts if last is not None]
    yield STEP.of((key, step.step) for key, step in steps)
    yield STEP_SECONDS.of((key, step.step_seconds) for key, step in steps)
    yield ROLLOUT.of((key, step.rollout_seconds) for key, step in steps)
    yield CYCLES.of(((run.name,), run.cycles_total() if run.cycle_marker() else None) for run in view.runs)
    yield PHASE.of(_phases(view))
    fleet = view.service.engine.fleet
    yield OF_GPUS.of(((*one[1:], run), 1.0) for one in fleet.subjects("gpu") if (run := fleet.run_of(one)))
    yield OF_NODES.of(((one.name, run), 1.0) for one in fleet.subjects("node") if (run := fleet.run_of(one)))


def _phases(view: View) -> Rows:
    for run in view.runs:
        current = run.timeline.current()
        if current in wire.PHASES and not view.service.engine.fleet.run_is_over(run.name, view.now):
            yield from (((run.name, phase), float(phase == current)) for phase in wire.PHASES)


ROOM = Room((STEP, STEP_SECONDS, ROLLOUT, CYCLES, PHASE, OF_GPUS, OF_NODES), _read)
