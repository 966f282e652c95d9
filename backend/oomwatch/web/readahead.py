"""uvicorn's WebSockets, which go on reading while few messages wait."""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# More than an agent sends while one of its messages is judged; one that sends more is to wait, as its outbox can.
FRAMES_AHEAD = 8


class ReadsAhead(WebSocketsSansIOProtocol):
    """uvicorn's own stops reading at each message until the application has taken it.

    With a message a second from each of a thousand agents, stopping and going on is a tenth of the event loop's work.
    """

    def send_receive_event_to_app(self) -> None:
        """A message is here. Where few wait, it is taken for one during which reading has stopped already."""
        has_stopped = self.read_paused
        self.read_paused = has_stopped or self.queue.qsize() < FRAMES_AHEAD
        stops_here = not self.read_paused
        super().send_receive_event_to_app()
        self.read_paused = has_stopped or stops_here
