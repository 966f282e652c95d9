"""A GPU exporter as others are built: prometheus_client over NVML.

python -m bench.detection.exporter --port 9400 [--collect-every 30]

Without --collect-every the cards are read at each scrape; with it they are read that often, and a scrape is given what
was read last, as dcgm-exporter does.
"""

import itertools
import time
from collections.abc import Callable, Iterator

import pynvml
from bench._options import parser_of
from prometheus_client import REGISTRY, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


def read() -> list[Metric]:
    """What the cards say now: memory, and what else exporters tell of a card."""
    used = GaugeMetricFamily("gpu_memory_used_bytes", "Device memory in use.", labels=["gpu"])
    total = GaugeMetricFamily("gpu_memory_total_bytes", "Device memory.", labels=["gpu"])
    power = GaugeMetricFamily("gpu_power_watts", "Power draw.", labels=["gpu"])
    temperature = GaugeMetricFamily("gpu_temperature_celsius", "Temperature.", labels=["gpu"])
    for index in range(pynvml.nvmlDeviceGetCount()):
        card, labels = pynvml.nvmlDeviceGetHandleByIndex(index), [str(index)]
        memory = pynvml.nvmlDeviceGetMemoryInfo(card)
        used.add_metric(labels, memory.used)
        total.add_metric(labels, memory.total)
        power.add_metric(labels, pynvml.nvmlDeviceGetPowerUsage(card) / 1000)
        temperature.add_metric(labels, pynvml.nvmlDeviceGetTemperature(card, pynvml.NVML_TEMPERATURE_GPU))
    return [used, total, power, temperature]


class Cards(Collector):
    """Gives at each scrape what `look` gives."""

    def __init__(self, look: Callable[[], list[Metric]]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        yield from self._look()


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--collect-every", type=float, metavar="SECONDS", help="read the cards that often, not at a scrape"
    )
    options = parser.parse_args()
    pynvml.nvmlInit()
    held = read()
    REGISTRY.register(Cards((lambda: held) if options.collect_every else read))
    start_http_server(options.port, addr="127.0.0.1")
    started = time.monotonic()
    for turn in itertools.count(1):
        time.sleep(max(0.0, started + turn * (options.collect_every or 3600.0) - time.monotonic()))
        held = read()


if __name__ == "__main__":
    main()
