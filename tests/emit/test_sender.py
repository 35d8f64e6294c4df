"""The gRPC end, against real sockets."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from tests.emit.stubs import Bench, events_of
from tests.hook.receiver import Receiver, receiving
from turnscope.emit.sender import GrpcSender, Outcome
from turnscope.emit.settings import Endpoint


def a_batch() -> bytes:
    bench = Bench()
    bench.push("r1")
    bench.cycle()
    return bench.sender.bodies[0]


def test_a_batch_reaches_a_real_receiver() -> None:
    body = a_batch()
    with receiving() as receiver:
        sender = GrpcSender(Endpoint(f"127.0.0.1:{receiver.port}"))
        assert sender.send(body, 5) == (Outcome.SENT, "")
        sender.close()
    assert receiver.events == events_of(body)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (grpc.StatusCode.UNAVAILABLE, Outcome.LATER),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Outcome.REFUSED),
        (grpc.StatusCode.INVALID_ARGUMENT, Outcome.REFUSED),
    ],
)
def test_what_the_receiver_answers_decides_about_another_try(status: grpc.StatusCode, outcome: Outcome) -> None:
    with receiving() as receiver:
        receiver.refuse = status
        sender = GrpcSender(Endpoint(f"127.0.0.1:{receiver.port}"))
        found, why = sender.send(a_batch(), 5)
        sender.close()
    assert found is outcome
    assert status.name in why


def test_a_receiver_without_room_is_tried_again_only_if_it_asks_for_that() -> None:
    with receiving() as receiver:
        receiver.refuse, receiver.come_back = grpc.StatusCode.RESOURCE_EXHAUSTED, True
        sender = GrpcSender(Endpoint(f"127.0.0.1:{receiver.port}"))
        assert sender.send(a_batch(), 5)[0] is Outcome.LATER
        sender.close()


def test_a_batch_that_is_too_large_for_the_receiver_is_refused_and_not_sent_for_ever() -> None:
    with receiving() as receiver:
        sender = GrpcSender(Endpoint(f"127.0.0.1:{receiver.port}"))
        outcome, why = sender.send(bytes(4 * 2**20 + 1), 5)
        sender.close()
    assert outcome is Outcome.REFUSED
    assert "larger than max" in why


def test_a_server_that_knows_no_logs_refuses() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sender = GrpcSender(Endpoint(f"127.0.0.1:{port}"))
    outcome, why = sender.send(b"", 5)
    sender.close()
    server.stop(0).wait()
    assert outcome is Outcome.REFUSED
    assert "UNIMPLEMENTED" in why


def test_nobody_listening_and_nobody_answering_both_mean_later_and_end_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        closed = GrpcSender(Endpoint(f"127.0.0.1:{silent.getsockname()[1]}"))
        assert closed.send(b"", 2)[0] is Outcome.LATER
        closed.close()
        silent.listen()
        began = time.monotonic()
        mute = GrpcSender(Endpoint(f"127.0.0.1:{silent.getsockname()[1]}"))
        assert mute.send(b"", 0.5)[0] is Outcome.LATER
        mute.close()
        assert time.monotonic() - began < 5


def test_after_a_restart_of_the_receiver_the_same_sender_goes_on() -> None:
    with receiving() as first:
        sender = GrpcSender(Endpoint(f"127.0.0.1:{first.port}"))
        assert sender.send(a_batch(), 5)[0] is Outcome.SENT
    assert sender.send(a_batch(), 1)[0] is Outcome.LATER
    again = Receiver()
    with receiving(again, port=first.port):
        deadline = time.monotonic() + 20
        while sender.send(a_batch(), 1)[0] is not Outcome.SENT:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    sender.close()
    assert len(again.events) == 1
