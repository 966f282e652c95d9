"""Whether one can rely on being told: channels, agents, and the server itself."""

from boards.board import Board, Variable
from boards.panel import GOOD_AT_ONE, GOOD_AT_ZERO, NONE, Panel, Query, curves, spread, states, value

_EACH_NODE = '{node=~"$node"}'
_LOST = '{outcome=~"failed|dropped"}'
_OF_OURS = "and on (instance, job) oomwatch_build_info"  # any Prometheus client tells of its process


def _flag(title: str, metric: str, about: str) -> Panel:
    return value(title, NONE, Query(f"max({metric})"), about=about, steps=GOOD_AT_ZERO)


BOARD = Board(
    uid="oomwatch-alerting",
    title="oomwatch: alerting health",
    about="Whether alerts reach people: notifications by outcome, what agents send, and the server's own health.",
    variables=[Variable("node", "Node", "oomwatch_agent_up", several=True)],
    parts=[
        "Now",
        value(
            "Not delivered",
            NONE,
            Query(f"sum(increase(oomwatch_notifications_total{_LOST}[$__range]))"),
            about="Messages that no channel took, in the time shown.",
            steps=GOOD_AT_ZERO,
        ),
        value(
            "Agents heard",
            "percentunit",
            Query(f"avg(max by (node) (oomwatch_agent_up{_EACH_NODE}))"),
            about="Share of the agents that are heard. Those that stopped on purpose do not count.",
            steps=GOOD_AT_ONE,
            bounds=(0, 1),
        ),
        _flag("Database", "oomwatch_store_failed", "1 while the database cannot be written: no alert is told then."),
        _flag("Rule file", "oomwatch_rules_reload_failed", "1 while it has mistakes and older rules are in force."),
        value(
            "Defects",
            NONE,
            Query("sum(increase(oomwatch_failures_total[$__range]))"),
            about="Defects of the server itself, in the time shown; each is in its log.",
            steps=GOOD_AT_ZERO,
        ),
        value(
            "Heartbeat",
            "s",
            Query("time() - max(oomwatch_heartbeat_last_success_timestamp_seconds)"),
            about="Time since the service that watches over oomwatch itself was last reached.",
            steps=((None, "green"), (180, "red")),
            nothing="Not set up",
        ),
        "Alerts and notifications",
        curves(
            "Alerts by state",
            NONE,
            Query("sum by (state) (max by (alert, severity, state) (oomwatch_alerts))", "{{state}}"),
            about="Open alerts of all rules.",
        ),
        curves(
            "Alerts that nobody is sent",
            NONE,
            Query("sum by (kind) (max by (alert, severity, kind) (oomwatch_alerts_muted))", "{{kind}}"),
            Query("sum(max by (alert, severity) (oomwatch_alerts_acknowledged)) or vector(0)", "acknowledged"),
            about="Open alerts by what mutes them, and those that somebody takes care of.",
        ),
        curves(
            "By outcome",
            NONE,
            Query("sum by (outcome) (increase(oomwatch_notifications_total[$__rate_interval]))", "{{outcome}}"),
            about="Messages to all channels, by what became of them.",
        ),
        curves(
            "Not delivered, by channel",
            NONE,
            Query(
                f"sum by (channel, outcome) (increase(oomwatch_notifications_total{_LOST}[$__rate_interval]))",
                "{{channel}} {{outcome}}",
            ),
            about="Messages that a channel did not take.",
        ),
        curves(
            "Waiting to be told",
            NONE,
            Query("max by (channel) (oomwatch_notifications_waiting)", "{{channel}}"),
            about="Changes of alerts that a channel is yet to be told.",
        ),
        spread(
            "From reading to judgement",
            "oomwatch_ingest_lag_seconds",
            about="From the moment of a reading to the end of its judgement by the rules.",
        ),
        "Agents",
        states(
            "Agents",
            Query(f"max by (node) (oomwatch_agent_up{_EACH_NODE})", "{{node}}"),
            {0: ("silent", "red"), 1: ("heard", "green")},
            about="Whether each node's agent is heard.",
            width=8,
        ),
        curves(
            "Messages",
            "mps",
            Query(f"sum by (node) (rate(oomwatch_agent_messages_total{_EACH_NODE}[$__rate_interval]))", "{{node}}"),
            about="Messages a second from each agent.",
        ),
        curves(
            "Clock skew",
            "s",
            Query(f"max by (node) (oomwatch_agent_skew_seconds{_EACH_NODE})", "{{node}}"),
            about="Each agent's clock minus the server's. It is corrected for.",
            bounds=(None, None),
        ),
        "The server",
        curves(
            "Age of the last judgement by the clock",
            "s",
            Query("max(oomwatch_beat_age_seconds)", "age"),
            about="More than a few seconds is a stall: alerts that need time to pass do not fire.",
        ),
        spread("Judging", "oomwatch_rule_evaluation_seconds", about="What one message, or one second, can change."),
        spread("Writing", "oomwatch_store_write_seconds", about="One write to the database."),
        curves(
            "Queues",
            NONE,
            Query("max by (queue) (oomwatch_queue_length)", "{{queue}}"),
            about="What waits: for the database, and for the slowest browser.",
        ),
        curves(
            "Time for each rule",
            "percentunit",
            Query("topk(10, sum by (alert) (rate(oomwatch_rule_seconds_total[$__rate_interval])))", "{{alert}}"),
            about="Share of a core that judging by a rule takes; the ten dearest.",
        ),
        curves(
            "Messages that could not be used",
            "mps",
            Query("sum(rate(oomwatch_messages_malformed_total[$__rate_interval]))", "malformed"),
            Query("sum(rate(oomwatch_messages_unknown_total[$__rate_interval]))", "newer than the server"),
            Query("sum(rate(oomwatch_messages_refused_total[$__rate_interval]))", "without room"),
            about="Frames that broke the protocol, messages of a kind that this server does not know yet, and those "
            "that found no room and are sent again.",
        ),
        curves(
            "CPU",
            "percentunit",
            Query(f"sum by (instance) (rate(process_cpu_seconds_total[$__rate_interval]) {_OF_OURS})", "{{instance}}"),
            about="Of one core.",
        ),
        curves(
            "Resident memory",
            "bytes",
            Query(f"max by (instance) (process_resident_memory_bytes {_OF_OURS})", "{{instance}}"),
            about="Of the server's process.",
        ),
    ],
)
