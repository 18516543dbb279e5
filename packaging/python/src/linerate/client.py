"""Client of iperf3's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from ._library import Event, Run
from .results import Result


class Client:
    """A test to a server of iperf3 or linerate.

    Options are the long names of `linerate iperf3`, with `_` for `-`: `time=5`, `parallel=4`, `reverse=True`, `udp=True`,
    `bitrate="100M"`, `connect_timeout=3000`. They act in their order; a test that runs checks them.
    """

    def __init__(self, host: str, **options: Any) -> None:
        self.options = {"client": host, **options}
        self.result: Optional[Result] = None
        """Result of the last test that has ended."""
        self._run: Optional[Run] = None

    def run(self) -> Result:
        """Runs the test. `linerate.Error` if it fails."""
        for _ in self.events():
            pass
        assert self.result is not None, "a test that has ended has a result"
        return self.result

    def events(self) -> Iterator[Event]:
        """Runs the test and yields its events as they arrive. A loop that is left ends the test."""
        self.result = None
        with Run(**self.options) as self._run:
            yield from self._run.events()
            self.result = Result.from_json(self._run.document())

    def stop(self) -> None:
        """Ends a test that runs in another thread; the result has what was measured until then."""
        if self._run is not None:
            self._run.stop()
