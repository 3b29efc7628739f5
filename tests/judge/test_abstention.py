"""An answer abstains by what its clauses do, not by a phrase that stands in it somewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.judge.abstention import abstains, holds_trap, read_abstention

any_text = st.text(st.characters())

ABSTAINS = [
    "Not mentioned.",
    "Not mentioned in the conversation.",
    "NOT MENTIONED",
    "**Not mentioned**",
    "_Not mentioned_",
    '"Not mentioned"',
    "Not stated explicitly.",
    "Not specified",
    "N/A",
    "n/a.",
    "Unknown.",
    "no info",
    "No information available",
    "Information not available",
    "No idea",
    "I don't know",
    "I don\u2019t know.",
    "dont know",
    "I'm not sure.",
    "I have no idea.",
    "I have no memory of that.",
    "I don't recall.",
    "I cannot find that in the conversation.",
    "I\u2019m unable to determine that.",
    "I do not have that information.",
    "Sorry, I don't know that.",
    "The answer is unknown.",
    "Answer: Not mentioned",
    "(a) Not mentioned in the chat",
    "It doesn't say.",
    "They didn't mention it.",
    "The conversation doesn't say",
    "You did not mention your job.",
    "There is no information about Priya's kiln.",
    "There is no information about her kiln, oven, or stove.",
    "There is no record of Bram visiting Porto.",
    "There is no evidence that Bram bought a kayak.",
    "There's not enough information.",
    "Insufficient information",
    "No relevant information was found.",
    "No specific date is mentioned.",
    "No specific date mentioned.",
    "No memories found.",
    "The provided context does not contain information about Bram's hobby.",
    "The memory does not include any details about that.",
    "The name of the kiln that Priya bought is not mentioned in the conversation.",
    "It is not mentioned that Priya bought a kiln",
    "It's unclear from the context.",
    "This cannot be determined from the given information.",
    "Can't be determined.",
    "I do not have enough information to answer this question.",
    "Priya never mentions a kiln.",
    "Priya does not mention having a kiln.",
    "Neither Priya nor Bram mentions a kiln.",
    "Nothing in the conversation indicates this.",
    "No, there is no mention of that in the chat.",
    "I'm sorry, but I don't have any information about that.",
    "Based on the conversation, there is no information about Priya's kiln.",
    "From the chat history, it is not clear whether she bought it.",
    "Although Bram has an oven, there is no information about a kiln.",
    "There is no mention of Priya buying a kiln. The conversation only discusses her oven.",
    "Unfortunately, the conversation does not specify when. Let me know if you need anything else!",
]

SAYS_SOMETHING = [
    "",
    "  \n ",
    "Porto",
    "No",
    "Yes",
    "None",
    "Nothing",
    "No one",
    "The unknown artist is Rembrandt",
    "Unknown Pleasures",
    "Not mentioned directly, but probably Porto",
    "Porto (not mentioned directly)",
    "Not sure, maybe Porto",
    "I don't know. It was Porto.",
    "Not mentioned. Porto.",
    "Not known for singing",
    "He was not given a medal",
    "She did not know how to swim",
    "She hadn't told her mother",
    "Her mum didn't say goodbye",
    "I don't own a kiln",
    "She has no memory problems",
    "Not hard; water them twice",
    "There is no place like home",
    "The vet said it's not so bad",
    "It was mentioned that she likes kilns",
    "in a hut not far from the pier",
    "A poster saying that nobody may swim",
    "He was unsure about moving, so he asked his brother",
    "She mentioned a pizza: not available on Mondays",
]


@pytest.mark.parametrize("answer", ABSTAINS)
def test_these_abstain(answer):
    assert abstains(answer)
    assert read_abstention(answer, None) == "held"


@pytest.mark.parametrize("answer", SAYS_SOMETHING)
def test_these_do_not(answer):
    assert not abstains(answer)
    assert read_abstention(answer, None) == "other"


@pytest.mark.parametrize(
    ("answer", "trap", "how"),
    [
        ("Priya bought a kiln", "bought a kiln", "fell"),
        ("She BOUGHT a **kiln**!", "bought a kiln", "fell"),
        ("It is not mentioned that Priya bought a kiln", "bought a kiln", "held"),
        (
            "There is no information that Priya bought a kiln, an oven, and a stove",
            "a kiln, an oven, and a stove",
            "held",
        ),
        ("There is no sign that she has a kiln, an oven, and a stove", "an oven", "held"),
        ("Not mentioned directly, but probably Porto", "Porto", "fell"),
        ("Not mentioned directly, but probably Porto", "Leiden", "other"),
        ("Not mentioned. The conversation only says that Bram bought a kiln.", "bought a kiln", "fell"),
        ("Not mentioned. The conversation only says that Bram bought a kiln.", "an oven", "held"),
        ("She painted. She rowed and she baked.", "painted, rowed and baked", "fell"),
        ("It was 2023-05-07", "7 May 2023", "fell"),
        ("8 May 2023, I think", "7 May 2024", "other"),
        ("2", "two", "fell"),
        ("Yes", "Yes", "fell"),
        ("No", "No", "fell"),
        ("No", "Yes", "other"),
        ("Bram, not Priya", "a kiln", "other"),
        ("", "a kiln", "other"),
        (" \t\n", "a kiln", "other"),
        ("Not mentioned", "Not mentioned", "held"),
        ("I don\u2019t know", "the", "held"),
        ("Something about the kiln and her life", "the", "other"),
        ("no idea", "", "held"),
    ],
)
def test_how_an_unanswerable_question_was_met(answer, trap, how):
    assert read_abstention(answer, trap) == how


@pytest.mark.parametrize(
    "trap", ["a red kiln", "kiln, oven", "two weeks", "7 May 2023", "Yes", "she was proud of him"]
)
def test_the_trap_itself_always_falls_and_denying_it_never_does(trap):
    assert read_abstention(trap, trap) == "fell"
    assert read_abstention(f"There is no information about {trap.removeprefix('she was ')}", trap) == "held"


def test_an_answer_holds_the_trap_only_outside_what_it_denies():
    assert holds_trap("a kiln, of course", "kiln")
    assert not holds_trap("there is no mention of a kiln", "kiln")
    assert not holds_trap("", "kiln")


@given(any_text, st.none() | any_text)
def test_any_text_gets_one_of_the_three_and_agrees_with_abstains(answer, trap):
    how = read_abstention(answer, trap)
    assert how in ("held", "fell", "other")
    if how == "held":
        assert abstains(answer)


@given(
    st.lists(
        st.sampled_from(
            ["not", "mentioned", "no", "information", "the conversation", "is", ", it", "while", "."]
        )
    )
)
def test_salad_of_cue_words_never_raises(words):
    assert abstains(" ".join(words)) in (True, False)


@pytest.mark.parametrize(
    "piece", ["no ", "not mentioned ", "the conversation ", "it is not ", ", it", "in the ", "so "]
)
def test_a_very_long_answer_is_read_in_linear_time(piece):
    # 50,000 characters; a rule that backtracks quadratically would run into the suite's time-out.
    assert abstains(piece * (50_000 // len(piece))) in (True, False)
