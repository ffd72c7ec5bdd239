"""The cases of the conformance suite, by what they hold a source to.

- `reading`: everything that is there, once, in its order.
- `resuming`: what a run leaves to the next one.
- `faults`: what breaks on the way, and crashes.
- `boundaries`: what becomes visible together.
"""
