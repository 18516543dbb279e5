//! Threads of a test, decided from facts before its data flows. What they then do is adjusted by
//! [`WorkerPool`](super::worker::WorkerPool), and how they call the kernel by trials.

/// What the plan depends on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlanFacts {
    /// CPUs that workers may use; 0 where the kernel does not report them.
    pub cpus: usize,
    /// Streams that this end sends.
    pub sent: usize,
    /// Streams that it receives.
    pub received: usize,
    /// Senders keep a rate, and sleep until the next portion is due.
    pub has_rate: bool,
    /// The kernel paces what senders write, by timers: BBR does.
    pub has_pacing_timers: bool,
    /// Senders to byte streams make short calls without pauses between them.
    pub makes_short_calls: bool,
    /// Receivers read large blocks from byte streams.
    pub receives_large_blocks: bool,
    /// Workers may use one CPU, and segments of what is received arrived there before the start.
    pub arrives_on_only_cpu: bool,
    /// The CPU time of the workers is a result of the test.
    pub measures_cpu: bool,
}

/// Threads of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadPlan {
    pub senders: GroupSize,
    pub receivers: GroupSize,
    /// Receivers where data arrives on all CPUs of the workers.
    pub receivers_on_all_cpus: usize,
    /// One thread sends and receives in turns.
    pub takes_turns: bool,
    /// Senders become as few as the CPUs of their receiver.
    pub gathers_senders: bool,
    /// Receivers may poll.
    pub may_spin: bool,
}

/// Number of threads of a role that has enough streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupSize {
    pub initial: usize,
    /// Most of them, once those that run have no idle time.
    pub max: usize,
}

/// A sender without a rate always has work: more of them than CPUs only take the CPU from each
/// other and from the receivers.
const SENDERS_PER_CPU: usize = 1;
/// Most streams that have a sender each where calls are short: as many as iperf3 takes. With few
/// senders the scheduler lets each receiver on this machine that a write wakes run at once, for
/// that write alone; beside a sender per stream it takes its turn, and reads what has come since.
/// To iperf3 3.22 ten streams of 32-byte writes on one CPU had 0.102 Gbit/s with a sender each,
/// 0.048 with a single one.
const STREAMS_WITH_SENDER_EACH_MAX: usize = 128;
/// Senders of more streams than this overtake a peer on this machine that receives with a single
/// thread: the queues of the streams outgrow the caches, and stay so. Where the kernel paces that
/// number of streams by timers, these take time from receivers.
const STREAMS_PER_FREE_SENDER: usize = 4;
/// The scheduler divides a CPU evenly among threads that have work, and often runs a receiver on
/// the CPU of its sender. With several shares of a CPU receivers keep their queues short, so that
/// the data is still in a cache when it is read.
const RECEIVERS_PER_SHARED_CPU: usize = 8;
/// Most of them. Receivers share an only CPU with all senders of a peer on this machine, which may
/// have a thread per stream.
const RECEIVERS_PER_CPU_MAX: usize = 64;
/// The same where several would not help: small blocks wake a thread often, and senders of the same
/// test need the CPU.
const RECEIVERS_PER_CPU_MAX_WHERE_FEW: usize = 2;
/// A receiver of few streams that spins competes with the sender for the socket it writes to. With
/// one, pauses were faster in every measurement, with two as fast.
const SPIN_STREAMS_MIN: usize = 4;

/// The plan of a test.
pub(crate) fn plan(facts: &PlanFacts) -> ThreadPlan {
    let cpus = facts.cpus.max(1);
    // On one CPU a stream each way is faster in one thread that sends and reads in turns: a queue
    // holds one portion then, not all that is sent until the scheduler switches threads.
    let is_one_each_way = (facts.sent, facts.received) == (1, 1);
    let takes_turns = is_one_each_way && cpus == 1 && !facts.has_rate;

    let has_sender_each = facts.makes_short_calls && facts.sent <= STREAMS_WITH_SENDER_EACH_MAX;
    let senders_max = if has_sender_each {
        STREAMS_WITH_SENDER_EACH_MAX
    } else {
        SENDERS_PER_CPU * cpus
    };
    let many_streams = facts.sent > STREAMS_PER_FREE_SENDER * senders_max;
    // Pacing timers (tcp_pace_kick in net/ipv4/tcp_output.c) interrupt the CPUs that receivers run
    // on, so half of the CPUs are left to these.
    let leaves_cpus = facts.has_pacing_timers && many_streams;
    let senders = GroupSize {
        initial: if leaves_cpus {
            senders_max.div_ceil(2)
        } else {
            senders_max
        },
        max: senders_max,
    };

    // More receivers than senders would take the CPU from these where a test has both. More
    // receivers of small blocks are woken more often, which halved the rate of 32-byte writes.
    let may_share_cpus = facts.receives_large_blocks && facts.sent == 0;
    let receivers_on_all_cpus = match cpus {
        _ if !may_share_cpus => cpus,
        1 => RECEIVERS_PER_CPU_MAX,
        _ => RECEIVERS_PER_SHARED_CPU * cpus,
    };
    let receivers = GroupSize {
        // The handshake shows it before data flows: windows of eight streams on one CPU closed 496
        // times per second with one receiver, four times with one per stream.
        initial: if facts.arrives_on_only_cpu {
            receivers_on_all_cpus
        } else {
            cpus
        },
        max: cpus
            * if may_share_cpus {
                RECEIVERS_PER_CPU_MAX
            } else {
                RECEIVERS_PER_CPU_MAX_WHERE_FEW
            },
    };

    ThreadPlan {
        senders,
        receivers,
        receivers_on_all_cpus,
        takes_turns,
        gathers_senders: !facts.has_rate && many_streams,
        may_spin: facts.received >= SPIN_STREAMS_MIN && !facts.measures_cpu,
    }
}

/// Data arrives on all CPUs that workers may use: a peer on this machine has at least as many
/// threads.
pub(crate) fn arrives_on_all(cpus: &[u32], incoming: &[u32]) -> bool {
    !cpus.is_empty() && cpus.iter().all(|cpu| incoming.contains(cpu))
}

/// Most threads of a test with this number of streams.
pub(crate) fn threads_max(streams: usize, cpus: usize) -> usize {
    let senders_max = STREAMS_WITH_SENDER_EACH_MAX.max(SENDERS_PER_CPU * cpus);
    streams
        .min(senders_max + RECEIVERS_PER_CPU_MAX * cpus)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: PlanFacts = PlanFacts {
        cpus: 4,
        sent: 0,
        received: 0,
        has_rate: false,
        has_pacing_timers: false,
        makes_short_calls: false,
        receives_large_blocks: false,
        arrives_on_only_cpu: false,
        measures_cpu: false,
    };

    fn sent(sent: usize) -> PlanFacts {
        PlanFacts { sent, ..FACTS }
    }

    #[test]
    fn senders_are_one_per_cpu_unless_calls_are_short_or_timers_pace() {
        let short = |streams| PlanFacts {
            makes_short_calls: true,
            ..sent(streams)
        };
        let paced = |streams| PlanFacts {
            has_pacing_timers: true,
            ..sent(streams)
        };
        // At first and at most.
        let table = [
            ("one stream", sent(1), (4, 4)),
            ("many streams", sent(128), (4, 4)),
            ("unknown CPUs", PlanFacts { cpus: 0, ..sent(8) }, (1, 1)),
            ("short calls", short(10), (128, 128)),
            ("as many as iperf3 takes", short(128), (128, 128)),
            ("more than that", short(129), (4, 4)),
            ("few streams that timers pace", paced(16), (4, 4)),
            ("many streams that timers pace", paced(17), (2, 4)),
        ];
        for (name, facts, expected) in table {
            let size = plan(&facts).senders;
            assert_eq!((size.initial, size.max), expected, "{name}");
        }
    }

    #[test]
    fn receivers_of_large_blocks_are_several_per_cpu_where_data_arrives_on_all() {
        let small = PlanFacts {
            received: 100,
            ..FACTS
        };
        let large = PlanFacts {
            receives_large_blocks: true,
            ..small
        };
        let one = |facts| PlanFacts { cpus: 1, ..facts };
        let arrives_there = |facts| PlanFacts {
            arrives_on_only_cpu: true,
            ..one(facts)
        };
        let both_ways = PlanFacts { sent: 8, ..large };
        // At first, at most, and where data arrives on all CPUs.
        let table = [
            ("small blocks", small, (4, 8, 4)),
            ("large blocks", large, (4, 256, 32)),
            ("large blocks, one CPU", one(large), (1, 64, 64)),
            (
                "the same, where data arrives",
                arrives_there(large),
                (64, 64, 64),
            ),
            ("small blocks there", arrives_there(small), (1, 2, 1)),
            ("both ways there", arrives_there(both_ways), (1, 2, 1)),
        ];
        for (name, facts, expected) in table {
            let plan = plan(&facts);
            let GroupSize { initial, max } = plan.receivers;
            assert_eq!(
                (initial, max, plan.receivers_on_all_cpus),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_stream_each_way_on_one_cpu_takes_turns_unless_it_keeps_a_rate() {
        let both = PlanFacts {
            cpus: 1,
            sent: 1,
            received: 1,
            ..FACTS
        };
        let table = [
            (both, true),
            (PlanFacts { cpus: 2, ..both }, false),
            (PlanFacts { sent: 2, ..both }, false),
            (
                PlanFacts {
                    has_rate: true,
                    ..both
                },
                false,
            ),
        ];
        for (facts, expected) in table {
            assert_eq!(plan(&facts).takes_turns, expected, "{facts:?}");
        }
    }

    #[test]
    fn senders_of_many_streams_without_a_rate_gather() {
        let many = sent(17);
        let table = [
            (many, true),
            (sent(16), false),
            (
                PlanFacts {
                    has_rate: true,
                    ..many
                },
                false,
            ),
        ];
        for (facts, expected) in table {
            assert_eq!(plan(&facts).gathers_senders, expected, "{facts:?}");
        }
    }

    #[test]
    fn receivers_of_several_streams_may_spin_unless_their_cpu_time_is_a_result() {
        let received = |received| PlanFacts { received, ..FACTS };
        let table = [
            (received(3), false),
            (received(4), true),
            (
                PlanFacts {
                    measures_cpu: true,
                    ..received(4)
                },
                false,
            ),
        ];
        for (facts, expected) in table {
            assert_eq!(plan(&facts).may_spin, expected, "{facts:?}");
        }
    }
}
