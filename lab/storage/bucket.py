# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that is a bucket: of Amazon or any other S3 service. Imported only where there is one, since boto3 loads slowly."""

from collections.abc import Iterator
from datetime import datetime
from threading import local
from typing import Any, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from django.utils.deconstruct import deconstructible
from storages.backends.s3 import S3Storage

from lab.errors import StoreLacks, StoreRefused, StoreUnreachable
from lab.storage.directory import StoreEntry, StoreStream
from lab.storage.store_settings import CONNECT_S, READ_S, TRIES

_SESSIONS = local()
_NOT_THERE = {"404", "NoSuchKey", "NotFound"}
_REFUSED = {
    *("400", "401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    *("AuthorizationHeaderMalformed", "ExpiredToken", "InvalidToken", "InvalidBucketName"),
    "PermanentRedirect",
}


@deconstructible(path="lab.storage.bucket.BucketStorage")
class BucketStorage(S3Storage):  # type: ignore[misc]  # the library has no types
    """Objects of a bucket; each is put in one request or a multipart upload, so that it is there whole or not at all."""

    def __init__(self, **options: Any) -> None:
        style = options.pop("addressing_style", "path")
        config = Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"max_attempts": TRIES, "mode": "standard"},
            s3={"addressing_style": style},
            signature_version="s3v4",
            # The lab checks SHA-256 itself; servers other than Amazon's do not know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        super().__init__(**options, addressing_style=style, client_config=config, file_overwrite=True)

    @property
    def address(self) -> str:
        """Return the store's name for people."""
        where = f" at {self.endpoint_url}" if self.endpoint_url else ""
        return f"s3://{self.bucket_name}/{self.location}".rstrip("/") + where

    def our_error(self, exc: Exception, name: str) -> StoreLacks | StoreRefused | StoreUnreachable | None:
        """Return the lab's error for one of boto3 about a file; None for an error that is none of boto3's."""
        if isinstance(exc, ClientError):
            return self._answered(exc, name)
        if isinstance(exc, NoCredentialsError | PartialCredentialsError):
            return StoreRefused(
                f"the store {self.address} needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or …_FILE"
            )
        if isinstance(exc, BotoCoreError):
            return StoreUnreachable(
                f"the store {self.address} does not answer ({_line(exc)}): start it, or correct KPERFLAB_STORE"
            )
        return None

    def _answered(self, exc: ClientError, name: str) -> StoreLacks | StoreRefused | StoreUnreachable:
        error = exc.response.get("Error", {})
        code, said = str(error.get("Code", "")), _line(error.get("Message", ""))
        operation = exc.operation_name
        if code == "NoSuchBucket" or (code in _NOT_THERE and operation == "HeadBucket"):
            return StoreRefused(
                f"the store {self.address}: there is no such bucket; create it, or correct KPERFLAB_STORE"
            )
        if code in _NOT_THERE:
            return StoreLacks(f"the store {self.address} has no {name}")
        if code in _REFUSED:
            return StoreRefused(
                f"the store {self.address} refuses access ({code}{f': {said}' if said else ''}): "
                "look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their permissions on the bucket"
            )
        return StoreUnreachable(f"the store {self.address} could not do it ({code}: {said})")

    def _create_session(self) -> boto3.Session:
        """One session a thread: making one reads all that boto3 knows of S3 from its files, which takes a second."""
        credentials = (self.access_key, self.secret_key, self.security_token)
        made: dict[object, boto3.Session] = _SESSIONS.__dict__.setdefault("made", {})
        if credentials not in made:
            made[credentials] = boto3.Session(*credentials)
        return made[credentials]

    def stream(self, name: str) -> StoreStream:
        """Yield the object in pieces."""
        return cast("StoreStream", self._object(name).get()["Body"])

    def part(self, name: str, start: int, length: int) -> tuple[bytes, int]:
        """See DirectoryStorage."""
        stored = self._object(name)
        size = int(stored.content_length)
        first = max(0, size + start) if start < 0 else min(start, size)
        if first >= size or length <= 0:
            return b"", size
        answer = stored.get(Range=f"bytes={first}-{min(first + length, size) - 1}")
        return answer["Body"].read(), size

    def entries(self, prefix: str) -> Iterator[StoreEntry]:
        """See DirectoryStorage."""
        top = f"{self.location}/" if self.location else ""
        below = f"{top}{prefix}/" if prefix else top
        for stored in self.bucket.objects.filter(Prefix=below):
            yield StoreEntry(stored.key.removeprefix(top), int(stored.size), stored.last_modified)

    def remove_drafts(self, before: datetime) -> None:
        """See DirectoryStorage; a bucket lists no object before it is whole."""

    def check(self) -> None:
        """Raise the server's error if there is no such bucket, or it is not ours."""
        self.connection.meta.client.head_bucket(Bucket=self.bucket_name)

    def room(self) -> None:
        """See DirectoryStorage; None, as a bucket has no such figures."""
        return

    def _object(self, name: str) -> Any:
        return self.bucket.Object(self._normalize_name(name))


def _line(text: object) -> str:
    return " ".join(str(text).split())[:300]
