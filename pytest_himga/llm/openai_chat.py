"""A model on an OpenAI-compatible server, in the llm room: asked, asked again, or given up with a sentence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from pytest_himga.errors import LLMError
from pytest_himga.llm.adapting import Adapting
from pytest_himga.llm.connection import Connection
from pytest_himga.llm.contract import Reply, Unreadable
from pytest_himga.llm.fault import Fault, Whom
from pytest_himga.llm.reply import Completion, quoted, read_body
from pytest_himga.llm.retrying import TOTAL, Breaker, Pace
from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytest_himga.llm.endpoint import Endpoint
    from pytest_himga.llm.prompt import ChatRequest, ModelSpec

T = TypeVar("T")

#: As many digits of a fingerprint as find it in a cache.
_SHOWN_DIGITS = 12


class Cache(Protocol):
    """Texts that a reader has accepted, by the fingerprint of their request."""

    async def get(self, fingerprint: str) -> str | None:
        """The text, or None."""

    async def put(self, fingerprint: str, text: str, *, model: str, server: str) -> None:
        """Keep ``text``; whose it is, is for people who look into the cache."""


class OpenAIChat:
    """One model on one server: a ``Chat`` that retries, adapts and caches.

    ``timeout`` is the seconds that an attempt may take; all attempts of a request with the waits between
    them may take five times that. ``offline`` makes no call: what is not in ``cache`` is an error.
    """

    def __init__(
        self,
        spec: ModelSpec,
        endpoint: Endpoint,
        *,
        timeout: float,
        cache: Cache | None = None,
        offline: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._spec = spec
        self._cache = cache
        self._offline = offline
        self.timeout = timeout
        #: Seconds that loading the client took, which is put off until a call is made.
        self.loading = 0.0
        self.pace = pace or Pace()
        self.breaker = Breaker()
        self.adapting = Adapting(spec)
        self.whom = Whom(spec.name, endpoint.server, endpoint.redact, endpoint.advice)
        self.connection = Connection(endpoint, self.whom, now=self.pace.now)

    def __repr__(self) -> str:
        return f"OpenAIChat({self._spec.name!r} on {self.whom.server!r})"

    @property
    def spec(self) -> ModelSpec:
        """The model as it was asked for."""
        return self._spec

    @property
    def notes(self) -> list[str]:
        """What is sent otherwise than the user set it, because the model does not take it; a sentence each."""
        return self.adapting.notes

    async def ask(self, request: ChatRequest, read: Callable[[str], T]) -> Reply[T]:
        """As ``Chat.ask``; see there."""
        fingerprint = request.fingerprint(self._spec)
        text = await self._cache.get(fingerprint) if self._cache else None
        if text is not None:
            try:
                return Reply(read(text), Usage(cached=1))
            except Unreadable:
                pass  # it was kept by another reader: ask again, and keep what this one accepts
        if self._offline:
            raise LLMError(
                f"not in the cache (request {fingerprint[:_SHOWN_DIGITS]}), and --himga-offline makes no call",
                usage=Usage(),
            )
        self._get_ready()
        errand = _Errand(self, request)
        text = await errand.text()
        try:
            value = read(text)
        except Unreadable as error:
            why = str(error)
        else:
            if self._cache:
                await self._cache.put(fingerprint, text, model=self._spec.name, server=self._spec.server)
            return Reply(value, errand.spent)
        # Out of the except block, so that nothing hangs on to it.
        raise LLMError(self.whom.redact.sentence(f"{why}: {quoted(text)}"), usage=errand.spent)

    def _get_ready(self) -> None:
        started = time.perf_counter()
        self.connection.get_ready()
        self.loading += time.perf_counter() - started

    async def close(self) -> None:
        """Close the connections; to be called on the event loop that asked, before it ends."""
        await self.connection.close()


class _Errand:
    """The way of one request to a text. ``spent`` is what all its attempts have used so far."""

    def __init__(self, chat: OpenAIChat, request: ChatRequest) -> None:
        self.spent = Usage()
        self._chat = chat
        self._request = request
        self._failed = 0
        self._attempts = chat.breaker.attempts
        self._until = chat.pace.clock() + TOTAL * chat.timeout
        #: The sentence about the reply that made us ask for a longer one, and the tokens that it had.
        self._too_short: str | None = None
        self._too_few: int | None = None

    async def text(self) -> str:
        """The text of a completion that is whole.

        Raises
        ------
        LLMError
            If there is none to be had.
        """
        while True:
            self._check_breaker()
            body = self._chat.adapting.body(self._request, more_than=self._too_few)
            outcome = await self._attempt(body)
            if isinstance(outcome, Completion):
                self._chat.breaker.answered()
                if outcome.text and not outcome.cut:
                    return outcome.text
                self._ask_for_more(outcome)
            elif not self._adapts(outcome, body):
                await self._wait(outcome)

    def _adapts(self, fault: Fault, sent: dict[str, Any]) -> bool:
        raised = self._too_few is not None
        return fault.rejected is not None and self._chat.adapting.learn(fault.rejected, sent, raised=raised)

    async def _attempt(self, body: dict[str, Any]) -> Completion | Fault:
        chat, left = self._chat, self._left
        within = f"{chat.timeout:g} s" if left >= chat.timeout else f"what was left of {self._total}"
        content = await chat.connection.send(body, min(chat.timeout, max(left, 0.001)), within)
        outcome = content if isinstance(content, Fault) else read_body(content, chat.whom)
        self.spent += Usage(retries=1 if self.spent.calls else 0) + outcome.spent
        return outcome

    @property
    def _total(self) -> str:
        return f"{TOTAL * self._chat.timeout:g} s"

    @property
    def _left(self) -> float:
        return self._until - self._chat.pace.clock()

    def _check_breaker(self) -> None:
        if self._chat.breaker.given_up is not None:
            self._give_up(self._chat.breaker.given_up)

    def _ask_for_more(self, outcome: Completion) -> None:
        """Once, with a larger limit of tokens: a model that thinks can use up a small one before its answer."""
        what = "was cut off at its token limit"
        if not outcome.cut:
            what = "was nothing but reasoning" if outcome.thought else "was empty"
        sentence = f"the reply of {self._chat.whom.model} {what}"
        if self._too_short is not None:
            self._give_up(f"{sentence}, also with a larger limit")
        if not self._chat.adapting.can_raise:
            self._give_up(f"{sentence}, and the model takes no other limit")
        self._too_short, self._too_few = sentence, outcome.spent.tokens_out

    async def _wait(self, fault: Fault) -> None:
        """Until the next attempt may be made.

        Raises
        ------
        LLMError
            If none may.
        """
        chat = self._chat
        self._failed += 1
        if not fault.passing:
            self._give_up(chat.breaker.failed(fault))
        if self._failed >= self._attempts:
            tries = f" ({self._failed} attempts)" if self._failed > 1 else ""
            self._give_up(chat.breaker.failed(fault) + tries)
        left = self._left
        seconds = chat.pace.wait(self._failed, fault.wait, left)
        if seconds >= left:
            chat.breaker.failed(fault)
            asked = f"it asks to wait {fault.wait:g} s, but " if fault.wait else ""
            self._give_up(f"{fault.sentence}; {asked}a request may take {self._total} in all")
        await chat.pace.sleep(seconds)

    def _give_up(self, sentence: str) -> NoReturn:
        if self._too_short is not None and not sentence.startswith(self._too_short):
            sentence = f"{self._too_short}, and a second try with a larger limit failed: {sentence}"
        raise LLMError(sentence, usage=self.spent)
