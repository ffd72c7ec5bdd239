"""The offsets topic of Kafka Connect's form, and what else stands in it.

- `settings`: how to reach Kafka, picklable.
- `patience`: how long its calls wait for the broker, and that a stop cuts that short.
- `topic`: the topic itself: created compacted, refused if it is not; `cleaning`: how the broker keeps it small.
- `log`: its raw records, read to the high watermark and on.
- `view`: the committed entries of one connector, above the log.
- `records`: what stands beside the entries: the generation, the control record, the counters.
- `claim`: how a run takes over a connector.
- `reading`: the entries as they are, for whoever only looks.
- `reset`: forgetting them; `altering`: everything else that changes them from outside of a run.
"""
