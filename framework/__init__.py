"""The pipeline. It knows no concrete source, sink or format.

To read it in the order in which a record meets it:

- `stage`, `errors`: the seven words, and what can go wrong, by phase and by what to do about it.
- `options`, `config`, `check`, `config_files`: the configuration, declared once; `connect_keys`, `client_settings` and
  their neighbours know Kafka Connect's and Java's ways of saying it, `secrets` what must not be seen.
- `registry`: every kind of plugin by its name.
- `run`, `driver`: one run of one connector: discover, assign, plan, take in reports.
- `splits`, `distribution`, `naming`: units of work, who gets which, and what their names say.
- `task`, `record`, `schema`, `backoff`, `metrics`: what a task is given, what it yields, and how it waits.
- `worker`: the loop that runs one task: poll, convert, produce, commit, report.
- `sink`: what a sink promises to that loop.
- `local`, `spark`: the two engines.
- `cli`: the command line.
- `java`, `cache`, `compat`, `lazy`: the ground.
"""
