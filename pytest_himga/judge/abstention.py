"""Whether an answer abstains, told by rule.

A phrase found anywhere proves nothing: "The unknown artist is Rembrandt" names somebody, and "Not mentioned
directly, but probably Paris" guesses. So the answer is cut into clauses, and each of them

* *abstains*, if the whole clause says that the record is silent or that the speaker does not know ("There is
  no information about her cat", "It is not mentioned that she has a cat", "N/A"),
* is *idle*, if it is an apology, an opening or an offer to help,
* *remarks* on what the record does hold ("The conversation only covers her dog"), or
* *asserts*: everything else.

An answer abstains iff at least one clause abstains and none asserts. The rule is one and the same for
answerable and unanswerable questions, so that hedging ("Not mentioned. Paris.") never scores on both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_himga.judge.facts import find_facts, fold, missing_fact
from pytest_himga.judge.locomo_f1 import PLAIN, locomo_f1, tokens_of

if TYPE_CHECKING:
    from pytest_himga.judge.verdict import AbstentionValue

#: The F1 from which a text is taken to repeat the trap in other words: half of the words are shared.
HOLDS_FROM = 0.5


def abstains(answer: str) -> bool:
    """Whether the answer says that there is no answer to give, and asserts nothing."""
    return bool(_CUE.search(_MARKDOWN.sub(" ", fold(answer)))) and _sorted(answer).abstains


def read_abstention(answer: str, trap: str | None) -> AbstentionValue:
    """Tell how an unanswerable question was met.

    ``held``: the answer abstains. ``fell``: what it says outside its abstaining clauses holds the trap.
    ``other``: it asserts something else, or is empty. A denial that echoes the question ("It is not
    mentioned that Caroline adopted a cat") is one abstaining clause, so it holds.
    """
    said = _sorted(answer)
    if trap and holds_trap(answer, trap, said):
        return "fell"
    return "held" if said.abstains else "other"


def holds_trap(answer: str, trap: str, clauses: Clauses | None = None) -> bool:
    """Whether the answer, outside its abstaining and idle clauses, says what ``trap`` says.

    That is: one clause, or all together, has every content word and every number and date of the trap, or
    an F1 of at least 0.5 with it.
    """
    said = (clauses or _sorted(answer)).said
    return bool(said) and any(_says(text, trap) for text in {*said, " ".join(said)})


def _says(text: str, trap: str) -> bool:
    if locomo_f1(text, trap, PLAIN) >= HOLDS_FROM:
        return True
    facts = find_facts(trap)
    words = [*_content_words(facts.rest), *facts.demanded]
    if not words:
        return False
    return set(_content_words(facts.rest)) <= set(tokens_of(fold(text))) and (
        missing_fact(facts, find_facts(text)) is None
    )


def _content_words(text: str) -> list[str]:
    words = [word for word in fold(text).lower().split() if word.strip(".,'\"") not in _FUNCTION_WORDS]
    return tokens_of(" ".join(words))


@dataclass
class Clauses:
    """The clauses of one answer by what they do."""

    asserting: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    abstaining: list[str] = field(default_factory=list)

    @property
    def abstains(self) -> bool:
        """Whether the answer as a whole abstains."""
        return bool(self.abstaining) and not self.asserting

    @property
    def said(self) -> list[str]:
        """What the answer says outside its abstaining and idle clauses."""
        return self.asserting + self.remarks


def _sorted(answer: str) -> Clauses:
    clauses = Clauses()
    idle = []
    for clause in _clauses_of(answer):
        bare = _bare(clause)
        if any(rule.search(bare) for rule in _ABSTAINING):
            clauses.abstaining.append(clause)
        elif not bare or _IDLE.match(bare):
            idle.append(clause)
        elif _REMARK.match(bare):
            clauses.remarks.append(clause)
        else:
            clauses.asserting.append(clause)
    if not clauses.abstaining:  # "No." beside an abstention is idle; alone it is what the answer says
        clauses.asserting += idle
    return clauses


def _clauses_of(text: str) -> list[str]:
    """Cut a text into lower-case clauses in plain typography, contractions written out.

    Cuts are at the ends of sentences, at ``but`` and its like, at dashes, and at a comma behind which a
    new statement begins; the commas of a list do not cut.
    """
    plain = _MARKDOWN.sub(" ", fold(text).lower())
    for contraction, full in _CONTRACTIONS:
        plain = contraction.sub(full, plain)
    plain = _LABEL.sub("", plain.strip())
    # A leading concession ("Although she has a dog, ...") remarks; a trailing one asserts.
    plain = _CONCESSION.sub(r"\1while \2;", plain)
    return [clause for part in _CUTS.split(plain) if (clause := part.strip(" \t,:.!?()[]'"))]


def _bare(clause: str) -> str:
    """Drop what changes nothing: openings such as "based on the conversation," and adverbs."""
    bare, before = _ADVERBS.sub(" ", clause), None
    while before != bare:
        before, bare = bare, _OPENING.sub("", bare, count=1)
    return " ".join(bare.split()).strip(" ,:")


#: Not "no" and "not": they are what some traps are about.
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "he she it they we i you his her its their our my your him them us me is are was were be been being "
        "am do does did has have had to of in on at for with by from as that this these those there then so "
        "or but because when while who which what",
    )
)
#: Without one of these nothing abstains; it spares most answers the rules below.
_CUE = re.compile(
    r"\b(?:no|not|un|cannot|none|nothing|never|nobody|neither|n\.?/?a|idk|ins|imp|hard|diff)|n'?t\b",
    re.IGNORECASE,
)
_MARKDOWN = re.compile(r'[*_#>~|"]+')
_CONTRACTIONS = [
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\bcan(?:no|')t\b|\bcant\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"\b(do|does|did|is|was|are|were|could|has|have|had|would|should)n'?t\b", r"\1 not"),
        (r"\b(there|it|that|this|he|she|here|what)'s\b", r"\1 is"),
        (r"\bi'm\b|\bim\b", "i am"),
        (r"(?<=\w)'ve\b", " have"),
        (r"(?<=\w)'d\b", " would"),
        (r"(?<=\w)'re\b", " are"),
    )
]
_LABEL = re.compile(
    r"(?:\(?[a-e]\)\s*|(?:the )?(?:final |short |correct |best )?answer(?: is)?\s*:\s*|a:\s*)+"
)
_CONCESSION = re.compile(r"(^|[.!?;]\s+)(?:while|although|though|even though|whereas) ([^,.;!?]*),")
_OPENERS = (
    "probably|maybe|perhaps|possibly|presumably|likely|most likely|i|it|he|she|they|we|you|so|the answer|"
    "my|only|and (?:it|he|she|they|i)|which|this|that is|there|let me|please|could|can|would|not|no|nor|"
    "nothing|unknown"
)
_CUTS = re.compile(
    r"[.!?]+(?=\s|$|[)'])|[;\n]|(?:^|\s)-+\s"
    r"|,?\s(?:but|however|although|though|even though|nevertheless)\b,?"
    r"|,\s(?:yet|while|whereas|instead|rather|except|still)\b,?"
    rf"|,\s(?=(?:{_OPENERS})\b)"
)
_ADVERBS = re.compile(
    r"\b(?:explicitly|directly|specifically|clearly|currently|actually|exactly|anywhere|simply|really|at all|"
    r"unfortunately|sadly|in detail|further|here|yet|precisely|definitively|in particular|also|even|ever|"
    r"at this (?:time|point)|right now|so far)\b"
)
_NOUN = (
    r"(?:conversations?|chats?|contexts?|dialogu?es?|histor(?:y|ies)|texts?|transcripts?|memor(?:y|ies)|"
    r"records?|notes?|messages?|sessions?|passages?|documents?|excerpts?|data|discussions?|logs?|snippets?|"
    r"exchanges?|sources?|information)\b"
)
#: A phrase for the record itself: "the provided conversation history".
_RECORD = (
    r"(?:(?:the|this|that|these|those|their|your|our|my|any|all|both)\s)?"
    r"(?:(?:provided|given|available|retrieved|above|supplied|stored|previous|past|recent|shared|entire|whole|"
    rf"conversation|chat|memory)\s){{0,3}}{_NOUN}"
)
_IN_RECORD = rf"(?:in|within|from|by|during|throughout|across|on|at|of)\s(?:\S+\s){{0,4}}?{_NOUN}"
_WH = r"(?:that|whether|if|who|whom|whose|what|when|where|why|how|which)\b"
#: What may follow "not mentioned" so that it still says nothing: no object, no addressee ("to her mother").
_TAIL = rf"(?:$|\s(?:{_IN_RECORD}|{_WH}|(?:as|about|for|regarding|concerning|or|and|because|so)\b))"
_QUALITY = (
    r"(?:(?:any|enough|sufficient|specific|relevant|direct|explicit|additional|clear|such|more|other|exact|the|"
    r"that|this|an?|access to|details or|information or)\s){0,4}"
)
_INFO = (
    r"(?:(?:information|info|mentions?|details?|data|context|knowledge|references?)\b"
    r"|(?:records?|memor(?:y|ies)|recollections?|discussions?)(?=$|\s(?:of|about|on|in)\b))"
)
#: Nouns that also stand in real answers ("no evidence of a fracture"): the clause must be about the record.
_TRACE = (
    r"(?:evidence|indications?|signs?|records?|memor(?:y|ies)|statements?|discussions?|notes?|answers?)\b"
)
_ABOUT_RECORD = rf"(?=$|\s{_WH}|\s(?:available|provided|given|found|about)\b|.*\b{_NOUN})"
_NO_INFO = rf"{_QUALITY}(?:{_INFO}|{_TRACE}{_ABOUT_RECORD})"
_TOLD = (
    r"(?:mentioned|specified|stated|disclosed|clarified|indicated|documented|revealed|discussed|detailed|"
    r"described|addressed|said|known(?! for)|clear|noted|given|provided|available|recorded|found|established|"
    r"explained|listed)"
)
_TELL = (
    r"(?:mention|say|state|specify|tell|indicate|reveal|discuss|describe|provide|contain|include|give|show|"
    r"clarify|address|disclose|note|cover|talk|refer|explain|identify|name|detail|list|suggest)s?\b"
)
_FIND_OUT = r"(?:find|determine|answer|say|tell|locate|confirm|verify|provide|identify|recall|infer|know)\b"
_FOUND_OUT = (
    r"(?:determined|answered|told|known|inferred|found|established|confirmed|verified|deduced|said|"
    r"identified)\b"
)
_HAS = r"(?:has|have|contains?|provides?|gives?|offers?|includes?|holds?|makes?|made|shows?)"
_THERE_IS = (
    rf"(?:there (?:is|was|are|were|seems to be)|(?:i|we|it|they) {_HAS}|{_RECORD} {_HAS}"
    r"|i (?:see|find|found|can (?:see|find)|could find))"
)
_IS = r"(?:is|are|was|were|has|have|has been|have been)"
_DO_NOT = r"(?:do|does|did|has|have) not"
_UNKNOWN = r"(?:unknown|unclear|unspecified|undisclosed|undetermined)"

_ABSTAINING = [
    re.compile(pattern)
    for pattern in (
        # Not mentioned. Information not available. It is unclear whether ... N/A.
        (
            r"^(?:(?:it|that|this|which|the answer|they) (?:is|are|was|were) |answer |information )?"
            rf"(?:not {_TOLD}|not (?:sure|certain|answerable|applicable)|{_UNKNOWN}|unsure|unanswerable"
            rf"|n\.?/?a\.?|idk|no (?:idea|clue|answer)|(?:none|nothing) {_TOLD}){_TAIL}"
        ),
        # There is no information ... Not enough context ... The context holds no mention of ...
        rf"^(?:{_THERE_IS} )?(?:no|not any|not enough|not sufficient|insufficient) {_NO_INFO}",
        # I do not have any information ... The conversation does not contain details ...
        (
            rf"^(?:i|we|it|they|{_RECORD}) (?:do|does|did|can|could) not "
            rf"(?:have|contain|provide|include|give|offer|hold|see|find|make) {_NO_INFO}"
        ),
        # I don't know. I can't find ... I'm not sure. Unable to determine ...
        (
            r"^(?:i )?(?:do|did|can|could|would) not (?:be able to )?(?!know how to)"
            rf"(?:remember|see any\w*|have (?:(?:an|the|that|any) )?(?:answer|idea|clue)|{_FIND_OUT})"
        ),
        r"^i (?:am|was) (?:not (?:sure|certain|aware|able)|unsure|uncertain|unaware|unable)\b",
        rf"^(?:(?:un|not )able to|there is no way to) {_FIND_OUT}",
        r"^i have no (?:idea|clue|knowledge|memory|record|recollection|way)\b",
        # It cannot be determined. It is impossible to say.
        rf"\b(?:can|could) not be {_FOUND_OUT}",
        rf"^it (?:is|was) (?:impossible|(?:not possible|hard|difficult) )to {_FIND_OUT}",
        rf"^{_RECORD}(?: \S+){{0,3}} (?:is|are|was|were) (?:not (?:enough|sufficient)|insufficient)\b",
        # Her cat's name is not mentioned in ... The date remains unknown.
        rf"\b{_IS} (?:not|never)(?: been)? {_TOLD}{_TAIL}",
        rf"\b(?:is|are|was|were|remains?) {_UNKNOWN}{_TAIL}",
        # No date is given. No specific date mentioned. Nothing in the conversation ...
        rf"^(?:there is )?(?:no|none|nothing|neither)\b.{{0,200}}? (?:{_IS} )?{_TOLD}{_TAIL}",
        rf"^(?:there is )?nothing {_IN_RECORD}",
        # The conversation doesn't say. They did not mention ... Neither of them says ...
        rf"^(?:{_RECORD}|it|they)(?: [^,]{{0,60}}?)? {_DO_NOT} {_TELL}",
        rf"^(?:{_RECORD} never|(?:neither [^,]{{1,60}}?|nobody|no one)) {_TELL}",
        # Caroline never mentions a cat. Melanie does not say what ...
        rf"^(?:\S+ ){{1,4}}(?:{_DO_NOT}|never) (?:mention|specif|disclos)",
        rf"^(?:\S+ ){{1,4}}(?:{_DO_NOT}|never) {_TELL} (?:{_WH}|any)",
        # The answer is not in the conversation.
        rf"^(?:the answer|that|this|it) (?:is|was) not (?:part of|present|{_IN_RECORD})",
    )
]
_IDLE = re.compile(
    r"(?:(?:i am )?(?:sorry|afraid)\b|i apologi[sz]e\b|(?:no|nope|well|hmm+|ok|okay|so)$|please\b|"
    r"let me know\b|feel free\b|(?:could|can|would) you\b|do you (?:have|know|want|mean)\b|"
    r"if (?:you|there)\b|you (?:may|might|can|could|would)\b|i need\b|"
    r"i (?:would|will|can|could) (?:need|be|help|only|require|like)\b|"
    r"more (?:information|context|details)\b|(?:as for|regarding|concerning|whether)\b)"
)
_REMARK = re.compile(
    rf"(?:while\b|(?:{_RECORD}|(?:it|they|both|the speakers?) (?:only|just|merely))(?: [^,]{{0,40}}?)? "
    rf"(?:(?:only|just|merely|mainly|does|do) )?(?:{_TELL}|discusses|focus(?:es)?|is about)"
    r"|the only (?:information|details?|mention)\b)"
)
_OPENING = re.compile(
    r"^\s*(?:(?:well|so|therefore|thus|hence|and|also|since|because|as|given that|as such|in short|honestly|"
    r"to my knowledge|as far as i (?:know|can tell)|i am (?:sorry|afraid)|i apologi[sz]e|sorry|"
    r"it (?:seems|appears)|i (?:think|believe))(?: that)?\b[\s,:]+"
    r"|(?:no|nope|regarding [^,]{1,120}|as (?:for|to) [^,]{1,120}),\s*"
    r"|(?:based (?:up)?on|according to|from|in|within|per|given|going by|looking at|after reviewing|"
    rf"judging by) (?:\S+ ){{0,4}}?{_NOUN}"
    r"(?: (?:provided|available|above|given|i have|between [^,]{1,80}))?(?:,|$)\s*)"
)
