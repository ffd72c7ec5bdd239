"""What the benchmark makes of its measurements, without measuring anything."""

import json
import resource
import sys
import xml.etree.ElementTree as ET
from contextlib import nullcontext

import psutil
import pytest

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def bench(project, monkeypatch):
    """The folder of the benchmark on the path: it is a program, not a part of the package."""
    monkeypatch.syspath_prepend(str(project / "bench"))


def measure(**others):
    from sidebyside.figures import Measure

    return Measure(**{"records": 1000, "bytes": 200_000, "flow_s": 2.0, "start_s": 3.0, "cpu_s": 4.0} | others)


def found(*rows, name="lines", ratios=()):
    from sidebyside.goals import goals

    scenarios = {
        name: {
            "about": "lines of JSON",
            "size": "quick",
            "load_before": 0.1,
            "took_s": 1.0,
            "rows": [row.as_json() for row in rows],
            "ratios": [ratio.as_json() for ratio in ratios],
        }
    }
    return {"machine": {"cores": 2}, "scenarios": scenarios, "goals": [goal.as_json() for goal in goals(scenarios)]}


def row(engine, *flows, **others):
    from sidebyside.figures import Row

    return Row.of(engine, [measure(flow_s=flow) for flow in flows], **others)


class TestFigures:
    def test_rates_are_taken_between_the_appends(self):
        """Records and bytes a second are those between the first and the last append, whatever the start took."""
        figures = measure().figures()
        assert figures["records_per_s"] == 500
        assert figures["mb_per_s"] == pytest.approx(0.1)
        assert figures["records_per_s_from_start"] == 200
        assert figures["job_s"] == 5

    def test_cpu_is_told_with_and_without_the_start(self):
        """CPU seconds count for a million records, those before the first append apart."""
        figures = measure(cpu_start_s=1.0).figures()
        assert figures["cpu_s_per_million"] == 4000
        assert figures["cpu_s_per_million_after_start"] == 3000

    def test_what_came_at_once_took_a_tick_of_the_clock(self):
        """Records that all came in one millisecond have a rate, not a division by zero."""
        assert measure(flow_s=0.0).figures()["records_per_s"] == 1_000_000

    def test_a_row_has_medians_with_their_spread(self):
        """The median of the rounds stands between the least and the greatest."""
        figures = row("any", 4.0, 1.0, 2.0).as_json()["figures"]
        assert figures["records_per_s"] == {"median": 500, "low": 250, "high": 1000}

    def test_ratios_are_taken_round_by_round(self):
        """A round in which everything was slow has the ratio of a fast one."""
        from sidebyside.figures import Ratio

        ratio = Ratio.between(row("ours", 1.0, 10.0, 1.0), row("theirs", 2.0, 20.0, 2.0)).as_json()
        assert (ratio["median"], ratio["low"], ratio["high"]) == (2, 2, 2)
        assert ratio["name"] == "ours / theirs"

    @pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
    def test_a_percentile_is_one_of_the_values(self, share, expected):
        """It is the least value that so many do not exceed."""
        from sidebyside.figures import percentile

        assert percentile([*range(100, 0, -1)], share) == expected


class TestGoals:
    def test_a_ratio_below_its_goal_is_missed(self):
        """A goal is reached at its limit and missed below."""
        from sidebyside.figures import Ratio

        def goal_of(flow):
            ours, theirs = row("headrace local", flow), row("bare loop", 0.8)
            return found(ours, theirs, ratios=[Ratio.between(ours, theirs)])["goals"][0]

        assert goal_of(1.0)["reached"]
        assert not goal_of(1.01)["reached"]

    def test_memory_is_judged_by_the_worst_round(self):
        """A worker that once grew beyond the limit has missed the goal."""
        from sidebyside.figures import Row

        grown = Row.of("headrace local", [measure(worker_mb=100), measure(worker_mb=251)], case="1 MB")
        (goal,) = found(grown, name="memory")["goals"]
        assert (goal["value"], goal["reached"]) == (251, False)


class TestData:
    @pytest.mark.parametrize("size", [50, 200, 1000, 100_000, 300_000])
    @pytest.mark.parametrize("number", [0, 9_999_999])
    def test_a_record_is_json_of_exactly_its_size(self, size, number):
        """Whatever its number, a record has the size that was asked for, and is the same each time."""
        from sidebyside.data import FIRST_ID, line

        assert len(line(number, size)) == size
        assert json.loads(line(number, size))["id"] == FIRST_ID + number
        assert line(number, size) == line(number, size)

    @pytest.mark.parametrize("form", ["jsonl", "json", "avro", "parquet"])
    def test_the_pieces_of_an_object_are_the_object(self, form):
        """Put together they are its bytes, and as many as was said before."""
        from sidebyside.data import Dataset

        data = Dataset(name="any", objects=2, lines=7000, size=200, form=form)
        pieces, size = data.pieces(1)
        body = b"".join(pieces)
        assert len(body) == size
        if form == "jsonl":
            assert body == data.body(1)

    def test_objects_follow_one_another(self):
        """No two objects of a dataset have a record in common."""
        from sidebyside.data import Dataset

        data = Dataset(name="any", objects=3, lines=4, size=60)
        values = [value for number in range(3) for value in data.values(number)]
        assert len(set(values)) == data.records == 12


class TestResults:
    def test_the_picture_has_a_bar_for_each_row(self):
        """It is well-formed, and each engine has its bar, as long as its median is large."""
        from sidebyside.svg import picture

        tree = ET.fromstring(picture(found(row("fast & first", 1.0), row("slow", 4.0))))  # noqa: S314 - our own

        widths = [float(bar.get("width")) for bar in tree.findall(f"{SVG}rect")[1:]]
        assert widths[0] == 4 * widths[1]
        assert "fast & first" in [text.text for text in tree.findall(f"{SVG}text")]

    def test_the_page_keeps_what_people_wrote(self):
        """Only what stands between the marks is written anew."""
        from sidebyside.page import BEGIN, END, written

        page = written(found(row("bare loop", 2.0, 2.0)), f"before\n{BEGIN}\nold\n{END}\nafter\n")

        assert page.startswith("before\n")
        assert page.endswith("after\n")
        assert "old" not in page
        assert "| bare loop | 500 |" in page

    def test_a_page_without_marks_is_refused(self):
        """A page that has no place for the figures is left alone."""
        from sidebyside.page import written

        with pytest.raises(SystemExit, match="no marks"):
            written(found(row("bare loop", 1.0)), "a page")


@pytest.mark.parametrize(
    ("megabytes", "says"), [(700, None), (1024, "missed:\nMB of headrace plan: 1024.0, and the limit is 1024")]
)
def test_a_large_bucket_that_misses_a_limit_fails(monkeypatch, megabytes, says):
    """What was measured is measured to the end; then a missed limit is the program's exit code."""
    import large_bucket

    def plan(_kafka, _endpoint, limits):
        limits.hold("MB of headrace plan", megabytes, large_bucket.LARGEST_MB)

    monkeypatch.setattr(large_bucket, "EmbeddedKafka", lambda **_: nullcontext())
    monkeypatch.setattr(large_bucket, "bucket", lambda _: nullcontext((None, None)))
    monkeypatch.setattr(large_bucket, "plan", plan)
    measured = []
    for name in ("run_everything", "first_record"):
        monkeypatch.setattr(large_bucket, name, lambda *_, name=name: measured.append(name))
    monkeypatch.setattr("sys.argv", ["large_bucket.py"])
    with nullcontext() if says is None else pytest.raises(SystemExit) as failed:
        large_bucket.main()
    assert measured == ["run_everything", "first_record"]
    assert says is None or failed.value.code == says


@pytest.mark.skipif(sys.platform != "linux", reason="memory is given back to a host on Linux only")
def test_memory_at_hand_is_not_held():
    """What is touched so that the host leaves it to the machine is free for whoever needs it."""
    from sidebyside.memory_at_hand import memory_at_hand

    process = psutil.Process()
    with memory_at_hand(2**20):
        before = process.memory_info().rss
    with memory_at_hand(256 * 2**20):
        held = process.memory_info().rss - before
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before

    assert held < 16 * 2**20
    assert most > 200 * 2**20
