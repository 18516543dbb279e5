"""Server of iperf3's protocol."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, Optional

from ._library import Event, Run
from .results import Result


class Server:
    """A server for any number of clients of iperf3 or linerate. Leaving its context ends it.

    It listens when the constructor returns. Options are the long names of `linerate iperf3`, with `_` for `-`.
    """

    def __init__(self, host: str = "127.0.0.1", port: Optional[int] = None, **options: Any) -> None:
        """`host` is the address to bind, `port` the port; None is a free one."""
        self._run = Run(server=True, bind=host, port=port or _free_port(host), **options)
        for event in self._run.events():
            if event.name == "listening":
                self.host: str = event.data["host"]
                self.port: int = event.data["port"]
                return
        self._run.document()
        raise RuntimeError("the server ended before it listened")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def events(self, timeout: Optional[float] = None) -> Iterator[Event]:
        """Events of all tests as they arrive. `TimeoutError` after `timeout` seconds without one."""
        return self._run.events(timeout)

    def next_result(self, timeout: Optional[float] = None) -> Result:
        """Waits for the end of a test and returns its result. `TimeoutError` after `timeout` seconds without an event.

        It has no intervals: several tests may run at the same time.
        """
        for event in self.events(timeout):
            if event.name == "end":
                return Result.from_json({"end": event.data})
        raise RuntimeError("the server has ended")

    def close(self) -> None:
        """Ends the server and the tests that run."""
        self._run.close()


def _free_port(host: str) -> int:
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        port: int = listener.getsockname()[1]
        return port
