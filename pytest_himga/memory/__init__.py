"""WHO IS TESTED: the memory's protocol, the boundary around it, and the reference backends."""

from pytest_himga.memory.protocol import Context, Memory, Recalled, Usage

__all__ = ["Context", "Memory", "Recalled", "Usage"]
