"""From the selected questions to virtual modules and items: node ids live here and nowhere else.

A sample is a ``pytest.Module`` with no file behind it, called ``himga/<dataset>/<sample>``; a question is
a ``pytest.Function`` in it. So fixtures, marks, ``-k``, ``--lf``, JUnit and the rest work by themselves,
and a fixture of module scope lives for one sample.
"""

from __future__ import annotations

import os
import re
import types
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.data.files import exists
from pytest_himga.errors import SettingsError, nearest
from pytest_himga.items import QuestionItem, case_of
from pytest_himga.memory.resolve import known_backends
from pytest_himga.run import many_objects
from pytest_himga.stash import CASE_FIXTURE, RUN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_himga.data.schema import Case
    from pytest_himga.run import Run

PREFIX = "himga/"
#: All samples of all datasets, as an argument.
EVERYTHING = "himga"
WANTED: pytest.StashKey[Wanted] = pytest.StashKey()


class Wanted:
    """Which built-in items the positional arguments ask for.

    ``ids`` are arguments such as ``himga/demo``, ``himga/demo/boat`` or a question's id (None: no such
    argument, so all); ``only_ids`` says that nothing but ids was named, so no test of the user runs.
    """

    def __init__(self, ids: list[str] | None, *, only_ids: bool, builtin: bool) -> None:
        self.ids = ids
        self.only_ids = only_ids
        self.builtin = builtin

    def takes(self, case: Case) -> bool:
        """Whether the arguments ask for this question."""
        return self.builtin and (self.ids is None or any(_names(one, case) for one in self.ids))


def _names(argument: str, case: Case) -> bool:
    dataset = f"{PREFIX}{case.dataset}"
    return argument in (EVERYTHING, dataset, f"{dataset}::gate", case.sample_id, case.id)


def take_arguments(config: pytest.Config, run: Run) -> Wanted:
    """Take our ids out of pytest's positional arguments, which must be files, and check them.

    Files or node ids alone ask for no built-in item; a folder, or nothing, does.
    """
    ours, rest = [], []
    for argument in config.args:
        name = _own_id(argument, config, run)
        if name:
            ours.append(name)
        else:
            rest.append(argument)
    for name in ours:
        if not any(_names(name, case) for case in run.cases):
            known = {case.id for case in run.cases} | {case.sample_id for case in run.cases}
            known |= {f"{PREFIX}{case.dataset}" for case in run.cases}
            raise SettingsError(f"{name}: no such question is selected; {nearest(name, known, most=1)}")
    if ours and not rest:
        config.args[:] = _where_tests_lie(config)
    elif ours:
        config.args[:] = rest
    builtin = run.settings.builtin_items and (bool(ours) or not _only_files(config, rest))
    return Wanted(ours or None, only_ids=bool(ours) and not rest, builtin=builtin)


def _where_tests_lie(config: pytest.Config) -> list[str]:
    """What pytest collects where nothing is named: the conftest files there are heard with ids alone too."""
    here, root = config.invocation_params.dir, config.rootpath
    if here != root:
        return [str(here if here.is_relative_to(root) else root)]
    patterns = config.getini("testpaths")
    # Not Path.glob, which refuses the absolute patterns that testpaths may hold.
    found = [path for pattern in patterns for path in sorted(glob(pattern, root_dir=here, recursive=True))]  # noqa: PTH207 - see above
    return found or [str(here)]


def _own_id(argument: str, config: pytest.Config, run: Run) -> str:
    """``argument`` as one of our ids; empty if it is none.

    pytest prints ids relative to the folder it was called in: ``../himga/`` below the root directory,
    ``project/himga/`` above it. Given back alone, the latter names no file, so that pytest takes the
    folder it is called in for the root directory; then the dataset's name tells.
    """
    path, colons, uid = argument.replace("\\", "/").partition("::")
    on_disk = Path(os.path.normpath(config.invocation_params.dir / path))
    name = re.sub(r"^(?:\.{1,2}/)+", "", path)
    if on_disk.is_relative_to(config.rootpath / PREFIX):
        name = on_disk.relative_to(config.rootpath).as_posix()
    elif f"/{PREFIX}" in name:
        folder, _, rest = name.partition(f"/{PREFIX}")
        known = rest.split("/")[0] in {dataset.name for dataset in run.datasets}
        name = PREFIX + rest if known and exists(config.invocation_params.dir / folder) else name
    if not f"{name}/".startswith(PREFIX) or exists(on_disk):
        return ""
    return name.rstrip("/") + colons + uid


def _only_files(config: pytest.Config, arguments: Sequence[str]) -> bool:
    if config.args_source is not pytest.Config.ArgsSource.ARGS or not arguments:
        return False
    folder = config.invocation_params.dir
    return all(
        "::" in argument or (exists(folder / argument) and (folder / argument).is_file())
        for argument in arguments
    )


_MARK = pytest.mark.himga.mark


class SampleModule(pytest.Module):
    """One sample. It has no file: its path is the root directory, which always exists."""

    def __init__(self, *, cases: Sequence[Case], shared: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cases = cases
        self._shared = {} if shared is None else shared
        # add_marker, which makes a mark each time, tells with 20,000 samples
        self.own_markers.append(_MARK)
        self.keywords[_MARK.name] = _MARK

    def _getobj(self) -> types.ModuleType:
        return types.ModuleType("himga_sample")

    def collect(self) -> Iterator[QuestionItem]:
        """One item for each question, named by its uid."""
        backend = self.config.stash[RUN].backend
        for case in self.cases:
            fixtures = self._shared.get("fixtures")
            item: QuestionItem = QuestionItem.from_parent(
                self, name=case.uid, callobj=_ask, case=case, fixtureinfo=fixtures
            )
            if fixtures is None:
                # All items see the same; finding them out again is most of making an item.
                self._shared["fixtures"] = item._fixtureinfo  # noqa: SLF001 - pytest takes it, but does not give it out
                if backend.origin == "fixture":
                    item.fixturenames.append(backend.name)
            yield item


def _ask() -> None:
    # Stands where a test function would; QuestionItem.runtest does the work. No docstring: `--co -v` prints it.
    pass


def add_samples(collector: pytest.Session, report: pytest.CollectReport) -> None:
    """Put the selected samples at the end of what the session collected.

    Under the single folder if there is exactly one, so that a fixture in ``tests/conftest.py`` is
    visible. At the end because pytest registers a conftest's fixtures while it collects its folder.
    """
    run, wanted = collector.config.stash[RUN], collector.config.stash[WANTED]
    folders = [node for node in report.result if isinstance(node, pytest.Directory)]
    parent = folders[0] if len(folders) == 1 else collector
    samples: dict[str, list[Case]] = {}
    for case in run.cases:
        if wanted.takes(case):
            samples.setdefault(case.sample_id, []).append(case)
    shared: dict[str, Any] = {}
    path = collector.config.rootpath
    with many_objects():
        for sample_id, cases in samples.items():
            module: SampleModule = SampleModule.from_parent(
                parent, path=path, name=sample_id, nodeid=sample_id, cases=cases, shared=shared
            )
            # The items themselves: asking pytest to collect the module costs more than making its items,
            # which tells with a dataset that has a sample for each question.
            report.result += module.collect()


def parametrize(metafunc: pytest.Metafunc, run: Run) -> None:
    """Run a user's test that asks for a himga fixture once for each selected question."""
    if CASE_FIXTURE in metafunc.fixturenames:
        ids = [case.id for case in run.cases]
        metafunc.parametrize(CASE_FIXTURE, ids, ids=[key_of(case) for case in run.cases], indirect=True)


def key_of(case: Case) -> str:
    """How a question is named inside a user's test id: ``<dataset>/<sample>/<uid>``."""
    return f"{case.dataset}/{case.sample_name}/{case.uid}"


def by_sample(items: Sequence[pytest.Item], run: Run) -> list[pytest.Item]:
    """``items`` with all of one sample next to each other, after all other tests; else in their order.

    So each history is fed once, whatever reordered the items before (random order, ``--ff``). Where a
    sample has checkpoints, its items stand in their order, a user's own tests among ours: a memory cannot
    unhear. But a backend from a fixture of the user is fed once for each module anyway, and going to and
    fro between modules would have it made again each time.
    """
    others: list[pytest.Item] = []
    samples: dict[str, list[pytest.Item]] = {}
    for item in items:
        case = case_of(item, run)
        if case is None:
            others.append(item)
        else:
            samples.setdefault(case.sample_id, []).append(item)
    whole = not run.backend_is_fixture
    ordered = (item for group in samples.values() for item in _by_checkpoint(group, run, whole=whole))
    return [*others, *ordered]


def _by_checkpoint(items: Sequence[pytest.Item], run: Run, *, whole: bool) -> Sequence[pytest.Item]:
    """One sample's items in the order of their checkpoints; module by module unless ``whole``."""
    checkpoints = [_checkpoint_of(item, run) for item in items]
    if len(set(checkpoints)) < 2:
        return items
    modules = [item.getparent(pytest.Module) for item in items]
    places = {module: 0 if whole else place for place, module in enumerate(dict.fromkeys(modules))}
    keys = [(places[module], checkpoint) for module, checkpoint in zip(modules, checkpoints, strict=True)]
    return [items[n] for n in sorted(range(len(items)), key=keys.__getitem__)]


def _checkpoint_of(item: pytest.Item, run: Run) -> int:
    """The number of the checkpoint at which an item's question is asked; 0 where there are none."""
    case = case_of(item, run)
    checkpoint = case.brief.facets.get("checkpoint") if case is not None else None
    return checkpoint if isinstance(checkpoint, int) else 0


def check_fixture(session: pytest.Session, items: Sequence[pytest.Item], run: Run) -> None:
    """Refuse, before any item runs, a backend fixture that is missing or of the wrong kind."""
    if not run.backend_is_fixture:
        return
    # Ours all see the same; what a user's own tests see depends on where their module lies.
    asking: dict[pytest.Module | None, pytest.Item] = {}
    for item in items:
        if case_of(item, run) is not None:
            asking.setdefault(None if isinstance(item, QuestionItem) else item.getparent(pytest.Module), item)
    for item in asking.values():
        _check_fixture_of(item, session, run.backend.name)


def _check_fixture_of(item: pytest.Item, session: pytest.Session, name: str) -> None:
    manager = session._fixturemanager  # noqa: SLF001 - there is no public way to ask which fixtures exist
    definitions = manager.getfixturedefs(name, item)
    if not definitions:
        raise SettingsError(
            f"--himga-backend={name} is no built-in or installed backend and no fixture that {_named(item)} can see; "
            f"{nearest(name, known_backends())}; your own is package.module:attribute, or a fixture in a conftest.py "
            "in the root directory, or in the one folder that is named (pytest tests, or testpaths)"
        )
    if definitions[-1].params is not None:
        raise SettingsError(
            f"--himga-backend={name}: the fixture has params; write one fixture for each backend, without params"
        )
    if definitions[-1].scope not in ("module", "package", "session"):
        raise SettingsError(
            f"--himga-backend={name}: the fixture has {definitions[-1].scope} scope, and a memory must outlive one "
            'question; write @pytest.fixture(scope="module") (one memory for each sample) or scope="session"'
        )


def _named(item: pytest.Item) -> str:
    """Who it is that sees a fixture or does not."""
    return "the built-in items" if isinstance(item, QuestionItem) else item.nodeid.split("[")[0]
