"""Keys and passwords are shown nowhere: not if a server says them back, not in logs, locals, files or errors."""

from __future__ import annotations

import base64
import importlib
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from llm_server import LLMServer, body, completion, error, status, text

# Imported here, because pytester forgets what a run imports, and these take a second each time.
for name in (
    "openai",
    "openai.resources.chat",
    "aiohttp",
    "pytest_himga.llm.openai_chat",
    "pytest_himga.llm.cache",
):
    importlib.import_module(name)
for name in ("answer.llm", "engine.llms", "judge.llm", "judge.llm_profile", "answer.answer_profile"):
    importlib.import_module(f"pytest_himga.{name}")

#: What no way of writing a secret changes, and what is never said for another reason: it is looked for.
CORE, JUDGE_CORE = "4711tulips4711", "0815hedgehog0815"
KEY = f'sk/of+{CORE}"&%'
JUDGE_KEY = f"sk-proj-{JUDGE_CORE}"

USUAL = {"answering": "ANSWER: twelve", "judging": '{"reason": "it is so", "verdict": "CORRECT"}'}
LLMS = ("--himga-answerer=llm", "--himga-model=answering", "--himga-judge-model=judging")
#: All that makes pytest talk.
LOUD = (
    *("-vv", "-rA", "--showlocals", "--tb=long", "--log-level=DEBUG", "--log-cli-level=DEBUG"),
    *("--log-file=log.txt", "--log-file-level=DEBUG", "--junitxml=junit.xml", "-ojunit_logging=all"),
    *("-olog_cli=true", "--durations=0"),
)

OWN_TESTS = """
def test_the_answer(himga_case, himga_answer, himga_context, request):
    options = vars(request.config.option)
    assert himga_answer == himga_case.question.gold, (himga_answer, himga_context)

def test_the_verdict(himga_case, himga_verdict, pytestconfig):
    words = himga_verdict.reason
    assert not himga_verdict

def test_the_judge(himga_case, himga_judge, himga_context, himga_memory, caplog):
    verdict = himga_judge.judge(himga_case, "a dozen", himga_context)
    inside, records = vars(himga_judge), caplog.records
    assert verdict is None

def test_a_judge_that_is_asked_what_it_cannot_take(himga_case, himga_judge):
    himga_judge.judge(himga_case, object(), None)
"""


def forms(secret: str) -> list[str]:
    """The ways in which a server may write what it was sent."""
    whole = base64.b64encode(secret.encode()).decode()
    return [secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret), whole]


def said_back(handler) -> str:
    """All that the server can make of the header that it was opened with."""
    header = handler.asked.headers["authorization"]
    kind, _, token = header.partition(" ")
    secrets = [token]
    if kind == "Basic":
        pair = base64.b64decode(token).decode()
        secrets += [pair, pair.partition(":")[2]]
    return " and ".join([header, *(form for secret in secrets for form in forms(secret))])


def judged(reason: str) -> str:
    return json.dumps({"reason": reason, "verdict": "WRONG"})


def escaped(said: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in said)


#: Where a server may say it back, of which a run outlives each.
ECHOES = {
    "bad request": lambda said: status(400, error(f"who is {said}?", param=said, code=said)),
    "detail": lambda said: status(422, {"detail": [{"loc": ["body", said], "msg": said}]}),
    "broken server": lambda said: status(500, error(said), Retry_After="0"),
    "page": lambda said: status(500, f"<html><title>{said}</title>", Retry_After="0"),
    "error behind 200": lambda said: body({"error": {"message": said, "code": said}}),
    "text behind 200": lambda said: body(said),
    "list behind 200": lambda said: body([said]),
    "refusal": lambda said: text(None, refusal=said),
    "reply": lambda said: text(f"ANSWER: {said}"),
    "reply in parts": lambda said: body(completion([{"type": "text", "text": f"ANSWER: {said}"}])),
    "reasoning": lambda said: text(f"<think>{said}</think> ANSWER: {said}", reasoning_content=said),
    "reason": lambda said: text(judged(said)),
    "escaped reason": lambda said: text(judged("SAID").replace("SAID", escaped(said))),
    "verdict": lambda said: text(json.dumps({"reason": "so", "verdict": said})),
    "field": lambda said: text(json.dumps({"reason": "so", "verdict": "WRONG", said: said})),
    "headers": lambda said: body(
        completion(judged("ANSWER: it is so")), X_Request_Id=said, Set_Cookie=f"k={said}", X_Key=said
    ),
    "bad headers": lambda said: status(
        500, error("no"), X_Request_Id=said, Retry_After="0", Location=said, Set_Cookie=f"\x01{said}"
    ),
    "model": lambda said: body(completion(judged("ANSWER: it is so"), model=said)),
    "finish": lambda said: body(completion(judged("ANSWER: it is so"), finish=said)),
}


@pytest.fixture(scope="module")
def server():
    with LLMServer() as server:
        yield server


@pytest.fixture
def talker(server, project, monkeypatch):
    """The server, which says back what it hears as the question asks it to: "What does the page tell judging?"."""

    def reply(asked):
        whom = asked["model"]
        told = re.search(r"What does the ([a-z0-9 ]+) tell (\w+)\?", json.dumps(asked["messages"]))
        if told is None or told[2] != whom:
            return USUAL[whom]
        return lambda handler: ECHOES[told[1]](said_back(handler))(handler)

    server.reply = reply
    server.asked.clear()
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.pytester.makeini("[pytest]\npythonpath = .\naddopts = -p pytest_himga.plugin -p xdist.plugin\n")
    return server


def ask(project, questions: list[str]) -> None:
    """Make a dataset of these questions."""
    turns = [{"speaker": "Ada", "dia_id": "D1:1", "text": "I planted twelve tulips."}]
    chat = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "9:15 am on 3 March, 2024",
        "session_1": turns,
    }
    qa = [{"question": one, "answer": "twelve", "evidence": ["D1:1"], "category": 4} for one in questions]
    project.write_data("mini", [{"sample_id": "garden", "conversation": chat, "qa": qa}])


def every(*whom: str) -> list[str]:
    return [f"What does the {how} tell {who}?" for who in whom for how in ECHOES]


def leaks(project, result, *more: str, but: tuple[str, ...] = ()) -> list[str]:
    """Where any of the secrets is to be seen, with what stands around it."""
    places = {"terminal": result.stdout.str() + result.stderr.str()}
    for path in project.path.rglob("*"):
        if path.is_file() and path.name not in but:
            places[str(path.relative_to(project.path))] = path.read_bytes().decode("latin-1")
    keys = [base64.b64encode(key.encode()).decode().rstrip("=") for key in (KEY, JUDGE_KEY)]
    looked_for = "|".join(
        map(re.escape, (CORE, JUDGE_CORE, escaped(CORE), escaped(JUDGE_CORE), *keys, *more))
    )
    return [
        f"{place}: {content[max(found.start() - 150, 0) : found.end() + 60]}"
        for place, content in places.items()
        for found in re.finditer(looked_for, content)
    ]


def test_whatever_the_servers_say_back(talker, project, monkeypatch):
    monkeypatch.setenv("HIMGA_API_KEY", KEY)
    monkeypatch.setenv("HIMGA_JUDGE_API_KEY", JUDGE_KEY)
    ask(project, every("answering", "judging"))
    project.write("test_own.py", OWN_TESTS)
    result = project.run(*LLMS, f"--himga-base-url={talker.url}", *LOUD)
    print(len(talker.asked), result.ret, result.duration)
    found = leaks(project, result)
    for f in found[:30]:
        print("LEAK", f)
        print("----")
    print(len(found))
    for r in project.results():
        print(r["question"], r["verdict"], "|", r["reason"][:150], "|", r["answer"] and r["answer"][:100])
    assert found == []
