"""Where records go: one folder per kind of sink.

To add one: a folder here, one line in setup.cfg under `headrace.sinks`, one conformance file.
"""
