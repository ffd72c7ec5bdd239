"""A producer with a transactional id, its errors sorted by what they mean."""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence

import attrs
from confluent_kafka import KafkaError, KafkaException, Producer

from headrace.framework.errors import (
    FencedError,
    RecordTooLargeError,
    RetriableError,
    SinkError,
    TransactionTooLongError,
)
from headrace.framework.record import Header
from headrace.offsets.kafka.patience import STEP_S, Patience, StoppedAt, Wait
from headrace.offsets.kafka.produce import KeyPartitions, produce_all, sent_but_little
from headrace.offsets.kafka.settings import KafkaSettings

__all__ = ["TransactionalProducer"]

log = logging.getLogger(__name__)

CALL_S = STEP_S
INIT_STEP_S = 0.02
IN_SMALL_STEPS_S = 1.0
BEYOND_TRANSACTION_S = 15.0
LAST_TRY_S = 1.0

# After a fencing, produce() may answer _FATAL with fatal() false: both codes say that another one has taken over.
TAKEN_OVER = {
    KafkaError._FENCED,  # noqa: SLF001 - its public name
    KafkaError._FATAL,  # noqa: SLF001 - its public name
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}
# The broker has forgotten a producer that was idle for days: nothing is wrong, but it has to be made anew.
FORGOTTEN = {KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.UNKNOWN_PRODUCER_ID}
# The broker is away, or was for too long: with another attempt, which reads how far things are, it may be back.
PASSING = {
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001 - these are their public names
    KafkaError._TIMED_OUT,  # noqa: SLF001 - as above
    KafkaError._TRANSPORT,  # noqa: SLF001 - as above
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above
    KafkaError._PURGE_QUEUE,  # noqa: SLF001 - as above
    KafkaError._PURGE_INFLIGHT,  # noqa: SLF001 - as above
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}


@attrs.define
class TransactionalProducer:
    """One holder of a transactional id, from its `init` to its `close`. It inits once; fenced, it is of no more use.

    Raises `FencedError` when somebody else has taken the id, `RetriableError` when a new producer may do better,
    `SinkError` when the records themselves were refused. Used by one thread at a time. `patience` is how long its
    calls may wait for the broker; whoever gives a producer on to somebody else sets it anew.
    """

    settings: KafkaSettings
    holder: int | str
    transactional_id: str | None = attrs.field(default=None, kw_only=True)
    """The id, where it is not the holder's of our own."""

    patience: Patience = attrs.field(init=False)
    _producer: Producer = attrs.field(init=False)
    _key_partitions: KeyPartitions = attrs.field(init=False)
    _begun_at: float | None = attrs.field(default=None, init=False)
    _lost: bool = attrs.field(default=False, init=False)
    _given_up: bool = attrs.field(default=False, init=False)
    _failed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.patience = Patience(self.settings.transaction_timeout_ms / 1000 + BEYOND_TRANSACTION_S)
        config = self.settings.transactional_config(self.holder)
        if self.transactional_id is not None:
            config["transactional.id"] = self.transactional_id
        self._producer = Producer(config)
        self._key_partitions = KeyPartitions(self._producer)

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return self._begun_at is not None

    @property
    def is_sound(self) -> bool:
        """Whether all has gone well so far and nothing is open: only such a producer may be used for more."""
        return not (self._failed or self.is_open)

    def heed(self, stopped_at: StoppedAt) -> None:
        """Give up waiting soon after a stop."""
        self.patience = attrs.evolve(self.patience, stopped_at=stopped_at)

    def init(self) -> None:
        """Take the id: whoever held it before is fenced, and its open transaction aborted."""
        # The library looks for the coordinator again when it is asked again, and by itself half a second later only.
        self._until_done(self._producer.init_transactions, "taking the transactional id", first_step_s=INIT_STEP_S)

    def write(
        self,
        topic: str,
        key: bytes | None,
        values: Sequence[bytes | None],
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
    ) -> None:
        """Hand records to the client library; the first one begins a transaction."""
        if self._begun_at is None:
            self._call(self._producer.begin_transaction, "beginning a transaction")
            self._begun_at = time.monotonic()
        try:
            if partition is None:
                partition = self._key_partitions.of(topic, key, len(values), patience=self.patience)
            produce_all(
                self._producer,
                topic,
                key,
                values,
                patience=self.patience,
                partition=partition,
                timestamp=timestamp,
                headers=headers,
            )
        except KafkaException as error:
            raise self._sorted(error, f"producing to {topic}") from error
        except RecordTooLargeError:
            self._failed = True
            raise
        except RetriableError:
            self._failed = self._given_up = True
            raise

    def flush(self) -> None:
        """Wait until the broker has everything that was written."""
        self._refuse_lost()
        wait = self.patience.begin()
        while self._unsent():
            if wait.is_over:
                self._failed = self._given_up = True
                raise RetriableError(
                    f"Kafka at {self.settings.bootstrap_servers} did not take the records within "
                    f"{wait.so_far_s:.0f} s; the transaction is given up"
                )

    def _unsent(self) -> int:
        """Wait a moment for the rest to go out; older clients raise here what has become of the producer meanwhile."""
        try:
            return self._producer.flush(STEP_S) if sent_but_little(self._producer) else len(self._producer)
        except KafkaException as error:
            raise self._sorted(error, "flushing") from error

    def commit(self) -> None:
        """Commit the open transaction. A commit that timed out may still happen, so it is asked for again."""
        self._refuse_lost()
        self._until_done(self._producer.commit_transaction, "committing")
        self._begun_at = None

    def abort(self) -> None:
        """Abort the open transaction; a producer that cannot is given up, and its successor's init does it."""
        if self._begun_at is None or self._lost:
            return
        # Who has waited in vain already does not wait as long again.
        wait = Wait(LAST_TRY_S) if self._given_up else self.patience.begin()
        try:
            self._until_done(self._producer.abort_transaction, "aborting", wait=wait)
        except (FencedError, RetriableError, SinkError) as error:
            log.info("%s: %s", self.settings.transactional_id(self.holder), error)
            self._lost = True
        self._begun_at = None

    def close(self) -> None:
        """Let go of the id; an open transaction is aborted."""
        self.abort()
        # Whatever is left in the queues belongs to no transaction that can commit, and what has become of a producer
        # that nobody uses any more is no error.
        with contextlib.suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(0)

    def _refuse_lost(self) -> None:
        """What a producer that has failed still holds is no whole transaction any more."""
        if self._lost or self._given_up:
            raise RetriableError(f"{self.settings.transactional_id(self.holder)}: the transaction was given up")

    def _until_done(
        self,
        function: Callable[[float], None],
        doing: str,
        *,
        wait: Wait | None = None,
        first_step_s: float | None = None,
    ) -> None:
        """Call until it answers: after a time-out the same call must be made again, and no other."""
        wait = wait or self.patience.begin()
        while True:
            try:
                function(first_step_s if first_step_s and wait.so_far_s < IN_SMALL_STEPS_S else CALL_S)
            except KafkaException as error:
                if error.args[0].retriable() and not wait.is_over:
                    continue
                raise self._sorted(error, doing) from error
            else:
                return

    def _call(self, function: Callable[[], None], doing: str) -> None:
        try:
            function()
        except KafkaException as error:
            raise self._sorted(error, doing) from error

    def _reason(self, found: KafkaError) -> KafkaError:
        """Why a transaction has failed, where the library only says that its state does not allow for more.

        Only an attempt to commit is told, and one that is refused for its state cannot succeed.
        """
        if found.code() != KafkaError._STATE or not self.is_open:  # noqa: SLF001 - its public name
            return found
        try:
            self._producer.commit_transaction(0)
        except KafkaException as error:
            told: KafkaError = error.args[0]
            return told
        return found

    def _sorted(self, error: KafkaException, doing: str) -> FencedError | RetriableError | SinkError:
        self._failed = True
        found = self._reason(error.args[0])
        code, said = found.code(), found.str()
        if code in TAKEN_OVER or found.fatal():
            self._lost = True
            age = 0.0 if self._begun_at is None else time.monotonic() - self._begun_at
            if age * 1000 > self.settings.transaction_timeout_ms:
                # A whole object would need as long again; anything else goes on from its last commit.
                kind = TransactionTooLongError if self.settings.whole_objects else RetriableError
                return kind(
                    f"the broker ended a transaction that was open for {age:.0f} s: transaction.timeout.ms is "
                    f"{self.settings.transaction_timeout_ms}; raise it (the broker's transaction.max.timeout.ms is "
                    "its limit), or choose a boundary that ends sooner"
                )
            return FencedError(f"{self.settings.transactional_id(self.holder)} was taken over while {doing}: {said}")
        if code in FORGOTTEN or code in PASSING or found.retriable():
            self._lost = True
            return RetriableError(f"{doing} did not succeed: {said}")
        return SinkError(f"{doing} failed: {said}")
