#!/usr/bin/env python3
"""Compares linerate's HTTP server with nginx, and its load generator with wrk, ab and h2load.

Server and generator are pinned to a core each and have one thread. Each round runs ours and the peer's back to back, in
alternating order (AB, BA, AB, ...). A figure shows the median over the rounds, and the median of the ratio within a round
with its 95 % interval (bootstrap).

    server rows       wrk asks the server; CPU is the server's from the first connection to the last, without its start
    generator rows    the generator asks linerate's server; answers per second of the generator's CPU, start included
    open loop, idle   ours alone, CPU during the load; memory is what a connection adds to the resident size

A program is not taken at its word: payload it reports may not exceed what the kernel counted as received IP octets,
nothing may fail, and a run may not take longer than asked. Rows that break this are marked and the exit code is 1.
"""

import argparse
import json
import os
import platform
import re
import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from facts import cpu_model, version
from http_programs import PAYLOADS, Ab, H2load, Load, Nginx, Server, Wrk
from places import Failed, Place, free_port, pin, reap, resolve, run_program, start, text, wait_until, wait_until_listening
from rounds import interleaved, medians, ratio_text, ratios, spread

CONNECTIONS = 64
OPEN_RATE = 5000
IDLE = 10_000
# Compared with this many, so that what a program needs anyway does not count.
IDLE_FEW = 100
# What opening connections and leaving may take beyond the test itself.
OVERTIME_S = 3
START_LIMIT_S = 60
TABLE_HEAD = "| test | figure | ours | peer | ratio (95 %) | notes |\n|---|---|---|---|---|---|"


@dataclass
class Run:
    """One load of one generator on one server."""

    answers: object
    payload_bytes: int
    server_cpu_s: float
    client_cpu_s: float
    wall_s: float
    kernel_bytes: int

    @property
    def rate(self):
        return self.answers.count / self.answers.seconds

    @property
    def server_us(self):
        return self.server_cpu_s * 1e6 / self.answers.count

    @property
    def per_client_cpu_s(self):
        return self.answers.count / self.client_cpu_s


class Bench:
    """The programs, and where they run."""

    def __init__(self, options, place, folder):
        self.options = options
        self.place = place
        self.ours = {"server": Server(resolve(options.ours), folder), "generator": Load(resolve(options.ours))}
        self.nginx = Nginx(resolve("nginx"), folder)
        self.peers = [peer(resolve(peer.name)) for peer in (Wrk, Ab, H2load)]

    def rows(self):
        """Name and maker of every row."""
        for payload in PAYLOADS:
            yield f"server, {payload}, against {self.nginx.name}", partial(self.compare_servers, payload)
        for peer in self.peers:
            for payload in PAYLOADS:
                yield f"generator, {payload}, against {peer.name}", partial(self.compare_generators, peer, payload)
        yield f"open loop, {OPEN_RATE} requests/s, 1k", self.open_loop
        yield f"{IDLE} idle connections", self.idle

    def compare_servers(self, payload):
        servers = {"ours": self.ours["server"], "peer": self.nginx}
        return self.compare(lambda who: self.load(servers[who], self.peers[0], payload), SERVER_FIGURES)

    def compare_generators(self, peer, payload):
        generators = {"ours": self.ours["generator"], "peer": peer}
        return self.compare(lambda who: self.load(self.ours["server"], generators[who], payload), GENERATOR_FIGURES)

    def compare(self, run, figures):
        rounds = interleaved(self.options.rounds, run)
        made = [
            {"name": name, **medians(rounds, figure), "ratio": ratios(rounds, figure)} for name, figure in figures
        ]
        doubts = {d for one in rounds for who in one for d in self.doubts(who, one[who])}
        return {"figures": made, "doubts": sorted(doubts)}

    def doubts(self, who, run):
        if run.payload_bytes > run.kernel_bytes:
            yield f"{who} reports more than the kernel received"
        if run.answers.failed:
            yield f"{who} failed {run.answers.failed} times"
        if run.wall_s > self.options.seconds + OVERTIME_S:
            yield f"{who} ran longer than asked"

    def load(self, server, generator, payload):
        """One server, one generator; what both cost and what the kernel saw."""
        with self.serving(server) as (process, port), tempfile.TemporaryFile() as file:
            url = f"http://{self.place.server_host}:{port}/{payload}"
            octets, server_cpu_s = self.place.received_octets(), cpu_s(process.pid)
            began = time.monotonic()
            with self.client(generator.command(url, self.options.seconds, CONNECTIONS), file) as client:
                client_cpu_s = reap(client, began + self.options.seconds + START_LIMIT_S)
            wall_s = time.monotonic() - began
            server_cpu_s = cpu_s(process.pid) - server_cpu_s
            octets = self.place.received_octets() - octets
            answers = generator.parse(text(file))
        return Run(answers, answers.count * PAYLOADS[payload], server_cpu_s, client_cpu_s, wall_s, octets)

    @contextmanager
    def serving(self, server):
        """A server that has started, and its port."""
        port = free_port()
        with tempfile.TemporaryFile() as file:
            command = [*self.place.prefix(1), *server.command(self.place.server_host, port)]
            with ending(start(command, file, pin(self.options.cpus, 1))) as process:
                wait_until_listening(process, port)
                wait_until(lambda: server.is_ready(text(file)), START_LIMIT_S)
                yield process, port

    def client(self, command, file):
        return ending(start([*self.place.prefix(0), *command], file, pin(self.options.cpus, 0)))

    def open_loop(self):
        """What a request costs both ends when requests are due by a schedule."""
        rounds = [self.open_loop_once() for _ in range(self.options.rounds)]
        doubts = sorted({doubt for _, missed in rounds for doubt in missed})
        return {"figures": absolute([figures for figures, _ in rounds]), "doubts": doubts}

    def open_loop_once(self):
        with self.serving(self.ours["server"]) as (server, port), tempfile.TemporaryFile() as file:
            url = f"http://{self.place.server_host}:{port}/1k"
            seconds = self.options.seconds + 2
            words = self.ours["generator"].command(url, seconds, CONNECTIONS, "--rate", str(OPEN_RATE))
            with self.client(words, file) as client:
                wait_until(lambda: descriptors(server.pid) >= CONNECTIONS, START_LIMIT_S)
                shares = busy_shares([client.pid, server.pid], self.options.seconds)
                reap(client, time.monotonic() + START_LIMIT_S)
            answers = self.ours["generator"].parse(text(file))
        missed = [] if answers.count == OPEN_RATE * seconds else [f"{answers.failed} requests without a good answer"]
        names = ("generator, CPU µs per request", "server, CPU µs per request")
        return {name: share * 1e6 / OPEN_RATE for name, share in zip(names, shares)}, missed

    def idle(self):
        """What connections cost on which nothing happens: ours at both ends, and nginx as the server."""
        ours = [self.idle_once(self.ours["server"]) for _ in range(self.options.rounds)]
        nginx = [self.idle_once(self.nginx) for _ in range(self.options.rounds)]
        theirs = {figure["name"]: figure["ours"] for figure in absolute(nginx) if figure["name"].startswith("server")}
        figures = [{**figure, "peer": theirs.get(figure["name"])} for figure in absolute(ours)]
        return {"figures": figures, "doubts": []}

    def idle_once(self, server):
        few, many = (self.hold(server, count) for count in (IDLE_FEW, IDLE))
        figures = {}
        for end in ("generator", "server"):
            figures[f"{end}, bytes per connection"] = (many[end].resident - few[end].resident) / (IDLE - IDLE_FEW)
            figures[f"{end}, CPU % of a core"] = many[end].busy * 100
        return figures

    def hold(self, server, connections):
        """Asks once on every connection, then holds them; what both ends are like meanwhile."""
        with self.serving(server) as (process, port), tempfile.TemporaryFile() as file:
            url = f"http://{self.place.server_host}:{port}/1k"
            words = ["--idle", "--touch", "--ramp", "max", "--allow-large"]
            seconds = self.options.seconds + 2
            command = self.ours["generator"].command(url, seconds, connections, *words)
            with self.client(command, file) as client:
                wait_until(lambda: descriptors(process.pid) >= connections, START_LIMIT_S)
                # Until the last one was asked and the load itself has begun.
                wait_until(lambda: busy_shares([client.pid], 0.2)[0] < 0.02, START_LIMIT_S)
                pids = {"generator": client.pid, "server": process.pid}
                busy = dict(zip(pids, busy_shares(pids.values(), self.options.seconds)))
                held = {end: Held(resident_bytes(pid), busy[end]) for end, pid in pids.items()}
                reap(client, time.monotonic() + START_LIMIT_S)
            result = Load.result(text(file))["connections"]
            if result["open_at_end"] != connections or result["dropped"]:
                raise Failed(f"{server.name}: {result}")
        return held


@dataclass
class Held:
    """One end while connections are held."""

    resident: int
    busy: float


SERVER_FIGURES = [("requests/s", lambda run: run.rate), ("server CPU µs per request", lambda run: run.server_us)]
GENERATOR_FIGURES = [
    ("requests/s", lambda run: run.rate),
    ("requests per second of client CPU", lambda run: run.per_client_cpu_s),
]


def absolute(rounds):
    """Figures of ours alone: the median, with the lowest and the highest."""
    spreads = {name: spread([one[name] for one in rounds]) for name in rounds[0]}
    return [{"name": name, "ours": one["median"], "spread": one} for name, one in spreads.items()]


@contextmanager
def ending(process):
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            process.wait()


def cpu_s(pid):
    """CPU of all threads of a process; far finer than the ticks of /proc/PID/stat."""
    total_ns = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total_ns += int(file.read().split()[0])
    return total_ns / 1e9


def busy_shares(pids, seconds):
    """CPU seconds per second of each process over some time."""
    before, began = [cpu_s(pid) for pid in pids], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [(cpu_s(pid) - then) / took for pid, then in zip(pids, before)]


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    options = arguments()
    result, honest = [], True
    facts = environment(options)
    print(headline(facts) + "\n", flush=True)
    print(TABLE_HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder, Place(options.place, options.congestion) as place:
        for name, make in Bench(options, place, folder).rows():
            if options.only and options.only not in name:
                continue
            row = {"name": name, **make()}
            result.append(row)
            honest = honest and not row["doubts"]
            print("\n".join(markdown(row)), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"environment": facts, "rows": result}, file, indent=2)
            file.write("\n")
    return 0 if honest else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="the linerate program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="length of each test")
    parser.add_argument("--only", help="run only the rows whose name contains this")
    parser.add_argument("--json", help="write all measurements to this file")
    parser.add_argument("--cpus", default="0,1", help="CPU of the generator and CPU of the server")
    parser.add_argument("--place", choices=["loopback", "veth"], default="loopback", help="veth needs root")
    parser.add_argument("--congestion", help="congestion control of both ends, in namespaces; by default the host's")
    return parser.parse_args()


def markdown(row):
    for figure in row["figures"]:
        ratio = ratio_text(figure["ratio"]) if "ratio" in figure else ""
        ours = amount(figure["ours"])
        if "spread" in figure:
            ours += " ({} to {})".format(*(amount(figure["spread"][end]) for end in ("lowest", "highest")))
        peer = figure.get("peer")
        cells = [row["name"], figure["name"], ours, "" if peer is None else amount(peer), ratio, "; ".join(row["doubts"])]
        yield "| " + " | ".join(cells) + " |"


def amount(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def environment(options):
    peers = {peer.name: version_number(peer) for peer in (Nginx, Wrk, Ab, H2load)}
    return {
        "ours": version(options.ours, "linerate"),
        "peers": peers,
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "pinned": options.cpus,
        "place": options.place,
        "congestion": options.congestion or host_congestion(),
        "connections": CONNECTIONS,
    }


def version_number(peer):
    text = version(peer.name, peer.name, peer.version_option)
    return re.search(r"\d+(\.\d+)+", text).group()


def host_congestion():
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as file:
        return file.read().strip()


def headline(facts):
    return (
        "{ours} against {programs}; {cpu} ({cpus} CPUs), Linux {kernel}, {place}, {congestion}, {connections} connections, "
        "{rounds} rounds of {seconds} s, generator and server pinned: {pinned}"
    ).format(programs=", ".join(map(" ".join, facts["peers"].items())), **facts)


if __name__ == "__main__":
    run_program("bench", main)
