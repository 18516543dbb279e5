#!/usr/bin/env python3
"""Writes the tables of BENCHMARKS.md anew from the measurements in bench/results.

Every file there is what `bench.py`, `strategies.py`, `pace.py` or `http_lab.py` wrote with `--json` on one machine: one section each,
headed by the machine, never mixed with another. The text around the tables stays.
"""

import glob
import json
import os
import sys

import bench
import http_lab
import pace
import strategies

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "BENCHMARKS.md")
BEGIN, END = "<!-- tables of bench/results: written by bench/publish.py -->", "<!-- end of tables -->"


def main():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    tables = [table(path) for path in sorted(glob.glob(os.path.join(HERE, "results", "*.json")))]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write("\n".join([before + BEGIN, "", *tables, END + after]))


def table(path):
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    facts = result["environment"]
    if "strategies" in result:
        subject, lines = "chosen I/O strategy", [strategies.TABLE_HEAD, *map(strategies.markdown, result["strategies"])]
    elif "rates" in result:
        subject = f"pacing and start, {facts['peer']}"
        lines = [pace.RATES_HEAD, *map(pace.rate_line, result["rates"])]
        lines += ["", pace.STARTS_HEAD, *map(pace.start_line, result["starts"])]
    elif "peers" in facts:
        return http_table(facts, result["rows"])
    else:
        subject, lines = facts["peer"], [bench.TABLE_HEAD, *map(bench.markdown, result["rows"])]
    title = f"### {machine(facts)}: {facts['place']}, {facts['congestion']}, CPUs {facts['pinned']}, {subject}"
    return "\n".join([title, "", bench.headline(facts), *lines, ""])


def machine(facts):
    """The CPU with its nearest caches for data: generations of one vendor may have the same model name in a guest."""
    data_caches = [cache for cache in facts.get("caches", []) if "Instruction" not in cache]
    return ", ".join([facts["cpu"], *data_caches[:2]])


def http_table(facts, rows):
    title = f"### {facts['cpu']}: {facts['place']}, {facts['congestion']}, HTTP against nginx, wrk, ab and h2load"
    lines = [line for row in rows for line in http_lab.markdown(row)]
    return "\n".join([title, "", http_lab.headline(facts), "", http_lab.TABLE_HEAD, *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
