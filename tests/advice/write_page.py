"""Write docs/reference/advice.md from the catalogue: `python -m tests.advice.write_page`."""

from pathlib import Path

from oomwatch import wire
from oomwatch.advice.catalogue import Entry, entries
from oomwatch.catalogue import say
from oomwatch.core.cause import HYPOTHESES

PATH = Path(__file__).resolve().parents[2] / "docs/reference/advice.md"
PRICES = {1: "nothing to speak of", 2: "a little", 3: "much", 4: "changes what is learned"}
HEAD = """# Causes and remedies

An alert that fires says what is probably behind it, on what evidence, and the best three things to change. This
page lists all causes and remedies; it is made from the data (`python -m tests.advice.write_page`).

- **Causes** are judged by `backend/oomwatch/core/cause/`: each is one small function from what is known (peaks
  and floors of the phases, lengths, torch's figures, what the engine keeps after it slept, who holds the card)
  to a score. The scores of an alert's causes add up to 1 at most.
- **Remedies** are data: `backend/oomwatch/advice/remedies.yaml`. A setting is named only to a run whose
  configuration has it, or whose version of verl knows it (`verlkeys.json`, read from the releases). The
  value to set is worked out from the run's own configuration and the evidence, and keeps to what verl's batch
  arithmetic lets divide. Where the configuration was not told, the setting is named and no value.
- A remedy is worth more the likelier its cause, the more of what is needed it frees, and the less it costs. Of the best
  three, one that prevents nothing and only limits the damage stands last.
- "Needed" is what has to be freed to fit what failed, to get below the rule's limit or, where memory rises, to go
  on for fifty steps at the present pace. Where that is more than the card has, it is not told.
- "Reported" figures are those of others, and not measured here.
"""


def page() -> str:
    return "\n".join([HEAD, "## Causes", "", *_causes(), "", "## Remedies", "", *_remedies(), ""])


def _causes() -> list[str]:
    topics = {cause: [one.topics for one in HYPOTHESES if one.cause == cause] for cause in wire.CAUSES}
    rows = [
        f"| `{cause}` | {say(f'cause.{cause}', 'en')} | {', '.join(dict.fromkeys(sum(topics[cause], ())))} |"
        for cause in wire.CAUSES
    ]
    return ["| cause | what it is | of alerts about |", "|---|---|---|", *rows]


def _remedies() -> list[str]:
    return [
        "| remedy | what to do | setting | for | costs | source |",
        "|---|---|---|---|---|---|",
        *(_row(one) for one in entries()),
    ]


def _row(entry: Entry) -> str:
    keys = "<br>".join(f"`{key}`" for key in entry.keys) or "-"
    price = f"{PRICES[entry.price.level]}: {entry.price.en}" if entry.price.level > 1 else entry.price.en
    return f"| `{entry.remedy}` | {entry.text.en} | {keys} | {', '.join(entry.causes)} | {price} | {entry.source} |"


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
