"""Fixtures for pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Server


@pytest.fixture
def linerate_server() -> Iterator[Server]:
    """A server of iperf3 on a free port of 127.0.0.1 for one test of pytest: `linerate_server.port`."""
    with Server() as server:
        yield server
