#!/usr/bin/env python3
"""Compares linerate with an installed iperf3 on loopback, or on a virtual cable between two network namespaces.

Each round runs both programs back to back, each client against a server of its own kind, in alternating order
(AB, BA, AB, ...), so that a machine that grows warm or busy treats both alike. A row shows the median over the rounds
of the ratio within a round, and the lowest and highest ratio seen.

    rate ratio   received payload per second, ours / peer; above 1 ours is faster
    cpu ratio    CPU seconds of client and server together per GiB received, ours / peer; below 1 ours is cheaper

Most rows compare two ends of ours with two ends of the peer's. In rows with "to the peer" or "from the peer" one end of
ours works with the peer's other end. Where ours is given an option that the peer lacks, the row's name says so.

A program is not taken at its word: received bytes may not exceed what the kernel counted as received IP octets
(IpExt InOctets), and a run may not take longer than asked. Rows that break this are marked and the exit code is 1.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass


@dataclass
class Row:
    """One comparison: options for both, options for ours alone, and who is at the other end of ours."""

    name: str
    options: str = ""
    ours_only: str = ""
    ours_client: bool = True
    ours_server: bool = True


ROWS = [
    Row("TCP, 1 stream"),
    Row("TCP, 1 stream, to the peer's server", ours_server=False),
    Row("TCP, 1 stream, from the peer's client", ours_client=False),
    Row("TCP, 2 streams", "-P 2"),
    Row("TCP, 8 streams", "-P 8"),
    Row("TCP, 64 streams", "-P 64"),
    Row("TCP, 128 streams", "-P 128"),
    Row("TCP, reverse", "-R"),
    Row("TCP, both ways", "--bidir"),
    Row("TCP, sendfile", "-Z"),
    Row("TCP, ours with --skip-rx-copy", ours_only="--skip-rx-copy"),
    Row("TCP, 32-byte writes, 10 streams", "-l 32 -P 10"),
    Row("TCP, 32-byte blocks, 10 streams, ours with --lr-coalesce", "-l 32 -P 10", "--lr-coalesce"),
    Row("TCP at 1 Gbit/s", "-b 1G"),
    Row("UDP, 1460 bytes, unlimited", "-u -b 0 -l 1460"),
    Row("UDP, 1460 bytes, unlimited, to the peer's server", "-u -b 0 -l 1460", ours_server=False),
    Row("UDP, 1460 bytes, unlimited, ours with --lr-udp-check burst", "-u -b 0 -l 1460", "--lr-udp-check burst"),
    Row("UDP, 64 bytes, unlimited", "-u -b 0 -l 64"),
]

GIB = 2**30
START_LIMIT_S = 5
# What connecting, exchanging results and leaving may take beyond the test itself.
OVERTIME_S = 3


@dataclass
class Run:
    """One test of one program."""

    received_bytes: int
    seconds: float
    cpu_seconds: float
    wall_seconds: float
    kernel_bytes: int
    lost_percent: float | None

    @property
    def rate_bps(self):
        return self.received_bytes * 8 / self.seconds

    @property
    def cpu_per_gib(self):
        return self.cpu_seconds / (self.received_bytes / GIB)


class Failed(Exception):
    """A test that did not complete."""


def main():
    options = arguments()
    rows, honest = [], True
    print(headline(options), flush=True)
    print("| test | ours | peer | rate ratio (lowest to highest) | cpu ratio (lowest to highest) | notes |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder, Place(options.place) as place:
        programs = {who: link(folder, who, getattr(options, who)) for who in ("ours", "peer")}
        for row in ROWS:
            if options.only and options.only not in row.name:
                continue
            result = measure(row, programs, place, options)
            rows.append(result)
            honest = honest and not result["doubts"]
            print(markdown(result), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"environment": environment(options), "rows": rows}, file, indent=2)
            file.write("\n")
    return 0 if honest else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="the linerate program")
    parser.add_argument("--peer", default="iperf3", help="the program to compare with")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="length of each test")
    parser.add_argument("--only", help="run only the rows whose name contains this")
    parser.add_argument("--json", help="write all measurements to this file")
    parser.add_argument("--cpus", help="CPU of the client and CPU of the server, such as 0,1")
    parser.add_argument("--place", choices=["loopback", "veth"], default="loopback", help="veth needs root")
    parser.add_argument("--congestion", help="TCP congestion control algorithm of both, such as cubic")
    return parser.parse_args()


class Place:
    """Where client and server run: on this host, or on two hosts made of namespaces that go when this goes."""

    NAMESPACES = [f"linerate-bench-{os.getpid()}-{side}" for side in ("client", "server")]
    ADDRESSES = ["192.0.2.1", "192.0.2.2"]

    def __init__(self, kind):
        self.veth = kind == "veth"
        self.server_host = self.ADDRESSES[1] if self.veth else "127.0.0.1"
        self.anchors = []

    def __enter__(self):
        if self.veth:
            client, server = self.NAMESPACES
            for name in self.NAMESPACES:
                ip("netns", "add", name)
            ip(*f"link add lr0 netns {client} type veth peer name lr0 netns {server}".split())
            for name, address in zip(self.NAMESPACES, self.ADDRESSES):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "lr0")
                ip("-n", name, "link", "set", "lr0", "up")
            # They keep the namespaces open for reading their counters.
            self.anchors = [subprocess.Popen([*self.prefix(side), "sleep", "infinity"]) for side in (0, 1)]
        return self

    def __exit__(self, *_):
        for anchor in self.anchors:
            anchor.kill()
            anchor.wait()
        if self.veth:
            for name in self.NAMESPACES:
                subprocess.run(["ip", "netns", "delete", name], check=False)

    def prefix(self, side):
        return ["ip", "netns", "exec", self.NAMESPACES[side]] if self.veth else []

    def received_octets(self):
        """Of both hosts: data goes both ways."""
        return sum(in_octets(anchor.pid) for anchor in self.anchors) if self.anchors else in_octets(os.getpid())


def in_octets(pid):
    with open(f"/proc/{pid}/net/netstat", encoding="ascii") as file:
        lines = [line.split() for line in file if line.startswith("IpExt:")]
    return int(lines[1][lines[0].index("InOctets")])


def ip(*words):
    if subprocess.run(["ip", *words], check=False).returncode:
        raise Failed(f"ip {' '.join(words)}: namespaces need root")


def link(folder, who, program):
    """A link called iperf3: linerate is a drop-in replacement under that name only."""
    os.mkdir(os.path.join(folder, who))
    path = os.path.join(folder, who, "iperf3")
    os.symlink(resolve(program), path)
    return path


def measure(row, programs, place, options):
    """All rounds of one row. A warm-up round is thrown away."""
    ends = {
        "ours": (programs["ours" if row.ours_client else "peer"], programs["ours" if row.ours_server else "peer"]),
        "peer": (programs["peer"], programs["peer"]),
    }
    words = {"peer": row.options.split(), "ours": f"{row.options} {row.ours_only}".split()}
    if options.congestion and "-u" not in words["peer"]:
        for who in words:
            words[who] += ["-C", options.congestion]
    rounds = []
    for number in range(-1, options.rounds):
        order = ("ours", "peer") if number % 2 == 0 else ("peer", "ours")
        runs = {who: run_test(ends[who], words[who], place, options) for who in order}
        if number >= 0:
            rounds.append(runs)
    return {
        "name": row.name,
        "options": words,
        "rate_bps": {who: statistics.median(r[who].rate_bps for r in rounds) for who in ("ours", "peer")},
        "cpu_s_per_gib": {who: statistics.median(r[who].cpu_per_gib for r in rounds) for who in ("ours", "peer")},
        "lost_percent": {who: median_or_none([r[who].lost_percent for r in rounds]) for who in ("ours", "peer")},
        "rate_ratio": spread([r["ours"].rate_bps / r["peer"].rate_bps for r in rounds]),
        "cpu_ratio": spread([r["ours"].cpu_per_gib / r["peer"].cpu_per_gib for r in rounds]),
        "doubts": sorted({d for r in rounds for who in r for d in doubts(who, r[who], options)}),
    }


def run_test(ends, extra, place, options):
    """One server, one client; what both cost and what the kernel saw."""
    port = free_port()
    with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as server_output:
        server = start([*place.prefix(1), ends[1], "-s", "-1", "-p", str(port)], server_output, pin(options, 1))
        client = None
        try:
            wait_until_listening(server, port)
            octets = place.received_octets()
            began = time.monotonic()
            command = [ends[0], "-c", place.server_host, "-p", str(port), "-J", "-t", str(options.seconds), *extra]
            client = start([*place.prefix(0), *command], report, pin(options, 0))
            limit = began + options.seconds + 30
            client_cpu = reap(client, limit)
            wall = time.monotonic() - began
            octets = place.received_octets() - octets
            server_cpu = reap(server, limit)
        finally:
            for process in (client, server):
                if process is not None and process.returncode is None:
                    process.kill()
                    process.wait()
        report.seek(0)
        return parse(report.read(), client_cpu + server_cpu, wall, octets, command)


def start(command, output, cpu):
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        preexec_fn=(lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None,
    )


def resolve(program):
    found = subprocess.run(["sh", "-c", 'command -v "$1"', "sh", program], capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"{program}: no such program")
    return os.path.realpath(found.stdout.strip())


def pin(options, side):
    return int(options.cpus.split(",")[side]) if options.cpus else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def wait_until_listening(server, port):
    """Looks into the kernel's tables; connecting would be taken for a client."""
    deadline = time.monotonic() + START_LIMIT_S
    local = f":{port:04X}"
    while time.monotonic() < deadline and server.poll() is None:
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{server.pid}/net/{table}", encoding="ascii") as lines:
                fields = (line.split() for line in lines)
                if any(field[1].endswith(local) and field[3] == "0A" for field in fields):
                    return
        time.sleep(0.005)
    raise Failed("the server does not listen")


def reap(process, deadline):
    """Waits for the end and returns the CPU seconds the process used."""
    while time.monotonic() < deadline:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        time.sleep(0.005)
    raise Failed(f"process {process.pid} does not end")


def parse(text, cpu, wall, octets, command):
    try:
        report = json.loads(text[text.index(b"{"):])
    except ValueError as error:
        raise Failed(f"{command}: no report: {text[-300:]!r}") from error
    if "error" in report:
        raise Failed(f"{command}: {report['error']}")
    end = report["end"]
    sums = [end[key] for key in ("sum_received", "sum_received_bidir_reverse") if key in end]
    lost = sums[0].get("lost_percent")
    received = sum(one["bytes"] for one in sums)
    if not received:
        raise Failed(f"{command}: nothing received")
    return Run(received, max(one["seconds"] for one in sums), cpu, wall, octets, lost)


def doubts(who, run, options):
    if run.received_bytes > run.kernel_bytes:
        yield f"{who} reports more than the kernel received"
    if run.wall_seconds > options.seconds + OVERTIME_S:
        yield f"{who} ran longer than asked"


def spread(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def median_or_none(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def markdown(row):
    rate = {who: f"{value / 1e9:.2f} Gbit/s" for who, value in row["rate_bps"].items()}
    ratio = {key: "{median:.2f} ({lowest:.2f} to {highest:.2f})".format(**row[key]) for key in ("rate_ratio", "cpu_ratio")}
    notes = list(row["doubts"])
    if row["lost_percent"]["ours"] is not None:
        notes.append("lost {ours:.1f} % against {peer:.1f} %".format(**row["lost_percent"]))
    cells = [row["name"], rate["ours"], rate["peer"], ratio["rate_ratio"], ratio["cpu_ratio"], "; ".join(notes)]
    return "| " + " | ".join(cells) + " |"


def environment(options):
    return {
        "ours": version(options.ours),
        "peer": version(options.peer),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "pinned": options.cpus,
        "place": options.place,
        "congestion": options.congestion or kernel_default("tcp_congestion_control"),
    }


def headline(options):
    facts = environment(options)
    return (
        "{ours} against {peer}; {cpu} ({cpus} CPUs), Linux {kernel}, {place}, "
        "{congestion}, {rounds} rounds of {seconds} s, pinned: {pinned}\n"
    ).format(**facts)


def version(program):
    command = subprocess.run(["iperf3", "--version"], executable=resolve(program), capture_output=True, text=True, check=False)
    return command.stdout.splitlines()[0] if command.stdout else "unknown"


def kernel_default(name):
    with open(f"/proc/sys/net/ipv4/{name}", encoding="ascii") as file:
        return file.read().strip()


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"bench: {failure}")
