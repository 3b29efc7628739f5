"""What a server's headers say of a file, in the data room: its version, its length, when to come again."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

#: Seconds. Hubs count in windows of five minutes, so that none has a reason to ask for more.
LONGEST_WAIT = 300.0


def status(response: httpx.Response) -> str:
    """``404 Not Found``."""
    return f"{response.status_code} {response.reason_phrase}".strip()


def compressed(response: httpx.Response) -> bool:
    """Whether the body is not the file's bytes, although ``identity`` was asked for."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")


def validator(response: httpx.Response) -> str | None:
    """What the server calls this version of the file; a weak ETag may not be used for ranges."""
    if compressed(response):
        return None
    etag: str = response.headers.get("etag", "")
    if etag.startswith('"'):
        return etag
    modified: str | None = response.headers.get("last-modified")
    return modified


def content_length(response: httpx.Response) -> int | None:
    """The length that the body says it has; none if it is that of a compressed body."""
    value = response.headers.get("content-length", "")
    return int(value) if re.fullmatch(r"[0-9]{1,15}", value) and not compressed(response) else None


def total_of(response: httpx.Response) -> int | None:
    """The length of the whole file that an answer to a range says, see ``Content-Range``."""
    total = re.fullmatch(r"bytes .*/([0-9]{1,15})", response.headers.get("content-range", ""))
    return int(total[1]) if total else None


def wait_asked_for(response: httpx.Response) -> float | None:
    """Seconds to wait, at most five minutes: ``Retry-After``, or the hub's ``RateLimit: "..";r=0;t=55``."""
    value = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return min(float(value), LONGEST_WAIT)
    moment = _moment(value)
    if moment is not None:
        # By the server's own clock: this machine's may be minutes off.
        now = _moment(response.headers.get("date", "")) or datetime.now(UTC)
        return min(max((moment - now).total_seconds(), 0.0), LONGEST_WAIT)
    window = re.search(r";\s*t=([0-9]+)", response.headers.get("ratelimit", ""))
    return min(float(window[1]), LONGEST_WAIT) if window else None


def _moment(http_date: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(http_date)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
