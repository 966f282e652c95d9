"""One run: its steps, what torch and the rollout engine hold, and the cards and hosts it is on."""

from boards.board import Board, Variable
from boards.panel import FULLNESS, NONE, Link, Query, curves, states, value

_OF_RUN = '{run="$run"}'
_ITS_GPUS = f"and on (node, gpu) oomwatch_gpu_run{_OF_RUN}"
_ITS_NODES = f"and on (node) oomwatch_gpu_run{_OF_RUN}"
_USED = f"max by (node, gpu) (oomwatch_gpu_memory_used_bytes {_ITS_GPUS})"
_USABLE = "max by (node, gpu) (oomwatch_gpu_memory_usable_bytes)"
_HOST_USED = f"max by (node) (oomwatch_host_memory_used_bytes {_ITS_NODES})"
_HOST_LIMIT = "max by (node) (oomwatch_host_memory_limit_bytes)"
_STEP, _ROLLOUT = f"max(oomwatch_step_seconds{_OF_RUN})", f"max(oomwatch_rollout_seconds{_OF_RUN})"
_SWITCHES = f"sum(rate(oomwatch_reshard_cycles_total{_OF_RUN}[$__rate_interval])) * 60"
_TO_GPU = Link("Show this GPU", "oomwatch-gpu", ("node", "gpu"))

BOARD = Board(
    uid="oomwatch-run",
    title="oomwatch: run",
    about="One training run: step and rollout time, torch's allocator, the rollout engine, and the memory it runs in.",
    variables=[Variable("run", "Run", "oomwatch_step")],
    parts=[
        "Now",
        value("Step", NONE, Query(f"max(oomwatch_step{_OF_RUN})"), about="Number of the last step that is done."),
        value("Step time", "s", Query(_STEP), about="How long the last step took."),
        value("Rollout time", "s", Query(_ROLLOUT), about="How long the rollout of the last step took."),
        value(
            "Rollout share",
            "percentunit",
            Query(f"{_ROLLOUT} / {_STEP}"),
            about="Share of the last step that its rollout took.",
        ),
        value(
            "Switches a minute",
            NONE,
            Query(_SWITCHES),
            about="Switches from training to rollout, each with its reload of weights.",
        ),
        value(
            "Fullest GPU",
            "percentunit",
            Query(f"max({_USED} / {_USABLE})"),
            about="The largest share of usable memory in use on a GPU of this run.",
            steps=FULLNESS,
            bounds=(0, 1),
        ),
        "Steps",
        curves(
            "Step and rollout time",
            "s",
            Query(_STEP, "step"),
            Query(_ROLLOUT, "rollout"),
            about="Of the last step that was done.",
        ),
        curves(
            "Switches from training to rollout",
            "cpm",
            Query(_SWITCHES, "switches"),
            about="A minute. Usually one a step; more of them is a storm of resharding.",
        ),
        curves(
            "Share of the step spent switching",
            "percentunit",
            Query(f"max(oomwatch_reshard_step_ratio{_OF_RUN})", "switching"),
            about="Of the last step: from training to rollout, with the reload of weights.",
        ),
        states(
            "Phase",
            Query(f"max by (phase) (oomwatch_run_phase{_OF_RUN})", "{{phase}}"),
            {0: ("no", "transparent"), 1: ("in it", "blue")},
            about="Which phase the run is in, as its log tells.",
            width=24,
        ),
        "Memory on the cards",
        curves(
            "Device memory used",
            "percentunit",
            Query(f"{_USED} / {_USABLE}", "{{node}} GPU {{gpu}}"),
            about="Share of usable memory in use on the GPUs of this run, whoever holds it.",
            bounds=(0, 1),
            link=_TO_GPU,
        ),
        curves(
            "torch: reserved and allocated",
            "bytes",
            Query(
                f"sum by (node, gpu, role) (oomwatch_torch_reserved_bytes{_OF_RUN})",
                "{{node}} GPU {{gpu}} {{role}} reserved",
            ),
            Query(
                f"sum by (node, gpu, role) (oomwatch_torch_allocated_bytes{_OF_RUN})",
                "{{node}} GPU {{gpu}} {{role}} allocated",
            ),
            about="Reserved: what torch's allocator has taken from the device. Allocated, dashed: what tensors hold of "
            "it.",
            dashed=".*allocated",
            width=16,
            link=_TO_GPU,
        ),
        curves(
            "Allocator retries",
            NONE,
            Query(
                f"sum by (node, gpu) (increase(oomwatch_torch_alloc_retries_total{_OF_RUN}[$__rate_interval]))",
                "{{node}} GPU {{gpu}}",
            ),
            about="Times that torch's allocator flushed its cache to survive: memory is nearly out.",
            width=12,
        ),
        curves(
            "Full in",
            "s",
            Query(f"min by (node, gpu) (oomwatch_forecast_full_seconds {_ITS_GPUS})", "{{node}} GPU {{gpu}}"),
            about="Time until a card is full, if it goes on as it did; nothing where none fills up.",
            width=12,
            link=_TO_GPU,
        ),
        "Rollout engine",
        curves(
            "KV cache used",
            "percentunit",
            Query(f"max by (node, address) (oomwatch_kv_cache_used_ratio{_OF_RUN})", "{{node}} {{address}}"),
            about="Share of each engine's KV cache in use.",
            bounds=(0, 1),
        ),
        curves(
            "Requests",
            NONE,
            Query(f"sum by (node) (oomwatch_engine_requests_running{_OF_RUN})", "{{node}} running"),
            Query(f"sum by (node) (oomwatch_engine_requests_waiting{_OF_RUN})", "{{node}} waiting"),
            about="Requests that the engines work on, and, dashed, those that wait for room.",
            dashed=".*waiting",
        ),
        curves(
            "Preemptions",
            NONE,
            Query(
                f"sum by (node) (increase(oomwatch_engine_preemptions_total{_OF_RUN}[$__rate_interval]))", "{{node}}"
            ),
            about="Requests that the engines put back for want of room: their tokens are computed again.",
        ),
        "Hosts",
        curves(
            "Host memory used",
            "percentunit",
            Query(f"{_HOST_USED} / {_HOST_LIMIT}", "{{node}}"),
            about="Share of the limit of the machine or its container, on the nodes of this run.",
            bounds=(0, 1),
        ),
        curves(
            "Host memory",
            "bytes",
            Query(_HOST_USED, "{{node}} used"),
            Query(f"{_HOST_LIMIT} {_ITS_NODES}", "{{node}} limit"),
            about="In use, and, dashed, the limit of the machine or its container.",
            dashed=".*limit",
        ),
        curves(
            "Shared memory and spill disk",
            "percentunit",
            Query(f"max by (node) (oomwatch_host_shm_ratio {_ITS_NODES})", "{{node}} /dev/shm"),
            Query(f"max by (node) (oomwatch_host_disk_ratio {_ITS_NODES})", "{{node}} spill disk"),
            about="Use of /dev/shm, and, dashed, of the file system that Ray spills to.",
            bounds=(0, 1),
            dashed=".*disk",
        ),
    ],
)
