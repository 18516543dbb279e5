#!/usr/bin/env python3
"""Writes the tables of BENCHMARKS.md anew from the measurements in bench/results.

Every file there is what `bench/bench.py --json` wrote on one machine: one table each, headed by the machine, never mixed
with another. The text around the tables stays.
"""

import glob
import json
import os
import sys

from bench import TABLE_HEAD, headline, markdown

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
    title = f"### {facts['cpu']}: {facts['place']}, {facts['congestion']}, CPUs {facts['pinned']}, {facts['peer']}"
    return "\n".join([title, "", headline(facts), TABLE_HEAD, *map(markdown, result["rows"]), ""])


if __name__ == "__main__":
    sys.exit(main())
