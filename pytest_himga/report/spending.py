"""What asking models took, as the end of a line: of a run's stage, of a calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_himga.report.table import NOTHING
from pytest_himga.report.text import counted

if TYPE_CHECKING:
    from pytest_himga.memory.protocol import Usage
    from pytest_himga.score.counts import Spent


def spending(spent: Spent | Usage) -> str:
    """``64 calls (2 retries); 704 tokens in, 448 out; 2 from the cache``; "" if nothing was asked."""
    facts = []
    if spent.calls:
        again = f" ({counted(spent.retries, 'retry', 'retries')})" if spent.retries else ""
        facts += [f"{counted(spent.calls, 'call')}{again}", _tokens(spent)]
    if spent.cached:
        facts.append(f"{spent.cached:,} from the cache")
    return "; ".join(facts)


def _tokens(spent: Spent | Usage) -> str:
    # No completion takes none: a failed attempt tells nothing of tokens either.
    if not spent.tokens_in and not spent.tokens_out:
        return f"tokens {NOTHING} (the server told none)"
    unknown = f" ({spent.untold:,} told none)" if spent.untold else ""
    return f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out{unknown}"
