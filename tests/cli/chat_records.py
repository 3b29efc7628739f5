"""A small record in LoCoMo's format, made up for these tests, and what can be said of it."""

from __future__ import annotations


def chat() -> dict:
    """One conversation in LoCoMo's format: three dangling references, and a blank turn."""
    return {
        "sample_id": "allotment",
        "conversation": {
            "speaker_a": "Ruth",
            "speaker_b": "Tarek",
            "session_1_date_time": "9:15 am on 3 March, 2024",
            "session_1": [
                {"speaker": "Ruth", "dia_id": "D1:1", "text": "The pump handle came off in my hand."},
                {"speaker": "Tarek", "dia_id": "D1:2", "text": " "},
            ],
            "session_2_date_time": "6:40 pm on 21 April, 2024",
            "session_2": [{"speaker": "Tarek", "dia_id": "D2:1", "text": "I welded it on again on Friday."}],
        },
        "qa": [
            {
                "question": "What broke, and who mended it?",
                "answer": "the pump handle; Tarek",
                "evidence": ["D1:1", "D2:1"],
                "category": 1,
            },
            {
                "question": "When was it mended?",
                "answer": "19 April 2024",
                "evidence": ["D2:1", "D7:4"],
                "category": 2,
            },
            {
                "question": "Would Ruth buy a new pump?",
                "answer": "No",
                "evidence": ["D", "D1:9"],
                "category": 3,
            },
            {
                "question": "What did Ruth weld?",
                "adversarial_answer": "the pump",
                "evidence": ["D2:1"],
                "category": 5,
            },
        ],
    }
