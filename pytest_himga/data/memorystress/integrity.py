"""What does not add up in a MemoryStress benchmark: dataset warnings, never errors.

The published generator plants no update of a chain, asks contradiction questions about the original fact
and calls questions cross-agent whose asker was told the answer itself. Such questions are asked and scored
on their ``answer`` all the same; whoever reads the numbers should know how many there are, and which.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_himga.data.files import shown
from pytest_himga.data.memorystress.planting import (
    LAST_CHECKPOINT,
    Planting,
    sessions_of,
    version_session,
    version_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_himga.data.memorystress.model import BenchmarkData, Question

#: How many ids a sentence names before it only counts.
MOST_NAMED = 5
_CROSS_AGENT, _COLD_START = "cross_agent_recall", "cold_start_recall"


def problems(data: BenchmarkData, planting: Planting | None = None) -> list[str]:
    """Say what does not add up, in one sentence for each kind, with the count and the first ids.

    Checked are duplicate ids; ids of facts, sessions and chains that do not exist; facts and versions
    that were never planted; answers that are not their chain's ``final_ground_truth``; questions asked
    before their fact is planted, at no checkpoint, or cross-agent and cold by name only; and the totals
    in ``stats`` and ``phases``. Nothing is changed and nothing is raised. ``planting`` is that of ``data``,
    where it is known already.
    """
    planting = planting or Planting(data)
    return [
        *_duplicates(data),
        *_unknown_ids(data, planting),
        *_never_planted(data, planting),
        *_questions(data, planting),
        *_totals(data),
    ]


def gathered(ids: Iterable[str], noun: str, rest: str, effect: str = "") -> Iterator[str]:
    """Make one sentence of all the ids that have one problem; none if there is no id.

    >>> list(gathered(["F1", "F2"], "fact", "never planted", "nobody can know them"))
    ['2 facts never planted (F1, F2); nobody can know them']
    """
    found = list(ids)
    if found:
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        named = ", ".join(found[:MOST_NAMED]) + more
        text = f"{len(found)} {noun}{'' if len(found) == 1 else 's'} {rest} ({named})"
        yield f"{text}; {effect}" if effect else text


def type_name(raw: str) -> str:
    """The name of a question type; the file may spell it with hyphens."""
    return raw.strip().lower().replace("-", "_")


# -- ids ---------------------------------------------------------------------------------------------


def _duplicates(data: BenchmarkData) -> Iterator[str]:
    first = "the first of each counts"
    everything: list[tuple[str, list[str], str]] = [
        ("fact", [fact.fact_id for fact in data.facts], first),
        ("chain", [chain.chain_id for chain in data.contradiction_chains], first),
        ("session", [session.session_id for session in data.sessions], "none is left out"),
        ("question", [question.question_id for question in data.questions], "none is left out"),
    ]
    for noun, ids, effect in everything:
        again = (one for one, times in Counter(ids).items() if times > 1)
        yield from gathered(again, f"{noun} id", "used more than once", effect)


def _unknown_ids(data: BenchmarkData, planting: Planting) -> Iterator[str]:
    facts, chains = planting.facts, planting.chains
    sessions = {session.session_id for session in data.sessions}
    yield from gathered(
        (fact.fact_id for fact in data.facts if fact.session_planted not in sessions),
        "fact",
        "whose session_planted is no session",
    )
    yield from gathered(
        (fact.fact_id for fact in data.facts if not sessions.issuperset(fact.mention_sessions)),
        "fact",
        "whose mention_sessions are not all sessions",
    )
    yield from gathered(
        (fact.fact_id for fact in data.facts if (fact.contradiction_chain or None) not in {None, *chains}),
        "fact",
        "whose contradiction_chain is no chain",
    )
    yield from gathered(
        (chain.chain_id for chain in data.contradiction_chains if chain.original_fact_id not in facts),
        "chain",
        "whose original_fact_id is no fact",
    )
    yield from gathered(
        (one.session_id for one in data.sessions if not facts.keys() >= set(one.planted_fact_ids)),
        "session",
        "whose planted_fact_ids are not all facts",
    )
    yield from gathered(
        (one.question_id for one in data.questions if not facts.keys() >= set(one.target_fact_ids)),
        "question",
        "whose target_fact_ids are not all facts",
    )
    yield from gathered(
        (one.question_id for one in data.questions if (one.target_chain_id or None) not in {None, *chains}),
        "question",
        "whose target_chain_id is no chain",
    )


# -- facts and chains --------------------------------------------------------------------------------


def _never_planted(data: BenchmarkData, planting: Planting) -> Iterator[str]:
    missing = [
        fact.fact_id for fact in data.facts if not planting.is_planted(fact.content, sessions_of(fact))
    ]
    yield from gathered(missing, "fact", "never planted", "such a fact is no evidence of any question")
    if not planting.is_quoted:
        reworded = (
            fact.fact_id
            for fact in data.facts
            if fact.fact_id not in missing
            and not all(planting.stands_in(fact.content, one) for one in planting.known_sessions_of(fact))
        )
        yield from gathered(
            reworded, "fact", "told in other words", "known by session only, and any turn of it is evidence"
        )
    yield from _versions(data, planting)


def _versions(data: BenchmarkData, planting: Planting) -> Iterator[str]:
    never: list[str] = []
    nowhere = 0
    for chain in data.contradiction_chains:
        for number, version in enumerate(chain.versions, start=1):
            text = version_text(version)
            if not planting.is_planted(text, [version_session(version)]):
                never.append(f"{chain.chain_id} version {version.get('version', number)}")
                nowhere += planting.is_quoted and not planting.stands_anywhere(text)
    effect = f"the text of {nowhere or 'none'} of them stands in no session" if planting.is_quoted else ""
    if len(never) == 1 and effect:
        effect = f"its text stands in {'no' if nowhere else 'another'} session"
    yield from gathered(never, "chain version", "never planted", effect)


# -- questions ---------------------------------------------------------------------------------------


def _questions(data: BenchmarkData, planting: Planting) -> Iterator[str]:
    asked = data.questions
    yield from gathered(
        (one.question_id for one in asked if _disagrees(one, planting)),
        "question",
        "whose answer is not the chain's final_ground_truth",
        "the answer is what is scored",
    )
    yield from gathered(
        (one.question_id for one in asked if _comes_too_early(one, planting)),
        "question",
        "about a fact that is planted after the checkpoint",
        "nobody can know it then",
    )
    yield from gathered(
        (one.question_id for one in asked if _asks_itself(one, planting)),
        "question",
        f"of type {_CROSS_AGENT} from the agent that was told the answer",
        "such a question does not cross agents",
    )
    yield from gathered(
        (
            one.question_id
            for one in asked
            if type_name(one.question_type) == _COLD_START and not one.cold_start
        ),
        "question",
        f"of type {_COLD_START} without cold_start",
        "the running instance is asked",
    )
    yield from gathered(
        (one.question_id for one in asked if not 1 <= one.phase_asked <= LAST_CHECKPOINT),
        "question",
        f"whose phase_asked is not 1 to {LAST_CHECKPOINT}",
    )


def _disagrees(question: Question, planting: Planting) -> bool:
    chain = planting.chains.get(question.target_chain_id or "")
    truth = chain.final_ground_truth.strip() if chain is not None else ""
    return bool(truth) and str(question.answer).strip() != truth


def _comes_too_early(question: Question, planting: Planting) -> bool:
    before = planting.asked_after(question)
    facts = (planting.facts[one] for one in question.target_fact_ids if one in planting.facts)
    planted = (
        planting.places[fact.session_planted] for fact in facts if fact.session_planted in planting.places
    )
    return any(min(places) >= before for places in planted)


def _asks_itself(question: Question, planting: Planting) -> bool:
    """Whether every fact of a cross-agent question was told to the asking agent itself."""
    if type_name(question.question_type) != _CROSS_AGENT:
        return False
    facts = [planting.facts[one] for one in question.target_fact_ids if one in planting.facts]
    told = [planting.agents_told(fact) for fact in facts]
    return bool(told) and all(question.agent_scope in agents for agents in told)


# -- totals ------------------------------------------------------------------------------------------


def _totals(data: BenchmarkData) -> Iterator[str]:
    counts = {
        "total_facts": len(data.facts),
        "total_sessions": len(data.sessions),
        "total_questions": len(data.questions),
        "total_chains": len(data.contradiction_chains),
    }
    for name, count in counts.items():
        if name in data.stats and data.stats[name] != count:
            yield f"stats.{name} is {shown(data.stats[name])}, and the file has {count}"
    phases = Counter(str(session.phase) for session in data.sessions)
    for name, phase in data.phases.items():
        said = _length(phase)
        if said is not None and said != phases[name]:
            yield f"phases.{name}.session_range has {said} sessions, and the phase has {phases[name]}"
    # the last checkpoint brings no sessions, and no file lists it
    yield from gathered(
        sorted(phases.keys() - data.phases.keys()) if data.phases else [], "phase", "not in phases"
    )


def _length(phase: Any) -> int | None:
    """How many sessions a phase's ``session_range`` says that it has, counting both ends."""
    match phase:
        case {"session_range": [int(first), int(last)]}:
            return last - first + 1
    return None
