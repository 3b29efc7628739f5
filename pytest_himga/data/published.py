"""The catalog, in the data room: which datasets are published, where, and how their files are told.

Facts only; nothing here opens a file or a socket. Sizes and digests are those of the uncompressed files at
the revision that the URL names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from pytest_himga.data.files import shown
from pytest_himga.errors import SettingsError

MIRROR_VARIABLE = "HIMGA_DATA_MIRROR"


@dataclass(frozen=True)
class Published:
    """One published dataset.

    ``file`` is what it is called on disk, ``size`` is in bytes. ``sha256`` is None where nobody has published
    a digest, ``size`` where nobody has published the exact size. ``revision`` is the commit that ``url``
    names, or a branch if no commit is known, see ``pinned``. ``citation`` and ``note`` are one line each.
    """

    name: str
    family: str
    file: str
    url: str
    revision: str
    sha256: str | None
    size: int | None
    licence: str
    non_commercial: bool
    citation: str
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def pinned(self) -> bool:
        """Whether the URL names one commit for ever, and not whatever a branch holds today."""
        return len(self.revision) == 40 and set(self.revision) <= set("0123456789abcdef")

    @property
    def upstream_file(self) -> str:
        """What it is called upstream; the original LongMemEval files have no suffix there."""
        return self.url.rpartition("/")[2]


_GITHUB = "https://raw.githubusercontent.com"
_HUB = "https://huggingface.co/datasets"
_LOCOMO_REVISION = "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376"
_CLEANED_REVISION = "98d7416c24c778c2fee6e6f3006e7a073259d48f"
_ORIGINAL_REVISION = "2ec2a557f339b6c0369619b1ed5793734cc87533"
_CLEANED = f"{_HUB}/xiaowu0162/longmemeval-cleaned/resolve/{_CLEANED_REVISION}"
_ORIGINAL = f"{_HUB}/xiaowu0162/LongMemEval/resolve/{_ORIGINAL_REVISION}"
_LONGMEMEVAL_CITATION = (
    "Di Wu, Hongwei Wang, Wenhao Yu, Yuwei Zhang, Kai-Wei Chang, Dong Yu (2024): LongMemEval: Benchmarking "
    "Chat Assistants on Long-Term Interactive Memory. arXiv:2410.10813"
)
_ORIGINAL_NOTE = (
    "the release of 2024, kept for comparing with numbers published on it: golds and sessions differ from the "
    "cleaned files; upstream the file has no .json suffix"
)


def _longmemeval(
    name: str,
    file: str,
    url: str,
    sha256: str,
    size: int,
    *,
    aliases: tuple[str, ...] = (),
    note: str = "",
) -> Published:
    return Published(
        name=name,
        family="longmemeval",
        file=file,
        url=url,
        revision=url.split("/")[-2],
        sha256=sha256,
        size=size,
        licence="MIT",
        non_commercial=False,
        citation=_LONGMEMEVAL_CITATION,
        aliases=aliases,
        note=note,
    )


_ALL = (
    Published(
        name="locomo",
        family="locomo",
        file="locomo10.json",
        url=f"{_GITHUB}/snap-research/locomo/{_LOCOMO_REVISION}/data/locomo10.json",
        revision=_LOCOMO_REVISION,
        sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
        size=2_805_274,
        licence="CC BY-NC 4.0",
        non_commercial=True,
        citation=(
            "Adyasha Maharana, Dong-Ho Lee, Sergey Tulyakov, Mohit Bansal, Francesco Barbieri, Yuwei Fang "
            "(2024): Evaluating Very Long-Term Conversational Memory of LLM Agents. arXiv:2402.17753"
        ),
    ),
    _longmemeval(
        "longmemeval-oracle",
        "longmemeval_oracle.json",
        f"{_CLEANED}/longmemeval_oracle.json",
        "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
        15_388_478,
        aliases=("longmemeval-oracle-original",),
        note="the sessions with evidence only; the original and the cleaned release have the same file",
    ),
    _longmemeval(
        "longmemeval-s",
        "longmemeval_s_cleaned.json",
        f"{_CLEANED}/longmemeval_s_cleaned.json",
        "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
        277_383_467,
        aliases=("longmemeval",),
        note="about 48 sessions a question; the cleaned release",
    ),
    _longmemeval(
        "longmemeval-m",
        "longmemeval_m_cleaned.json",
        f"{_CLEANED}/longmemeval_m_cleaned.json",
        "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f",
        2_737_100_077,
        note="about 500 sessions a question; the cleaned release",
    ),
    _longmemeval(
        "longmemeval-s-original",
        "longmemeval_s.json",
        f"{_ORIGINAL}/longmemeval_s",
        "08d8dad4be43ee2049a22ff5674eb86725d0ce5ff434cde2627e5e8e7e117894",
        278_025_796,
        note=_ORIGINAL_NOTE,
    ),
    _longmemeval(
        "longmemeval-m-original",
        "longmemeval_m.json",
        f"{_ORIGINAL}/longmemeval_m",
        "fb5413e3b077c62927daab794836991a2fcfa61ceacab57dc679fb02daaff2d9",
        2_745_274_681,
        note=_ORIGINAL_NOTE,
    ),
    Published(
        name="memorystress",
        family="memorystress",
        file="memorystress_v1.json",
        url=f"{_HUB}/singularityjason/memorystress/resolve/main/memorystress_v1.json",
        revision="main",
        sha256=None,
        size=None,
        licence="Apache-2.0",
        non_commercial=False,
        citation=(
            "OMEGA Memory (2026): MemoryStress: The First Longitudinal Benchmark for AI Memory Systems. "
            "github.com/omega-memory/memorystress"
        ),
        note="unpinned and not verified: no digest, exact size or revision of it is known (about 2.6 MB)",
    ),
)

#: By name, in the order in which they are listed.
PUBLISHED: dict[str, Published] = {published.name: published for published in _ALL}
_ALIASES = {alias: published.name for published in _ALL for alias in published.aliases}


def find_published(name: str) -> Published | None:
    """The published dataset of that name or alias, spelt exactly so."""
    return PUBLISHED.get(_ALIASES.get(name, name))


def published_names() -> list[str]:
    """Every name and alias, for ``errors.nearest``."""
    return [*PUBLISHED, *_ALIASES]


def url_of(published: Published, mirror: str | None = None) -> str:
    """Where to download it from; ``mirror`` is the value of ``HIMGA_DATA_MIRROR``.

    A mirror replaces scheme and host; a path of its own is kept in front of the published path.

    Raises
    ------
    SettingsError
        If the mirror is no http or https address, or has a query.
    """
    mirror = (mirror or "").strip()
    if not mirror:
        return published.url
    try:
        given = urlsplit(mirror)
        problem = _problem_of(given.scheme, given.hostname, given.port, given.query or given.fragment)
    except ValueError as error:  # a port that is no number, half a bracket of IPv6
        problem = str(error)
    if problem:
        raise SettingsError(
            f"{MIRROR_VARIABLE}={shown(without_login(mirror))}: {problem}; write https://host or https://host/prefix "
            "(files that lie in a folder are found with HIMGA_DATA_DIR)"
        )
    path = given.path.rstrip("/") + urlsplit(published.url).path
    return urlunsplit((given.scheme, given.netloc, path, "", ""))


def without_login(url: str) -> str:
    """``url`` as it may be printed: a mirror's address can carry a name and a password."""
    return re.sub(r"//[^/?#]*@", "//", url)


def _problem_of(scheme: str, host: str | None, port: int | None, rest: str) -> str:
    if scheme not in ("http", "https"):
        return "is no http or https address"
    if not host:
        return "names no host"
    if port == 0:
        return "names port 0"
    if rest:
        return "has a query or a fragment, which no path can be put behind"
    return ""


def megabytes(size: int | None) -> str:
    """``size`` bytes for people: ``277.4 MB``, in millions of bytes; ``size not known`` for None."""
    return "size not known" if size is None else f"{size / 1e6:,.1f} MB"
