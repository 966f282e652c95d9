"""A remedy in a sentence: what to do, from which value to which, and what that frees."""

from oomwatch import wire
from oomwatch.advice.catalogue import Entry
from oomwatch.catalogue import say
from oomwatch.figures import figure


def text_of(entry: Entry, remedy: wire.Remedy, language: wire.Language, *, failed: bool) -> str:
    """What to do, then "log_prob_micro_batch_size_per_gpu 8 -> 4: frees about 9.0 GiB; to be safe ...".

    `failed`: memory has run out, so that nothing can be done before it does.
    """
    words = entry.once_failed if failed and entry.once_failed else entry.text
    what = words.by_language()[language]
    if remedy.key is None:
        return what
    change, frees = _change(remedy.key, remedy, language), _frees(remedy, language)
    if frees is not None:
        change = say("remedy.frees", language, change=change, frees=frees)
    return say("remedy.with_change", language, what=what, change=change)


def _change(key: str, remedy: wire.Remedy, language: wire.Language) -> str:
    if remedy.value_to is None:
        return say("remedy.not_told", language, name=key)
    name = key.rsplit(".", 1)[-1]
    if remedy.value_from is None:
        return say("remedy.set", language, name=name, to=remedy.value_to)
    return say("remedy.change", language, name=name, value=remedy.value_from, to=remedy.value_to)


def _frees(remedy: wire.Remedy, language: wire.Language) -> str | None:
    if remedy.frees_bytes is None:
        return None
    frees = figure(remedy.frees_bytes, "bytes", language)
    if remedy.needed_bytes is None:
        return say("remedy.about", language, frees=frees)
    return say("remedy.of_needed", language, frees=frees, needed=figure(remedy.needed_bytes, "bytes", language))
