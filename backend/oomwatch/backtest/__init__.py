"""Rules tried on runs that are over: logs, tables of readings and traces become what an agent would have sent."""

# The kinds of file, each with what a person would call it.
KINDS = {
    "trace": "a trace (oomwatch serve --record, oomwatch record)",
    "log": "a training log (verl's console, a Ray worker's file)",
    "metrics": 'the file logger\'s JSON lines ({"step": n, "data": {...}})',
    "nvidia-smi": "nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv",
    "csv": "a table series,t_seconds,used_bytes",
}
