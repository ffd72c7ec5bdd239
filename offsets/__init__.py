"""How far everything has been read: the keys, the entries, the manager that a task asks, and where they are stored.

- `key`: what names a piece of a source: a bucket and an object's key, a file's name, a stream.
- `entry`: how far it has been read, and what else is known of it.
- `manager`: what a task asks and tells.
- `store`: where the entries lie; `memory` for tests, `kafka` for the topic of Kafka Connect's form.
- `codec`: that topic's bytes; `hashing`: in which of its partitions they lie.
"""
