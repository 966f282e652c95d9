"""How this server fares as one of several. Nothing where it is alone."""

from collections.abc import Iterator

from oomwatch.metrics.family import Family, Reading, Room, Rows, View

MEMBERS = Family(
    "oomwatch_cluster_members", "gauge", "Replicas that are alive, as this one sees it; it is one of them."
)
LEADER = Family("oomwatch_cluster_leader", "gauge", "1 where this replica delivers messages and keeps house.")
CONNECTED = Family("oomwatch_cluster_nats_connected", "gauge", "1 while NATS can be reached.")
ENVELOPES = Family("oomwatch_cluster_envelopes", "counter",
                   "What replicas send each other over NATS: sent, heard, dropped for want of room, unknown to this "
                   "version, or malformed.", ("outcome",), ("cluster outcome",))  # fmt: skip
WAITING = Family("oomwatch_cluster_envelopes_waiting", "gauge", "Envelopes that wait to be sent to NATS.")
LAG = Family("oomwatch_cluster_lag_seconds", "histogram",
             "From the moment in which another replica received a message to its judgement here.")  # fmt: skip
WORDS = Family("oomwatch_cluster_words", "counter", "Changes of alerts that other replicas said, read in the database.")
FLOOR = Family("oomwatch_cluster_nodes_spoken_for", "gauge", "Nodes whose alerts this replica tells.")
UNSPOKEN = Family("oomwatch_cluster_unspoken", "gauge",
                  "Changes of alerts that were found here and are another replica's to tell.")  # fmt: skip


def _read(view: View) -> Iterator[Reading]:
    cluster = view.cluster
    if cluster is None:
        return
    yield MEMBERS.one(len(cluster.alive))
    yield LEADER.one(float(cluster.leads))
    yield CONNECTED.one(float(cluster.is_connected))
    yield ENVELOPES.of(_outcomes(view))
    yield WAITING.one(cluster.waiting)
    yield LAG.measured(cluster.lag)
    yield WORDS.one(cluster.words_total)
    yield FLOOR.one(cluster.spoken_for)
    yield UNSPOKEN.one(cluster.unspoken)


def _outcomes(view: View) -> Rows:
    if view.cluster is not None:
        for outcome, total in view.cluster.envelopes.items():
            yield (outcome,), total


ROOM = Room((MEMBERS, LEADER, CONNECTED, ENVELOPES, WAITING, LAG, WORDS, FLOOR, UNSPOKEN), _read)
