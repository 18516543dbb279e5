#!/usr/bin/env bash
# Throughput and CPU time of linerate beside iperf3 between two hosts: what loopback and veth pairs do not show is the
# cost of packets on a wire. Both programs are in PATH on both hosts, or named by OURS and PEER.
# usage: bench/pair.sh SSH_HOST ADDRESS [SECONDS] [ROUNDS]
set -euo pipefail
(($# >= 2)) || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
host=$1 address=$2 seconds=${3:-10} rounds=${4:-5} port=${PORT:-5299}
ours=${OURS:-linerate} peer=${PEER:-iperf3}
results=$(mktemp)
trap 'rm -f "$results"' EXIT

modes=("" "-R" "--bidir" "-P 8" "-P 8 -R" "-Z" "-u -b 0 -l 1460" "-u -b 1G -l 1460")

# Appends "mode, program, JSON" of one test. Arguments: name, command, options of the client.
run() {
    local name=$1 command=$2 options=$3
    # It serves one test and ends.
    ssh -n "$host" "$command -s -1 -p $port >/dev/null" &
    for _ in $(seq 50); do
        ssh -n "$host" "ss -Hltn sport = :$port" | grep -q . && break
        sleep 0.1
    done
    # shellcheck disable=SC2086 # options are words
    printf '%s\t%s\t%s\n' "$options" "$name" "$($command -c "$address" -p $port -t "$seconds" -J $options | tr -d '\n')" \
        >>"$results"
    wait
}

for options in "${modes[@]}"; do
    for round in $(seq "$rounds"); do
        # The order alternates, so that a drift of the hosts concerns both.
        if ((round % 2)); then
            run ours "$ours iperf3" "$options"
            run peer "$peer" "$options"
        else
            run peer "$peer" "$options"
            run ours "$ours iperf3" "$options"
        fi
    done
done

python3 - "$results" <<'END'
import json, statistics, sys

tests = {}
for line in open(sys.argv[1]):
    options, program, text = line.rstrip("\n").split("\t", 2)
    end = json.loads(text)["end"]
    received = [end[key]["bits_per_second"] for key in ("sum_received", "sum_received_bidir_reverse") if key in end]
    rate = sum(received) or end["sum"]["bits_per_second"]
    cpu = end["cpu_utilization_percent"]
    tests.setdefault(options, {"ours": [], "peer": []})[program].append(
        (rate, (cpu["host_total"] + cpu["remote_total"]) / rate))

print(f"{'options':20} {'Mbit/s':>9} {'rate':>6} {'lowest':>7} {'highest':>8} {'CPU per byte':>13}")
for options, runs in tests.items():
    pairs = list(zip(runs["ours"], runs["peer"]))
    rates = [ours[0] / peer[0] for ours, peer in pairs]
    cpus = [ours[1] / peer[1] for ours, peer in pairs if peer[1]]
    median = statistics.median(ours[0] for ours, _ in pairs) / 1e6
    print(f"{options or 'TCP':20} {median:9.0f} {statistics.median(rates):6.2f} {min(rates):7.2f} {max(rates):8.2f} "
          f"{statistics.median(cpus) if cpus else float('nan'):13.2f}")
END
