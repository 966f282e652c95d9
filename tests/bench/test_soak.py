"""A server that lives for hours within seconds: neither its memory nor its database may grow."""

from pathlib import Path

from bench.soak import Kept, soak

from oomwatch.store.store import Keep

HOUR = 3600.0
KEPT = Kept(Keep(HOUR / 3, HOUR / 2, HOUR), HOUR)
NODES, EVERY_SECONDS = 2, 10
MORE_HOURS = 0.5
READINGS = NODES * 8 * MORE_HOURS * HOUR / EVERY_SECONDS  # so many objects more if something kept one of each


def test_memory_stays_flat_and_the_database_bounded_over_simulated_hours(tmp_path: Path) -> None:
    full, last = soak(tmp_path, NODES, [1.5, MORE_HOURS], EVERY_SECONDS, KEPT)
    assert last.alerts_told > full.alerts_told, "nothing happened meanwhile"
    assert last.objects < full.objects + READINGS / 2
    assert last.database_mib < 1.3 * full.database_mib
    assert last.rss_mib < full.rss_mib + 8
