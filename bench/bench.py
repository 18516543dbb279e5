#!/usr/bin/env python3
"""Compares linerate with an installed iperf3 and iperf 2 on loopback, or on a virtual cable between two network
namespaces.

Each round runs both programs back to back, each client against a server of its own kind, in alternating order
(AB, BA, AB, ...), so that a machine that grows warm or busy treats both alike. A row shows the median over the rounds
of the ratio within a round, and its 95 % interval (bootstrap).

    rate ratio   received payload (or connections) per second, ours / peer; above 1 ours is faster
    cpu ratio    CPU seconds of client and server together per GiB received (or per connection), ours / peer; below 1
                 ours is cheaper
    of floor     rate of ours / rate of bench/floor.c, which moves the same bytes without any protocol, with its fastest
                 setting on this machine; run in the same round, on loopback

Most rows compare two ends of ours with two ends of the peer's. In rows with "to the peer" or "from the peer" one end of
ours works with the peer's other end. Where ours is given an option that the peer does not have, the row's name says so.

The notes name how long a cache line took from CPU to CPU before each test (bench/transfer.c), where that varied: a host
may move the CPUs of a guest, and two ends on one machine are as fast as their caches are near.

A program is not taken at its word: received bytes may not exceed what the kernel counted as received IP octets
(IpExt InOctets), and a run may not take longer than asked. Rows that break this are marked and the exit code is 1.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace

from dialects import Connections, Iperf2, Iperf3, UNREACHED_RATE
from facts import caches, commit, cpu_model, kernel_default, version
from places import Failed, Place, free_port, pin, reap, resolve, run_program, start, text, wait_until, wait_until_listening
from rounds import interleaved, medians, ratio_text, ratios, spread


@dataclass
class Row:
    """One comparison: options for both, options for ours alone, and who is at the other end of ours."""

    name: str
    options: str = ""
    ours_only: str = ""
    ours_client: bool = True
    ours_server: bool = True
    dialect: type = Iperf3
    # Options of floor.c for the same streams; None where it has no counterpart.
    floor: str | None = None


def iperf2(name, options=""):
    """A row in which both ends are one kind of iperf 2."""
    return Row(f"iperf 2: {name}", options, dialect=Iperf2)


ROWS = [
    Row("TCP, 1 stream", floor="-P 1"),
    Row("TCP, 1 stream, to the peer's server", ours_server=False),
    Row("TCP, 1 stream, from the peer's client", ours_client=False),
    Row("TCP, 2 streams", "-P 2"),
    Row("TCP, 8 streams", "-P 8", floor="-P 8"),
    Row("TCP, 8 streams, from the peer's client", "-P 8", ours_client=False),
    Row("TCP, 64 streams", "-P 64", floor="-P 64"),
    Row("TCP, 64 streams, to the peer's server", "-P 64", ours_server=False),
    Row("TCP, 64 streams, from the peer's client", "-P 64", ours_client=False),
    Row("TCP, 128 streams", "-P 128", floor="-P 128"),
    Row("TCP, reverse", "-R", floor="-P 1"),
    Row("TCP, both ways", "--bidir", floor="-P 1"),
    Row("TCP, both ways, 8 streams", "--bidir -P 8"),
    Row("TCP, both ways, 8 streams, from the peer's client", "--bidir -P 8", ours_client=False),
    Row("TCP, both ways, 64 streams, from the peer's client", "--bidir -P 64", ours_client=False),
    Row("TCP, sendfile", "-Z"),
    Row("TCP, sendfile, 8 streams", "-Z -P 8"),
    Row("TCP, ours with --skip-rx-copy", ours_only="--skip-rx-copy", floor="-P 1 -T"),
    Row("TCP, 32-byte writes, 10 streams", "-l 32 -P 10"),
    Row("TCP, 32-byte writes, 10 streams, to the peer's server", "-l 32 -P 10", ours_server=False),
    Row("TCP, 32-byte writes, 10 streams, from the peer's client", "-l 32 -P 10", ours_client=False),
    Row("TCP, 1400-byte writes, 10 streams, from the peer's client", "-l 1400 -P 10", ours_client=False),
    Row("TCP, 8 KiB writes, 10 streams", "-l 8K -P 10"),
    Row("TCP, 32-byte blocks, 10 streams, ours with --lr-coalesce", "-l 32 -P 10", "--lr-coalesce"),
    Row("TCP at 1 Gbit/s", "-b 1G"),
    Row("UDP, 1460 bytes, unlimited", "-u -b 0 -l 1460", floor="-u 1460"),
    Row("UDP, 1460 bytes, unlimited, to the peer's server", "-u -b 0 -l 1460", ours_server=False),
    Row("UDP, 1460 bytes, unlimited, from the peer's client", "-u -b 0 -l 1460", ours_client=False),
    Row("UDP, 1460 bytes, unlimited, ours with --lr-udp-check burst", "-u -b 0 -l 1460", "--lr-udp-check burst"),
    Row("UDP, 64 bytes, unlimited", "-u -b 0 -l 64"),
    iperf2("TCP, 1 stream"),
    iperf2("TCP, 2 streams", "-P 2"),
    iperf2("TCP, 8 streams", "-P 8"),
    iperf2("TCP, 64 streams", "-P 64"),
    iperf2("TCP, 32-byte writes, 100 streams", "-l 32 -P 100"),
    iperf2("UDP, 1470 bytes, unlimited", f"-u -b {UNREACHED_RATE}"),
    iperf2("UDP, 64 bytes, unlimited", f"-u -b {UNREACHED_RATE} -l 64"),
    Row("iperf 2: opening connections", "--connect-only=3000", dialect=Connections),
]

TABLE_HEAD = (
    "| test | ours | peer | rate ratio (95 %) | CPU ratio (95 %) | of floor (95 %) | notes |\n|---|---|---|---|---|---|---|"
)

# Settings of floor.c of which the fastest counts.
FLOOR_SETTINGS = ("-c 8", "-c 8 -p 30", "-c 32")

GIB = 2**30
# What connecting, exchanging results and leaving may take beyond the test itself.
OVERTIME_S = 3
# Longest wait for the report of a server.
SETTLING_S = 2


@dataclass
class Run:
    """One test of one program."""

    dialect: type
    received: int
    seconds: float
    cpu_seconds: float
    client_cpu_seconds: float
    wall_seconds: float
    kernel_bytes: int
    lost_percent: float | None
    # Before the test.
    transfer_ns: int | None = None

    @property
    def counts_bytes(self):
        return self.dialect is not Connections

    @property
    def rate(self):
        """bit/s, or connections per second."""
        return self.received * (8 if self.counts_bytes else 1) / self.seconds

    @property
    def cpu_cost(self):
        """CPU seconds per GiB, or per connection."""
        return self.cpu_seconds / (self.received / (GIB if self.counts_bytes else 1))


def main():
    options = arguments()
    rows, honest = [], True
    facts = environment(options)
    print(headline(facts), flush=True)
    print(TABLE_HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder, Place(options.place, options.congestion) as place:
        programs = links(folder, options)
        floor, transfer = Floor(folder, options, place), Transfer(folder, options)
        for row in ROWS:
            if not is_wanted(row.name, options):
                continue
            result = measure_with_recheck(row, programs[row.dialect.name], floor, transfer, place, options)
            rows.append(result)
            honest = honest and not result["doubts"]
            print(markdown(result), flush=True)
    write_json(options, {"environment": facts, "rows": rows})
    return 0 if honest else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_arguments(parser, rounds=7)
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="run only the rows whose name contains one of these")
    parser.add_argument("--exact", action="store_true", help="--only names whole rows")
    parser.add_argument(
        "--recheck",
        type=int,
        metavar="ROUNDS",
        help="measure a row again with this number of rounds if its whole interval of the rate ratio is below 1",
    )
    return parser.parse_args()


def is_wanted(name, options):
    if not options.only:
        return True
    return name in options.only if options.exact else any(part in name for part in options.only)


def common_arguments(parser, rounds):
    parser.add_argument("--ours", required=True, help="the linerate program")
    parser.add_argument("--peer", default="iperf3", help="the program to compare with")
    parser.add_argument("--peer2", default="iperf", help="the program to compare with in the dialect of iperf 2")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=int, default=2, help="length of each test")
    parser.add_argument("--json", help="write all measurements to this file")
    parser.add_argument("--cpus", help="CPU of the client and CPU of the server, such as 0,1")
    parser.add_argument("--place", choices=["loopback", "veth"], default="loopback", help="veth needs root")
    parser.add_argument("--congestion", help="default congestion control where the tests run, such as cubic; needs root")


def write_json(options, measurements):
    """Keeps all measurements, if `--json` asks for that."""
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(measurements, file, indent=2)
            file.write("\n")


def links(folder, options):
    """Links called iperf3 and iperf: linerate is a drop-in replacement under those names only."""
    peers = {"iperf3": options.peer, "iperf": options.peer2}
    programs = {}
    for name, peer in peers.items():
        programs[name] = {}
        for who, program in (("ours", options.ours), ("peer", peer)):
            place = os.path.join(folder, name, who)
            os.makedirs(place)
            programs[name][who] = os.path.join(place, name)
            os.symlink(resolve(program), programs[name][who])
    return programs


class Floor:
    """The minimal program. It is built and run only where it has a counterpart."""

    def __init__(self, folder, options, place):
        self.options = options
        self.prefix = place.prefix(0)
        self.program = os.path.join(folder, "floor")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floor.c")
        if options.place == "loopback":
            subprocess.run(["cc", "-O2", "-o", self.program, source], check=True)

    def settings(self, row):
        """Options of all runs in one round; those on both sides of a + run at once."""
        if row.floor is None or self.options.place != "loopback":
            return []
        cpus = self.options.cpus.split(",") if self.options.cpus else ["-1", "-1"]
        forward, reverse = ",".join(cpus), ",".join(reversed(cpus))
        words = row.options.split()
        ways = [forward, reverse] if "--bidir" in words else [reverse] if "-R" in words else [forward]
        return [" + ".join(f"{setting} {row.floor} -C {way}" for way in ways) for setting in FLOOR_SETTINGS]

    def rate(self, setting):
        """bit/s of all that run at once."""
        commands = [[*self.prefix, self.program, "-t", str(self.options.seconds), *one.split()] for one in setting.split(" + ")]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        reports = [program.communicate()[0] for program in running]
        if any(program.returncode for program in running):
            raise RuntimeError(f"the floor failed: {setting}")
        return sum(float(report.split()[0]) for report in reports) * 1e9


class Transfer:
    """How long a cache line takes between the two CPUs of the tests."""

    def __init__(self, folder, options):
        self.cpus = options.cpus or "0,1"
        self.program = os.path.join(folder, "transfer")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transfer.c")
        subprocess.run(["cc", "-O2", "-pthread", "-o", self.program, source], check=True)

    def measure(self):
        """Nanoseconds; None on a single CPU."""
        if len(set(self.cpus.split(","))) == 1 or os.cpu_count() == 1:
            return None
        return int(subprocess.run([self.program, self.cpus], capture_output=True, check=True).stdout)


def transfer_note(row):
    """Nothing where the CPUs of a machine stay as near as they are."""
    known = [one for one in row.get("transfer_ns", []) if one is not None]
    changed = bool(known) and max(known) > 2 * min(known)
    return [f"a cache line took {min(known)} to {max(known)} ns between the CPUs"] if changed else []


def recheck_note(row):
    """The ratio of the first rounds, where more rounds replaced them."""
    first = row.get("first")
    return [f"{row['rounds']} rounds; the first {first['rounds']} had {ratio_text(first['rate_ratio'])}"] if first else []


def floor_ratio(rounds, settings):
    """Ours divided by the fastest setting's rate in the same round; None without a floor."""
    if not settings:
        return None
    fastest = max(settings, key=lambda setting: statistics.median(one[setting] for one in rounds))
    return {"setting": fastest, **spread([one["ours"].rate / one[fastest] for one in rounds])}


def measure_with_recheck(row, programs, floor, transfer, place, options):
    """One row, with more rounds where few say that ours is slower.

    Of two programs that are equally fast, ours is behind in all of four rounds once in sixteen rows by chance alone.
    """
    first = measure(row, programs, floor, transfer, place, options)
    if options.recheck is None or first["rate_ratio"]["high"] >= 1:
        return first
    again = measure(row, programs, floor, transfer, place, argparse.Namespace(**{**vars(options), "rounds": options.recheck}))
    return {**again, "first": {"rounds": options.rounds, "rate_ratio": first["rate_ratio"]}}


def measure(row, programs, floor, transfer, place, options):
    """All rounds of one row."""
    ends = {
        "ours": (programs["ours" if row.ours_client else "peer"], programs["ours" if row.ours_server else "peer"]),
        "peer": (programs["peer"], programs["peer"]),
    }
    words = {"peer": row.options.split(), "ours": f"{row.options} {row.ours_only}".split()}
    settings = floor.settings(row)

    def test(who):
        transfer_ns = transfer.measure()
        return replace(run_test(row.dialect, ends[who], words[who], place, options), transfer_ns=transfer_ns)

    rounds = interleaved(
        options.rounds,
        lambda who: test(who) if who in ends else floor.rate(who),
        ("ours", "peer", *settings),
    )
    return {
        "name": row.name,
        "options": words,
        "rounds": options.rounds,
        "unit": "bit/s" if rounds[0]["ours"].counts_bytes else "connections/s",
        "rate": medians(rounds, lambda run: run.rate),
        "cpu_cost": medians(rounds, lambda run: run.cpu_cost),
        "lost_percent": {who: median_or_none([r[who].lost_percent for r in rounds]) for who in ("ours", "peer")},
        "rate_ratio": ratios(rounds, lambda run: run.rate),
        "cpu_ratio": ratios(rounds, lambda run: run.cpu_cost),
        "floor_ratio": floor_ratio(rounds, settings),
        "transfer_ns": [r[who].transfer_ns for r in rounds for who in ends],
        "doubts": sorted({d for r in rounds for who in ends for d in doubts(who, r[who], options)}),
    }


def run_test(dialect, ends, words, place, options, both=()):
    """One server, one client; what both cost and what the kernel saw. `both` are options of either end."""
    port = free_port()
    with tempfile.TemporaryFile() as client_file, tempfile.TemporaryFile() as server_file:
        server = start([*place.prefix(1), ends[1], *dialect.server(port, words), *both], server_file, pin(options.cpus, 1))
        client = None
        try:
            wait_until_listening(server, port)
            octets = place.received_octets()
            began = time.monotonic()
            command = [ends[0], *dialect.client(place.server_host, port, options.seconds, words), *both]
            client = start([*place.prefix(0), *command], client_file, pin(options.cpus, 0))
            limit = began + options.seconds + 30
            client_cpu = reap(client, limit)
            wall = time.monotonic() - began
            octets = place.received_octets() - octets
            wait_until(lambda: dialect.is_served(text(server_file)), SETTLING_S)
            server_cpu = reap(server, limit, dialect.ending)
        finally:
            for process in (client, server):
                if process is not None and process.returncode is None:
                    process.kill()
                    process.wait()
        try:
            received, seconds, lost = dialect.parse(text(client_file), text(server_file))
        except Failed as failure:
            raise Failed(f"{' '.join(command)}: {failure}") from failure
        if not received:
            raise Failed(f"{' '.join(command)}: nothing received")
        return Run(dialect, received, dialect.seconds(seconds, wall), client_cpu + server_cpu, client_cpu, wall, octets, lost)


def doubts(who, run, options):
    if run.counts_bytes and run.received > run.kernel_bytes:
        yield f"{who} reports more than the kernel received"
    if run.wall_seconds > options.seconds + OVERTIME_S:
        yield f"{who} ran longer than asked"


def median_or_none(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def markdown(row):
    scale, unit = (1e9, "Gbit/s") if row["unit"] == "bit/s" else (1, "per second")
    rate = {who: f"{value / scale:.2f} {unit}" for who, value in row["rate"].items()}
    ratio = {key: ratio_text(row[key]) for key in ("rate_ratio", "cpu_ratio")}
    notes = [*row["doubts"], *recheck_note(row), *transfer_note(row)]
    if row["lost_percent"]["ours"] is not None:
        notes.append("lost {ours:.1f} % against {peer:.1f} %".format(**row["lost_percent"]))
    floor = ratio_text(row["floor_ratio"]) if row.get("floor_ratio") else ""
    cells = [row["name"], rate["ours"], rate["peer"], ratio["rate_ratio"], ratio["cpu_ratio"], floor, "; ".join(notes)]
    return "| " + " | ".join(cells) + " |"


def environment(options):
    return {
        "ours": version(options.ours, "iperf3"),
        "peer": version(options.peer, "iperf3"),
        "peer2": version(options.peer2, "iperf"),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "caches": caches(),
        "cpus": os.cpu_count(),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "pinned": options.cpus or "any",
        "place": options.place,
        "congestion": options.congestion or kernel_default("tcp_congestion_control"),
    }


def headline(facts):
    return (
        "{ours} at {commit}, {date}, against {peer} and {peer2}; {cpu} ({cpus} CPUs; {cache_list}), Linux {kernel}, {place}, "
        "{congestion}, {rounds} rounds of {seconds} s, CPUs of client and server: {pinned}\n"
    ).format(cache_list=", ".join(facts["caches"]), **facts)


if __name__ == "__main__":
    run_program("bench", main)
