"""Tests of one's own beside the benchmark: each runs once for each question of the dataset."""

from pytest_himga import Case, Context, Recalled


def test_nothing_comes_from_the_future(himga_case: Case, himga_context: Context) -> None:
    dates = {session.date_str for session in himga_case.history}
    assert {found.date_str for found in himga_context.recalled or ()} <= dates


def test_asking_twice_gives_the_same(himga_case: Case, himga_memory: object) -> None:
    question = himga_case.question.question
    first: list[Recalled] = himga_memory.retrieve(question)
    assert himga_memory.retrieve(question) == first
