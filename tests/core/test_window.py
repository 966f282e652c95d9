"""Windows: order, age and peaks."""

from oomwatch.core.window import PeakWindow, Point, Window


def test_a_late_point_goes_where_it_belongs() -> None:
    window = Window(100)
    for at in (1.0, 3.0, 2.0):
        window.add(at, at * 10)
    assert window.between(0, 10) == [Point(1, 10), Point(2, 20), Point(3, 30)]
    assert window.latest() == Point(3, 30)


def test_points_older_than_the_window_are_forgotten() -> None:
    window = Window(10)
    for at in range(100):
        window.add(float(at), 0.0)
    assert [point.at for point in window.between(0, 1000)] == [float(at) for at in range(89, 100)]


def test_between_takes_both_ends() -> None:
    window = Window(100)
    for at in range(5):
        window.add(float(at), 0.0)
    assert [point.at for point in window.between(1, 3)] == [1.0, 2.0, 3.0]


def test_an_empty_window_has_no_latest() -> None:
    assert Window(10).latest() is None


def test_a_peak_survives_its_slice() -> None:
    peaks = PeakWindow(10, 1000)
    for at in range(40):
        peaks.add(float(at), 99.0 if at == 13 else 1.0)
    assert peaks.peak(0, 40) == 99.0
    assert peaks.peak(11, 12) == 99.0  # slices are told apart, not seconds
    assert peaks.peak(30, 40) == 1.0


def test_the_open_slice_counts() -> None:
    peaks = PeakWindow(10, 1000)
    peaks.add(5.0, 7.0)
    assert peaks.peak(0, 5) == 7.0


def test_where_nothing_was_seen_there_is_no_peak() -> None:
    peaks = PeakWindow(10, 1000)
    assert peaks.peak(0, 100) is None
    peaks.add(5.0, 7.0)
    assert peaks.peak(500, 600) is None


def test_a_late_value_raises_the_peak_of_its_own_time() -> None:
    peaks = PeakWindow(10, 1000)
    peaks.add(5.0, 1.0)
    peaks.add(25.0, 1.0)
    peaks.add(6.0, 50.0)
    assert peaks.peak(0, 9) == 50.0
    assert peaks.peak(21, 30) == 1.0
