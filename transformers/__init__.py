"""Bytes in, values out: one format per file.

In the order in which an object's bytes meet them:

- `base`: what a transformer promises.
- `compression`: opens compressed objects as streams of their content; `members` and `snappy` undo what it finds.
- `lines`: what the line formats share; `text` and `jsonl` are those, and `json_check` judges a line of JSON.
- `bytes`: objects whole or in chunks.

To add a format: one file here, one line in setup.cfg under `headrace.transformers`, one conformance file.
"""
