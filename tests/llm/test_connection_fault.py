"""What ended a connection, told from the exceptions of any HTTP library."""

from __future__ import annotations

import socket
import ssl
from itertools import pairwise

import pytest

from pytest_himga.llm.fault import Whom, connection_fault
from pytest_himga.llm.redact import Redactor


def named(name: str, *bases: type[BaseException]) -> BaseException:
    return type(name, bases or (Exception,), {})("sk-secret-secret")


def chain(*errors: BaseException) -> BaseException:
    """The first as it was raised because of the second, and so on."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


BAD_CERTIFICATE = ssl.SSLCertVerificationError(1, "sk-secret-secret")
BAD_CERTIFICATE.verify_message = "self-signed certificate"

ENDS = {
    "dns": (
        chain(named("APIConnectionError"), socket.gaierror(-2, "x")),
        "host name that cannot be resolved (DNS)",
    ),
    "refused": (chain(named("ConnectError"), ConnectionRefusedError(111, "x")), "refused the connection"),
    "certificate": (chain(named("ConnectError"), BAD_CERTIFICATE), "(TLS): self-signed certificate"),
    "reset": (
        chain(named("ReadError"), named("ClientOSError", ConnectionResetError)),
        "broke off in the middle",
    ),
    "hung up": (
        chain(named("APITimeoutError"), named("ConnectTimeout"), named("ServerDisconnectedError")),
        "closed the connection without an answer",
    ),
    "connecting": (chain(named("APITimeoutError"), TimeoutError()), "did not take the connection in time"),
    "proxy": (
        chain(named("APIConnectionError"), named("ProxyError")),
        "through the proxy of the environment",
    ),
    "a warning": (
        chain(named("APIConnectionError"), DeprecationWarning("sk-secret-secret is old")),
        "a warning is an error in this run (filterwarnings, -W): DeprecationWarning: *** is old",
    ),
    "else": (chain(named("APIConnectionError"), named("StrangeError")), "cannot be talked to (StrangeError)"),
}


@pytest.mark.parametrize(("error", "sentence"), ENDS.values(), ids=ENDS)
def test_an_end_of_a_connection_has_a_name(error, sentence):
    fault = connection_fault(Whom("gpt-x", "http://here/v1", Redactor(["sk-secret-secret"])), error)

    assert fault.sentence.startswith("http://here/v1 ")
    assert sentence in fault.sentence
    assert "secret" not in fault.sentence
    assert fault.outage


@pytest.mark.parametrize("end", ENDS)
def test_another_attempt_is_made_unless_it_would_end_the_same(end):
    fault = connection_fault(Whom("gpt-x", "http://here/v1", Redactor()), ENDS[end][0])

    assert fault.passing == (end not in ("certificate", "a warning"))


def test_exceptions_that_cause_each_other_come_to_an_end():
    one, other = named("One"), named("Other")
    one.__cause__, other.__cause__ = other, one

    assert "Other" in connection_fault(Whom("gpt-x", "http://here/v1", Redactor()), one).sentence
