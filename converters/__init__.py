"""Values in, bytes out: what is on the topic.

- `base`: what a converter promises.
- `bytes`, `string`, `json`: the converters.
- `json_text`, `java`: the bytes and the texts that Kafka Connect would write; `json_schema` writes
  schemas, and values by them, and `json_rows` does so for many structs at once, by `json_columns`.

To add one: one file here, one line in setup.cfg under `headrace.converters`, one test file.
"""
