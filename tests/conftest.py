"""What holds for every test: a skipped one is shown, and fails the run unless `allowed_skips.txt` names it."""

import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")

ALLOWED = Path(__file__).with_name("allowed_skips.txt")
BEGUN_FIRST = ("packaging", "recovery")
"""The folders of the files that take longest: at the end of a run no process is to wait for one of them."""


class SkipGate:
    """Collects what was skipped, in the one process that reports; a reason must stand in the project, not in a head."""

    def __init__(self, allowed):
        self.allowed = allowed
        self.skipped = {}

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.nodeid] = _reason(report)

    def pytest_collectreport(self, report):
        if report.skipped:
            self.skipped[report.nodeid] = _reason(report)

    @property
    def refused(self):
        return {
            node: reason
            for node, reason in self.skipped.items()
            if not any(fnmatchcase(node, pattern) for pattern in self.allowed)
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if self.refused and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if not self.skipped:
            return
        terminalreporter.section("skipped tests")
        for node, reason in sorted(self.skipped.items()):
            verdict = "NOT ALLOWED" if node in self.refused else "allowed"
            terminalreporter.line(f"{verdict}: {node}: {reason}")
        if self.refused:
            terminalreporter.line(
                f"the run fails: {len(self.refused)} skipped and not in tests/{ALLOWED.name} with a reason", red=True
            )


def _reason(report):
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _allowed_patterns():
    lines = (line.strip() for line in ALLOWED.read_text().splitlines())
    entries = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    without_reason = [entry[0] for entry in entries if len(entry) == 1]
    if without_reason:
        raise pytest.UsageError(f"{ALLOWED}: no reason beside {', '.join(without_reason)}")
    return [pattern for pattern, _ in entries]


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipGate(_allowed_patterns()), "headrace-skip-gate")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.parent.name not in BEGUN_FIRST)


@pytest.fixture(scope="session")
def project():
    """The folder that holds the project's files."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def modules(project):
    """Every module of the package, import name to file, read from the tree as setup.cfg grafts it."""
    grafts = {"headrace": "framework/_root"} | {
        f"headrace.{folder}": folder
        for folder in ("framework", "offsets", "transformers", "converters", "sources", "sinks")
    }
    found = {}
    for package, folder in grafts.items():
        for path in sorted((project / folder).rglob("*.py")):
            parts = path.relative_to(project / folder).with_suffix("").parts
            if package == "headrace.framework" and parts[0] == "_root":
                continue
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return found


@pytest.fixture(scope="session")
def eventually():
    """Waits for something that nobody tells us about: a folder that goes, a process that appears."""

    def wait(happened, *, within_s=60.0):
        deadline = time.monotonic() + within_s
        while not (found := happened()):
            assert time.monotonic() < deadline, f"not within {within_s} s"
            time.sleep(0.02)
        return found

    return wait
