#!/usr/bin/env python3
"""Compares the I/O strategy that linerate chooses during a test with every fixed one (`--lr-io`).

Both ends are linerate. Each round runs all settings of one mode back to back, in alternating order. For each mode:

    of best     rate of the choice / rate of the fastest fixed setting of this machine, median over the rounds
    of plain    rate of the choice / rate of the plain setting (one block per call, no pause), lowest round and median;
                the same of the fastest fixed setting shows how much of it the machine does
"""

import argparse
import os
import statistics
import tempfile

from bench import common_arguments, environment, headline, run_test, write_json
from dialects import Iperf3
from places import Place, resolve, run_program
from rounds import interleaved, ratio_text, spread

MODES = {"TCP": "", "reverse": "-R", "both ways": "--bidir", "8 streams": "-P 8", "128 streams": "-P 128"}
PLAIN = "1/0"
SETTINGS = ("auto", PLAIN, "8/0", "8/30", "8/100")
TABLE_HEAD = (
    "| mode | choice, Gbit/s | fastest fixed | of best (95 %) | of plain: lowest, median | fastest fixed of plain |\n"
    "|---|---|---|---|---|---|"
)


def main():
    options = arguments()
    facts = environment(options)
    print(headline(facts), flush=True)
    print(TABLE_HEAD, flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder, Place(options.place) as place:
        program = os.path.join(folder, "iperf3")
        os.symlink(resolve(options.ours), program)
        for name, words in MODES.items():
            rows.append(measure(name, words.split(), program, place, options))
            print(markdown(rows[-1]), flush=True)
    write_json(options, {"environment": facts, "strategies": rows})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_arguments(parser, rounds=10)
    return parser.parse_args()


def measure(name, words, program, place, options):
    words = words + (["-C", options.congestion] if options.congestion else [])
    rounds = interleaved(
        options.rounds,
        lambda setting: run_test(Iperf3, (program, program), words, place, options, ["--lr-io", setting]).rate,
        SETTINGS,
    )
    medians = {setting: statistics.median(one[setting] for one in rounds) for setting in SETTINGS}
    best = max(SETTINGS[1:], key=medians.get)
    return {
        "name": name,
        "options": words,
        "rates": {setting: [one[setting] for one in rounds] for setting in SETTINGS},
        "best": best,
        "of_best": spread([one["auto"] / one[best] for one in rounds]),
        "of_plain": spread([one["auto"] / one[PLAIN] for one in rounds]),
        "best_of_plain": spread([one[best] / one[PLAIN] for one in rounds]),
    }


def markdown(row):
    choice = statistics.median(row["rates"]["auto"]) / 1e9
    best = f"{row['best']}: {statistics.median(row['rates'][row['best']]) / 1e9:.1f}"
    plain, control = ("{lowest:.2f}, {median:.2f}".format(**row[key]) for key in ("of_plain", "best_of_plain"))
    return f"| {row['name']} | {choice:.1f} | {best} | {ratio_text(row['of_best'])} | {plain} | {control} |"


if __name__ == "__main__":
    run_program("strategies", main)
