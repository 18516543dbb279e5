#!/usr/bin/env python3
"""Measures how evenly linerate sends at a rate, what that costs, and how fast it starts and ends, beside iperf3.

    rate         received payload / rate asked for
    late         time by which a portion left after it was due: median and 99th percentile, as ours reports it
    CPU          CPU time of the client / time of the test; the peer's beside it
    start, end   wall time of a whole client process; the peer's beside it
"""

import argparse
import re
import statistics
import tempfile

from bench import common_arguments, environment, headline, links, run_test, write_json
from dialects import Iperf3
from places import Failed, Place, run_program
from rounds import interleaved, ratio_text, ratios

RATES = {
    "UDP 64 kbit/s, 200 bytes": ("-u -b 64K -l 200", 64e3),
    "UDP 1 Mbit/s": ("-u -b 1M -l 1400", 1e6),
    "UDP 10 Mbit/s": ("-u -b 10M -l 1400", 10e6),
    "UDP 100 Mbit/s": ("-u -b 100M -l 1400", 100e6),
    "UDP 1 Gbit/s": ("-u -b 1G -l 1400", 1e9),
    "TCP 10 Mbit/s": ("-b 10M", 10e6),
    "TCP 100 Mbit/s": ("-b 100M", 100e6),
    "TCP 1 Gbit/s": ("-b 1G", 1e9),
}
WHOLE_TESTS = {"`-n 1K`": "-n 1K", "`-t 1`": "-t 1", "`-t 1 -P 128`": "-t 1 -P 128"}
# iperf3 takes at most 128 streams.
OURS_ALONE = {"`-t 1 -P 1000`": "-t 1 -P 1000 --lr-many-streams"}
LATENESS = re.compile(r"portions left at most (\d+) us \(median\) and (\d+) us \(99 %\)")
RATES_HEAD = "| test | rate | late: median, 99 % | CPU of the client | peer's |\n|---|---|---|---|---|"
STARTS_HEAD = "| test | ours | peer | ratio (95 %) |\n|---|---|---|---|"


class Verbose(Iperf3):
    """iperf3 with a report for people, which has the lateness."""

    @staticmethod
    def client(host, port, seconds, words):
        return ["-c", host, "-p", str(port), "-t", str(seconds), "-V", "--lr-report", *words]

    @staticmethod
    def parse(client_report, _server_report):
        match = LATENESS.search(client_report)
        if not match:
            raise Failed(f"no lateness: {client_report[-300:]!r}")
        return 1, tuple(int(value) for value in match.groups()), None


class Amount(Iperf3):
    """A test whose options say when it ends."""

    @staticmethod
    def client(host, port, _seconds, words):
        return ["-c", host, "-p", str(port), "-J", *words]

    @staticmethod
    def parse(client_report, _server_report):
        """Success and nothing else: iperf3's receiver may count 0 of a single block."""
        if '"error"' in client_report or '"end"' not in client_report:
            raise Failed(f"no report: {client_report[-300:]!r}")
        return 1, None, None


def main():
    options = arguments()
    facts = environment(options)
    print(headline(facts), flush=True)
    with tempfile.TemporaryDirectory() as folder, Place(options.place, options.congestion) as place:
        programs = links(folder, options)["iperf3"]
        print(RATES_HEAD, flush=True)
        rates = []
        for name, (words, rate_bps) in RATES.items():
            rates.append(paced(name, words.split(), rate_bps, programs, place, options))
            print(rate_line(rates[-1]), flush=True)
        print("\n" + STARTS_HEAD, flush=True)
        starts = []
        for name, words in (WHOLE_TESTS | OURS_ALONE).items():
            starts.append(whole(name, words.split(), programs, place, options, name not in OURS_ALONE))
            print(start_line(starts[-1]), flush=True)
    write_json(options, {"environment": facts, "rates": rates, "starts": starts})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_arguments(parser, rounds=5)
    return parser.parse_args()


def paced(name, words, rate_bps, programs, place, options):
    def run(who):
        if who == "lateness":
            return run_test(Verbose, (programs["ours"],) * 2, words, place, options).seconds
        return run_test(Iperf3, (programs[who],) * 2, words, place, options)

    rounds = interleaved(options.rounds, run, ("ours", "peer", "lateness"))
    share = {who: statistics.median(one[who].client_cpu_seconds / options.seconds for one in rounds) for who in ("ours", "peer")}
    return {
        "name": name,
        "options": words,
        "rate": statistics.median(one["ours"].rate / rate_bps for one in rounds),
        "late_us": [statistics.median(values) for values in zip(*(one["lateness"] for one in rounds))],
        "cpu": share,
    }


def whole(name, words, programs, place, options, with_peer):
    who = ("ours", "peer") if with_peer else ("ours",)
    rounds = interleaved(
        options.rounds, lambda one: run_test(Amount, (programs[one],) * 2, words, place, options).wall_seconds, who
    )
    return {
        "name": name,
        "seconds": {one: statistics.median(each[one] for each in rounds) for one in who},
        "ratio": ratios(rounds, lambda seconds: seconds) if with_peer else None,
    }


def rate_line(row):
    late = "{:.0f} us, {:.0f} us".format(*row["late_us"])
    cpu = " | ".join(f"{100 * row['cpu'][who]:.2f} %" for who in ("ours", "peer"))
    return f"| {row['name']} | {row['rate']:.4f} | {late} | {cpu} |"


def start_line(row):
    cells = [f"{1000 * row['seconds'][who]:.1f} ms" if who in row["seconds"] else "" for who in ("ours", "peer")]
    return f"| {row['name']} | {cells[0]} | {cells[1]} | {ratio_text(row['ratio']) if row['ratio'] else ''} |"


if __name__ == "__main__":
    run_program("pace", main)
