"""A small benchmark in MemoryStress' format, made up for these tests: four sessions, two facts, a change."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]

BEES = "Ines keeps three beehives on the roof of the school"
PETREL = "The rowing boat is called Petrel"
HERON = "The rowing boat has been renamed Heron"


def turns(*texts: str) -> list[Record]:
    """Turns of user and assistant in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def fact(fact_id: str, content: str, session: str, **fields: Any) -> Record:
    """A fact that is planted in a session and mentioned nowhere else."""
    return {
        "fact_id": fact_id,
        "content": content,
        "category": "personal_info",
        "phase_planted": 1,
        "session_planted": session,
        "simulated_date": "2024-01-01",
        "importance": 3,
        "mention_count": 1,
        "mention_sessions": [session],
        **fields,
    }


def session(number: int, phase: int, agent: str, said: list[Record], **fields: Any) -> Record:
    """The session ``S<number>``, a day after the one before."""
    return {
        "session_id": f"S{number}",
        "session_index": number - 1,
        "phase": phase,
        "simulated_date": f"2024-01-{number:02}T09:30:00",
        "topic": f"topic-of-{number}",
        "agent_id": agent,
        "turns": said,
        **fields,
    }


def question(number: int, text: str, answer: object, facts: list[str], **fields: Any) -> Record:
    """The question ``Q<number>``."""
    return {
        "question_id": f"Q{number}",
        "question": text,
        "answer": answer,
        "target_fact_ids": facts,
        **fields,
    }


def benchmark() -> Record:
    """A benchmark without a defect; change what the test is about."""
    return {
        "facts": [
            fact("F1", BEES, "S1", mention_count=2, mention_sessions=["S1", "S3"]),
            fact("F2", PETREL, "S2", phase_planted=2, contradiction_chain="C1"),
        ],
        "contradiction_chains": [
            {
                "chain_id": "C1",
                "original_fact_id": "F2",
                "versions": [
                    {"version": 1, "content": PETREL, "session_id": "S2", "phase": 2},
                    {"version": 2, "content": HERON, "session_id": "S4", "phase": 3},
                ],
                "final_ground_truth": "Heron",
            }
        ],
        "sessions": [
            session(1, 1, "agent_a", turns(f"By the way, {BEES}.", "That must be quite a view!")),
            session(
                2, 2, "agent_b", turns("Good morning to you.", "Hello!", f"{PETREL}, you know.", "I see.")
            ),
            session(3, 2, "agent_a", turns("As I said, " + BEES.lower() + "!", "So you did.")),
            session(4, 3, "agent_b", turns(f"News: {HERON}.", "A fine name for a boat.")),
        ],
        "questions": [
            question(1, "What does Ines keep on the roof?", "beehives", ["F1"], age_sessions=1),
            question(
                2,
                "What is the boat called?",
                "Heron",
                ["F2"],
                target_chain_id="C1",
                phase_asked=3,
                question_type="contradiction_resolution",
                agent_scope="agent_b",
            ),
            question(
                3,
                "How many hives are there?",
                3,
                ["F1"],
                phase_asked=2,
                question_type="cross_agent_recall",
                agent_scope="agent_b",
            ),
            question(
                4,
                "Which boat did the user name?",
                "Petrel",
                ["F2"],
                phase_asked=4,
                question_type="cold_start_recall",
                cold_start=True,
                agent_scope="agent_b",
                answer_detail="It had this name first.",
            ),
        ],
    }
