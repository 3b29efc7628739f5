"""``package.module:attribute`` on the command line becomes the object, or one sentence."""

from __future__ import annotations

import importlib
from typing import Any

from pytest_himga.errors import SettingsError, nearest


def load_attribute(path: str, where: str) -> Any:
    """The attribute that ``path`` names; ``where`` is the option as it was written, for the error.

    Raises
    ------
    SettingsError
        If the module cannot be imported or has no such attribute.
    """
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise SettingsError(f"{where}: write both parts of package.module:attribute, as in my_memory:Memory")
    try:
        target: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise SettingsError(
                f"{where}: no module named {error.name!r}; if it lies in the project, put `pythonpath = .` (or the "
                "folder it lies in) into the pytest ini file"
            ) from None
        raise SettingsError(f"{where}: importing {module_name} failed: {one_line(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a script's sys.exit() is no reason to end pytest without a word
        raise SettingsError(f"{where}: importing {module_name} failed: {one_line(error)}") from error
    for part in attribute.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            public = [name for name in dir(target) if not name.startswith("_")]
            raise SettingsError(
                f"{where}: {module_name} has no {attribute!r}: {nearest(part, public)}"
            ) from None
    return target


def one_line(error: BaseException) -> str:
    """The kind and the text of an error, as the end of a sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
