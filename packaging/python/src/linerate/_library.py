"""liblinerate.so.0 by ctypes: one run of a test in a thread of its own."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import queue
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .results import Error, Interval

# Events that wait for their reader; the oldest ones of a server without one are dropped.
EVENTS_MAX = 10_000
DONE, STOPPED = 0, 1

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_library = ctypes.CDLL(str(Path(__file__).with_name("liblinerate.so.0")))
_library.linerate_new.restype = ctypes.c_void_p
_library.linerate_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
_library.linerate_on_event.argtypes = [ctypes.c_void_p, _FUNCTION, ctypes.c_void_p]
_library.linerate_version.restype = ctypes.c_char_p
for _name in ("free", "run", "stop", "result", "error", "error_number"):
    getattr(_library, f"linerate_{_name}").argtypes = [ctypes.c_void_p]
for _name in ("result", "error"):
    getattr(_library, f"linerate_{_name}").restype = ctypes.c_char_p


@dataclass(frozen=True)
class Event:
    """An event of a test, as in `iperf3 --json-stream`."""

    name: str
    """`start`, `interval`, `end`, `error`, `listening` (address of a server) or `warning`."""
    data: Any
    """An object in the form of iperf3; a text for `error` and `warning`."""

    @property
    def interval(self) -> Optional[Interval]:
        """The values of an interval; None for other events."""
        return Interval.from_json(self.data) if self.name == "interval" else None


def version() -> str:
    """Version of the library."""
    text: bytes = _library.linerate_version()
    return text.decode()


class Run:
    """A test that runs in a thread. Leaving its context ends it."""

    def __init__(self, **options: Any) -> None:
        self._test = _library.linerate_new()
        if not self._test:
            raise MemoryError
        # The thread keeps this object, so a test is never freed while it runs: at exit, close() ends it first.
        weakref.finalize(self, _library.linerate_free, self._test).atexit = False
        self._events: queue.Queue[Optional[Event]] = queue.Queue(EVENTS_MAX)
        self._function = _FUNCTION(self._on_event)
        _library.linerate_on_event(self._test, self._function, None)
        for name, value in options.items():
            self._set(name.replace("_", "-"), value)
        self._thread = threading.Thread(target=self._main, name="linerate", daemon=True)
        atexit.register(self.close)
        self._thread.start()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def events(self, timeout: Optional[float] = None) -> Iterator[Event]:
        """The events until the end of the test, as they arrive. `TimeoutError` after `timeout` seconds without one."""
        while True:
            try:
                event = self._events.get(timeout=timeout)
            except queue.Empty:
                raise TimeoutError(f"no event for {timeout} s") from None
            if event is None:
                self._add(None)
                return
            yield event

    def stop(self) -> None:
        """Ends the test. Its report has what was measured until then."""
        _library.linerate_stop(self._test)

    def close(self) -> None:
        """Ends the test, if it runs, and waits for its end."""
        if self._thread.is_alive():
            self.stop()
        self._thread.join()
        atexit.unregister(self.close)

    def document(self) -> dict[str, Any]:
        """The report of a test that has ended. `Error` if it has failed."""
        self._thread.join()
        if self._outcome not in (DONE, STOPPED):
            message = (_library.linerate_error(self._test) or b"").decode(errors="replace")
            raise Error(message, _library.linerate_error_number(self._test))
        document: dict[str, Any] = json.loads(_library.linerate_result(self._test) or b"{}")
        return document

    def _set(self, name: str, value: Any) -> None:
        """Adds an option. True is an option without a value; None and False leave it out."""
        if value is None or value is False:
            return
        text = None if value is True else str(value).encode()
        if _library.linerate_set(self._test, name.encode(), text) != DONE:
            raise ValueError(f"not an option: {name!r}")

    def _main(self) -> None:
        self._outcome = _library.linerate_run(self._test)
        self._add(None)

    def _on_event(self, text: bytes, _user: object) -> None:
        event = json.loads(text)
        self._add(Event(event["event"], event.get("data")))

    def _add(self, event: Optional[Event]) -> None:
        while True:
            with contextlib.suppress(queue.Full):
                return self._events.put_nowait(event)
            with contextlib.suppress(queue.Empty):
                self._events.get_nowait()
