"""Bytes in, values out: one format per file.

In the order in which an object's bytes meet them:

- `base`: what a transformer promises.
- `seeking`: moving about in an object, where its stream lets one; `options`: the keys that every format has.
- `parts`: what belongs to a part of an object.
- `compression`: opens compressed objects as streams of their content; `members` and `snappy` undo what it finds.
- `lines`: what the line formats share; `text` and `jsonl` are those, and `json_check` judges a line of JSON.
- `bytes`: objects whole or in chunks.
- `json`: documents and arrays; `json_elements` finds where the elements are, `json_compact` takes white space out.
- `csv`: rows, which `csv_rows` tells apart and `csv_columns` makes values of.
- `avro`: object container files, which `avro_container` takes apart; `avro_schema` is theirs in Connect's terms,
  and `avro_doubt` and `avro_numbers` find integers beyond 64 bits.
- `parquet`: row groups, through a `parquet_file` that fetches what pyarrow asks for; `parquet_schema` as with Avro.
  `parquet_texts` knows how large rows get before they are unpacked, with `parquet_pages`, the headers of pages.

To add a format: one file here, one line in setup.cfg under `headrace.transformers`, one conformance file.
"""
