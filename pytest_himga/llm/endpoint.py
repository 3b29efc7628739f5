"""Where a model is and what opens it, in the llm room. The key comes from the environment and stays here."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_himga.errors import SettingsError
from pytest_himga.llm.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Where the openai package goes unless it is told otherwise.
DEFAULT_BASE_URL = "https://api.openai.com/v1"
_DEFAULT_HOST = "api.openai.com"
_BASE_URL_VARIABLE = "OPENAI_BASE_URL"
_HEADERS_VARIABLE = "OPENAI_CUSTOM_HEADERS"
_AT = re.compile("%(?:25)*40")
_NO_PORT = re.compile(r"^(\[[^\]]*\]|[^/:\[]*):(?!\d*(?:/|$)).*", re.DOTALL)
_EXAMPLE = "write a base URL such as http://localhost:8000/v1"


class Endpoint:
    """A server: its base URL (no credentials, no last slash) and how requests to it are authorized.

    ``redact`` knows every secret that this server could echo. ``advice`` is the end of a sentence about a
    server that does not let us in: which variable held the key, or which would. No secret stands in
    ``repr`` or ``vars``.
    """

    __slots__ = ("_authorization", "advice", "redact", "server")

    def __init__(
        self,
        server: str,
        key: str | None = None,
        *,
        basic: tuple[str, str] | None = None,
        advice: str = "",
        also_secret: Sequence[str] = (),
    ) -> None:
        self.server = server
        self.advice = advice
        self._authorization: str | None = None
        secrets: list[str] = []
        if basic is not None:
            pair = f"{basic[0]}:{basic[1]}"
            token = base64.b64encode(pair.encode("utf-8")).decode("ascii")
            self._authorization = f"Basic {token}"
            # A user name is a secret only where there is no password: then it is the token.
            secrets = [basic[1] or basic[0], pair]
        elif key is not None:
            self._authorization = f"Bearer {key}"
            secrets = [key]
        self.redact = Redactor([*secrets, *also_secret])

    def __repr__(self) -> str:
        return f"Endpoint({self.server!r})"

    def authorize(self, request: Any) -> Any:
        """Set the one header of a request of httpx's that opens the server, or none.

        The openai package never holds the key: whatever it prints of itself or of its options is free of it.
        """
        request.headers.pop("Authorization", None)
        # No call depends on those before it, and a cookie that no header can hold would spoil all later ones.
        request.headers.pop("Cookie", None)
        if self._authorization is not None:
            request.headers["Authorization"] = self._authorization
        return request


def read_endpoint(
    base_url: str | None,
    environ: Mapping[str, str],
    *,
    option: str,
    key_names: Sequence[str],
    need_key: bool = True,
) -> Endpoint:
    """The server at ``base_url``; None is ``OPENAI_BASE_URL``, or OpenAI itself.

    ``option`` is how the base URL is set, for errors; ``key_names`` are the variables that may hold the key,
    first one first. A base URL's own ``user:password@`` goes before any key. With ``need_key`` False a key
    is not asked for (a cache that is read offline needs none).

    Raises
    ------
    SettingsError
        If this is no base URL, if a key cannot stand in a header, or if OpenAI's own server has no key.
    """
    where, url = option, base_url
    if url is None and environ.get(_BASE_URL_VARIABLE, "").strip():
        where, url = _BASE_URL_VARIABLE, environ[_BASE_URL_VARIABLE]
    split = _split(DEFAULT_BASE_URL if url is None else url.strip(), where)
    server = f"{split.scheme}://{split.netloc.rpartition('@')[2].lower()}{split.path.rstrip('/')}"
    basic, more = _basic(split), _custom_headers(environ)
    if basic is not None:
        return Endpoint(
            server, basic=basic, advice=f"check the user and the password in {where}", also_secret=more
        )
    name = next((name for name in key_names if environ.get(name, "").strip()), None)
    if name is not None:
        return Endpoint(server, _key(environ, name), advice=f"check the key in {name}", also_secret=more)
    if need_key and split.hostname == _DEFAULT_HOST:
        raise SettingsError(
            f"{server} wants a key: set {_either(key_names)} in the environment, "
            f"or {option} for a server that needs none"
        )
    return Endpoint(
        server, advice=f"no key was sent: set {_either(key_names)} in the environment", also_secret=more
    )


def _split(url: str, where: str) -> SplitResult:
    shown = _shown(url)
    try:
        split = urlsplit(url)
        port_is_bad = split.port == 0
    except ValueError:
        raise SettingsError(f"{where}: {shown} is no URL; {_EXAMPLE}") from None
    if split.scheme not in ("http", "https") or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise SettingsError(f"{where}: {shown} is no http(s) URL; {_EXAMPLE}")
    if not split.hostname or port_is_bad:
        raise SettingsError(f"{where}: {shown} names no host; {_EXAMPLE}")
    if "?" in url or "#" in url:
        raise SettingsError(
            f"{where}: {shown} goes on with a query or a fragment, but /chat/completions is put behind a base "
            "URL: it ends like .../v1 (a ? or # of a password is written %3F or %23)"
        )
    if split.path.rstrip("/").endswith("/completions"):
        raise SettingsError(f"{where}: {shown} is a whole address; a base URL ends before it, like .../v1")
    return split


def _shown(url: str) -> str:
    """As much of a URL as an error may show: nothing where a password can be, nor of a query.

    A password is before an ``@``, and also behind a colon without a port if the ``@`` was forgotten.
    """
    url = _AT.sub("@", url)
    scheme, slashes, rest = url.rpartition("://") if "@" not in url else url.partition("://")
    secret, at, host = (rest or scheme).rpartition("@")
    if at:
        # Which of them begins the query and which ends the password cannot be told.
        host = "***" if re.search(r"[?#]", secret) else f"***@{host}"
    bare = _NO_PORT.sub(r"\1:***", re.split(r"[?#]", host, maxsplit=1)[0])
    return repr(f"{scheme}://{bare}" if slashes else bare)


def _basic(split: SplitResult) -> tuple[str, str] | None:
    if not (split.username or split.password):
        return None
    return unquote(split.username or ""), unquote(split.password or "")


def _custom_headers(environ: Mapping[str, str]) -> list[str]:
    """The values of the headers that the openai package adds by itself: a gateway's key may be among them."""
    lines = environ.get(_HEADERS_VARIABLE, "").splitlines()
    return [value.strip() for line in lines if (value := line.partition(":")[2]).strip()]


def _key(environ: Mapping[str, str], name: str) -> str:
    key = environ[name].strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(
            f"{name}: a key has no spaces, line breaks or letters beyond ASCII; this one does"
        )
    return key


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
