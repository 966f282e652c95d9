"""The agents: who is heard, and how far their clocks and messages are."""

from collections.abc import Iterator

from oomwatch.metrics.family import OF_NODE, Family, Reading, Room, View
from oomwatch.service.views import state_of

UP = Family("oomwatch_agent_up", "gauge",
            "1 while the node's agent is heard; absent once it stopped on purpose.", OF_NODE, ("node",))  # fmt: skip
SKEW = Family("oomwatch_agent_skew_seconds", "gauge",
              "The agent's clock minus the server's, corrected for.", OF_NODE, ("node",))  # fmt: skip
MESSAGES = Family("oomwatch_agent_messages", "counter",
                  "Messages received from the agent since it started.", OF_NODE, ("node",))  # fmt: skip
CONNECTED = Family("oomwatch_agents_connected", "gauge", "Agents whose connection is open.")


def _read(view: View) -> Iterator[Reading]:
    heard = [((node.name,), state_of(node, view.now) == "live") for node in view.nodes if not node.stopped]
    sessions = list(view.service.roster)
    yield UP.of((key, float(is_live)) for key, is_live in heard)
    yield SKEW.of(((session.node,), session.skew_seconds) for session in sessions)
    yield MESSAGES.of(((session.node,), session.messages_total) for session in sessions)
    yield CONNECTED.one(sum(session.peer is not None for session in sessions))


ROOM = Room((UP, SKEW, MESSAGES, CONNECTED), _read)
