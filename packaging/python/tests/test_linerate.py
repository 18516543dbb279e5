"""The installed wheel: its program, its module, its fixture. iperf3, where it is installed, is the other end of two tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import linerate

PROGRAM = str(Path(sys.executable).with_name("linerate"))
needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def client(server: linerate.Server, **options: object) -> linerate.Client:
    return linerate.Client(server.host, port=server.port, **options)


def test_program_has_the_version_of_the_module() -> None:
    shown = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
    assert shown.split()[:2] == ["linerate", linerate.__version__]


def test_both_ends_have_the_same_bytes(linerate_server: linerate.Server) -> None:
    result = client(linerate_server, bytes="4M", parallel=2).run()
    assert result.sent.sender and result.sent.bytes == result.received.bytes >= 4 << 20
    assert result.sent.retransmits is not None and result.sent.jitter_ms is None
    assert linerate_server.next_result(10).received.bytes == result.received.bytes
    assert result.document["start"]["test_start"]["num_streams"] == 2


def test_intervals_add_up(linerate_server: linerate.Server) -> None:
    result = client(linerate_server, time=1, interval=0.25, omit=1, bitrate="8M").run()
    measured = [interval for interval in result.intervals if not interval.sum.omitted]
    assert len(result.intervals) > len(measured) >= 4
    assert sum(interval.sum.bytes for interval in measured) == result.sent.bytes
    assert all(stream.rtt for interval in measured for stream in interval.streams)


def test_udp_has_packets_and_jitter(linerate_server: linerate.Server) -> None:
    result = client(linerate_server, udp=True, bitrate="4M", length=1000, time=1).run()
    assert result.sent.packets and result.sent.retransmits is None
    assert result.received.lost_packets == 0 and result.received.jitter_ms is not None


def test_bidir_has_both_directions(linerate_server: linerate.Server) -> None:
    result = client(linerate_server, bidir=True, time=1, bitrate="8M").run()
    assert result.received.bytes and result.received_reverse is not None and result.received_reverse.bytes
    assert result.intervals[0].sum_reverse is not None


def test_events_arrive_while_the_test_runs(linerate_server: linerate.Server) -> None:
    test = client(linerate_server, time=60, interval=0.1)
    names = []
    for event in test.events():
        names.append(event.name)
        if event.interval is not None:
            assert event.interval.sum.bits_per_second
            break
    # The loop was left in the first of 60 seconds: the server reports the end of the test.
    assert names == ["start", "interval"] and test.result is None
    assert linerate_server.next_result(10).received.seconds < 30


def test_stop_keeps_what_was_measured(linerate_server: linerate.Server) -> None:
    test = client(linerate_server, time=60, interval=0.1)
    for event in test.events():
        if event.name == "interval":
            threading.Thread(target=test.stop).start()
    assert test.result is not None and test.result.sent.bytes and test.result.sent.seconds < 30


def test_clients_run_at_the_same_time(linerate_server: linerate.Server) -> None:
    tests = [client(linerate_server, time=1, bitrate="8M") for _ in range(3)]
    threads = [threading.Thread(target=test.run) for test in tests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(test.result is not None and test.result.received.bytes for test in tests)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({}, "Connection refused"), ({"unknown": True}, "unrecognized option '--unknown'"), ({"parallel": 999}, "streams")],
)
def test_failures_have_the_reason(options: dict[str, object], reason: str) -> None:
    with pytest.raises(linerate.Error, match=reason) as failure:
        linerate.Client("127.0.0.1", port=closed_port(), **options).run()
    assert isinstance(failure.value.number, int)


def test_port_in_use_is_an_error(linerate_server: linerate.Server) -> None:
    with pytest.raises(linerate.Error, match="in use"):
        linerate.Server(port=linerate_server.port)


def test_port_is_free_after_the_server() -> None:
    with linerate.Server() as server:
        port = server.port
        with pytest.raises(TimeoutError):
            server.next_result(0.01)
    with linerate.Server(port=port) as server:
        assert server.port == port


def test_python_exits_while_a_server_runs() -> None:
    program = "import linerate; server = linerate.Server(); print(server.port)"
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=30).stderr == b""


@needs_iperf3
def test_iperf3_is_a_client(linerate_server: linerate.Server) -> None:
    subprocess.run(["iperf3", "-c", "127.0.0.1", "-p", str(linerate_server.port), "-n", "1M"], check=True, capture_output=True)
    assert linerate_server.next_result(10).received.bytes >= 1 << 20


@needs_iperf3
def test_iperf3_is_a_server() -> None:
    port = str(closed_port())
    server = subprocess.Popen(["iperf3", "-s", "-1", "-p", port, "--forceflush"], stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdout is not None and any("listening" in line for line in server.stdout)
        assert linerate.Client("127.0.0.1", port=port, bytes="1M").run().received.bytes
