"""The loop that runs one task: poll, convert, produce, commit, report. The same one for every engine.

- `plan`: what the driver tells a task, and what the task reports.
- `pipeline`: from what a task yields to bytes at the sink.
- `boundary`: when a transaction ends.
- `pump`: the thread that pulls a task's iterator.
- `runner`: the one that watches it: the clock, the stop, the errors, the end.
- `kept`: what a process keeps from one micro-batch to the next.
- `split_task`: readers of splits, as a task.
"""
