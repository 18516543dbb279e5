#!/usr/bin/env python3
"""Reports the measurements in bench/results.

    report.py            writes the table of BENCHMARKS.md and its picture, docs/pictures/benchmarks.svg
    report.py --check    fails if they are not what the results give
    report.py --all FILE writes every table of every file instead, one section each

Every file there is what bench.py, strategies.py, pace.py or http_lab.py wrote with --json on one machine. The table has
a row per mode and a column per machine: the median over the placements (loopback or veth; one CPU, two CPUs, unpinned)
of the rate ratio, and the lowest and the highest of them. A placement counts once, with its newest peer and its newest
measurement.
"""

import argparse
import glob
import json
import math
import os
import re
import statistics
import sys

import bench
import http_lab
import pace
import strategies

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "results")
PAGE = os.path.join(HERE, "..", "BENCHMARKS.md")
PICTURE = os.path.join(HERE, "..", "docs", "pictures", "benchmarks.svg")
BEGIN, END = "<!-- written by bench/report.py -->", "<!-- end -->"

# The begin of a file's name, and what the table calls the machine.
MACHINES = {
    "amd-epyc-zen3": "Zen 3",
    "amd-epyc-zen4": "Zen 4",
    "amd-epyc-zen5": "Zen 5",
    "intel-emerald-rapids": "Emerald Rapids",
}

MODES = [
    "TCP, 1 stream",
    "TCP, 1 stream, to the peer's server",
    "TCP, 1 stream, from the peer's client",
    "TCP, 8 streams",
    "TCP, 8 streams, from the peer's client",
    "TCP, 64 streams",
    "TCP, 64 streams, to the peer's server",
    "TCP, 64 streams, from the peer's client",
    "TCP, 128 streams",
    "TCP, reverse",
    "TCP, both ways",
    "TCP, sendfile",
    "TCP, 32-byte writes, 10 streams",
    "TCP, 8 KiB writes, 10 streams",
    "UDP, 1460 bytes, unlimited",
    "UDP, 1460 bytes, unlimited, to the peer's server",
    "UDP, 1460 bytes, unlimited, from the peer's client",
    "UDP, 64 bytes, unlimited",
    "iperf 2: TCP, 1 stream",
    "iperf 2: TCP, 8 streams",
    "iperf 2: UDP, 1470 bytes, unlimited",
]


def main():
    options = arguments()
    if options.all:
        with open(options.all, "w", encoding="utf-8") as file:
            file.write("\n".join(["# All measurements", "", *map(all_tables, result_files())]))
        return 0

    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    cells = summary()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    written = {PAGE: f"{before}{BEGIN}\n\n{table(cells)}\n\n{END}{after}", PICTURE: picture(cells)}

    if options.check:
        return report_differences(written)
    for path, content in written.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--all", metavar="FILE", help="write every table to this file")
    return parser.parse_args()


def report_differences(written):
    """The exit code, after a line for each file that differs."""
    differing = 0
    for path, content in written.items():
        with open(path, encoding="utf-8") as file:
            if file.read() != content:
                print(f"{os.path.relpath(path)} is not what bench/results gives: make bench-report", file=sys.stderr)
                differing = 1
    return differing


def result_files():
    return sorted(glob.glob(os.path.join(RESULTS, "*.json")))


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def summary():
    """Ratios of each mode and machine: the medians of the placements, and how many intervals are below 1."""
    newest = {}
    for path in result_files():
        result = read(path)
        facts = result["environment"]
        if "rows" not in result or "peers" in facts or facts["congestion"] != "cubic":
            continue
        for row in result["rows"]:
            placement = (row["name"], machine_of(path), facts["place"], facts["pinned"])
            age = (peer_version(facts["peer"]), facts["date"], path)
            if placement not in newest or newest[placement][0] < age:
                newest[placement] = (age, row["rate_ratio"])

    cells = {}
    for (mode, machine, *_), (_, ratio) in newest.items():
        cells.setdefault((mode, machine), []).append(ratio)
    return cells


def machine_of(path):
    name = os.path.basename(path)
    return next(machine for begin, machine in MACHINES.items() if name.startswith(begin))


def peer_version(text):
    return tuple(int(number) for number in re.search(r"(\d+)\.(\d+)", text).groups())


def table(cells):
    machines = list(MACHINES.values())
    lines = ["| mode | " + " | ".join(machines) + " |", "|---" * (len(machines) + 1) + "|"]
    for mode in MODES:
        ratios = [cell_text(cells.get((mode, machine))) for machine in machines]
        lines.append(f"| {mode} | " + " | ".join(ratios) + " |")

    every = [ratio for ratios in cells.values() for ratio in ratios]
    below = sum(ratio["high"] < 1 for ratio in every)
    above = sum(ratio["low"] > 1 for ratio in every)
    lines += ["", f"Of {len(every)} measured rows of all modes {above} have their whole 95 % interval above 1, {below} below 1."]
    return "\n".join(lines)


def cell_text(ratios):
    if not ratios:
        return "–"
    medians = [ratio["median"] for ratio in ratios]
    middle = statistics.median(medians)
    if len(medians) == 1:
        return f"{short(middle)}"
    return f"{short(middle)} ({short(min(medians))}–{short(max(medians))})"


def short(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


# Picture: a line per mode, a mark per machine on an axis of the ratio, which is logarithmic up to LONGEST.
LEFT, TOP, WIDTH, LINE, LONGEST = 330, 46, 420, 20, 8
COLOURS = ("#0b6e99", "#c2571a", "#3a7d44", "#7b4fa3")


def picture(cells):
    def at(ratio):
        return LEFT + WIDTH * math.log2(min(max(ratio, 0.5), LONGEST) * 2) / math.log2(LONGEST * 2)

    height = TOP + LINE * len(MODES) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="#fff"/><text x="8" y="16">Rate of linerate / rate of the peer, '
        "median over placements (line: lowest to highest)</text>",
    ]
    for index, machine in enumerate(MACHINES.values()):
        x = LEFT + index * 105
        parts.append(f'<circle cx="{x}" cy="30" r="4" fill="{COLOURS[index]}"/><text x="{x + 8}" y="34">{machine}</text>')
    for ratio in (0.5, 1, 2, 4, LONGEST):
        x, label = at(ratio), f"{ratio:g}" + ("+" if ratio == LONGEST else "")
        stroke = "#000" if ratio == 1 else "#ccc"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - 20}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">{label}</text>')

    for row, mode in enumerate(MODES):
        y = TOP + LINE * row + LINE / 2
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4:g}" text-anchor="end">{mode}</text>')
        for index, machine in enumerate(MACHINES.values()):
            medians = [ratio["median"] for ratio in cells.get((mode, machine), [])]
            if not medians:
                continue
            height_of = y + (index - 1.5) * 4
            low, middle, high = at(min(medians)), at(statistics.median(medians)), at(max(medians))
            parts.append(
                f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{height_of:g}" y2="{height_of:g}" stroke="{COLOURS[index]}"/>'
                f'<circle cx="{middle:.1f}" cy="{height_of:g}" r="2.5" fill="{COLOURS[index]}"/>'
            )
    return "\n".join([*parts, "</svg>", ""])


def all_tables(path):
    """The section of one file of results."""
    result = read(path)
    facts = result["environment"]
    if "strategies" in result:
        subject, lines = "chosen I/O strategy", [strategies.TABLE_HEAD, *map(strategies.markdown, result["strategies"])]
    elif "rates" in result:
        subject = f"pacing and start, {facts['peer']}"
        lines = [pace.RATES_HEAD, *map(pace.rate_line, result["rates"])]
        lines += ["", pace.STARTS_HEAD, *map(pace.start_line, result["starts"])]
    elif "peers" in facts:
        lines = [line for row in result["rows"] for line in http_lab.markdown(row)]
        title = f"## {machine_of(path)}: {facts['place']}, {facts['congestion']}, HTTP against nginx, wrk, ab and h2load"
        return "\n".join([title, "", http_lab.headline(facts), "", http_lab.TABLE_HEAD, *lines, ""])
    else:
        subject, lines = facts["peer"], [bench.TABLE_HEAD, *map(bench.markdown, result["rows"])]
    title = f"## {machine_of(path)}: {facts['place']}, {facts['congestion']}, CPUs {facts['pinned']}, {subject}"
    return "\n".join([title, "", bench.headline(facts), *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
