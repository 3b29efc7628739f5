"""From the name after ``--himga-judge`` to a judge."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from pytest_himga.errors import SettingsError, nearest
from pytest_himga.loading import load_attribute, one_line

if TYPE_CHECKING:
    from pytest_himga.judge.verdict import Judge

BUILT_IN = ("evidence", "lexical", "llm")


def resolve_judge(name: str) -> Judge:
    """The judge called ``name``: built in, or ``package.module:attribute`` (a class or an instance).

    ``llm`` is not made here: it takes a model and a profile.

    Raises
    ------
    SettingsError
        If there is no such judge, or it has no ``judge`` method.
    """
    if name == "evidence":
        from pytest_himga.judge.evidence import EvidenceJudge

        return EvidenceJudge()
    if name == "lexical":
        from pytest_himga.judge.lexical import LexicalJudge

        return LexicalJudge()
    if ":" not in name:
        raise SettingsError(
            f"--himga-judge={name} is unknown; {nearest(name, BUILT_IN)}; your own is package.module:attribute"
        )
    target = load_attribute(name, f"--himga-judge={name}")
    if inspect.isclass(target):
        try:
            target = target()
        except TypeError as error:
            raise SettingsError(
                f"--himga-judge={name}: it must be callable without arguments: {error}"
            ) from None
        except Exception as error:
            raise SettingsError(f"--himga-judge={name}: making it failed: {one_line(error)}") from error
    if not callable(getattr(target, "judge", None)):
        raise SettingsError(f"--himga-judge={name}: it has no judge(case, answer, context) method")
    if not isinstance(getattr(target, "name", None), str):
        raise SettingsError(f"--himga-judge={name}: it has no name; set the attribute `name` to a short text")
    judge: Judge = target
    return judge
