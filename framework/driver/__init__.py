"""The driver's part: discover, assign, plan, take in reports. The same for every engine.

- `enumeration`: the house of a source's enumerator.
- `coordinator`: one run of one connector, from its claim to its summary.
- `task_state`, `stall`: what it knows of a task, and of what does not get on; `account`: what the run adds up to.
- `planning`: what a run would do, found without doing it; `preview`: the first record of a split.
- `summary`: what a run has done, as people and programs read it.
"""
