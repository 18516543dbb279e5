"""Results of a test. Names and units are those of iperf3's JSON; what was not measured is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Optional, TypeVar

T = TypeVar("T")


class Error(Exception):
    """A test has failed. The text has the reason."""

    def __init__(self, reason: str, number: int = 0) -> None:
        super().__init__(reason)
        self.number = number
        """Number of the error in iperf3 (`i_errno`)."""


def _read(kind: type[T], values: Mapping[str, Any]) -> T:
    """The members of an object that a class has. Peers of other versions have further ones."""
    names = {member.name for member in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in values.items() if name in names})


@dataclass(frozen=True)
class Summary:
    """One direction of a test over a period: an interval, or the whole test without its warm-up (`omit`)."""

    start: float
    """Begin of the period in seconds after that of the test."""
    end: float
    seconds: float
    bytes: int
    """Payload bytes."""
    bits_per_second: float
    sender: bool
    """True if the reporting host sends."""
    omitted: bool = False
    """True for an interval of the warm-up."""
    retransmits: Optional[int] = None
    """Retransmitted TCP segments."""
    packets: Optional[int] = None
    """UDP datagrams."""
    lost_packets: Optional[int] = None
    lost_percent: Optional[float] = None
    jitter_ms: Optional[float] = None
    """Jitter of UDP (RFC 1889) in milliseconds."""


@dataclass(frozen=True)
class Stream(Summary):
    """One stream over an interval."""

    socket: Optional[int] = None
    """Number of the socket, which names the stream."""
    snd_cwnd: Optional[int] = None
    """TCP congestion window in bytes."""
    rtt: Optional[int] = None
    """Smoothed round-trip time of TCP in microseconds."""
    rttvar: Optional[int] = None
    """Variation of the round-trip time in microseconds."""
    pmtu: Optional[int] = None
    """Path MTU in bytes."""


@dataclass(frozen=True)
class Interval:
    """An interval of a test."""

    streams: list[Stream]
    sum: Summary
    """All streams of the direction of the test."""
    sum_reverse: Optional[Summary]
    """All streams of the other direction (`bidir`)."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Interval:
        """Reads an interval of a report, or the data of an event."""
        reverse = data.get("sum_bidir_reverse")
        return cls(
            [_read(Stream, stream) for stream in data["streams"]],
            _read(Summary, data["sum"]),
            None if reverse is None else _read(Summary, reverse),
        )


@dataclass(frozen=True)
class CpuUtilization:
    """CPU time of both ends in per cent of one CPU."""

    host_total: Optional[float] = None
    host_user: Optional[float] = None
    host_system: Optional[float] = None
    remote_total: Optional[float] = None
    remote_user: Optional[float] = None
    remote_system: Optional[float] = None


@dataclass(frozen=True)
class Result:
    """Result of a test."""

    sent: Summary
    """What the sender counted."""
    received: Summary
    """What the receiver counted: the goodput of the path."""
    sent_reverse: Optional[Summary]
    """The other direction (`bidir`)."""
    received_reverse: Optional[Summary]
    cpu: CpuUtilization
    intervals: list[Interval]
    document: Mapping[str, Any] = field(repr=False)
    """The report of `iperf3 -J`."""

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Result:
        """Reads a report of `iperf3 -J`. `Error` if it has no totals."""
        end = document.get("end", {})
        if "sum_sent" not in end or "sum_received" not in end:
            raise Error(document.get("error") or "the test ended before its data")

        def reverse(name: str) -> Optional[Summary]:
            values = end.get(f"{name}_bidir_reverse")
            return None if values is None else _read(Summary, values)

        return cls(
            sent=_read(Summary, end["sum_sent"]),
            received=_read(Summary, end["sum_received"]),
            sent_reverse=reverse("sum_sent"),
            received_reverse=reverse("sum_received"),
            cpu=_read(CpuUtilization, end.get("cpu_utilization_percent", {})),
            intervals=[Interval.from_json(interval) for interval in document.get("intervals", [])],
            document=document,
        )
