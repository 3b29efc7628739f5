"""What a person reads who mistyped a name, brought a broken file, or wrote a memory that breaks its contract."""

from __future__ import annotations

import json

import pytest

from pytest_himga.data.store import cache_folder

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
WITHOUT_OTHERS = [
    f"-pno:{name}"
    for name in ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
]


@pytest.fixture
def project(project):
    """Without an ini key of a plugin that is not there."""
    project.pytester.makeini("[pytest]\npythonpath = .\n")
    return project


def refusal(result: pytest.RunResult, project) -> str:
    """The one sentence with which pytest refuses to run, and nothing else: no traceback, no file."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = [line for line in result.errlines if line.strip()]
    assert [line for line in said if not line.startswith("ERROR: ")] == []
    assert len(said) == 1, said
    for noise in ("Traceback", "INTERNALERROR", "Error(", 'File "', "pytest_himga/", "himga ==="):
        assert noise not in result.stdout.str()
    assert not (project.path / ".himga").exists()
    return said[0].removeprefix("ERROR: ").replace(str(project.path), "HERE")


# -- names and values --------------------------------------------------------------------------------

REFUSED = {
    # a dataset
    "--himga-dataset=demoo": "There is no dataset 'demoo': {cache} (the cache folder) has no demoo.json, "
    "demoo.json.gz, demoo/, and there is no file HERE/demoo; did you mean demo or demo-locomo?",
    "--himga-dataset=mni.json": "HERE/mni.json: there is no such file or folder; check the path",
    "--himga-dataset=other/": "HERE/other: there is no such file or folder; check the path",
    "--himga-dataset=a=": "'a=' is not a dataset; write NAME=PATH with both, or a name or path alone",
    "--himga-dataset=mini=mini.json,mini=demo-locomo": "Two datasets would be called mini in ids (HERE/mini.json "
    "and {demo}); rename one with NAME=PATH",
    "--himga-dataset=longmemval": "There is no dataset 'longmemval': {cache} (the cache folder) has no "
    "longmemval.json, longmemval.json.gz, longmemval/, and there is no file HERE/longmemval; did you mean "
    "longmemeval or longmemeval-s or longmemeval-m?",
    "--himga-errata=locomo-audti": "--himga-errata=locomo-audti: there is no such file, and no shipped list of "
    "that name; did you mean locomo-audit?",
    "--himga-allow=unverifid": "--himga-allow=unverifid is unknown; did you mean unverified?",
    "--himga-session-order=tiem": "--himga-session-order=tiem is unknown; did you mean time?",
    # a backend
    "--himga-backend=nowhere:Memory": "--himga-backend=nowhere:Memory: no module named 'nowhere'; if it lies in "
    "the project, put `pythonpath = .` (or the folder it lies in) into the pytest ini file",
    "--himga-backend=mem:Memry": "--himga-backend=mem:Memry: mem has no 'Memry': did you mean Memory?",
    "--himga-backend=mem:Deaf": "--himga-backend=mem:Deaf: Deaf has no retrieve(); a memory has ingest, retrieve "
    "and reset",
    "--himga-backend=broken_module:Memory": "--himga-backend=broken_module:Memory: importing broken_module "
    "failed: ZeroDivisionError: division by zero",
    "--himga-backend=:Memory": "--himga-backend=:Memory: write both parts of package.module:attribute, as in "
    "my_memory:Memory",
    "--himga-backend-option=k1": "--himga-backend-option=k1 is not KEY=VALUE",
    "--himga-backend-option=sze=3": "--himga-backend-option=sze=...: null takes no sze: it takes no option at all",
    # a selection
    "--himga-types=temporl": "There is no question type 'temporl' in mini; did you mean temporal?",
    "--himga-types=6": "There is no question type '6' in mini; known: adversarial, multi_hop, open_domain, "
    "single_hop, temporal",
    "--himga-samples=gardn": "There is no sample 'gardn' in mini; did you mean garden?",
    "--himga-samples=garden --himga-types=open_domain": "No question is left: mini has none with samples garden "
    "and types open_domain; widen the selection",
    "himga/mini/garden::how-many-tulips-did-ada-plant-0000": "himga/mini/garden::how-many-tulips-did-ada-plant-"
    "0000: no such question is selected; did you mean himga/mini/garden::how-many-tulips-did-ada-plant-0767e5?",
    # a threshold
    "--himga-min-score=temporl=0.5": "--himga-min-score=temporl=0.5: no selected dataset has a number called "
    "temporl; did you mean temporal?",
    "--himga-min-score=mni:0.5": "--himga-min-score=mni:0.5: dataset mni is not selected; did you mean mini?",
    "--himga-min-score=recall@7=0.5": "--himga-min-score=recall@7=0.5: no selected dataset has a number called "
    "recall@7; it is measured as recall@1, recall@3, recall@5, recall@10",
    "--himga-min-score=much": "--himga-min-score=much: much is not a number; write a value from 0 to 1, such as "
    "0.7, or 70%",
    # an option's value
    "--himga-judge=evidnce": "--himga-judge=evidnce is unknown; did you mean evidence?; your own is "
    "package.module:attribute",
    "--himga-judge=lexical": "--himga-judge=lexical judges answers, and backend null has no answer(question), "
    "so nothing answers; add --himga-answerer=llm --himga-model=..., or give the backend an answer(question) method",
    "--himga-gate=scor": "--himga-gate=scor is unknown; did you mean score?",
    "--himga-items=of": "--himga-items=of is unknown; did you mean off?",
    "--himga-top-k=ten": "--himga-top-k=ten is not a whole number from 1",
    "--himga-timeout=-1": "--himga-timeout=-1 is not a number of seconds above 0",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_a_mistyped_name_or_value_is_one_sentence_with_the_right_one(project, arguments):
    from importlib import resources

    demo = resources.files("pytest_himga.data") / "demo" / "locomo.json"
    project.write("mem.py", MEMORY)
    project.write("broken_module.py", "1 / 0\n")
    given = arguments.split()
    dataset = [] if "--himga-dataset" in arguments else ["--himga-dataset=mini.json"]
    backend = [] if "--himga-backend=" in arguments else ["--himga-backend=null"]

    result = project.pytester.runpytest_inprocess(*WITHOUT_OTHERS, *dataset, *backend, *given)

    assert refusal(result, project) == REFUSED[arguments].format(demo=demo, cache=cache_folder())


def test_a_missing_backend_is_told_how_to_write_one(project):
    result = project.pytester.runpytest_inprocess(*WITHOUT_OTHERS, "--himga-dataset=demo-locomo")

    assert refusal(result, project) == (
        "--himga-backend is missing: name the memory under test, e.g. --himga-backend=bm25, "
        "--himga-backend=package.module:YourMemory or a fixture's name"
    )


# -- files -------------------------------------------------------------------------------------------


def records():
    """A dataset that may be broken: one conversation, one question."""
    return [
        {
            "sample_id": "harbour",
            "conversation": {
                "speaker_a": "Cleo",
                "speaker_b": "Dan",
                "session_1_date_time": "12:05 am on 1 June, 2024",
                "session_1": [{"speaker": "Cleo", "dia_id": "D1:1", "text": "The ferry sails at dawn."}],
            },
            "qa": [{"question": "When?", "answer": "at dawn", "evidence": ["D1:1"], "category": 4}],
        }
    ]


def changed(**change):
    """The dataset as JSON with one key of the sample, of a turn or of the question changed or taken away."""
    data = records()
    sample = data[0]
    places = {
        "sample": sample,
        "conversation": sample["conversation"],
        "turn": sample["conversation"]["session_1"][0],
        "question": sample["qa"][0],
    }
    for place, fields in change.items():
        places[place].update(fields)
        for key in [key for key, value in fields.items() if value is ...]:
            del places[place][key]
    return json.dumps(data).encode()


BROKEN = {
    "truncated": (
        json.dumps(records()).encode()[:-36],
        (
            "the JSON ends too early (Unterminated string starting at: line 1, column 277); it seems "
            "truncated, fetch it again"
        ),
    ),
    "no JSON": (
        b"<html>503</html>",
        "is not JSON (Expecting value: line 1, column 1); mend or fetch the file again",
    ),
    "Latin-1": (
        '[{"sample_id": "é"}]'.encode("latin-1"),
        "is not UTF-8: byte 0xe9 at offset 16; save the file as UTF-8",
    ),
    "no records": (b"[]", "holds no record; a dataset has at least one sample"),
    "a number": (b"42", "holds 42; expected a list of records, or one record (an object)"),
    "a list of texts": (b'["a"]', "record [0] is 'a'; expected an object"),
    "another format": (
        b'[{"id": 1, "messages": []}]',
        (
            "no known format; the first record's keys are 'id', 'messages'; known: locomo has conversation, qa; "
            "longmemeval has haystack_sessions, question, question_id; memorystress has facts, questions, sessions"
        ),
    ),
    "two samples with one id": (
        json.dumps(records() * 2).encode(),
        "sample 'harbour', field sample_id: a sample of this id stands in HERE/data.json already; rename one",
    ),
    "two samples with one slug": (
        json.dumps([r | {"sample_id": name} for name, r in zip("ab", records() * 2, strict=True)])
        .encode()
        .replace(b'"sample_id": "b"', b'"sample_id": "a!"'),
        "the samples 'a' and 'a!' would both be called a in ids; rename one",
    ),
    "questions of the wrong shape": (
        changed(sample={"qa": "?"}),
        "sample 'harbour', field qa: is '?'; expected a list",
    ),
    "a category that is not": (
        changed(question={"category": 7}),
        "sample 'harbour', field qa[0].category: 7 is not a category of LoCoMo; expected 1 to 5",
    ),
    "a turn without a text": (
        changed(turn={"text": ...}),
        "sample 'harbour', field conversation.session_1[0].text: missing; expected a text",
    ),
    "a date that is none": (
        changed(conversation={"session_1_date_time": "yesterday"}),
        (
            "sample 'harbour', field conversation.session_1_date_time: 'yesterday' is not a date; expected one like "
            "'1:56 pm on 8 May, 2023'"
        ),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_named_with_sample_field_and_value(project, what):
    content, sentence = BROKEN[what]
    (project.path / "data.json").write_bytes(content)

    result = project.run(*WITHOUT_OTHERS, data="data.json", backend="null")

    assert refusal(result, project) == f"HERE/data.json: {sentence}"


def test_a_file_without_a_question_has_nothing_to_ask(project):
    project.write_data("data", [records()[0] | {"qa": []}])

    assert refusal(project.run(*WITHOUT_OTHERS, data="data.json", backend="null"), project) == (
        "No question is left: data has none"
    )


def test_a_sample_may_be_called_anything(project):
    """300 characters with slashes and dots neither leave the folder nor break an id."""
    names = [("../../etc/" * 30)[:300], "..", "a/b", "con ☃"]
    project.write_data("names", [records()[0] | {"sample_id": name} for name in names])
    outside = set(project.path.parent.iterdir())

    result = project.run(*WITHOUT_OTHERS, "-v", data="names.json", backend="full-context")

    ids = [line.split(" PASSED")[0] for line in result.outlines if " PASSED" in line]
    assert ids == [
        "himga/names/etc-etc-etc-etc-etc-etc-etc-etc-etc-etc-etc-etc-etc-e-be8d16::when-000670",
        "himga/names/x-5ec1f7::when-000670",
        "himga/names/a-b::when-000670",
        "himga/names/con::when-000670",
    ]
    assert [record["sample"] for record in project.results()] == [
        id_.split("/")[2].split("::")[0] for id_ in ids
    ]
    assert set(project.path.parent.iterdir()) == outside
    again = project.run(*WITHOUT_OTHERS, ids[0], data="names.json", backend="full-context")
    again.assert_outcomes(passed=1)


# -- the backend's fixture ---------------------------------------------------------------------------

FIXTURES = """
import pytest
from mem import Memory

@pytest.fixture
def once_per_test():
    return Memory()

@pytest.fixture(scope="class")
def once_per_class():
    return Memory()

@pytest.fixture(scope="module", params=["small", "large"])
def two_kinds():
    return Memory()

@pytest.fixture(scope="module")
def broken():
    raise RuntimeError("the server is not up")

@pytest.fixture(scope="module")
def five():
    return 5
"""

BAD_FIXTURES = {
    "once_per_test": "--himga-backend=once_per_test: the fixture has function scope, and a memory must outlive one "
    'question; write @pytest.fixture(scope="module") (one memory for each sample) or scope="session"',
    "once_per_class": "--himga-backend=once_per_class: the fixture has class scope, and a memory must outlive one "
    'question; write @pytest.fixture(scope="module") (one memory for each sample) or scope="session"',
    "two_kinds": "--himga-backend=two_kinds: the fixture has params; write one fixture for each backend, without "
    "params",
    "bm52": "--himga-backend=bm52 is no built-in or installed backend and no fixture that the built-in items can see; "
    "did you mean bm25?; your own is package.module:attribute, or a fixture in a conftest.py in the root directory, or "
    "in the one folder that is named (pytest tests, or testpaths)",
}


@pytest.mark.parametrize("name", BAD_FIXTURES)
def test_a_fixture_that_cannot_hold_a_memory_is_refused_before_any_item(project, name):
    project.write("mem.py", MEMORY)
    project.write("conftest.py", FIXTURES)

    result = project.run(*WITHOUT_OTHERS, backend=name)

    assert refusal(result, project) == BAD_FIXTURES[name]
    result.stdout.no_fnmatch_line("*unscored*")


@pytest.mark.parametrize("name", ["once_per_test", "bm52"])
def test_with_workers_the_sentence_comes_once_too(project, name):
    project.write("mem.py", MEMORY)
    project.write("conftest.py", FIXTURES)

    result = project.run_apart(*WITHOUT_OTHERS, "-n2", backend=name)

    assert refusal(result, project) == BAD_FIXTURES[name]


def test_a_wrong_option_with_workers_is_refused_before_they_start(project):
    result = project.run_apart(*WITHOUT_OTHERS, "-n2", "--himga-types=temporl", backend="null")

    assert refusal(result, project) == "There is no question type 'temporl' in mini; did you mean temporal?"
    assert result.outlines == []


def test_a_fixture_that_fails_leaves_its_questions_unscored(project):
    project.write("mem.py", MEMORY)
    project.write("conftest.py", FIXTURES)

    result = project.run(*WITHOUT_OTHERS, backend="broken")

    assert result.ret == 6
    assert {record["reason"] for record in project.results()} == {
        "its setup failed: RuntimeError: the server is not up"
    }
    assert {(record["verdict"], record["score"]) for record in project.results()} == {("unscored", None)}


def test_a_fixture_that_gives_no_memory_leaves_its_questions_unscored(project):
    project.write("mem.py", MEMORY)
    project.write("conftest.py", FIXTURES)

    result = project.run(*WITHOUT_OTHERS, backend="five")

    assert result.ret == 6
    (reason,) = {record["reason"] for record in project.results()}
    assert reason == (
        "--himga-backend=five: int has no ingest() and no retrieve() and no reset(); a memory has ingest, "
        "retrieve and reset"
    )


# -- the data changes under the run ------------------------------------------------------------------

CHANGES_THE_DATA = """
from pathlib import Path

class Changer:
    def pytest_configure_node(self, node):
        Path("mini.json").write_text(Path("later.txt").read_text("utf-8"), "utf-8")

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Changer())
"""


@pytest.mark.parametrize(
    ("later", "sentence"),
    [
        (
            changed(),
            (
                "mini: the data changed while the run was starting (worker gw* reads another sha256 than the "
                "controller); run it again"
            ),
        ),
        (
            b"[{",
            (
                "HERE/mini.json: the JSON ends too early (Expecting property name enclosed in double quotes: line 1, "
                "column 3); it seems truncated, fetch it again"
            ),
        ),
    ],
    ids=["another version", "half a file"],
)
def test_data_that_change_before_the_workers_read_them_end_the_run(project, later, sentence):
    """xdist would start such a worker again and again, and print a traceback each time."""
    (project.path / "later.txt").write_bytes(later)
    project.write("conftest.py", CHANGES_THE_DATA)

    result = project.run_apart(*WITHOUT_OTHERS, "-n2", backend="null")

    said = refusal(result, project)
    assert said.replace("gw0", "gw*").replace("gw1", "gw*") == sentence
    assert "node down" not in result.stdout.str()


# -- a memory that breaks its contract ---------------------------------------------------------------

MEMORY = """
from pytest_himga.memory import Recalled


class Memory:
    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message, session):
        self.turns.append(message)

    def retrieve(self, query):
        return [Recalled(turn.content, turn_ids=[turn.turn_id]) for turn in self.turns]


class Deaf:
    def reset(self):
        pass

    def ingest(self, message):
        pass


async def async_generator():
    yield "text"


def generator():
    yield "text"


class Lazy(list):
    def __iter__(self):
        raise OSError("the cursor is closed")


ODD = {
    "None": None,
    "bytes": b"text",
    "a dict": {"memories": []},
    "a set": {"text"},
    "a number": 5,
    "texts": ["text"],
    "dicts": [{"memory": "text"}],
    "no text": [Recalled(None)],
    "a foreign id": [Recalled("text", turn_ids=["D1:1", "D99:1"])],
    "a foreign session": [Recalled("text", session_ids=["session_1"])],
    "a long id": [Recalled("text", turn_ids=["Z" * 5000])],
    "an id that is no text": [Recalled("text", turn_ids=[["D1:1"]])],
    "ids that are a text": [Recalled("text", turn_ids="D1:1")],
    "a lazy list": Lazy(["text"]),
}


class Odd(Memory):
    # Returns what the question names.
    def retrieve(self, query):
        if query == "an async generator":
            return async_generator()
        if query == "a generator":
            return generator()
        return ODD.get(query) if query in ODD else super().retrieve(query)


class AsyncOdd(Odd):
    async def retrieve(self, query):
        return super().retrieve(query)


class Half(Memory):
    def ingest(self, message, session):
        if "lighthouse" in message.content:
            raise ConnectionError("the index is gone")
        super().ingest(message, session)
"""

WANTED = "return a str or a list of Recalled"
ODD = {
    "None": f"retrieve() returned None; {WANTED}",
    "bytes": f"retrieve() returned bytes; {WANTED}",
    "an async generator": f"retrieve() returned an async generator; {WANTED}",
    "a generator": f"retrieve() returned a generator; {WANTED}",
    "a dict": f"retrieve() returned a dict; {WANTED}",
    "a set": f"retrieve() returned a set; {WANTED}",
    "a number": f"retrieve() returned an int; {WANTED}",
    "texts": "retrieve() returned a list whose item 0 is a str; wrap it: Recalled(text, turn_ids=[...])",
    "dicts": "retrieve() returned a list whose item 0 is a dict; wrap it: Recalled(text, turn_ids=[...])",
    "no text": "retrieve() returned a Recalled whose text is None (item 0); text is a str",
    "a foreign id": "retrieve() returned a Recalled with an id that was never ingested: turn_ids has 'D99:1' "
    "(item 0); give back the ids that ingest() got, such as 'D1:1', or none",
    "a foreign session": "retrieve() returned a Recalled with an id that was never ingested: session_ids has "
    "'session_1' (item 0); give back the ids that ingest() got, such as 's1', or none",
    "a long id": "retrieve() returned a Recalled with an id that was never ingested: turn_ids has "
    f"'{'Z' * 76}... (item 0); give back the ids that ingest() got, such as 'D1:1', or none",
    "an id that is no text": "retrieve() returned a Recalled with an id that was never ingested: turn_ids has "
    "['D1:1'] (item 0); give back the ids that ingest() got, such as 'D1:1', or none",
    "ids that are a text": "retrieve() returned a Recalled whose turn_ids is a str (item 0); give a list of ids",
    "a lazy list": "reading what retrieve() returned raised OSError: the cursor is closed",
}


@pytest.mark.parametrize("kind", ["Odd", "AsyncOdd"])
def test_what_retrieve_may_not_return_leaves_that_question_unscored(project, kind):
    project.write("mem.py", MEMORY)
    data = records()
    data[0]["qa"] = [
        {"question": what, "answer": "dawn", "evidence": ["D1:1"], "category": 4} for what in ODD
    ]
    data[0]["qa"] += records()[0]["qa"]
    project.write_data("odd", data)

    result = project.run(*WITHOUT_OTHERS, "-v", data="odd.json", backend=f"mem:{kind}")

    assert result.ret == 6
    result.assert_outcomes(passed=1, errors=len(ODD))
    *odd, sound = project.results()
    assert {record["question"]: record["reason"] for record in odd} == ODD
    assert {(record["verdict"], record["stage"], record["score"]) for record in odd} == {
        ("unscored", "retrieve", None)
    }
    assert (sound["verdict"], sound["score"]) == ("correct", 1.0)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR at call of himga/odd/harbour::none-* _*",
            "unscored at retrieve: retrieve() returned None; return a str or a list of Recalled",
            f"overall       {len(odd) + 1}        1  1.0000   0.207-1.000        {len(odd)}       0    0",
            f"himga: not measured (exit status 6): {len(odd)} questions unscored: himga/odd/harbour::none-*",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_himga/*")
    result.stdout.no_fnmatch_line("*concurrent/futures*")


def test_ingest_that_raises_half_way_leaves_its_sample_unscored_and_the_other_goes_on(project):
    project.write("mem.py", MEMORY)

    result = project.run(*WITHOUT_OTHERS, backend="mem:Half")

    assert result.ret == 6
    found = {(r["sample"], r["verdict"], r["stage"], r["reason"]) for r in project.results()}
    assert found == {
        ("garden", "correct", None, "1 of 1 evidence turn in the context"),
        ("garden", "correct", None, "2 of 2 evidence turns in the context"),
        ("garden", "n/a", None, "unanswerable: there is no evidence to find"),
        ("harbour", "unscored", "ingest", "ingest() raised ConnectionError: the index is gone"),
    }
    result.stdout.fnmatch_lines(
        [
            "unscored at ingest: ingest() raised ConnectionError: the index is gone",
            "traceback",
            "  Traceback (most recent call last):",
            '    File "*mem.py", line *, in ingest',
            '      raise ConnectionError("the index is gone")',
            "  ConnectionError: the index is gone",
        ]
    )
    result.stdout.no_fnmatch_line("*concurrent/futures*")
    # 4 of 8 answerable ones were measured, and only these are in the score.
    result.stdout.fnmatch_lines(["overall        8        4  1.0000   0.510-1.000         4       0    0"])
