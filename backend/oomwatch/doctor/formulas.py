"""A part's formula in the reader's language.

The estimate (plan/memory) writes its factors out in English. Their words are a closed list, `plan.factor.*` of the
catalogue, so that another language takes its own for each; numbers, signs and units (GiB, k, G) are everybody's.
"""

import functools
import re

from oomwatch import wire
from oomwatch.catalogue import entries

_FAMILY = "plan.factor."


def formula_in(language: wire.Language, formula: str) -> str:
    """The formula with its words in `language`: "8 字节 x 1.85 G（本 GPU 上训练的参数）"."""
    if language == "en":
        return formula
    words = _words(language)
    said = re.sub(_phrases(), lambda found: words[found[0]], formula)
    return said.replace(" （", "（").replace(", ", "，")


@functools.cache
def _words(language: wire.Language) -> dict[str, str]:
    """English phrase to what it is called."""
    return {said["en"]: said[language] for key, said in entries().items() if key.startswith(_FAMILY)}


@functools.cache
def _phrases() -> re.Pattern[str]:
    """The longest first: "not divided" is a part of a longer one."""
    longest_first = sorted(_words("en"), key=len, reverse=True)
    return re.compile(r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")\b")
