"""Keys and passwords are shown nowhere: not if a server says them back, not in logs, locals, files or errors."""

from __future__ import annotations

import base64
import importlib
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from llm_server import LLMServer, body, completion, error, status, text

from pytest_himga.cli import main

# Imported here, because pytester forgets what a run imports, and openai takes half a second each time.
for name in ("openai.resources.chat", "aiohttp", "pytest_himga.engine.llms", "pytest_himga.llm.cache_file"):
    importlib.import_module(name)
for name in ("answer.llm", "answer.answer_profile", "judge.llm", "judge.llm_profile", "llm.openai_chat"):
    importlib.import_module(f"pytest_himga.{name}")

#: What is looked for: no way of writing a secret changes it, and nobody says it for another reason.
CORE, JUDGE_CORE = "4711tulips4711", "0815hedgehog0815"
KEY, JUDGE_KEY = f'sk/of+{CORE}"&%', f"sk-proj-{JUDGE_CORE}"

ROLES = ("answering", "judging")
LLMS = ("--himga-answerer=llm", "--himga-model=answering", "--himga-judge-model=judging")
#: All that makes pytest talk.
LOUD = (
    *("-vv", "-rA", "--showlocals", "--tb=long", "--durations=0", "-olog_cli=true"),
    *("--log-level=DEBUG", "--log-cli-level=DEBUG", "--log-file=log.txt", "--log-file-level=DEBUG"),
    *("--junitxml=junit.xml", "-ojunit_logging=all"),
)

OWN_TESTS = """
def test_the_answer(himga_case, himga_answer, himga_context, request):
    config = request.config
    assert himga_answer == himga_case.question.gold, (himga_answer, himga_context)

def test_the_verdict(himga_case, himga_verdict, pytestconfig):
    words = himga_verdict.reason
    assert not himga_verdict

def test_the_judge(himga_case, himga_judge, himga_context, himga_memory, caplog):
    verdict = himga_judge.judge(himga_case, "a dozen", himga_context)
    inside, records = vars(himga_judge), caplog.records
    assert verdict is None

def test_a_judge_that_breaks(himga_case, himga_judge):
    himga_judge.judge(himga_case, object(), None)
"""


# -- servers that say back what they hear -----------------------------------------------------------


def forms(secret: str) -> list[str]:
    """The ways in which a server may write what it was sent."""
    whole = base64.b64encode(secret.encode()).decode()
    return [secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret), whole]


def said_back(handler) -> str:
    """All that a server can make of the header that it was opened with."""
    header = handler.asked.headers["authorization"]
    kind, _, token = header.partition(" ")
    secrets = [token]
    if kind == "Basic":
        pair = base64.b64decode(token).decode()
        secrets = [pair, pair.partition(":")[2]]
    return " and ".join([header, *(form for secret in secrets for form in forms(secret))])


def verdict(reason: str) -> str:
    return json.dumps({"reason": reason, "verdict": "WRONG"})


def escaped(said: str) -> str:
    r"""``said`` as JSON may write it: ``\u0073\u006b...``."""
    return "".join(f"\\u{ord(char):04x}" for char in said)


#: What either model can be read to say.
EITHER = json.dumps({"reason": "it is so", "verdict": "CORRECT"}) + "\nANSWER: twelve"
#: Where a server may say it back and be asked on.
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
    "reason": lambda said: text(verdict(said)),
    "escaped reason": lambda said: text(verdict("***").replace("***", escaped(said.split(" and ")[0]))),
    "verdict": lambda said: text(json.dumps({"reason": "so", "verdict": said})),
    "field": lambda said: text(json.dumps({"reason": "so", "verdict": "WRONG", said: said})),
    "headers": lambda said: body(completion(EITHER), X_Request_Id=said, Set_Cookie=f"k={said}", X_Key=said),
    "broken cookie": lambda said: body(completion(EITHER), X_Request_Id=said, Set_Cookie=f"k=\x01{said}"),
    "model": lambda said: body(completion(EITHER, model=said)),
    "finish": lambda said: body(completion(EITHER, finish=said)),
}
#: Where nobody is shown any of it.
UNSEEN = ("headers", "broken cookie", "model", "finish")


def reply(asked: dict) -> object:
    """Say it back in the way that the question asks for: "What does the page tell judging?"."""
    told = re.search(r"What does the ([a-z0-9 ]+) tell (\w+)\?", json.dumps(asked["messages"]))
    if told is None or told[2] != asked["model"]:
        return EITHER
    return lambda handler: ECHOES[told[1]](said_back(handler))(handler)


@pytest.fixture(scope="module")
def servers():
    """One that answers and one that judges."""
    with LLMServer(reply) as answering, LLMServer(reply) as judging:
        yield answering, judging


@pytest.fixture
def told(servers, project, monkeypatch):
    """Runs a project with those questions; what each server was asked is in ``servers``."""
    monkeypatch.setenv("HIMGA_API_KEY", KEY)
    monkeypatch.setenv("HIMGA_JUDGE_API_KEY", JUDGE_KEY)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    ini = "[pytest]\npythonpath = .\naddopts = -p pytest_himga.plugin -p xdist.plugin\n"
    project.pytester.makeini(ini)
    for server in servers:
        server.asked.clear()
        server.reply = reply

    def told(*args: str, ways=ECHOES, roles=ROLES, apart: bool = False, urls=None) -> pytest.RunResult:
        project.write_data(
            "mini", records([f"What does the {how} tell {who}?" for who in roles for how in ways])
        )
        answering, judging = urls or [server.url for server in servers]
        where = (f"--himga-base-url={answering}", f"--himga-judge-base-url={judging}")
        run = project.run_apart if apart else project.run
        return run(*LLMS, *where, *args)

    return told


def records(questions: list[str]) -> list[dict]:
    turns = [{"speaker": "Ada", "dia_id": "D1:1", "text": "I planted twelve tulips."}]
    date = {"session_1_date_time": "9:15 am on 3 March, 2024", "session_1": turns}
    qa = [{"question": one, "answer": "twelve", "evidence": ["D1:1"], "category": 4} for one in questions]
    return [
        {"sample_id": "garden", "conversation": {"speaker_a": "Ada", "speaker_b": "Ben"} | date, "qa": qa}
    ]


def leaks(project, *shown: str, secrets: tuple[str, ...] = (KEY, JUDGE_KEY), but: str = "") -> list[str]:
    """Where any secret stands in what was shown or in a file, with what is around it."""
    places = {"terminal": "\n".join(shown)}
    for path in project.path.rglob("*"):
        if path.is_file() and path.name != but:
            places[str(path.relative_to(project.path))] = path.read_bytes().decode("latin-1")
    cores = [re.escape(core) for core in (CORE, JUDGE_CORE)]
    in_base64 = [base64.b64encode(secret.encode()).decode()[:-4] for secret in secrets]
    looked_for = "|".join([*cores, *(re.escape(escaped(core)) for core in (CORE, JUDGE_CORE)), *in_base64])
    return [
        f"{place}: {content[max(found.start() - 150, 0) : found.end() + 60]}"
        for place, content in places.items()
        for found in re.finditer(looked_for, content)
    ]


def output(result: pytest.RunResult) -> str:
    return f"{result.stdout.str()}\n{result.stderr.str()}"


# -- keys --------------------------------------------------------------------------------------------


def test_whatever_two_servers_say_back_each_gets_its_own_key_and_nobody_sees_one(told, servers, project):
    result = told(*LOUD)

    assert leaks(project, output(result)) == []
    for server, key in zip(servers, (KEY, JUDGE_KEY), strict=True):
        assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {key}"}
        assert all("cookie" not in asked.headers for asked in server.asked)
    other = [CORE in json.dumps(asked.body) + str(asked.headers) for asked in servers[1].asked]
    assert not any(other)
    # ... and not because nothing was said.
    for record in project.results():
        how = re.fullmatch(r"What does the (.+) tell \w+\?", record["question"])[1]
        where = f"{record['reason']} {record['answer']}"
        assert ("***" in where) == (how not in UNSEEN), record
        if how in UNSEEN:
            assert record["verdict"] == "correct"


@pytest.mark.parametrize(("who", "number"), [("answering", 401), ("judging", 401), ("answering", 307)])
def test_a_server_that_lets_nobody_in_is_named_without_the_key(told, servers, project, who, number):
    server = servers[ROLES.index(who)]
    server.reply = lambda _body: (
        lambda handler: status(
            number, error(f"{said_back(handler)}"), Location=f"http://elsewhere?key={said_back(handler)}"
        )(handler)
    )
    result = told(*LOUD, ways=["reply"], roles=["nobody"])

    (record,) = project.results()
    assert (record["verdict"], record["stage"]) == ("unscored", "answer" if who == "answering" else "judge")
    assert f"{server.url} answered {number}" in record["reason"]
    assert "***" in record["reason"]
    assert leaks(project, output(result)) == []


def test_a_users_own_failing_tests_show_no_key_among_their_locals(told, project):
    project.write("test_own.py", OWN_TESTS)
    result = told(*LOUD, "-s", ways=["reason", "bad request"])

    shown = output(result)
    assert shown.count("himga_case = Case(") >= 4
    assert "verdict    = Verdict(value='wrong'" in shown
    assert "'object' object has no attribute" in shown
    assert leaks(project, shown) == []


@pytest.mark.slow
def test_two_workers_and_the_packages_own_log_show_no_key(told, project, monkeypatch):
    monkeypatch.setenv("OPENAI_LOG", "debug")
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    project.write("test_own.py", OWN_TESTS)
    result = told(*LOUD, "-n2", "-s", ways=["headers", "reply"], apart=True)

    shown = output(result)
    assert re.search(r"openai\._base_client.* HTTP Re", shown)
    assert "2 workers [" in shown
    assert leaks(project, shown) == []


def test_a_probe_of_the_judge_shows_no_key(told, servers, project):
    servers[1].reply = lambda _body: lambda handler: text(verdict(said_back(handler)))(handler)
    result = told(*LOUD, "--himga-judge-probe", ways=["reply"])

    assert len(servers[1].asked) > 50
    assert "rejects 25 of 25 right answers" in output(result)
    assert leaks(project, output(result)) == []


def test_calibrate_shows_no_key(told, servers, project, capsys, monkeypatch):
    monkeypatch.chdir(project.path)
    servers[1].reply = lambda _body: lambda handler: text(verdict(said_back(handler)))(handler)
    command = ["calibrate", "--judge=llm", "--judge-model=judging", f"--judge-base-url={servers[1].url}"]
    main([*command, "-v", "--json=out.json"])

    told = capsys.readouterr()
    assert "NOT fit for gating" in told.out
    assert {asked.headers["authorization"] for asked in servers[1].asked} == {f"Bearer {JUDGE_KEY}"}
    assert leaks(project, told.out, told.err) == []


def test_other_keys_of_the_environment_are_sent_to_nobody(told, servers, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, f"sk-none-of-yours-{name}")
    told(ways=["reply"])

    sent = [f"{asked.path} {asked.headers} {asked.body}" for server in servers for asked in server.asked]
    assert len(sent) == 4
    assert [one for one in sent if "none-of-yours" in one] == []


# -- a base URL with credentials ---------------------------------------------------------------------

PASSWORD = f'pump/{CORE}?"#&% @:'
USERINFO = f"ada%40home:{quote(PASSWORD, safe='')}"
JUDGE_USERINFO = f"ben:{JUDGE_CORE}"


def test_credentials_of_a_base_url_are_sent_as_basic_and_shown_nowhere(told, servers, project):
    project.write("test_own.py", OWN_TESTS)
    urls = [
        f"http://{userinfo}@127.0.0.1:{server.port}/v1/"
        for userinfo, server in zip((USERINFO, JUDGE_USERINFO), servers, strict=True)
    ]
    result = told(*LOUD, ways=["reply", "reason", "bad request", "page"], urls=urls)

    pairs = [f"ada@home:{PASSWORD}", JUDGE_USERINFO]
    for server, pair in zip(servers, pairs, strict=True):
        basic = f"Basic {base64.b64encode(pair.encode()).decode()}"
        assert {asked.headers["authorization"] for asked in server.asked} == {basic}
        assert {asked.path for asked in server.asked} == {"/v1/chat/completions"}
    shown = output(result)
    assert f"answering at {servers[0].url}," in shown
    assert leaks(project, shown, secrets=(*pairs, PASSWORD)) == []
    assert "home:" not in shown
    assert project.run_json()["models"]["judge"]["server"] == servers[1].url


@pytest.mark.parametrize(
    "url",
    [
        f"ftp://ada:{CORE}@127.0.0.1/v1",
        f"ada:{CORE}@127.0.0.1:8000/v1",
        f"http://ada:{CORE}@127.0.0.1:99999/v1",
        f"http://ada:p/{CORE}@127.0.0.1/v1",
        f"http://ada:p#{CORE}@127.0.0.1/v1",
        f"http://ada:p[{CORE}@127.0.0.1/v1",
        f"http://ada:{CORE}%40127.0.0.1:8000/v1",
        f"http://ada:{CORE}",
        f"http://127.0.0.1/v1?key={CORE}",
    ],
)
def test_a_bad_base_url_is_refused_without_its_password(told, project, servers, url):
    result = told("--showlocals", "--tb=long", "-vv", urls=(url, servers[1].url))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --himga-base-url: " in result.stderr.str()
    assert leaks(project, output(result)) == []


@pytest.mark.parametrize("where", ["HIMGA_JUDGE_BASE_URL", "OPENAI_BASE_URL", "ini"])
def test_nor_is_it_shown_where_the_url_stands_elsewhere(told, project, monkeypatch, where):
    url = f"http://ada:{CORE}@127.0.0.1:8000000/v1"
    if where == "ini":
        project.pytester.makeini(f"[pytest]\naddopts = -p pytest_himga.plugin\nhimga_base_url = {url}\n")
    else:
        monkeypatch.setenv(where, url)
    result = project.run(*LLMS, "--showlocals", "--tb=long", "-vv")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: " in result.stderr.str()
    assert leaks(project, output(result), but="tox.ini") == []


# -- options -----------------------------------------------------------------------------------------

BACKEND = """
class Memory:
    def __init__(self, **options):
        assert len(options) == 3
    def reset(self): pass
    def ingest(self, message): pass
    def retrieve(self, query): return []
"""


def test_a_backends_secret_options_are_masked_in_files(project):
    project.write("mem.py", BACKEND)
    secret = (f"api_key={CORE}", f"PASSWORD={CORE}", f"dsn=postgresql://ada:{CORE}@127.0.0.1/memories")
    options = [f"--himga-backend-option={one}" for one in secret]
    result = project.run("-vv", *options, backend="mem:Memory")

    assert project.run_json()["backend"]["options"] == {
        "api_key": "***",
        "PASSWORD": "***",
        "dsn": "postgresql://***@127.0.0.1/memories",
    }
    assert leaks(project, output(result)) == []


@pytest.mark.parametrize(
    ("option", "name"),
    [("model-option", "api_key"), ("model-option", "extra_headers"), ("judge-model-option", "Api-Key")],
)
def test_a_key_that_is_given_as_a_parameter_is_refused_and_not_shown(told, project, option, name):
    result = told(f"--himga-{option}={name}={CORE}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: --himga-{option}={name}=...: " in result.stderr.str()
    assert leaks(project, output(result)) == []
