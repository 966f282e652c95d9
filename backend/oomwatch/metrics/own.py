"""How the server itself fares: whether it keeps up, stores, and gets its messages out."""

from collections.abc import Iterator

from oomwatch import __version__
from oomwatch.metrics.family import Family, Reading, Room, Rows, View

LAG = Family("oomwatch_ingest_lag_seconds", "histogram",
             "From the moment of a reading, on the server's clock, to the end of its judgement.")  # fmt: skip
JUDGING = Family("oomwatch_rule_evaluation_seconds", "histogram",
                 "Time to judge what one message, or one second, can change.")  # fmt: skip
RULES = Family("oomwatch_rule_seconds", "counter", "Time that judging by a rule has taken, over all subjects.",
               ("alert", "severity"), ("rule",))  # fmt: skip
WRITING = Family("oomwatch_store_write_seconds", "histogram", "Time of one write to the database.")
BEAT = Family("oomwatch_beat_age_seconds", "gauge",
              "Time since the rules were last judged by the clock; more than a few seconds is a stall.")  # fmt: skip
UNKNOWN = Family("oomwatch_messages_unknown", "counter", "Messages of a type newer than this server; skipped.")
MALFORMED = Family("oomwatch_messages_malformed", "counter", "Frames that broke the protocol; skipped.")
REFUSED = Family("oomwatch_messages_refused", "counter",
                 "Messages that found no room to wait for the database; their agents send them again.")  # fmt: skip
DROPPED = Family("oomwatch_transitions_dropped", "counter",
                 "Changes of alerts that were told and are in no history, for the database took none.")  # fmt: skip
QUEUES = Family("oomwatch_queue_length", "gauge",
                "What waits: messages and alerts for the database, publications for the slowest browser.",
                ("queue",), ("queue",))  # fmt: skip
BROWSERS = Family("oomwatch_browsers_connected", "gauge", "Browsers that watch.")
FAILURES = Family("oomwatch_failures", "counter", "Defects of the server itself; each is in its log.")
SENT = Family("oomwatch_notifications", "counter",
              "What became of messages to notification channels: delivered, failed for good, to be tried again "
              "(retried), or without room in the queue (dropped).",
              ("channel", "outcome"), ("channel", "outcome"))  # fmt: skip
WAITING = Family("oomwatch_notifications_waiting", "gauge",
                 "Messages that a channel is yet to be sent.", ("channel",), ("channel",))  # fmt: skip
PROBLEMS = Family("oomwatch_problems", "gauge", "Reasons why an alert might not be told; /readyz names them.")
HEARTBEAT = Family("oomwatch_heartbeat_last_success_timestamp_seconds", "gauge",
                   "When the dead man's switch elsewhere was last reached.")  # fmt: skip
RELOAD = Family("oomwatch_rules_reload_failed", "gauge",
                "1 while the rule file has mistakes and older rules are in force.")  # fmt: skip
STORE = Family("oomwatch_store_failed", "gauge", "1 while the database cannot be written.")
BUILD = Family("oomwatch_build", "info", "The server's version.", ("version",))


def _read(view: View) -> Iterator[Reading]:
    service = view.service
    yield LAG.measured(service.reception.lag)
    yield JUDGING.measured(service.judging)
    spent = service.engine.spent.seconds
    yield RULES.of(((one.alert, one.severity), spent.get(one.key, 0.0)) for one in service.engine.rules.in_use())
    yield WRITING.measured(service.journal.writing)
    yield BEAT.one(service.seconds_since_beat())
    yield UNKNOWN.one(service.reception.unknown_total)
    yield MALFORMED.one(service.reception.malformed_total)
    yield REFUSED.one(service.journal.refused_total)
    yield DROPPED.one(service.journal.dropped_total)
    yield QUEUES.of(_queues(view))
    yield BROWSERS.one(len(view.watchers))
    yield FAILURES.one(service.defects.total)
    yield SENT.of(_outcomes(view))
    yield WAITING.of(((channel.name,), channel.waiting) for channel in view.channels)
    yield PROBLEMS.one(len(view.problems))
    yield HEARTBEAT.one(view.heartbeat_at)
    yield RELOAD.one(float(service.rules_error is not None))
    yield STORE.one(float(service.journal.problem is not None))
    yield BUILD.info([{"version": __version__}])


def _queues(view: View) -> Rows:
    messages, alerts = view.service.journal.waiting()
    yield ("messages",), messages
    yield ("alerts",), alerts
    yield ("browser",), view.watchers.longest_queue()


def _outcomes(view: View) -> Rows:
    for channel in view.channels:
        yield (channel.name, "delivered"), channel.delivered_total
        yield (channel.name, "failed"), channel.failed_total
        yield (channel.name, "retried"), channel.retries_total
        yield (channel.name, "dropped"), channel.dropped_total


ROOM = Room(
    (LAG, JUDGING, RULES, WRITING, BEAT, UNKNOWN, MALFORMED, REFUSED, DROPPED, QUEUES, BROWSERS, FAILURES, SENT,
     WAITING, PROBLEMS, HEARTBEAT, RELOAD, STORE, BUILD),
    _read,
)  # fmt: skip
