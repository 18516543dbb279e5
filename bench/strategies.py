#!/usr/bin/env python3
"""Compares the I/O strategy that linerate chooses during a test with every fixed one (`--lr-io`).

Both ends are linerate. Each round runs all settings of one mode back to back, in alternating order. For each mode:

    of best     rate of the choice / rate of the fastest fixed setting of this machine, median over the rounds. Each round is
                compared with the setting whose median was highest in the other rounds: the highest of five noisy medians is
                higher than any of the five is
    of plain    rate of the choice / rate of the plain setting (one block per call, no pause), lowest round and median;
                the same of the fastest fixed setting
    control     the plain setting, measured a second time / the plain setting, lowest round and median: what the machine
                does to two runs that are alike
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
# Name of a measurement and its setting.
SETTINGS = {"auto": "auto", PLAIN: PLAIN, "8/0": "8/0", "8/10": "8/10", "8/100": "8/100", "8/spin": "8/spin", "control": PLAIN}
FIXED = (PLAIN, "8/0", "8/10", "8/100", "8/spin")
TABLE_HEAD = (
    "| mode | choice, Gbit/s | fastest fixed | of best (95 %) | of plain: lowest, median | fastest fixed of plain | control |\n"
    "|---|---|---|---|---|---|---|"
)


def main():
    options = arguments()
    facts = environment(options)
    print(headline(facts), flush=True)
    print(TABLE_HEAD, flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder, Place(options.place, options.congestion) as place:
        program = os.path.join(folder, "iperf3")
        os.symlink(resolve(options.ours), program)
        for name, words in MODES.items():
            if options.only not in (None, name):
                continue
            rows.append(measure(name, words.split(), program, place, options))
            print(markdown(rows[-1]), flush=True)
    write_json(options, {"environment": facts, "strategies": rows})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_arguments(parser, rounds=10)
    parser.add_argument("--only", choices=list(MODES), help="measure this mode alone")
    return parser.parse_args()


def measure(name, words, program, place, options):
    rounds = interleaved(
        options.rounds,
        lambda name: run_test(Iperf3, (program, program), words, place, options, ["--lr-io", SETTINGS[name]]).rate,
        tuple(SETTINGS),
    )
    best = fastest(rounds)
    others = [rounds[:number] + rounds[number + 1 :] for number in range(len(rounds))]
    return {
        "name": name,
        "options": words,
        "rates": {setting: [one[setting] for one in rounds] for setting in SETTINGS},
        "best": best,
        "of_best": spread([one["auto"] / one[fastest(rest)] for one, rest in zip(rounds, others)]),
        "of_plain": spread([one["auto"] / one[PLAIN] for one in rounds]),
        "best_of_plain": spread([one[best] / one[PLAIN] for one in rounds]),
        "control": spread([one["control"] / one[PLAIN] for one in rounds]),
    }


def fastest(rounds):
    return max(FIXED, key=lambda setting: statistics.median(one[setting] for one in rounds))


def markdown(row):
    choice = statistics.median(row["rates"]["auto"]) / 1e9
    best = f"{row['best']}: {statistics.median(row['rates'][row['best']]) / 1e9:.1f}"
    keys = ("of_plain", "best_of_plain", "control")
    of_plain = " | ".join("{lowest:.2f}, {median:.2f}".format(**row[key]) for key in keys)
    return f"| {row['name']} | {choice:.1f} | {best} | {ratio_text(row['of_best'])} | {of_plain} |"


if __name__ == "__main__":
    run_program("strategies", main)
