"""The `notify:` section of alerts.yaml: which channels there are, and how messages are bundled."""

from oomwatch import wire
from oomwatch.notify.channel import Section
from oomwatch.notify.channels import ChannelConfig
from oomwatch.notify.secret import Secret
from oomwatch.units import Duration, parse_duration


class NotifyConfig(Section, frozen=True, kw_only=True):
    """`group_wait`: how long the first message of a group waits for company. `group_interval`: least time between two
    messages of a group."""

    language: wire.Language = "en"
    group_wait: Duration = Duration(0.05)
    group_interval: Duration = Duration(30)
    channels: tuple[ChannelConfig, ...] = ()

    def __post_init__(self) -> None:
        names = [channel.name for channel in self.channels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"two channels are called {twice[0]}; what was delivered is kept by name, so give each its own"
            )


def decode_hook(kind: type, value: object) -> object:
    """msgspec's dec_hook for the types of this section."""
    if kind is Secret:
        if not isinstance(value, str):
            raise ValueError(f"expected a text, got {type(value).__name__}")
        return Secret(value.strip())
    if kind is Duration and isinstance(value, str | int | float):
        return parse_duration(value)
    raise NotImplementedError(f"no reader for {kind}")
