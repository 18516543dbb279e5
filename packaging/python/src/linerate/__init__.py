"""Network throughput tests with the options, the protocol and the reports of iperf3, by liblinerate.

    import linerate

    result = linerate.Client("192.0.2.7", parallel=4, reverse=True, time=5).run()
    print(result.received.bits_per_second, result.sent.retransmits)
"""

from ._library import Event, version
from .client import Client
from .results import CpuUtilization, Error, Interval, Result, Stream, Summary
from .server import Server

__version__ = version()
__all__ = ["Client", "CpuUtilization", "Error", "Event", "Interval", "Result", "Server", "Stream", "Summary"]
