"""HTTP servers and load generators: how they are called, and what they say they did."""

import json
import os
import re
from dataclasses import dataclass

from places import Failed

PAYLOADS = {"1k": 1 << 10, "10k": 10 << 10, "100k": 100 << 10}


@dataclass
class Answers:
    """What a generator got."""

    count: int
    failed: int
    seconds: float


class Nginx:
    """nginx with one process and everything that makes it faster: no log, descriptors of files kept, no limit of
    requests per connection. The master, which does nothing while requests are served, is left out, so that ending the
    process ends all of it."""

    name = "nginx"
    version_option = "-v"
    connections_max = 19_000

    def __init__(self, program, folder):
        self.program = program
        self.folder = os.path.join(folder, "nginx")
        os.makedirs(os.path.join(self.folder, "www"))
        for name, length in {**PAYLOADS, "0": 0}.items():
            with open(os.path.join(self.folder, "www", name), "wb") as file:
                file.write(b"x" * length)

    def command(self, host, port):
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind}; " for kind in kinds)
        file = os.path.join(self.folder, "nginx.conf")
        with open(file, "w", encoding="ascii") as configuration:
            configuration.write(
                f"daemon off; master_process off; pid {self.folder}/pid; worker_rlimit_nofile {self.connections_max};\n"
                f"events {{ worker_connections {self.connections_max}; multi_accept on; }}\n"
                f"http {{ {temporary}\n"
                "access_log off; sendfile on; tcp_nodelay on; open_file_cache max=16; open_file_cache_valid 1h;\n"
                "keepalive_requests 1000000000; keepalive_timeout 1h; default_type application/octet-stream;\n"
                f"server {{ listen {host}:{port} backlog=65535; root {self.folder}/www; }} }}\n"
            )
        return [self.program, "-c", file, "-e", os.path.join(self.folder, "error.log")]

    @staticmethod
    def is_ready(_report):
        return True


class Server:
    """linerate http serve with one thread."""

    name = "linerate http serve"

    def __init__(self, program, _folder):
        self.program = program

    def command(self, host, port):
        return [self.program, "http", "serve", "--bind", f"{host}:{port}", "--threads", "1", "--no-control", "--tcp=0"]

    @staticmethod
    def is_ready(report):
        """Its measurements at start have finished then."""
        return "Listening on" in report


class Load:
    """linerate http load with one thread."""

    name = "linerate http load"

    def __init__(self, program):
        self.program = program

    def command(self, url, seconds, connections, *more):
        words = ["-c", str(connections), "-d", f"{seconds}s", "--warmup", "0", "--threads", "1", "--json", "--quiet"]
        return [self.program, "http", "load", url, *words, *more]

    def parse(self, report):
        result = self.result(report)
        failed = sum(one["count"] for one in result["errors"].values())
        return Answers(result["ok"], failed, result["window_ns"] / 1e9)

    @staticmethod
    def result(report):
        try:
            whole = json.loads(report[report.index("{"):])
        except ValueError as error:
            raise Failed(f"no report: {report[-300:]!r}") from error
        return whole["trials"][0]["detail"]["cell"]["load"]


class Wrk:
    """wrk with one thread."""

    name = "wrk"
    version_option = "-v"
    total = re.compile(r"^ *(\d+) requests in", re.MULTILINE)
    rate = re.compile(r"^Requests/sec: +([\d.]+)", re.MULTILINE)
    bad = re.compile(r"Non-2xx or 3xx responses: (\d+)|(?:connect|read|write|timeout) (\d+)")

    def __init__(self, program):
        self.program = program

    def command(self, url, seconds, connections):
        return [self.program, "-t1", f"-c{connections}", f"-d{seconds}s", url]

    def parse(self, report):
        count = number(self.total, report)
        failed = sum(int(one or two) for one, two in self.bad.findall(report))
        return Answers(count, failed, count / float(found(self.rate, report)))


class Ab:
    """ab, which uses HTTP/1.0 and keeps its connections."""

    name = "ab"
    version_option = "-V"
    total = re.compile(r"^Complete requests: +(\d+)", re.MULTILINE)
    kept = re.compile(r"^Keep-Alive requests: +(\d+)", re.MULTILINE)
    took = re.compile(r"^Time taken for tests: +([\d.]+)", re.MULTILINE)
    # More than it gets through in the time. It keeps a record of each request.
    requests_max = 20_000_000

    def __init__(self, program):
        self.program = program

    def command(self, url, seconds, connections):
        # The number after the time, which would set another one.
        return [self.program, "-k", "-q", "-c", str(connections), "-t", str(seconds), "-n", str(self.requests_max), url]

    def parse(self, report):
        count = number(self.total, report)
        return Answers(count, count - number(self.kept, report), float(found(self.took, report)))


class H2load:
    """h2load with one thread, speaking HTTP/1.1."""

    name = "h2load"
    version_option = "--version"
    total = re.compile(r"(\d+) succeeded, (\d+) failed")
    rate = re.compile(r"^finished in .*, ([\d.]+) req/s", re.MULTILINE)

    def __init__(self, program):
        self.program = program

    def command(self, url, seconds, connections):
        return [self.program, "--h1", "-t1", f"-c{connections}", f"-D{seconds}", "--warm-up-time=0", url]

    def parse(self, report):
        count = number(self.total, report)
        failed = int(self.total.search(report).group(2))
        return Answers(count, failed, count / float(found(self.rate, report)))


def found(pattern, report):
    match = pattern.search(report)
    if not match:
        raise Failed(f"no report: {report[-300:]!r}")
    return match.group(1)


def number(pattern, report):
    count = int(found(pattern, report))
    if not count:
        raise Failed("no request was answered")
    return count
