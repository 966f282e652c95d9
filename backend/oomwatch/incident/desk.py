"""Which alerts begin an incident, and when its report is due. Pure: the time is an argument.

Each rank of a run that dies says so by an alert of its own. What a run says within two minutes is one incident, unless
it was started again in between.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable

import msgspec

from oomwatch import wire
from oomwatch.incident.report import AFTER_SECONDS, Draft, Entry, incident_id

FATAL = ("device_oom", "host_oom")  # kinds of event (wire.py) that an incident is written of
SAME_SECONDS = 120.0
ALERTS_KEPT = 10_000
RESUMED_SECONDS = 3600.0


class Desk:
    """Told of the engine's transitions; gives the drafts that are due."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}  # by id: those that an alert may join, or that are due
        self._latest: dict[str, str] = {}  # the last one of each run or node
        self._due_at: dict[str, float] = {}  # by incident
        self._of_alert: OrderedDict[str, str] = OrderedDict()

    def note(self, transition: wire.Transition, now: float) -> None:
        """The engine has said this. An alert that something has run out of memory begins an incident, or joins one."""
        if transition.reason == "run restarted":
            self._close(transition.id)
        is_new = transition.change == "state" and transition.state == "firing"
        if not is_new or transition.facts.get("event") not in FATAL or transition.id in self._of_alert:
            return
        labels = transition.labels
        place = f"run {labels['run']}" if "run" in labels else f"node {labels.get('node', '')}"
        draft = self._drafts.get(self._latest.get(place, ""))
        if draft is None or transition.at - draft.at > SAME_SECONDS:
            draft = Draft(
                id=incident_id(transition.at, place), at=transition.at, node=labels.get("node"), run=labels.get("run")
            )
        self._latest[place] = draft.id
        self._drafts[draft.id] = _joined(draft, labels, transition.id)
        self._due_at.setdefault(draft.id, now + AFTER_SECONDS)
        self._remember(transition.id, draft.id)

    def _close(self, alert_id: str) -> None:
        """The run works again: what fails now is another failure."""
        incident = self._of_alert.get(alert_id)
        self._latest = {place: latest for place, latest in self._latest.items() if latest != incident}

    def remember(self, entries: Iterable[Entry]) -> None:
        """Incidents of an earlier life of the server, oldest first."""
        for entry in entries:
            for alert in entry.alerts:
                self._remember(alert, entry.id)

    def _remember(self, alert_id: str, incident: str) -> None:
        self._of_alert[alert_id] = incident
        while len(self._of_alert) > ALERTS_KEPT:
            self._of_alert.popitem(last=False)

    def of(self, alert_id: str) -> str | None:
        """The incident that an alert told of."""
        return self._of_alert.get(alert_id)

    def with_incident(self, transition: wire.Transition) -> wire.Transition:
        """The transition with the incident among its facts, where there is one."""
        incident = self.of(transition.id)
        if incident is None:
            return transition
        return msgspec.structs.replace(transition, facts={**transition.facts, "incident": incident})

    def resume(self, alerts: Iterable[wire.Alert], written: Container[str], now: float) -> None:
        """Alerts of an earlier life of the server, or of one that led before: what they tell of may not be written."""
        self._due_at = {incident: at for incident, at in self._due_at.items() if incident not in written}
        for alert in alerts:
            incident, fired_at = alert.facts.get("incident"), alert.fired_at
            if not isinstance(incident, str) or fired_at is None or now - fired_at > RESUMED_SECONDS:
                continue
            self._remember(alert.id, incident)
            if incident not in written:
                draft = Draft(id=incident, at=fired_at, node=alert.labels.get("node"), run=alert.labels.get("run"))
                self._drafts[incident] = _joined(self._drafts.get(incident, draft), alert.labels, alert.id)
                self._due_at[incident] = now

    def put_back(self, draft: Draft, at: float) -> None:
        """It could not be written: it is due again then."""
        self._drafts.setdefault(draft.id, draft)
        self._due_at.setdefault(draft.id, at)

    def due(self, now: float) -> list[Draft]:
        """The drafts whose time has come, each once; one that an alert joins later is due again."""
        ready = [incident for incident, at in self._due_at.items() if at <= now]
        for incident in ready:
            del self._due_at[incident]
        drafts = [self._drafts[incident] for incident in ready]
        self._drafts = {
            incident: draft
            for incident, draft in self._drafts.items()
            if incident in self._due_at or now - draft.at <= SAME_SECONDS
        }
        self._latest = {place: incident for place, incident in self._latest.items() if incident in self._drafts}
        return drafts


def _joined(draft: Draft, labels: dict[str, str], alert_id: str) -> Draft:
    gpu = ((labels["node"], labels["gpu"]),) if "gpu" in labels else ()
    return msgspec.structs.replace(draft, gpus=draft.gpus + gpu, alerts=(*draft.alerts, alert_id))
