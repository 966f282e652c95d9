"""How good the warnings are, on runs whose end is known.

    python -m bench.warnings --list
    python -m bench.warnings --runs 200 --jobs 2
    python -m bench.warnings --report
    python -m bench.warnings --show leak_slow 3

A run is made from a seed, a configuration in verl's own keys, and what nature adds to it (lengths, leaks, neighbours).
Its memory follows from the arithmetic of training and rollout, second by second, so that another configuration of the
same seed is another run that may live where the first died. What it would have told (samples, step lines, memory
lines, probes) goes through the engine as a recorded trace does: there is no second path.

Read in this order: shapes, settings, batches, memory (what a configuration costs), nature and allocator (what else
there is), simulate (the steps, and how the run ends), tell (what is seen of it), scenarios, detectors, score.
"""
