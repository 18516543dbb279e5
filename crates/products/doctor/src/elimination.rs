//! Where the time of a test went, by elimination: every slice is put down to the first part of the
//! two hosts that was at its limit, and to the path between them when neither host was. Of a UDP
//! test, to the place that lost most datagrams.

mod end;

use crate::limit;
use crate::scope::{Facts, Run, Scope};
use end::End;

/// A thread that waits for a CPU for this share of the time lacks CPU time, also where the CPUs
/// have idle time.
const WAIT_MIN: f64 = 0.1;
/// A test that needs less CPU time than this, CPUs, gets it from a scheduler that is fair, also
/// where the CPUs are full.
const CPU_NEED_MIN: f64 = 0.15;
/// CPUs that other programs, or the hypervisor, must use to be what a test waits for.
const OTHERS_MIN_CPUS: f64 = 0.3;
/// Share of the busy time from which on a window is the limit, also where packets are lost.
const WINDOW_MOSTLY: f64 = 0.5;
/// Share of the busy time from which on a window is the limit where nothing queues and nothing is
/// lost: the kernel counts a window that is full, not one that is nearly full.
const WINDOW_ALONE: f64 = 0.2;
/// A send buffer below this holds less than one segment of TSO, so it cannot be what fills a queue
/// on the path.
const SMALL_BUFFER_BYTES: f64 = 65_536.0;
/// A sender with data outstanding for this share of the time is never kept from sending by its
/// host.
const BUSY: f64 = 0.95;
/// CPUs of a host that runs both ends are the limit from this load of the busiest one on, where
/// nothing is lost or queued.
const HOST_BUSY: f64 = 0.5;
/// Part of a target rate that a slice of a paced test moves at least: a second begins and ends
/// within a burst.
const NEARLY_TARGET: f64 = 0.9;
/// Packets that a firewall must drop in a slice to be what a test waits for.
const FILTERED_MIN: f64 = 10.0;

/// True if both ends were measured for everything that is eliminated in favour of a limit.
/// Otherwise no limit is certain.
pub(crate) fn are_rivals_measured(scope: &Scope<'_>, run: &Run<'_>) -> bool {
    ["sender", "receiver"]
        .into_iter()
        .all(|part| End::new(scope, run, part).is_some_and(|end| end.is_measured()))
}

/// Limit of a direction in a slice; `None` where the facts do not decide.
pub(crate) fn limit_of(scope: &Scope<'_>, run: &Run<'_>) -> Option<&'static str> {
    let [sender, receiver] = ["sender", "receiver"].map(|part| End::new(scope, run, part));
    let ends: Vec<End<'_>> = [sender, receiver].into_iter().flatten().collect();

    if run.is_udp() {
        udp_limit(run, sender, &ends)
    } else {
        tcp_limit(run, sender, receiver, &ends)
    }
}

fn udp_limit(run: &Run<'_>, sender: Option<End<'_>>, ends: &[End<'_>]) -> Option<&'static str> {
    match place_of_loss(run) {
        // A receiver that its quota stops reads late: the drops of its socket are the quota's.
        Some(limit::RECEIVER_CPU) | None if ends.iter().any(End::is_throttled) => {
            Some(limit::QUOTA)
        }
        // Without loss the receiver has no effect on the rate.
        None => cpu_limit(run, sender, None, sender.as_slice()),
        place => place,
    }
}

fn tcp_limit<'a>(
    run: &Run<'a>,
    sender: Option<End<'a>>,
    receiver: Option<End<'a>>,
    ends: &[End<'a>],
) -> Option<&'static str> {
    let number = |fact: &str| run.number(fact).ok().map(|reading| reading.value);
    let busy = number("busy_share")?;
    let is_filtered = ends.iter().map(End::filtered).sum::<f64>() >= FILTERED_MIN;

    // A throttled process neither sends nor reads: a closed window and an empty buffer follow from
    // the quota.
    if ends.iter().any(End::is_throttled) {
        return Some(limit::QUOTA);
    }

    let is_path = run.loss().is_some() || run.queue().is_some();
    let limited = [
        number("rwnd_limited_share")?,
        number("sndbuf_limited_share")?,
    ];
    if let Some(window) = window_limit(run, limited, receiver, is_path) {
        return Some(window);
    }
    if let Some(cpu) = encryption_limit(run, sender, receiver) {
        return Some(cpu);
    }

    if busy >= BUSY && is_path {
        return Some(if is_filtered {
            limit::FIREWALL
        } else {
            limit::PATH
        });
    }
    // Before the application: a sender that waits for a CPU has nothing to send either. In the
    // other order 10 of 20 tests beside a busy program were `application-limited`.
    if let Some(cpu) = cpu_limit(run, sender, receiver, ends) {
        return Some(cpu);
    }
    if is_filtered {
        return Some(limit::FIREWALL);
    }

    if is_path {
        return Some(limit::PATH);
    }
    if busy < BUSY {
        return idle_limit(run, sender);
    }
    Some(busy_limit(run, receiver?))
}

/// The window or buffer that held the sender back for these shares of the time, if one did.
fn window_limit(
    run: &Run<'_>,
    [by_receiver, by_sender]: [f64; 2],
    receiver: Option<End<'_>>,
    is_path: bool,
) -> Option<&'static str> {
    // A window that is nearly full limits as well, and the kernel counted it for 40 % of the time.
    // With loss or a queue so small a share is no proof.
    let window_min = if is_path { WINDOW_MOSTLY } else { WINDOW_ALONE };
    if by_receiver >= window_min {
        let is_late = receiver.is_some_and(|end| end.is_thread_full());
        return Some(if is_late {
            limit::RECEIVER_CPU
        } else {
            limit::RECEIVER_WINDOW
        });
    }

    // A buffer of 2 KiB limited the sender for 40 to 85 % of the time, beside what was taken for a
    // queue on the path.
    let is_small = run
        .number("sndbuf_bytes")
        .is_ok_and(|bytes| bytes < SMALL_BUFFER_BYTES);
    let buffer_min = if is_small { WINDOW_ALONE } else { window_min };
    (by_sender >= buffer_min).then_some(limit::SENDER_WINDOW)
}

/// A full CPU that encrypts. Packets that wait for it look like a queue on the path: with WireGuard
/// and a full CPU the path was the verdict.
fn encryption_limit(
    run: &Run<'_>,
    sender: Option<End<'_>>,
    receiver: Option<End<'_>>,
) -> Option<&'static str> {
    let is_encrypting = |end: Option<End<'_>>| end.is_some_and(|end| end.is_encrypting());
    match (is_encrypting(sender), is_encrypting(receiver)) {
        (false, false) => None,
        _ if run.is("same_host") => Some(limit::HOST_CPU),
        (true, _) => Some(limit::SENDER_CPU),
        (false, true) => Some(limit::RECEIVER_CPU),
    }
}

/// The limit of a sender that often had nothing to send.
fn idle_limit(run: &Run<'_>, sender: Option<End<'_>>) -> Option<&'static str> {
    if run.is_buffer_below_block() {
        Some(limit::SENDER_WINDOW)
    } else if run.reaches_of_its_target(NEARLY_TARGET) {
        // A paced sender waits for its next turn.
        Some(limit::CONFIGURED_RATE)
    } else {
        // A sender whose host was not measured may have waited for a CPU instead.
        sender.map(|_| limit::APPLICATION)
    }
}

/// The limit of a sender that had data to send all the time, without loss or a queue.
fn busy_limit(run: &Run<'_>, receiver: End<'_>) -> &'static str {
    let is_same_host = run.is("same_host");
    let busiest = receiver.host.busiest_cpu();

    // The ends of one host that run in turn leave each of its CPUs some idle time. At a lower load
    // the path is the limit also without queue and loss: with BBR behind a shaper the host used 1 %
    // of a CPU.
    if is_same_host && busiest.is_ok_and(|busy| busy >= HOST_BUSY) {
        limit::HOST_CPU
    } else if !is_same_host && run.spurious().is_some() {
        // On one host a healthy sender repeats 1 % of its segments, because it moves between CPUs.
        limit::REORDERING
    } else {
        limit::PATH
    }
}

/// The place that lost most datagrams of a UDP test, where enough were lost. Without counters of
/// the receiver its host cannot be distinguished from the path.
pub(crate) fn place_of_loss(run: &Run<'_>) -> Option<&'static str> {
    run.datagram_loss()?;
    let lost_in = |place: &str| {
        run.number(&format!("lost_in_{place}"))
            .map_or(0.0, |lost| lost.value)
    };

    let network = if run.number("lost_in_socket").is_ok() {
        limit::PATH
    } else {
        limit::PATH_OR_RECEIVER
    };
    let places = [
        (network, "network"),
        (limit::SENDER_QUEUE, "sender"),
        (limit::FIREWALL, "firewall"),
        (limit::NIC_QUEUE_RX, "nic"),
        (limit::RECEIVER_SOFTIRQ, "backlog"),
        (limit::RECEIVER_KERNEL, "kernel"),
        (limit::RECEIVER_CPU, "socket"),
    ];
    let most = places
        .into_iter()
        .max_by(|(_, a), (_, b)| lost_in(a).total_cmp(&lost_in(b)))?;

    (lost_in(most.1) > 0.0).then_some(most.0)
}

fn cpu_limit(
    run: &Run<'_>,
    sender: Option<End<'_>>,
    receiver: Option<End<'_>>,
    ends: &[End<'_>],
) -> Option<&'static str> {
    let own: f64 = ends.iter().filter_map(End::own_cpus).sum();
    let is_full =
        |end: &&End<'_>| end.are_cpus_full() && (own >= CPU_NEED_MIN || end.is_thread_full());
    if let Some(end) = ends.iter().find(|end| end.wait >= WAIT_MIN || is_full(end)) {
        // The ends of a test on one host that are not bound to CPUs of their own are programs of
        // the same CPUs.
        let is_shared = run.is("same_host") && ends.iter().all(|other| end.shares_cpus(other));
        let of_test = if is_shared {
            own
        } else {
            end.own_cpus().unwrap_or(0.0)
        };
        let others = end.programs_cpus() - of_test;
        // The hypervisor is the limit where it took more than the other programs of this host.
        if end.stolen_cpus() >= OTHERS_MIN_CPUS.max(others) {
            return Some(limit::STEAL);
        }

        // An end on this host that was not observed is one of the other programs.
        let is_other_end_among = run.is("same_host") && ends.len() < 2;
        if others >= OTHERS_MIN_CPUS && !is_other_end_among {
            return Some(limit::OTHER_PROGRAMS);
        }
        if is_shared {
            return Some(limit::HOST_CPU);
        }
    }

    if sender.is_some_and(|end| end.is_thread_full()) {
        return Some(if run.is("same_host") {
            limit::HOST_CPU
        } else {
            limit::SENDER_CPU
        });
    }

    let receiver = receiver?;
    if receiver.is_thread_full() {
        return Some(if run.is("same_host") {
            limit::HOST_CPU
        } else {
            limit::RECEIVER_CPU
        });
    }

    // The bound of CPU-02, so that the verdict and the rule agree.
    (receiver.softirq() >= 0.85).then_some(limit::RECEIVER_SOFTIRQ)
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::{Snapshot, Source, Value};

    use super::*;
    use crate::judge::scope;
    use crate::period::{Delta, Period};

    /// The limit of a TCP test whose ends have these facts beside those of a fast, clean test.
    fn limit_with(facts: &[(&str, Value)]) -> Option<&'static str> {
        limit_at([0, 0], facts)
    }

    /// The limit while the CPUs of both hosts are busy for these percentages of the time.
    fn limit_at(busy_percent: [u64; 2], facts: &[(&str, Value)]) -> Option<&'static str> {
        limit_seen_by(&["sender", "receiver"], busy_percent, facts)
    }

    /// The limit where these ends were observed.
    fn limit_seen_by(
        ends: &[&str],
        busy_percent: [u64; 2],
        facts: &[(&str, Value)],
    ) -> Option<&'static str> {
        let clean: [(&str, Value); 8] = [
            ("tool", "linerate".into()),
            ("transport", "tcp".into()),
            ("busy_share", 1.0.into()),
            ("rwnd_limited_share", 0.0.into()),
            ("sndbuf_limited_share", 0.0.into()),
            ("retransmits", 0_i64.into()),
            ("retransmit_share", 0.0.into()),
            ("block_len_bytes", 131_072_i64.into()),
        ];
        let end = |part: &str| {
            let mut snapshot = Snapshot::new(part, Source::Live);
            for (fact, value) in clean.iter().chain(facts).chain([&("end", part.into())]) {
                // The work of the CPUs is that of the host.
                let key = match fact.starts_with("work.") {
                    true => (*fact).to_owned(),
                    false => format!("run.0.{fact}"),
                };
                snapshot.set(key, value.clone(), "test");
            }
            snapshot
        };
        let snapshots: Vec<_> = ends.iter().map(|part| end(part)).collect();
        let mut period = Period::default();
        (period.seconds, period.intervals) = (1.0, 1);

        for (cpu, busy) in busy_percent.into_iter().enumerate() {
            for state in ["nice", "system", "iowait", "irq", "softirq", "steal"] {
                period.set(
                    format!("cpu.{cpu}.{state}"),
                    Delta {
                        value: 0,
                        ..Delta::default()
                    },
                );
            }
            period.set(
                format!("cpu.{cpu}.user"),
                Delta {
                    value: busy,
                    ..Delta::default()
                },
            );
            period.set(
                format!("cpu.{cpu}.idle"),
                Delta {
                    value: 100 - busy,
                    ..Delta::default()
                },
            );
        }

        period.set(
            "self.ticks",
            Delta {
                value: 40,
                ..Delta::default()
            },
        );
        let scope = scope(&snapshots, &vec![Some(&period); snapshots.len()]);
        let run = scope.runs().next().expect("a run");
        limit_of(&scope, &run)
    }

    #[test]
    fn a_full_cpu_that_encrypts_is_the_limit_before_the_queue_it_makes() {
        let with = |busy_percent, part: f64| {
            let facts = [
                ("retransmits", 9_i64.into()),
                ("retransmit_share", 0.01.into()),
                ("work.cpu.1.crypto", part.into()),
            ];
            limit_at([0, busy_percent], &facts)
        };

        assert_eq!(with(100, 0.49), Some(limit::SENDER_CPU));
        assert_eq!(with(100, 0.1), Some(limit::PATH));
        assert_eq!(with(80, 0.49), Some(limit::PATH));
    }

    #[test]
    fn a_window_counts_from_a_fifth_of_the_time_where_nothing_is_lost() {
        let waited = ("rwnd_limited_share", 0.4.into());
        assert_eq!(
            limit_with(std::slice::from_ref(&waited)),
            Some(limit::RECEIVER_WINDOW)
        );

        let lost = [
            waited.clone(),
            ("retransmits", 9_i64.into()),
            ("retransmit_share", 0.01.into()),
        ];
        assert_eq!(limit_with(&lost), Some(limit::PATH));
        assert_eq!(
            limit_with(&[("rwnd_limited_share", 0.1.into())]),
            Some(limit::PATH)
        );
        assert_eq!(
            limit_with(&[waited, ("receiver_thread_cpu", 0.95.into())]),
            Some(limit::RECEIVER_CPU)
        );
    }

    #[test]
    fn paced_sender_that_has_nothing_to_send_is_limited_by_its_rate() {
        let paced = |rate: f64| {
            [
                ("busy_share", 0.5.into()),
                ("target_bps", 5e7.into()),
                ("received_bps", rate.into()),
            ]
        };
        assert_eq!(limit_with(&paced(4.8e7)), Some(limit::CONFIGURED_RATE));
        assert_eq!(limit_with(&paced(3e7)), Some(limit::APPLICATION));
        assert_eq!(
            limit_with(&[("busy_share", 0.5.into())]),
            Some(limit::APPLICATION)
        );
    }

    #[test]
    fn segments_that_arrived_twice_were_late_and_not_lost() {
        let repeated = |twice: i64| {
            [
                ("retransmits", 100_i64.into()),
                ("retransmit_share", 0.02.into()),
                ("dsack_segments", twice.into()),
            ]
        };
        assert_eq!(limit_with(&repeated(90)), Some(limit::REORDERING));
        assert_eq!(limit_with(&repeated(10)), Some(limit::PATH));

        let [a, b, c] = repeated(90);
        let same_host = ("same_host", true.into());
        assert_eq!(
            limit_at([80, 70], &[a, b, c, same_host.clone()]),
            Some(limit::HOST_CPU)
        );

        let [a, b, c] = repeated(10);
        assert_eq!(limit_with(&[a, b, c, same_host]), Some(limit::PATH));
    }

    #[test]
    fn a_host_that_runs_both_ends_is_the_limit_where_its_cpus_are_busy() {
        let same_host = ("same_host", true.into());
        assert_eq!(
            limit_at([5, 3], std::slice::from_ref(&same_host)),
            Some(limit::PATH)
        );
        assert_eq!(
            limit_at([80, 70], std::slice::from_ref(&same_host)),
            Some(limit::HOST_CPU)
        );

        // Both use 0.4 CPUs: 1.2 are others'.
        assert_eq!(
            limit_at([100, 100], std::slice::from_ref(&same_host)),
            Some(limit::OTHER_PROGRAMS)
        );
        let bound = [
            same_host,
            ("client_cpus", "0".into()),
            ("server_cpus", "1".into()),
        ];
        assert_eq!(limit_at([40, 100], &bound), Some(limit::OTHER_PROGRAMS));
    }

    #[test]
    fn an_end_on_this_host_that_was_not_observed_is_no_other_program() {
        let same_host = [("same_host", true.into())];
        assert_eq!(
            limit_seen_by(&["sender"], [100, 100], &same_host),
            Some(limit::HOST_CPU)
        );
        assert_eq!(
            limit_seen_by(&["sender"], [100, 100], &[]),
            Some(limit::OTHER_PROGRAMS)
        );
    }

    #[test]
    fn thread_that_waits_for_a_cpu_lacks_cpu_time_although_cpus_are_idle() {
        let waits = |share: f64| {
            [
                ("busy_share", 0.7.into()),
                ("receiver_thread_wait", share.into()),
            ]
        };
        assert_eq!(
            limit_at([100, 60], &waits(0.3)),
            Some(limit::OTHER_PROGRAMS)
        );
        assert_eq!(limit_at([100, 60], &waits(0.02)), Some(limit::APPLICATION));

        // This end uses 0.4 CPUs, and nothing else does.
        assert_eq!(limit_at([40, 0], &waits(0.3)), Some(limit::APPLICATION));
    }

    #[test]
    fn place_that_lost_most_datagrams_is_the_limit() {
        let udp = |share: f64, places: &[(&'static str, i64)]| {
            let given: [(&str, Value); 2] =
                [("transport", "udp".into()), ("loss_share", share.into())];
            let places = places.iter().map(|(place, lost)| (*place, (*lost).into()));
            limit_with(&given.into_iter().chain(places).collect::<Vec<_>>())
        };
        let watched = [
            ("lost_in_network", 40),
            ("lost_in_sender", 9),
            ("lost_in_nic", 0),
            ("lost_in_socket", 3),
        ];
        assert_eq!(udp(0.05, &watched), Some(limit::PATH));
        assert_eq!(udp(0.0001, &watched), None);
        assert_eq!(udp(0.05, &watched[..2]), Some(limit::PATH_OR_RECEIVER));

        for (place, expected) in [
            ("lost_in_sender", limit::SENDER_QUEUE),
            ("lost_in_firewall", limit::FIREWALL),
            ("lost_in_nic", limit::NIC_QUEUE_RX),
            ("lost_in_backlog", limit::RECEIVER_SOFTIRQ),
            ("lost_in_kernel", limit::RECEIVER_KERNEL),
            ("lost_in_socket", limit::RECEIVER_CPU),
        ] {
            let places = [&watched[..1], &[(place, 41), ("lost_in_socket", 3)][..]].concat();
            assert_eq!(
                udp(
                    0.05,
                    &places[..if place == "lost_in_socket" { 2 } else { 3 }]
                ),
                Some(expected),
                "{place}"
            );
        }
    }

    #[test]
    fn a_sender_that_was_not_measured_is_no_application_limit() {
        let idle = [("busy_share", 0.5.into())];
        assert_eq!(limit_seen_by(&["receiver"], [10, 10], &idle), None);
        assert_eq!(
            limit_seen_by(&["sender"], [10, 10], &idle),
            Some(limit::APPLICATION)
        );
    }

    #[test]
    fn small_buffer_is_the_limit_although_packets_are_lost() {
        let lost = [
            ("sndbuf_limited_share", 0.3.into()),
            ("retransmit_share", 0.01.into()),
        ];
        let limit =
            |bytes: i64| limit_with(&[&lost[..], &[("sndbuf_bytes", bytes.into())]].concat());
        assert_eq!(limit(4096), Some(limit::SENDER_WINDOW));
        assert_eq!(limit(2_097_152), Some(limit::PATH));
    }

    #[test]
    fn a_buffer_that_takes_no_block_is_no_lack_of_data() {
        let idle = ("busy_share", 0.6.into());
        assert_eq!(
            limit_with(&[idle.clone(), ("sndbuf_bytes", 2048_i64.into())]),
            Some(limit::SENDER_WINDOW)
        );
        assert_eq!(
            limit_with(&[idle, ("sndbuf_bytes", 2_097_152_i64.into())]),
            Some(limit::APPLICATION)
        );
    }
}
