"""What every kind of condition has: how alerts.yaml tells them apart, and what one says that does not say otherwise."""

from msgspec import Struct

from oomwatch.core.fleet import Fleet
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import Verdict


class Kind(Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    def judge(self, _fleet: Fleet, _subject: Subject, _now: float) -> Verdict:
        """Whether it is so, with the numbers that say it. Each kind has its own."""
        raise NotImplementedError

    def is_so(self, fleet: Fleet, subject: Subject, now: float) -> bool:
        """Whether `judge` would say that it is active: asked with every reading, where nobody wants the numbers."""
        return self.judge(fleet, subject, now).state == "active"

    def stands(self, _fleet: Fleet, _subject: Subject, _now: float) -> bool:
        """Whether `judge` would say what it said last, where nothing was heard of the subject since but the time."""
        return False
