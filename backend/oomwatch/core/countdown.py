"""A forecast some time after it was made: a judgement comes once a step, and people read it in between."""

from msgspec import structs

from oomwatch import wire

LEFT_SECONDS = ("eta_seconds", "eta_low_seconds", "eta_high_seconds")


def counted_down(told: wire.Transition, seconds: float) -> wire.Transition:
    """With the time and the steps that are left so many seconds later. What foretells nothing stays as it is."""
    left = told.facts.get("eta_seconds")
    if told.value is None or told.unit != "seconds" or not isinstance(left, int | float) or seconds <= 0:
        return told
    facts = told.facts | {
        name: max(0.0, fact - seconds) for name in LEFT_SECONDS if isinstance(fact := told.facts.get(name), int | float)
    }
    steps = told.facts.get("eta_steps")
    if isinstance(steps, int | float) and left > 0:
        facts["eta_steps"] = round(steps * max(0.0, left - seconds) / left)
    return structs.replace(told, value=max(0.0, told.value - seconds), facts=facts)
