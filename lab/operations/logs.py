# SPDX-License-Identifier: GPL-2.0-or-later
"""Logging of every process of the lab: a line for each message, with its subject, to standard error.

`set_up` is called once by each program that runs as a service; a command of `labctl` that prints for people is not one.
`about(experiment=…, run=…)` names what the lines within a block are about. A line's text may quote what a kernel, a patch or a
stranger wrote: control characters are escaped, so that nobody writes a second line; credentials in addresses and headers are blanked.
"""

import logging
import logging.config
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from pythonjsonlogger.json import JsonFormatter

from lab.environment import read_variable

Subject = str | int

# What a line may be about, in the order in which text shows it. Nothing else becomes a field.
FIELDS: Final = ("experiment", "build", "run", "target", "queue", "worker", "request")
# A line is read by people and kept by a log store: longer texts, such as a traceback's, end with how much is missing.
LONGEST = 16_384
# They log of each request and task what our own lines say better.
TALKATIVE: Final = (
    *("celery", "kombu", "amqp", "httpx", "httpcore", "botocore", "boto3", "urllib3", "s3transfer"),
)

_about: ContextVar[Mapping[str, Subject]] = ContextVar("kperflab_about", default=MappingProxyType({}))
_SECRETS: Final = (
    # user:password@ of an address; a bearer or token header; key=value of what is called a secret; a machine's token.
    (re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"), "***"),
    (re.compile(r"(?i)\b(token|bearer|basic)\s+[a-z0-9+/_=.-]{16,}"), r"\1 ***"),
    (re.compile(r"(?i)\b(password|passwd|secret|secret_key|access_key|api_key)(['\"]?\s*[=:]\s*)\S+"), r"\1\2***"),
    (re.compile(r"(?<=/netboot/)[\w.-]{30,}"), "***"),
)  # fmt: skip


@contextmanager
def about(**fields: Subject) -> Iterator[None]:
    """Set the subjects of every line that this thread or task logs within the block. fields: of FIELDS."""
    unknown = fields.keys() - set(FIELDS)
    if unknown:
        raise TypeError(f"lines are about {', '.join(FIELDS)}, not {', '.join(sorted(unknown))}")
    before = _about.set({**_about.get(), **fields})
    try:
        yield
    finally:
        _about.reset(before)


def subjects() -> dict[str, Subject]:
    """Return the subjects of log lines here, to hand to another thread's `about`."""
    return dict(_about.get())


def set_up() -> None:
    """Send every line of this process to the standard error, in the form that KPERFLAB_LOG says."""
    logging.config.dictConfig(configuration(settings.LOG_FORM))


def configuration(form: str) -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`. form: "json" or "text"."""
    shape = "lab.operations.logs.OneObject" if form == "json" else "lab.operations.logs.OneLine"
    quiet = {name: {"level": "WARNING", "handlers": [], "propagate": True} for name in TALKATIVE}
    # They have handlers of their own, which would log each line twice.
    ours = {"handlers": [], "propagate": True}
    servers = dict.fromkeys(("django", "gunicorn.error", "gunicorn.access"), ours)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"about": {"()": "lab.operations.logs.NamesItsSubject"}},
        "formatters": {"line": {"()": shape}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["about"]},
        },
        "root": {"level": "INFO", "handlers": ["stderr"]},
        # A missing page is logged by the line of its request.
        "loggers": {**quiet, **servers, "django.request": {"level": "ERROR"}},
    }


class NamesItsSubject(logging.Filter):
    """Adds to each record what it is about; fields that the call itself gave by `extra` take precedence."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        for field, value in _about.get().items():
            if not hasattr(record, field):
                setattr(record, field, value)
        return True


class OneLine(logging.Formatter):
    """`2026-11-22T01:02:03.456Z INFO run=7 target=guest: text`; a traceback follows, each of its lines behind a bar."""

    def format(self, record: logging.LogRecord) -> str:
        """The whole line, without its end."""
        fields = "".join(f" {field}={_word(value)}" for field, value in _fields(record).items())
        line = f"{_moment(record)} {record.levelname}{fields}: {escaped(record.getMessage())}"
        # The bar keeps a line that an error quotes from passing for one of ours.
        trace = escaped(_traceback(record), lines=True).splitlines()
        return "\n".join([line, *(f"  | {trace_line}" for trace_line in trace)])


class OneObject(JsonFormatter):
    """One JSON object a line: time, level, logger, text, and every subject that is known."""

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        """Name each field ourselves: nothing else that somebody put onto the record is shown."""
        log_data |= {
            "time": _moment(record),
            "level": record.levelname,
            "logger": record.name,
            "text": escaped(record.getMessage()),
        }
        log_data |= {
            field: escaped(value) if isinstance(value, str) else value
            for field, value in _fields(record).items()
        }
        if record.exc_info or record.exc_text:
            log_data["traceback"] = escaped(_traceback(record), lines=True)


def escaped(text: str, *, lines: bool = False) -> str:
    """A text that may be a stranger's, as one line of bounded length without control characters or credentials.

    lines: keep ends of lines; JSON escapes them anyway.
    """
    missing = len(text) - LONGEST
    text = text[:LONGEST]
    for secret in _own_secrets():
        text = text.replace(secret, "***")
    for pattern, blank in _SECRETS:
        text = pattern.sub(blank, text)
    kept = "".join(
        character if character.isprintable() or (lines and character == "\n") else _escaped(character)
        for character in text
    )
    return kept + (f" … {missing} more characters" if missing > 0 else "")


@cache
def _own_secrets() -> tuple[str, ...]:
    """Return this process's secrets; short ones, such as "lab", are ordinary words and are skipped."""
    kept = [settings.SECRET_KEY, settings.EMAIL_HOST_PASSWORD, read_variable("AWS_SECRET_ACCESS_KEY")]
    kept += [str(database.get("PASSWORD") or "") for database in settings.DATABASES.values()]
    return tuple(secret for secret in kept if len(secret) >= 8)


def _escaped(character: str) -> str:
    if character == "\n":
        return "\\n"
    # Blanks of other alphabets; characters that end a line or turn the direction of reading are not among them.
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode("ascii")


def _word(value: Subject) -> str:
    """Return a value, quoted if it could be taken for the next field."""
    text = escaped(str(value))
    return text if re.fullmatch(r"[\w.:/@+-]+", text) else '"' + text.replace('"', "'") + '"'


def _fields(record: logging.LogRecord) -> dict[str, Subject]:
    return {field: getattr(record, field) for field in FIELDS if getattr(record, field, "") not in ("", None)}


def _traceback(record: logging.LogRecord) -> str:
    if record.exc_info and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    return record.exc_text or ""


def _moment(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"
