"""Side-by-side measurements: the same data, the same broker, in turn, in one run on one machine.

- `figures`, `goals`, `svg`, `page`: from measurements to medians, ratios, a picture and a page; pure.
- `data`, `topic`, `sampler`, `world`: the data, what has arrived when, what it cost, and the servers.
- `engines`, `peer_spark`, `peer_connect`, `programs/`: who is measured.
- `scenarios/`: what is measured.
"""
