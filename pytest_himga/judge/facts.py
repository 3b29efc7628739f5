"""The hard facts of a short text: its dates and its numbers, whatever way they are written.

Half of the words shared is a fair bar for prose and a bad one for facts: ``two weeks`` and ``two months``
share half of theirs. So a judge asks here first whether each date and each number of the gold is in the
answer.

What counts: dates (``7 May 2023``, ``May 7th, 2023``, ``2023-05-07``, ``16April, 2021``, ``May 5-6``),
months, years and weekdays, numbers in digits or words up to the millions, ordinals. ``one``, ``once`` and
``first`` are mostly no numbers but pronouns and adverbs: they may satisfy a gold, but a gold demands them
only beside a time unit (``one month``). Currency and percent signs are set aside; ``5K`` or ``2D`` is a word.
A date that stands behind ``before`` or ``after`` is another date than the same one without.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
#: Abbreviations, and the misspellings that people (LoCoMo's annotators among them) make.
_MONTH_WORDS = (
    "jan(?:uary|ury|uarty)?", "feb(?:ruary|uary|urary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?",
    "aug(?:ust)?", "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?",
)  # fmt: skip
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_CARDINALS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|"
    "seventeen|eighteen|nineteen"
)
_ORDINALS = (
    "zeroth|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|"
    "fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth"
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_VALUES = {
    **{word: n for words in (_CARDINALS, _ORDINALS) for n, word in enumerate(words.split("|"))},
    **{word: n for n, word in zip(range(20, 100, 10), _TENS.split("|"), strict=True)},
    **{f"{word[:-1]}ieth": n for n, word in zip(range(20, 100, 10), _TENS.split("|"), strict=True)},
    "a": 1,
    "an": 1,
    "once": 1,
    "twice": 2,
    "thrice": 3,
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_UNITS = {
    "sec": "second", "second": "second", "min": "minute", "minute": "minute", "hr": "hour", "hour": "hour",
    "day": "day", "night": "night", "wk": "week", "week": "week", "weekend": "weekend", "month": "month",
    "yr": "year", "year": "year", "decade": "decade", "time": "time",
}  # fmt: skip


@dataclass(frozen=True)
class Date:
    """A date as precise as it was written; a part that was not is None. ``relation``: before, after or ""."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: str | None = None
    relation: str = ""

    def __str__(self) -> str:
        parts = [self.relation, (self.weekday or "").capitalize(), str(self.day or "")]
        parts += [_MONTHS[self.month - 1] if self.month else "", str(self.year or "")]
        return " ".join(part for part in parts if part)

    def occurs_in(self, other: Facts) -> bool:
        """Whether ``other`` has this date, at least as precisely."""
        if self.year and not self.month and any(n.value == str(self.year) for n in other.numbers):
            return True  # "2,000" for a gold 2000: four digits need not be a year
        return any(self._within(date) for date in other.dates)

    def _within(self, date: Date) -> bool:
        mine = (self.year, self.month, self.day, self.weekday)
        theirs = (date.year, date.month, date.day, date.weekday)
        # A year alone is no point in time that something could be before or after.
        same_side = self.relation == date.relation or not (self.month or self.day)
        return same_side and all(m is None or m == t for m, t in zip(mine, theirs, strict=True))


@dataclass(frozen=True)
class Number:
    """A number in its shortest digits, and the time unit behind it, if any.

    ``weak`` numbers (``one``, ``a week``) satisfy a gold but are never demanded by one.
    """

    value: str
    unit: str = ""
    weak: bool = False

    def __str__(self) -> str:
        return f"{self.value} {self.unit}{'' if self.value == '1' else 's'}" if self.unit else self.value

    def occurs_in(self, other: Facts) -> bool:
        """Whether ``other`` has this number, and not of another unit (a bare number fits any unit)."""
        if any(
            n.value == self.value and (not n.unit or not self.unit or n.unit == self.unit)
            for n in other.numbers
        ):
            return True
        return not self.unit and any(d.month is None and str(d.year) == self.value for d in other.dates)


@dataclass
class Facts:
    """What ``find_facts`` found; ``rest`` is the text without the facts that a gold demands."""

    dates: list[Date] = field(default_factory=list)
    numbers: list[Number] = field(default_factory=list)
    rest: str = ""

    @property
    def demanded(self) -> Iterator[Date | Number]:
        """The facts that an answer must have if this is the gold."""
        yield from self.dates
        yield from (number for number in self.numbers if not number.weak)


def facts_occur(gold: str, answer: str) -> bool:
    """Whether each date and each number of ``gold`` is in ``answer``.

    A more precise date satisfies a less precise one, not the other way round.

    >>> facts_occur("May 2023", "on the 7th of May, 2023"), facts_occur("7 May 2023", "in May 2023")
    (True, False)
    """
    return missing_fact(find_facts(gold), find_facts(answer)) is None


def missing_fact(gold: Facts, answer: Facts) -> Date | Number | None:
    """Name the first fact of the gold that the answer does not have; None if it has all."""
    return next((fact for fact in gold.demanded if not fact.occurs_in(answer)), None)


_PLAIN: dict[int, str | None] = {
    # zero-width space, non-joiner, joiner, word joiner, byte order mark, soft hyphen
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD)),
    # single quotes, modifier apostrophe, prime, grave and acute accent
    **dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x02BC, 0x2032, 0x0060, 0x00B4), "'"),
    # double quotes, double prime, guillemets
    **dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0x2033, 0x00AB, 0x00BB), '"'),
    # hyphens, dashes and the minus sign
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2212), "-"),
}


def fold(text: str) -> str:
    """Bring ``text`` into one typography: NFKC, straight quotes, plain hyphens, no invisible characters."""
    if text.isascii():
        return text.replace("`", "'")
    # Before NFKC, which would split an acute accent that stands for an apostrophe into two characters.
    return unicodedata.normalize("NFKC", text.translate(_PLAIN))


def find_facts(text: str) -> Facts:
    """Read the dates and numbers of a text."""
    left = fold(text).lower()
    facts = Facts()
    for cue, pattern, read in _READERS:
        if not cue.search(left):
            continue

        def take(match: re.Match[str], read: _Reader = read) -> str:
            found = read(match)
            if not found:
                return match[0]
            facts.dates += [fact for fact in found if isinstance(fact, Date)]
            facts.numbers += [fact for fact in found if isinstance(fact, Number)]
            weak = all(isinstance(fact, Number) and fact.weak for fact in found)
            # The bar keeps two neighbours from being read as one date; it is punctuation to everyone else.
            return match[0] if weak else " | "

        left = pattern.sub(take, left)
    facts.rest = left
    return facts


_Reader = Callable[[re.Match[str]], "list[Date | Number]"]
_MONTH = "(?P<month>" + "|".join(_MONTH_WORDS) + r")(?![a-z])\.?"
_YEAR = r"(?P<year>[12][0-9]{3})(?![0-9])"
_DAY = r"[0-3]?[0-9](?![0-9])"
_TH = r"(?:st|nd|rd|th)?"
_TO = r"\s*(?:-|to|and|&|or|through|until)\s*"
#: "Those 2 may be hers": no date.
_VERB_BEHIND = re.compile(r"\s+(?:be|have|not|also|well|still|need|go|come|take|want|help|include)\b")
_UNIT = (
    r"(?:[\s-]+(?:more|full|whole|straight|consecutive)?\s*(?P<unit>" + "|".join(_UNITS) + r")s?(?![a-z]))?"
)
_SMALL = (
    rf"(?:{_TENS})[\s-]+(?:{_CARDINALS}|{_ORDINALS})\b|{'|'.join(sorted(_VALUES, key=len, reverse=True))}"
)


def _month_number(word: str) -> int:
    word = word[:3]
    return next(n for n, name in enumerate(_MONTHS, start=1) if name[:3].lower() == word)


def _relation(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 32) : match.start()]
    found = re.search(r"\b(before|prior to|preceding|after|following)\s+(?:the\s+)?(?:\w+day,?\s+)?$", before)
    if not found:
        return ""
    return "after" if found[1] in ("after", "following") else "before"


def _date(match: re.Match[str]) -> list[Date | Number]:
    parts = match.groupdict()
    name = parts.get("month") or parts["name"]
    month = _month_number(name)
    days = [int(parts[key]) for key in ("day", "other_day") if parts.get(key)]
    year = int(parts["year"]) if parts.get("year") else None
    if any(not 1 <= day <= 31 for day in days):
        return []
    if name == "may" and days and not year and _VERB_BEHIND.match(match.string, match.end()):
        return []  # the verb: "those 2 may differ"
    relation = _relation(match)
    if not days:
        return [Date(year, month, relation=relation)]
    return [Date(year, month, day, relation=relation) for day in days]


def _numeric_date(match: re.Match[str]) -> list[Date | Number]:
    """All digits: the year first, or else month/day as Americans write it unless that is no date."""
    parts = match.groupdict()
    year, month, day = int(parts["year"]), int(parts["m"]), int(parts["d"]) if parts.get("d") else None
    if month > 12 and day is not None and not match[0].startswith(parts["year"]):
        month, day = day, month
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return []
    return [Date(year, month, day, relation=_relation(match))]


def _weekday(match: re.Match[str]) -> list[Date | Number]:
    return [Date(weekday=match[1])]


def _digits(match: re.Match[str]) -> list[Date | Number]:
    whole = match["whole"].replace(",", "")
    fraction = (match["fraction"] or "").rstrip("0").rstrip(".")
    unit = _unit(match)
    if (
        not unit
        and not match["fraction"]
        and "," not in match["whole"]
        and re.fullmatch("[12][0-9]{3}", whole)
    ):
        return [Date(year=int(whole))]
    # As text: int() refuses numbers of more than 4,300 digits.
    return [Number((whole.lstrip("0") or "0") + fraction, unit)]


def _number_word(match: re.Match[str]) -> list[Date | Number]:
    """``two``, ``twenty-one``, ``second``, ``three hundred and five``, ``a week``."""
    word = match["small"]
    scale = match["scale"] or ""
    unit = _unit(match) or ("time" if word in ("once", "twice", "thrice") else "")
    if word in ("a", "an") and not unit and not scale:
        return []
    value = _small_value(word)
    if scale:
        value = value * _SCALES[scale] + (_small_value(match["more"]) if match["more"] else 0)
    idle = word in ("a", "an", "once") or not unit or unit in ("day", "time", "night")
    return [Number(str(value), unit, weak=value == 1 and idle)]


def _small_value(words: str) -> int:
    return sum(_VALUES[word] for word in re.split(r"[\s-]+", words))


def _unit(match: re.Match[str]) -> str:
    return _UNITS.get(match["unit"] or "", "")


_YEAR_FIRST = r"(?<![0-9])(?P<year>[12][0-9]{3})([-/.])(?P<m>[0-9]{1,2})\2(?P<d>[0-9]{1,2})(?![0-9])"
_ISO_MONTH = r"(?<![0-9-])(?P<year>(?:19|20)[0-9]{2})-(?P<m>[01][0-9])(?![\w-])"
_SLASHES = r"(?<![0-9/])(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})/(?P<year>[12][0-9]{3})(?![0-9/])"
_AND_YEAR = rf"(?:\s*,?\s*(?:of\s+)?{_YEAR})?"
_OTHER_DAY = rf"(?P<other_day>{_DAY}){_TH}"
_DAY_MONTH = (
    rf"(?<![\w.])(?:{_OTHER_DAY}{_TO})?(?P<day>{_DAY}){_TH}'?\s*(?:day\s+)?(?:of\s+)?{_MONTH}{_AND_YEAR}"
)
_MONTH_DAY = rf"(?<![a-z]){_MONTH}\s*(?:the\s+)?(?P<day>{_DAY}){_TH}(?:{_TO}{_OTHER_DAY}(?!\w))?{_AND_YEAR}"
_MONTH_YEAR = rf"(?<![a-z]){_MONTH}'?\s*,?\s*(?:of\s+)?{_YEAR}"
#: Alone, "may" and "march" are verbs unless the word before them calls for a time.
_MONTH_ALONE = (
    r"(?:(?<=\bin )|(?<=\bof )|(?<=\bsince )|(?<=\bduring )|(?<=\blate )|(?<=\bearly )|(?<=\blast ))"
    r"(?P<month>may|march)\b"
    r"|\b(?P<name>january|february|april|june|july|august|september|october|november|december)\b"
)
_DIGITS = (
    r"(?<!\w)(?<![0-9]\.)(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?P<fraction>\.[0-9]+)?"
    rf"{_TH}(?!\w){_UNIT}"
)
_WORDS = (
    rf"\b(?P<small>{_SMALL})\b(?:[\s-]+(?P<scale>{'|'.join(_SCALES)})\b"
    rf"(?:[\s-]+(?:and\s+)?(?P<more>{_SMALL})\b)?)?{_UNIT}"
)
#: What a text must have for a reader to find anything in it: most texts have none of it, and looking for
#: one letter or syllable is ten times faster.
_DIGIT = re.compile("[0-9]")
_MONTH_CUE = re.compile("jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec")
_DAY_CUE = re.compile("day")
_WORD_CUE = re.compile(
    rf"\b(?:twent|thirt|fort|fift|sixt|sevent|eight|ninet|once|twice|thrice|{_CARDINALS}|{_ORDINALS}|"
    rf"an?[\s-]+(?:{'|'.join([*_UNITS, *_SCALES])}))"
)
#: In the order in which they may claim a piece of the text: the most precise first.
_READERS: list[tuple[re.Pattern[str], re.Pattern[str], _Reader]] = [
    (cue, re.compile(pattern), read)
    for cue, pattern, read in (
        (_DIGIT, _YEAR_FIRST, _numeric_date),
        (_DIGIT, _ISO_MONTH, _numeric_date),
        (_DIGIT, _SLASHES, _numeric_date),
        (_MONTH_CUE, _DAY_MONTH, _date),
        (_MONTH_CUE, _MONTH_DAY, _date),
        (_MONTH_CUE, _MONTH_YEAR, _date),
        (_MONTH_CUE, _MONTH_ALONE, _date),
        (_DAY_CUE, rf"\b({_WEEKDAYS})s?\b", _weekday),
        (_DIGIT, _DIGITS, _digits),
        (_WORD_CUE, _WORDS, _number_word),
    )
]
