"""Whose formula a part is, in the reader's language.

The estimate (plan/memory) names its sources in English. Each is one entry of the catalogue's `plan.source.*`; titles,
names of settings and the labels of the table of published runs (KV3, LS1) are everybody's.
"""

import functools

from oomwatch import wire
from oomwatch.catalogue import entries

_FAMILY = "plan.source."


def source_in(language: wire.Language, source: str) -> str:
    """The source in `language`; one that the catalogue does not have, as it is."""
    return _translations(language).get(source, source)


@functools.cache
def _translations(language: wire.Language) -> dict[str, str]:
    return {said["en"]: said[language] for key, said in entries().items() if key.startswith(_FAMILY)}
