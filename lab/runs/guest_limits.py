# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits on what one boot may send: workers refuse more, `/limits` shows them."""

# Console bytes beyond this are read and discarded; more records end the run.
CONSOLE_BYTES = 64 << 20
RECORDS_BYTES = 512 << 20
# Three days of heartbeats, or 8 GiB in the agent's pieces.
RECORDS = 1 << 18
# Of one step's stdout, and of its stderr.
PRINTED_BYTES = 16 << 20
FILE_BYTES = 32 << 20
# One perf.data, and the records in it.
RECORDING_BYTES = 256 << 20
PROFILE_RECORDS = 1 << 22
EXTRAS_BYTES = 16 << 20
METRICS, COUNTERS = 256, 20_000
FINDINGS = 200
# The separate process that reads a guest's data.
READER_SECONDS, READER_MEMORY_BYTES = 60, 2 << 30
