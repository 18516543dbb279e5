"""Interleaved rounds of two programs, and what they come to."""

import random
import statistics


def interleaved(count, run, programs=("ours", "peer")):
    """Results of `run` for each of the programs, back to back in alternating order. A warm-up round is thrown away."""
    rounds = []
    for number in range(-1, count):
        order = programs if number % 2 == 0 else programs[::-1]
        runs = {who: run(who) for who in order}
        if number >= 0:
            rounds.append(runs)
    return rounds


def medians(rounds, figure):
    """The median of a figure for each program."""
    return {who: statistics.median(figure(one[who]) for one in rounds) for who in ("ours", "peer")}


def ratios(rounds, figure):
    """Ours divided by the peer's within each round."""
    return spread([figure(one["ours"]) / figure(one["peer"]) for one in rounds])


def spread(values):
    """The median with its 95 % interval, and the extremes."""
    low, high = median_interval(values)
    return {"median": statistics.median(values), "low": low, "high": high, "lowest": min(values), "highest": max(values)}


def median_interval(values, draws=2000):
    """95 % bootstrap interval of the median. With fewer than six values it is narrower than it should be."""
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws * 25 // 1000], medians[draws * 975 // 1000 - 1]


def ratio_text(ratio):
    return "{median:.2f} ({low:.2f} to {high:.2f})".format(**ratio)
