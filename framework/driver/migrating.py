"""Progress on its way from Kafka Connect to Headrace, and back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from headrace.framework.driver.altering import OpenedConnector
from headrace.framework.driver.ends import with_ends
from headrace.framework.errors import NotCompactedError, OffsetsError, RetriableError
from headrace.framework.source_offsets import State, Surveyed
from headrace.offsets.entry import RECORD_COUNT
from headrace.offsets.key import OffsetManagerKey

if TYPE_CHECKING:
    from headrace.offsets.kafka.claim import Claim
    from headrace.offsets.kafka.settings import KafkaSettings
    from headrace.offsets.kafka.view import KafkaOffsetView

__all__ = ["Migration", "Moved", "migrate", "migrate_back"]

UNREADABLE_SHOWN = 10
WORKERS_TOPIC = "offset.storage.topic"
"""The key of the topic for all connectors of a worker; `offsets.storage.topic` is for one, and wins."""

Change = tuple[OffsetManagerKey, Mapping[str, Any] | None]


@attrs.frozen
class Moved:
    """One piece: its name, how things stand with it, and how many records of it went out."""

    name: str
    state: State
    records_done: int | None


@attrs.frozen(kw_only=True)
class Migration:
    """What a migration has found, and what it has written or would write.

    `from_topic` and `to_topic` are where the offsets come from and go to. `fenced` are the ids of Kafka Connect's tasks
    that can write no more. `keys` counts the records of the one transaction, `twins` the second spellings of keys where
    they come from. `counted` says whether the ends of objects were looked for.
    """

    connector: str
    from_topic: str
    to_topic: str
    to_connect: bool
    applied: bool
    pieces: Sequence[Moved]
    keys: int
    twins: int
    counted: bool = False
    list_calls: int = 0
    fenced: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def totals(self) -> Mapping[State, int]:
        """How many pieces there are of each state."""
        totals: dict[State, int] = {state: 0 for state in State if state is not State.MISSING}
        for piece in self.pieces:
            totals[piece.state] += 1
        return totals

    def as_json(self) -> Mapping[str, Any]:
        """The document that `headrace offsets migrate --output json` prints."""
        return {
            "connector": self.connector,
            "from_topic": self.from_topic,
            "to_topic": self.to_topic,
            "direction": "to_connect" if self.to_connect else "from_connect",
            "applied": self.applied,
            "totals": self.totals,
            "keys": self.keys,
            "twins": self.twins,
            "ends_looked_for": self.counted,
            "list_calls": self.list_calls,
            "fenced": list(self.fenced),
            "warnings": list(self.warnings),
            "objects": [
                {"object": piece.name, "state": piece.state, "records_done": piece.records_done or 0}
                for piece in self.pieces
            ],
        }


def migrate(
    props: Mapping[str, str],
    *,
    apply: bool = False,
    force: bool = False,
    from_topic: str | None = None,
    connect_group: str | None = None,
    connect_tasks: int = 0,
    count: bool = False,
) -> Migration:
    """Take over a connector's progress from Kafka Connect: compare with the source, and with `apply` write it down.

    Afterwards each piece has one key, with the version that is there now, and a run reprocesses nothing. Kafka Connect
    says how many records of a piece went out and never that it is at its end; with `count` each such piece is opened
    and its records are passed over, so that its end is known where it is reached.

    With `connect_group` the tasks of its workers are fenced first: `connect_tasks` of them, or as many as the
    connector has here if those are more. A broker does not say which ids there are.

    Without `apply` nothing is written and nobody is fenced. Kafka Connect's own topic is only read, unless it is the
    connector's topic here.
    """
    from headrace.offsets.kafka import altering  # noqa: PLC0415 - Kafka comes in when it is used

    connector = OpenedConnector.of(props)
    topic = from_topic or connector.settings.offsets_topic
    if not apply:
        return _taken(connector, topic, None, count=count)
    _refuse_missing(connector.settings, topic)
    # First of all: what a dead task of Kafka Connect has left open would keep everybody from reading the topic.
    tasks = max(connector.config.tasks_max, connect_tasks)
    fenced = altering.fence_connect(connector.settings, connect_group, tasks) if connect_group else ()
    with altering.claimed(connector.settings, force=force, unrun=True) as claim:
        return attrs.evolve(_taken(connector, topic, claim, count=count), fenced=fenced)


def migrate_back(
    props: Mapping[str, str], *, apply: bool = False, force: bool = False, to_topic: str | None = None
) -> Migration:
    """Write the progress so that Kafka Connect finds it: every order of each key, in its words.

    What is known of many pieces at once is written out for each. Without `apply` nothing is written.
    """
    from headrace.offsets.kafka.altering import claimed  # noqa: PLC0415 - Kafka comes in when it is used

    connector = OpenedConnector.of(props)
    topic = to_topic or connector.settings.offsets_topic
    _refuse_forgetful(connector.settings, topic)
    if not apply:
        return _given(connector, topic, None)
    _refuse_missing(connector.settings, topic)
    with claimed(connector.settings, force=force) as claim:
        return _given(connector, topic, claim)


def _taken(connector: OpenedConnector, topic: str, claim: "Claim | None", *, count: bool) -> Migration:
    """Compare, and write with the claim if there is one."""
    from headrace.offsets.kafka.altering import records_instead  # noqa: PLC0415 - as above
    from headrace.offsets.kafka.parsed import ParsedStore  # noqa: PLC0415 - as above

    settings = connector.settings
    ours = claim.view if claim else _view(settings, settings.offsets_topic) or _nothing(settings)
    theirs = ours if topic == settings.offsets_topic else _view(settings, topic)
    if theirs is None or not (claim or _exists(settings, topic)):
        raise _missing(settings, topic)
    if claim:
        _refuse_unreadable(connector, theirs)
    store = ParsedStore([ours] if theirs is ours else [ours, theirs])
    survey = _Survey(connector)
    pieces = survey.of(store)
    changes = survey.seen(with_ends(connector, pieces) if count else pieces, unrolled=False)
    keys = _put(claim, records_instead(store.spellings[0], changes))
    return Migration(
        connector=connector.config.name,
        from_topic=topic,
        to_topic=settings.offsets_topic,
        to_connect=False,
        applied=claim is not None,
        pieces=survey.pieces,
        keys=keys,
        twins=store.spellings[-1].twins,
        counted=count,
        list_calls=survey.list_calls,
        warnings=[
            *connector.config.warnings(),
            *_not_looked_at(connector, topic),
            *_forgetful(settings, topic),
            *_unreadable(connector, theirs),
        ],
    )


def _given(connector: OpenedConnector, topic: str, claim: "Claim | None") -> Migration:
    """Write out for Kafka Connect what is known, with the claim if there is one."""
    from headrace.offsets.kafka.altering import records_for_connect  # noqa: PLC0415 - as above
    from headrace.offsets.kafka.parsed import ParsedStore  # noqa: PLC0415 - as above

    settings = connector.settings
    ours = claim.view if claim else _view(settings, settings.offsets_topic) or _nothing(settings)
    theirs = ours if topic == settings.offsets_topic else _view(settings, topic) or _nothing(settings)
    if claim:
        _refuse_unreadable(connector, ours)
    store = ParsedStore([ours])
    survey = _Survey(connector)
    changes = survey.seen(_for_connect(connector, survey.of(store)), unrolled=True)
    keys = _put(claim, records_for_connect(theirs.spelled(), changes), topic=topic)
    return Migration(
        connector=connector.config.name,
        from_topic=settings.offsets_topic,
        to_topic=topic,
        to_connect=True,
        applied=claim is not None,
        pieces=survey.pieces,
        keys=keys,
        twins=store.spellings[0].twins,
        list_calls=survey.list_calls,
        warnings=[*connector.config.warnings(), *_unreadable(connector, ours)],
    )


@attrs.define
class _Survey:
    """What has gone by: of each piece no more than what is told in the end."""

    connector: OpenedConnector
    pieces: list[Moved] = attrs.field(factory=list)
    list_calls: int = 0

    def of(self, store: Any) -> Iterator[Surveyed]:
        return self.connector.offsets.survey(store, self._count)

    def seen(self, pieces: Iterable[Surveyed], *, unrolled: bool) -> Iterator[Change]:
        """What is to be written of the pieces; of one that is rolled up only if that is to be undone."""
        for piece in pieces:
            done = None if piece.offset is None else piece.offset.get(RECORD_COUNT, 0)
            self.pieces.append(Moved(piece.name, piece.state, done))
            if piece.offset is not None and (unrolled or not piece.rolled_up):
                yield piece.key, piece.offset

    def _count(self, name: str, by: int) -> None:
        if name.endswith("_list_calls"):
            self.list_calls += by


def _for_connect(connector: OpenedConnector, pieces: Iterable[Surveyed]) -> Iterator[Surveyed]:
    for piece in pieces:
        yield attrs.evolve(piece, offset=connector.offsets.for_connect(piece))


def _put(claim: "Claim | None", records: Iterable[tuple[bytes, bytes | None]], *, topic: str | None = None) -> int:
    """Write the records if there is a claim; how many there are."""
    return claim.put(records, topic=topic) if claim else sum(1 for _ in records)


def _view(settings: "KafkaSettings", topic: str) -> "KafkaOffsetView | None":
    from headrace.offsets.kafka.reading import read_view  # noqa: PLC0415 - as above

    return read_view(attrs.evolve(settings, offsets_topic=topic))


def _nothing(settings: "KafkaSettings") -> "KafkaOffsetView":
    from headrace.offsets.kafka.view import KafkaOffsetView  # noqa: PLC0415 - as above

    return KafkaOffsetView(settings.connector)


def _exists(settings: "KafkaSettings", topic: str) -> bool:
    from headrace.offsets.kafka.reading import count_partitions  # noqa: PLC0415 - as above

    return count_partitions(attrs.evolve(settings, offsets_topic=topic)) is not None


def _refuse_missing(settings: "KafkaSettings", topic: str) -> None:
    if not _exists(settings, topic):
        raise _missing(settings, topic)


def _missing(settings: "KafkaSettings", topic: str) -> OffsetsError:
    return OffsetsError(
        f"there is no topic {topic} at {settings.bootstrap_servers}: name Kafka Connect's offset.storage.topic "
        "(--from-topic, or --to-topic on the way back)"
    )


def _refuse_forgetful(settings: "KafkaSettings", topic: str) -> None:
    """Refuse to write where it would not last; our own topic is looked at by whoever claims it."""
    from headrace.offsets.kafka.topic import COMPACT, cleanup_policy  # noqa: PLC0415 - as above

    if topic == settings.offsets_topic or not _exists(settings, topic):
        return
    if (policy := cleanup_policy(settings, topic)) != COMPACT:
        raise NotCompactedError(
            f"the topic {topic} has cleanup.policy={policy} and would forget progress: alter it to "
            f"cleanup.policy={COMPACT}, or name another one with --to-topic"
        )


def _not_looked_at(connector: OpenedConnector, topic: str) -> list[str]:
    """A word on the worker's topic where the connector has one of its own: Kafka Connect reads both."""
    worker = connector.config.props.get(WORKERS_TOPIC)
    if worker is None or worker in {topic, connector.settings.offsets_topic}:
        return []
    word = (
        f"Kafka Connect's worker keeps offsets in {worker} ({WORKERS_TOPIC}), too, and what stands only there counts "
        f"as never read, and would be sent again: --from-topic {worker} has both taken into account"
    )
    return [word]


def _forgetful(settings: "KafkaSettings", topic: str) -> list[str]:
    """A word where some of what Kafka Connect wrote may be gone."""
    from headrace.offsets.kafka.topic import COMPACT, cleanup_policy  # noqa: PLC0415 - as above

    try:
        policy = cleanup_policy(settings, topic)
    except RetriableError as error:
        return [f"whether the topic {topic} is compacted is not known: {error}"]
    if policy == COMPACT:
        return []
    word = (
        f"the topic {topic} has cleanup.policy={policy}: what it has forgotten counts as never read, and would be sent "
        "again; compare the counts with what Kafka Connect has sent"
    )
    return [word]


def _refuse_unreadable(connector: OpenedConnector, view: "KafkaOffsetView") -> None:
    """Refuse to go on over an entry that nobody can read: its object would be read from the wrong place."""
    from headrace.offsets.kafka.unreadable import unreadable_values  # noqa: PLC0415 - as above

    if words := unreadable_values(view, connector.offsets.impossible):
        raise OffsetsError(
            f"{words[0]}, and its records would go out again or be missed ({len(words)} such in all): say with "
            "headrace offsets set what it is, or null to have it read anew"
        )


def _unreadable(connector: OpenedConnector, view: "KafkaOffsetView") -> list[str]:
    from headrace.offsets.kafka.unreadable import unreadable_keys, unreadable_values  # noqa: PLC0415 - as above

    return [*unreadable_keys(view), *unreadable_values(view, connector.offsets.impossible)][:UNREADABLE_SHOWN]
