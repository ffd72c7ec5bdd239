"""The engine: the coordinator on foreachBatch, the tasks on mapPartitions. The only room that imports pyspark.

- `session`: a session of our own where the caller brings none.
- `engine`: the clock, the micro-batches, the stop.
- `failure`: why Spark failed a job, in one line.
- `ready`: Python processes that are there before the first plan.
- `tasks`: what runs in a Spark task.
- `control`: how a running task hears from the driver.
- `shipping`: the package, and a user's module, on their way to the executors.
"""
