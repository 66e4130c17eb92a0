# SPDX-License-Identifier: GPL-2.0-or-later
"""Translate KPERFLAB_STORE into Django's STORAGES: a directory all machines see, or a bucket that speaks S3.

Nothing is raised here: settings are read by every command, also by the command that reports errors in them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.environment import read_variable
from lab.errors import SettingWrong

# The name in STORAGES.
ALIAS = "lab"
OPTIONS = ("endpoint", "region", "style")
CONNECT_S, READ_S, TRIES = 5, 60, 4


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The entries for STORAGES, empty without a store. problem: why the setting is invalid, in a line."""

    storages: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def store_settings() -> StoreSettings:
    """Read KPERFLAB_STORE and, for a bucket, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or their _FILEs."""
    try:
        where = read_variable("KPERFLAB_STORE").strip()
        if not where:
            return StoreSettings()
        scheme, colon, _ = where.partition("://")
        if colon and scheme in SCHEMES:
            return StoreSettings({ALIAS: SCHEMES[scheme](where)})
        if colon or not Path(where).is_absolute():
            raise ValueError("give an absolute directory, or s3://bucket/prefix?endpoint=http://…")
        return StoreSettings(
            {ALIAS: {"BACKEND": "lab.storage.directory.DirectoryStorage", "OPTIONS": {"location": where}}}
        )
    except (ValueError, SettingWrong) as exc:
        return StoreSettings(problem=f"KPERFLAB_STORE: {exc}")


def _bucket(where: str) -> dict[str, Any]:
    parts = urlsplit(where)
    if not parts.hostname or parts.username or parts.password:
        raise ValueError("name the bucket as s3://bucket/prefix; credentials come from AWS_ACCESS_KEY_ID")
    asked = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if unknown := sorted(set(asked) - set(OPTIONS)):
        raise ValueError(f'there is no option "{unknown[0][:40]}"; valid: {", ".join(OPTIONS)}')
    endpoint = asked.get("endpoint", "")
    if endpoint and not (urlsplit(endpoint).scheme in ("http", "https") and urlsplit(endpoint).hostname):
        raise ValueError(
            f'endpoint "{endpoint[:80]}" is not an address; give http://host:port or https://host'
        )
    style = asked.get("style", "path")
    if style not in ("path", "virtual"):
        raise ValueError(f'style "{style[:20]}" is not one of path, virtual')
    return {
        "BACKEND": "lab.storage.bucket.BucketStorage",
        "OPTIONS": {
            "bucket_name": parts.netloc,
            "location": parts.path.strip("/"),
            "endpoint_url": endpoint or None,
            "region_name": asked.get("region") or read_variable("AWS_DEFAULT_REGION") or "us-east-1",
            "addressing_style": style,
            "access_key": read_variable("AWS_ACCESS_KEY_ID") or None,
            "secret_key": read_variable("AWS_SECRET_ACCESS_KEY") or None,
            "security_token": read_variable("AWS_SESSION_TOKEN") or None,
        },
    }


# A new kind of store needs a scheme here, and a module with its storage, which has an `address` and `our_error` beside the
# methods of lab.storage.directory.
SCHEMES: Mapping[str, Callable[[str], dict[str, Any]]] = {"s3": _bucket}
