"""Interleaved rounds of two programs, and what they come to."""

import statistics


def interleaved(count, run):
    """Results of `run("ours")` and `run("peer")`, back to back in alternating order. A warm-up round is thrown away."""
    rounds = []
    for number in range(-1, count):
        order = ("ours", "peer") if number % 2 == 0 else ("peer", "ours")
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
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def ratio_text(ratio):
    return "{median:.2f} ({lowest:.2f} to {highest:.2f})".format(**ratio)
