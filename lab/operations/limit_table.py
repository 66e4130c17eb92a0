# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits on all that strangers send, in one table for `/limits`; each value is read from the constant that refuses.

`/limits` and `/api/v1/limits/` show it; web/limits.py adds those of the pages themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from kernels.artifacts import elf_sections as elfsections
from kernels.builds import resolve_config as resolve
from kernels.configs import kconfig
from kernels.configs import request as config
from kernels.diffs import safety
from kernels.files import paths
from kernels.mails import letters as mail
from kernels.mails import mime
from kernels.mails import uploads as bundle
from kernels.repair import intake as repair
from kernels.repair import patched_files as overlay
from kernels.sandbox import command as sandbox
from kernels.sandbox import take_files as handout
from kernels.trees import git, listing, remote
from kernels.trees import tarball as archive
from lab.comparisons import triage
from lab.experiments import expand, limits, measure, spec, spec_size
from lab.hooks import changes as hooks
from lab.notes import changes as notes
from lab.people import sign_in as signin
from lab.people import tokens
from lab.profiles.analysis import frame_tree as frametree
from lab.runs import claim, guest_limits
from lab.standing import changes as standing
from lab.submission import duplicates, prepare
from lab.submission.fetches import queue as fetch_queue
from lab.targets import changes as hardware
from lab.targets.netboot import machine as netboot
from workloads.guest import records, strictjson

# Any module, or an object of limits, whose attribute is the value.
Source = object
Row = tuple[Source, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. name: as the API calls it; value: a whole number of `unit`; what: a line for people; group: a heading.

    source: the constant's module and name.
    """

    name: str
    value: int
    unit: str
    what: str
    group: str = ""
    source: str = ""


_BUILD, _GUEST = sandbox.Limits(), guest_limits
_FETCH = remote.FetchLimits()

# Heading → rows of: where the constant is, its name, the API's name, unit, what.
_TABLE: dict[str, Sequence[Row]] = {
    "Descriptions": (
        (spec_size, "TOML_BYTES", "description_bytes", "bytes", "a description as TOML, or a request's body"),
        (spec_size, "TOML_BARE_BYTES", "description_bare_bytes", "bytes", "a TOML file without its texts and comments"),
        (spec_size, "VALUES", "description_values", "values", "in one description"),
        (spec_size, "DEPTH", "description_depth", "levels", "of nesting in a description"),
        (spec_size, "FIELDS", "description_fields", "fields", "in one part of a description"),
        (spec_size, "ITEMS", "description_items", "items", "in one list of a description"),
        (spec_size, "KEY_PARTS", "key_parts", "parts", "of a dotted key in TOML"),
        (spec_size, "KEY_LENGTH", "key_length", "characters", "of a key"),
        (spec_size, "DIGITS", "digits", "digits", "of a number"),
        (spec, "MOST_PATCHES", "patches", "switches", "of patches in one experiment, and as many of the config"),
        (spec, "TEXT_LIMIT", "patch_bytes", "bytes", "the text of one switch"),
        (measure, "MOST_BOOTS", "boots", "boots", "of each variant in one cell"),
        (measure, "MOST_PROFILE_BOOTS", "profile_boots", "boots", "under a profiler for each cell"),
        (expand, "MOST_COMBINATIONS", "combinations", "combinations", "of switches in one design"),
        (prepare, "MOST_RUNS", "runs", "boots", "of one experiment"),
        (config, "MAX_FRAGMENT_BYTES", "fragment_bytes", "bytes", "one config fragment"),
        (duplicates, "KEPT", "idempotency_key_days", "days", "how long an Idempotency-Key is remembered"),
    ),
    "Mails, patches and uploads": (
        (bundle, "MAX_UPLOAD_BYTES", "upload_bytes", "bytes", "one uploaded file"),
        (bundle, "MAX_UNPACKED_BYTES", "upload_unpacked_bytes", "bytes", "all uploads of a request, unpacked"),
        (bundle, "MAX_MEMBERS", "upload_files", "files", "in one archive of patches, and in one request"),
        (safety, "MAX_INPUT_BYTES", "series_bytes", "bytes", "one series"),
        (safety, "MAX_PATCHES", "series_patches", "patches", "in one series"),
        (safety, "MAX_FILES", "patch_files", "files", "that a series changes"),
        (safety, "MAX_HUNKS", "patch_hunks", "hunks", "in a series"),
        (safety, "MAX_LINE", "patch_line", "bytes", "of one line of a patch"),
        (safety, "MAX_PATH", "patch_path", "characters", "of a file's path in a patch"),
        (mime, "MAX_HEADER", "mail_header", "characters", "of one header of a mail"),
        (mime, "MAX_HEAD", "mail_head_bytes", "bytes", "all headers of a mail"),
        (mime, "MAX_DEPTH", "mail_depth", "levels", "of nesting in a mail"),
        (mime, "MAX_PARTS", "mail_parts", "parts", "of a mail"),
        (mail, "MAX_AUTHOR", "mail_author", "characters", "of an author that are kept"),
        (mail, "MAX_ID", "mail_id", "characters", "of a message id that are kept"),
        (mail, "MAX_TITLE", "mail_title", "characters", "of a title that are kept"),
        (repair, "MAX_REPAIR_BYTES", "repair_bytes", "bytes", "a damaged patch that is repaired"),
        (overlay, "MAX_BASE_BYTES", "repair_base_bytes", "bytes", "a file that a damaged patch is compared with"),
    ),
    "Trees": (
        (archive, "MAX_FILES", "archive_files", "files", "in one archive of a tree"),
        (archive, "MAX_FILE_BYTES", "archive_file_bytes", "bytes", "one file in an archive of a tree"),
        (archive, "MAX_BYTES", "archive_bytes", "bytes", "an archive of a tree, unpacked"),
        (archive, "MAX_HEADER_BYTES", "archive_header_bytes", "bytes", "the headers before one file of an archive"),
        (archive, "DEADLINE_S", "archive_seconds", "seconds", "how long the import of an archive may take"),
        (archive, "LONGEST_TAG", "archive_name", "characters", "of the version that an archive states"),
        (_FETCH, "refs", "tree_refs", "refs", "branches and tags of one repository"),
        (remote, "LONGEST_REF", "ref_name", "characters", "of the name of a branch or tag"),
        (paths, "LONGEST_PATH", "tree_path", "bytes", "of a path in a tree"),
        (paths, "LONGEST_NAME", "tree_name", "bytes", "of one name in a path"),
        (listing, "MOST_LISTED", "tree_files", "entries", "in one tree"),
        (listing, "LONGEST_LINK", "tree_link", "bytes", "of a symbolic link's target"),
        (git, "MOST_OUTPUT", "git_output_bytes", "bytes", "the answer of one git command"),
        (kconfig, "MAX_FILE_BYTES", "kconfig_file_bytes", "bytes", "one Kconfig file"),
        (kconfig, "MAX_ALL_BYTES", "kconfig_bytes", "bytes", "all Kconfig files of a tree"),
        (kconfig, "MAX_LINE", "kconfig_line", "characters", "of one line of Kconfig"),
        (kconfig, "MAX_DEPTH", "kconfig_depth", "levels", "of nesting in Kconfig"),
    ),
    "Previews and fetches": (
        (limits, "FETCH_SLOTS", "fetches_at_once", "fetches", "previews and submissions that workers carry out at once"),
        (limits, "FETCHES_RUNNING_EACH", "fetches_at_once_each", "fetches", "of these, at most for one person"),
        (limits, "FETCHES_OPEN_EACH", "fetches_open_each", "fetches", "waiting or carried out, for one person"),
        (limits, "FETCHES_OPEN", "fetches_open", "fetches", "waiting or carried out, for everybody together"),
        (limits, "LOCAL_AT_ONCE", "previews_here", "previews", "of trees at hand, in one web process; others become fetches"),
        (limits, "FETCH_DEADLINE_S", "fetch_seconds", "seconds", "how long one fetch may take"),
        (limits, "FETCH_SILENT_S", "fetch_silent_seconds", "seconds", "how long the other host may send nothing"),
        (limits, "FETCH_BYTES", "fetch_bytes", "bytes", "what one fetch may receive"),
        (limits, "FETCH_MEMORY_BYTES", "fetch_memory_bytes", "bytes", "memory of one fetch with all its programs"),
        (limits, "FETCH_KEPT_H", "fetch_kept_hours", "hours", "how long the result of a fetch is kept"),
        (
            limits,
            "PREVIEW_UNWATCHED_S",
            "preview_unwatched_seconds",
            "seconds",
            "until a preview whose page is closed is cancelled",
        ),
        (fetch_queue, "MOST_ATTEMPTS", "fetch_attempts", "attempts", "of a fetch whose worker disappears"),
        (fetch_queue, "MOST_INTERRUPTED", "fetch_interruptions", "attempts", "of a fetch that loses the database"),
    ),
    "Configs and builds": (
        (resolve, "CONFIG_SECONDS", "config_seconds", "seconds", "how long a config may take"),
        (resolve, "CONFIG_CPU_SECONDS", "config_cpu_seconds", "seconds", "CPU time of a config"),
        (resolve, "CONFIG_LOG_BYTES", "config_log_bytes", "bytes", "what a config may print"),
        (resolve, "MAX_CONFIG", "config_bytes", "bytes", "the resulting .config"),
        (_BUILD, "seconds", "build_seconds", "seconds", "how long a build may take"),
        (_BUILD, "log_bytes", "build_log_bytes", "bytes", "what a build may print"),
        (_BUILD, "disk", "build_disk_bytes", "bytes", "of disk for a build, and at most half of what is free"),
        (_BUILD, "files", "build_files", "files", "that a build may make, and at most half of the free inodes"),
        (_BUILD, "file_bytes", "build_file_bytes", "bytes", "one file that a build writes"),
        (_BUILD, "memory", "build_process_memory_bytes", "bytes", "address space of one process of a build"),
        (sandbox, "MEMORY_PERCENT", "build_memory_percent", "percent", "of the builder's memory, for all processes of a build"),
        (_BUILD, "processes", "build_processes", "processes", "of a build at once"),
        (sandbox, "TMP_BYTES", "build_tmp_bytes", "bytes", "in /tmp of a build"),
        (sandbox, "SHM_BYTES", "build_shm_bytes", "bytes", "in /dev/shm of a build"),
        (handout, "MAX_FILE", "handout_file_bytes", "bytes", "one file of the built kernel"),
        (handout, "MAX_TOTAL", "handout_bytes", "bytes", "all files of the built kernel"),
        (handout, "MAX_FILES", "handout_files", "files", "of the built kernel"),
        (elfsections, "MOST_SECTIONS", "elf_sections", "sections", "of one ELF file"),
    ),
    "Boots": (
        (claim, "MOST_ATTEMPTS", "attempts", "attempts", "of a boot or build that the lab itself failed"),
        (_GUEST, "CONSOLE_BYTES", "console_bytes", "bytes", "of console that are kept of a boot"),
        (_GUEST, "FINDINGS", "console_findings", "findings", "that are kept of one console"),
        (_GUEST, "RECORDS_BYTES", "records_bytes", "bytes", "of records that a boot sends"),
        (_GUEST, "RECORDS", "records", "records", "that a boot sends"),
        (records, "MAX_HEADER", "record_header", "bytes", "the header of one record"),
        (records, "MAX_PAYLOAD", "record_bytes", "bytes", "one record"),
        (_GUEST, "PRINTED_BYTES", "step_output_bytes", "bytes", "the output of one step"),
        (_GUEST, "FILE_BYTES", "step_file_bytes", "bytes", "one file that a step returns"),
        (_GUEST, "RECORDING_BYTES", "profile_bytes", "bytes", "one perf.data"),
        (_GUEST, "PROFILE_RECORDS", "profile_records", "records", "in one perf.data"),
        (frametree, "MOST_NODES", "profile_nodes", "nodes", "of a profile's tree"),
        (frametree, "MOST_BYTES", "profile_tree_bytes", "bytes", "a profile's tree, unpacked"),
        (_GUEST, "METRICS", "metrics", "metrics", "of one boot"),
        (_GUEST, "COUNTERS", "counters", "counters", "of one boot"),
        (_GUEST, "EXTRAS_BYTES", "extras_bytes", "bytes", "of further results of one boot"),
        (_GUEST, "READER_SECONDS", "reader_seconds", "seconds", "how long reading what a boot sent may take"),
        (_GUEST, "READER_MEMORY_BYTES", "reader_memory_bytes", "bytes", "of memory for that"),
        (strictjson, "MOST_BYTES", "json_bytes", "bytes", "of JSON in one record"),
        (strictjson, "MOST_DEPTH", "json_depth", "levels", "of nesting in that JSON"),
        (strictjson, "MOST_VALUES", "json_values", "values", "in that JSON"),
        (netboot, "PIECE_BYTES", "netboot_piece_bytes", "bytes", "one piece that a machine posts"),
        (netboot, "BOOT_BYTES", "netboot_bytes", "bytes", "all that a machine posts for one boot"),
        (netboot, "MOST_PIECES", "netboot_pieces", "pieces", "that a machine posts for one boot"),
    ),
    "People, notes and notifications": (
        (signin, "MOST_WRONG", "wrong_passwords", "attempts", "at passwords from one address before it is locked"),
        (signin, "LOCKED_S", "locked_seconds", "seconds", "how long it is locked"),
        (tokens, "MOST_DAYS", "token_days", "days", "how long a token may be valid"),
        (tokens, "LONGEST_NAME", "token_name", "characters", "of a token's name"),
        (notes, "LONGEST", "note", "characters", "of a note"),
        (triage, "LONGEST", "triage_text", "characters", "of a triage's text"),
        (hooks, "MOST_HOOKS", "hooks", "hooks", "of one person"),
        (hooks, "LONGEST_URL", "hook_url", "characters", "of a hook's address"),
        (standing, "MOST_ADDRESSES", "standing_addresses", "addresses", "that a standing experiment writes to"),
        (standing, "LONGEST_SECRET", "push_secret", "characters", "of a secret for pushes"),
        (hardware, "LONGEST_REMARK", "target_remark", "characters", "of a remark on a target"),
    ),
}  # fmt: skip


def rows_of(table: Mapping[str, Sequence[Row]]) -> list[Limit]:
    """Return the limits of a table, with their values as they are now."""
    return [
        Limit(name, _whole(getattr(source, attribute)), unit, what, group, f"{_place(source)}.{attribute}")
        for group, rows in table.items()
        for source, attribute, name, unit, what in rows
    ]


def lab_limits() -> list[Limit]:
    """Return all limits that this package and the libraries know, those of request rates last."""
    rates = [
        Limit(
            f"requests_{scope}",
            int(rate.partition("/")[0]),
            f"requests a {_PERIODS[rate.partition('/')[2][0]]}",
            _SCOPES[scope],
            "Requests",
            f"settings.API_RATES.{scope}",
        )
        for scope, rate in settings.API_RATES.items()
    ]
    return [*rows_of(_TABLE), *rates]


_PERIODS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_SCOPES = {
    "person": "to the API by one person",
    "stranger": "to the API from one address, without a name",
    "login": "with a password to the API, from one address",
    "submit": "that submit or preview, by one person",
    "push": "of a forge's pushes, from one address",
    "netboot": "of machines that boot over the network, from one address",
}


def _whole(value: float | timedelta) -> int:
    return value.days if isinstance(value, timedelta) else int(value)


def _place(source: Source) -> str:
    return getattr(source, "__name__", "") or f"{type(source).__module__}.{type(source).__name__}"
