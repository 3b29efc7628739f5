"""Memories with agents and restarts, which write down every call, and samples that need them."""

from __future__ import annotations

from dataclasses import replace

from pytest_himga.memory.protocol import Recalled

QUESTIONS = ["How many tulips?", "What is the hedgehog called?", "Which colour?", "How many of which colour?"]
NO_AGENTS = "the backend has no as_agent(agent_id), so it cannot be asked as another agent"
NO_REOPEN = "the backend has no reopen(), so no fresh instance over the same store can be asked"
#: The agents of the three sessions, see ``told``.
A_AND_B = ("a", "b", "a")


class Store(list):
    """All turns that were heard, with the agent that heard each, and a diary of every call."""

    def __init__(self):
        super().__init__()
        self.pages = []


class Shared:
    """A memory over a store that outlives it; it has neither agents nor restarts."""

    name = "main"

    def __init__(self, store, agent_id=None):
        self.store = store
        self.agent_id = agent_id

    def write(self, *entry):
        self.store.pages.append((self.name, self.agent_id, *entry))

    def ingest(self, message, session):
        self.write("ingest", message.turn_id)
        self.store.append(message)

    def retrieve(self, query):
        self.write("retrieve", query)
        return [Recalled(message.content, [message.turn_id]) for message in self.store]

    def reset(self):
        self.write("reset")
        self.store.clear()


class WithAgents(Shared):
    """Its views share the store; each is of a class that is no whole memory."""

    def as_agent(self, agent_id):
        self.write("as_agent", agent_id)
        return View(self, agent_id)


class View:
    def __init__(self, memory, agent_id):
        self.write = type(memory)(memory.store, agent_id).write
        self.store = memory.store

    ingest, retrieve = Shared.ingest, Shared.retrieve


class Restarting(WithAgents):
    """``reopen`` makes another one over the same store, called ``fresh``."""

    def reopen(self):
        self.write("reopen")
        return Fresh(self.store)

    def close(self):
        self.write("close")


class Fresh(Restarting):
    name = "fresh"


def told(sample, *, agents=(None, None, None), **by_question):
    """The sample with these agents for its sessions, and its questions changed: ``q0={...}``."""
    return replace(
        sample,
        sessions=[
            replace(session, agent_id=agent) for session, agent in zip(sample.sessions, agents, strict=True)
        ],
        qa_pairs=[
            replace(question, **by_question.get(f"q{n}", {})) for n, question in enumerate(sample.qa_pairs)
        ],
    )
