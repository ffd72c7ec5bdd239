"""The pipeline. It knows no concrete source, sink or format.

To read it in the order in which a record meets it:

- `errors`: what can go wrong, by phase and by what to do about it.
- `java`: the Java runtime that Spark and the embedded broker run on.
- `cli`: the command line.
"""
