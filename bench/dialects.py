"""How the programs of each dialect are called, and how their reports are read."""

import json
import re
import signal

from places import Failed

# iperf 2 takes no unlimited rate for UDP; this is one that nothing here reaches.
UNREACHED_RATE = "100g"


# A client that runs this many times longer than its streams did not run them all at once.
LATE_SHARE = 1.5


class Iperf3:
    """iperf3: the client reports everything, the server of one test ends by itself."""

    name = "iperf3"
    ending = None

    @staticmethod
    def is_served(_server_report):
        """The server has read all that the client sent."""
        return True

    @staticmethod
    def server(port, _words):
        return ["-s", "-1", "-p", str(port)]

    @staticmethod
    def client(host, port, seconds, words):
        return ["-c", host, "-p", str(port), "-J", "-t", str(seconds), *words]

    @staticmethod
    def seconds(reported, _wall):
        return reported

    @staticmethod
    def parse(client_report, _server_report):
        """Bytes received, the seconds they took, and the share lost in percent or None."""
        try:
            report = json.loads(client_report[client_report.index("{"):])
        except ValueError as error:
            raise Failed(f"no report: {client_report[-300:]!r}") from error
        if "error" in report:
            raise Failed(report["error"])
        end = report["end"]
        sums = [end[key] for key in ("sum_received", "sum_received_bidir_reverse") if key in end]
        received = sum(one["bytes"] for one in sums)
        return received, max(one["seconds"] for one in sums), sums[0].get("lost_percent")


class Iperf2:
    """iperf 2: the server reports what arrived, and ends when it is interrupted."""

    name = "iperf"
    ending = signal.SIGINT
    connected = re.compile(r"^\[ *\*?\d+\] local .* connected with ", re.MULTILINE)
    total = re.compile(r"^\[ *\*?\d+\] +([\d.]+)-([\d.]+) sec +(\d+) Bytes .*?(?:(\d+)/ *(\d+) \(|$)", re.MULTILINE)

    @staticmethod
    def server(port, words):
        return ["-s", "-p", str(port), "-f", "B", *(["-u"] if "-u" in words else [])]

    @staticmethod
    def client(host, port, seconds, words):
        return ["-c", host, "-p", str(port), "-f", "B", "-t", str(seconds), *words]

    @staticmethod
    def seconds(reported, wall):
        """Each stream reports its own seconds. With 100 streams 2.2.1 starts the last ones when the first have ended."""
        return wall if wall > LATE_SHARE * reported else reported

    @classmethod
    def is_served(cls, server_report):
        return len(cls.total.findall(server_report)) >= len(cls.connected.findall(server_report))

    @classmethod
    def parse(cls, _client_report, server_report):
        totals = [match.groups() for match in cls.total.finditer(server_report)]
        if not totals:
            raise Failed(f"no report: {server_report[-300:]!r}")
        received = sum(int(total[2]) for total in totals)
        sent = sum(int(total[4] or 0) for total in totals)
        lost = 100 * sum(int(total[3] or 0) for total in totals) / sent if sent else None
        return received, max(float(end) - float(start) for start, end, *_ in totals), lost


class Connections(Iperf2):
    """iperf 2, opening connections and nothing else. Not bytes are counted but connections, by the client."""

    @staticmethod
    def is_served(_server_report):
        return True

    @staticmethod
    def client(host, port, _seconds, words):
        return ["-c", host, "-p", str(port), *words]

    @staticmethod
    def seconds(_reported, wall):
        return wall

    @classmethod
    def parse(cls, client_report, _server_report):
        return len(cls.connected.findall(client_report)), None, None
