//! Delay under load: queues of the hosts, queues of the path, and the marks that keep queues short.

use crate::rules::prelude::*;

rules! {
    Run lat_01,
    Run lat_02,
    Host ecn_01,
}

/// A shorter delay is no complaint: the bound of the grade A+.
const QUEUE_MIN_US: f64 = 5_000.0;
/// The bound of the grade B, from which on calls and games suffer.
const QUEUE_LONG_US: f64 = 30_000.0;
/// Twice what a load with `TCP_NOTSENT_LOWAT` keeps in its sockets (5 ms).
const SOCKET_MIN_US: f64 = 10_000.0;
/// Delay in the streams of the load beyond that of the probes which shows a queue for each flow.
const FLOW_QUEUE_MIN_US: f64 = 30_000.0;
/// New connections that wait for this part of what the streams of the load wait use the same queue.
const SHARED_MIN: f64 = 0.5;

/// Data that waits in the queueing discipline of the sending host.
#[derive(Debug)]
struct OwnQueue<'a> {
    nic: Nic<'a>,
    backlog: Reading<f64>,
    /// Time it takes at the rate of the test.
    us: f64,
}

/// The queue of the sending host's interface; `None` where nothing of that host is known.
fn own_queue<'a>(run: &Run<'a>) -> Result<Option<OwnQueue<'a>>, NoMatch> {
    let Some(sender) = run.end("sender") else {
        return Ok(None);
    };
    // The period belongs to the host of the run.
    let sender = if sender.name() == run.host.name() {
        run.host
    } else {
        sender
    };
    let nic = run.at(sender).used_nic()?;
    let backlog = nic.backlog_bytes()?;
    let us = run.time_us(backlog.value)?;

    Ok(Some(OwnQueue { nic, backlog, us }))
}

/// Data in the sockets of the senders, and the time it takes at the rate of the test, microseconds.
fn socket_queue(run: &Run<'_>) -> Result<(Reading<f64>, f64), NoMatch> {
    let waiting = run.number("notsent_bytes")?;
    let us = run.time_us(waiting.value)?;
    Ok((waiting, us))
}

/// The part of it that loads of `linerate test` keep ready in each stream, which no setting of the
/// host changes.
fn ready_us(run: &Run<'_>) -> f64 {
    /// A frame and the low-water mark of a slow stream, or a stream that has just begun.
    const READY_BYTES: f64 = 16_384.0;

    if !run.is_examined() {
        return 0.0;
    }
    let streams = run.number("streams").map_or(0.0, |streams| streams.value);
    run.time_us(READY_BYTES * streams).unwrap_or(0.0)
}

fn lat_01(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    let discipline = own_queue(run);
    // The discipline first: all flows of the host wait in it, in a socket only its own connection.
    if let Ok(Some(queue)) = &discipline
        && queue.us >= QUEUE_MIN_US
    {
        return Ok(in_discipline(queue));
    }

    let (waiting, socket_us) = socket_queue(run)?;
    if socket_us - ready_us(run) >= SOCKET_MIN_US {
        return Ok(in_socket(run, &waiting, socket_us));
    }

    let queue = discipline?.or_unknown("nic.*.qdisc.root.backlog", "the sender sent no facts")?;
    clear(format!(
        "{} in the sockets, {} in {}",
        ms(socket_us),
        ms(queue.us),
        queue.nic.name
    ))
}

fn in_discipline(queue: &OwnQueue<'_>) -> Match {
    let OwnQueue { nic, backlog, us } = queue;
    let name = nic.word();

    matched()
        .severity(severity(*us))
        .because(
            "wait in the queueing discipline",
            ms(*us),
            "below 5 ms at the rate of the test",
        )
        .read(
            backlog,
            format!("bytes in the queueing discipline of {name}"),
        )
        .on(nic.host.name())
        .change_or(
            shorter_queue(nic),
            format!(
                "give {name} a discipline that keeps queues short, fq_codel or cake, in the place \
                 of what `tc qdisc show dev {name}` prints; a shaper stays before it"
            ),
        )
}

fn in_socket(run: &Run<'_>, waiting: &Reading<f64>, us: f64) -> Match {
    /// Usual limit of unsent data where delays matter.
    const LOWAT_BYTES: f64 = 131_072.0;

    const KEY: &str = "net.ipv4.tcp_notsent_lowat";

    let matched = matched()
        .because(
            "wait in the sockets",
            ms(us),
            "below 10 ms at the rate of the test",
        )
        .read(
            waiting,
            "bytes that the programs have written and the kernel has not sent",
        );
    let is_high = |host: &Host<'_>| {
        host.number(&format!("sysctl.{KEY}"))
            .is_ok_and(|old| old > LOWAT_BYTES)
    };
    match run.end("sender").filter(is_high) {
        Some(sender) => matched
            .on(sender.name())
            .sysctl(&sender, KEY, &format!("{LOWAT_BYTES}")),
        None => matched.advice(format!(
            "set TCP_NOTSENT_LOWAT in the program, or {KEY} of the sender, to {LOWAT_BYTES}; only \
             this connection waits"
        )),
    }
}

/// A discipline with shorter queues in the place of the one at the root, where it can be restored.
fn shorter_queue(nic: &Nic<'_>) -> Option<Change> {
    match nic.text("qdisc.root.kind").ok()?.value {
        "pfifo_fast" | "pfifo" | "bfifo" => nic.replace_root("fq_codel", ""),
        "tbf" => shorter_tbf(&nic.root_command()?),
        _ => None,
    }
}

/// Change to the same token bucket with a queue of 20 ms, where its queue is longer (tc-tbf(8):
/// `limit` is `burst` and what waits for tokens).
fn shorter_tbf(bucket: &Command) -> Option<Change> {
    const QUEUE_S: f64 = 0.02;

    let words: Vec<&str> = bucket.line().split(' ').collect();
    let after = |name: &str| {
        words
            .iter()
            .position(|word| *word == name)
            .and_then(|at| words.get(at + 1))
            .copied()
    };
    let number = |name: &str, unit: &str| after(name)?.trim_end_matches(unit).parse::<f64>().ok();
    // `rate` is in bit/s here, `limit` and `burst` are in bytes (tc-tbf(8)).
    let limit = number("burst", "")? + number("rate", "bit")? / 8.0 * QUEUE_S;
    if limit >= number("limit", "")? {
        return None;
    }

    Some((
        bucket.with_parameter("limit", after("limit")?, limit)?,
        bucket.clone(),
    ))
}

/// Bytes of an Ethernet frame, which a shaper counts, per byte of TCP payload: 1514 bytes bear 1448
/// with time stamps.
const FRAME_PER_PAYLOAD: f64 = 1514.0 / 1448.0;

/// A queue on the path in one direction.
struct PathQueue {
    /// `up`, `down`, or empty where only the round trip is known.
    direction: &'static str,
    /// Beyond what waits in the sending host.
    us: f64,
    read: Vec<Reading<f64>>,
}

fn lat_02(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    let own = own_queue(run)?;
    let own_us = own.as_ref().map_or(0.0, |queue| queue.us);
    let queues = path_queues(run, own_us)?;
    let Some(queue) = queues
        .into_iter()
        .max_by(|a, b| a.us.total_cmp(&b.us))
        .filter(|queue| queue.us >= QUEUE_MIN_US)
    else {
        return queue_per_flow(run, own_us);
    };

    let rate = run.goodput_bps()?.value;
    let amount = format!("{} {}", ms(queue.us), queue.direction);
    let size = format!(
        "{:.0} KiB at {:.1} Mbit/s",
        // 8e6: from bit/s and microseconds to bytes.
        rate * queue.us / 8e6 / 1024.0,
        rate / 1e6
    );
    let mut matched = matched()
        .severity(severity(queue.us))
        .because("queue", amount.trim_end(), "below 5 ms")
        .because("queue holds", size, "rate times delay");

    for reading in &queue.read {
        matched = matched.read(reading, "median of the probes");
    }

    matched = sharing(run, matched);
    // Without facts of the server its own queue cannot be distinguished from that of the path.
    if own.is_none() {
        let server = "a server that sends facts (`linerate serve --facts all`) shows whether the \
                      queue is its own";
        matched = matched.cap(Confidence::Medium).advice(server);
    }

    Ok(matched.advice(format!(
        "fq_codel or cake at {:.1} Mbit/s {}, 95 % of its rate",
        0.95 * rate * FRAME_PER_PAYLOAD / 1e6,
        likely_place(queue.direction)
    )))
}

/// Where the queue of a direction usually is, for a path whose hops are not known.
pub(crate) fn likely_place(direction: &str) -> &'static str {
    match direction {
        "up" => "on the router of the client's side",
        "down" => "on the hop before the client's link or for what arrives at its router",
        _ => "at the narrowest hop",
    }
}

/// Longest queue on the path, microseconds.
pub(super) fn longest_queue_us(run: &Run<'_>) -> Result<f64, NoMatch> {
    let own_us = own_queue(run)?.map_or(0.0, |queue| queue.us);
    Ok(path_queues(run, own_us)?
        .iter()
        .map(|queue| queue.us)
        .fold(0.0, f64::max))
}

/// Queues on the path by direction; where only round trips are known, both together.
fn path_queues(run: &Run<'_>, own_us: f64) -> Result<Vec<PathQueue>, NoMatch> {
    let up = run.number("queue_up_us");
    let down = run.number("queue_down_us");
    if up.is_err() && down.is_err() {
        let idle = run.number("rtt_idle_us")?;
        let loaded = run.number("rtt_loaded_us")?;
        // Data that waits in the sending host is no queue of the path (LAT-01).
        let us = loaded.value - idle.value - own_us;
        return Ok(vec![PathQueue {
            direction: "",
            us,
            read: vec![idle, loaded],
        }]);
    }

    let up = up?;
    let down = down?;
    let loaded = if run.is("reverse") { "down" } else { "up" };
    // What a load in both directions does to the other one is that run's queue.
    let is_both = run.text_is("phase", "both");
    let queues = [("up", up), ("down", down)]
        .into_iter()
        .filter(|(direction, _)| !is_both || *direction == loaded);

    Ok(queues
        .map(|(direction, read)| {
            // The queue of the sending host is one of the loaded direction alone.
            let us = if direction == loaded {
                read.value - own_us
            } else {
                read.value
            };
            PathQueue {
                direction,
                us,
                read: vec![read],
            }
        })
        .collect())
}

/// Adds whether new connections wait as long as the streams of the load.
fn sharing(run: &Run<'_>, matched: Match) -> Match {
    let added = |loaded: &str, idle: &str| {
        Some(run.number(loaded).ok()?.value - run.number(idle).ok()?.value)
    };
    let (Some(new), Some(own)) = (
        added("foreign_us", "foreign_idle_us"),
        added("in_band_us", "rtt_idle_us"),
    ) else {
        return matched;
    };
    let text = format!(
        "{} more under load, the streams of the load {}",
        ms(new.max(0.0)),
        ms(own.max(0.0))
    );

    let (fact, meaning) = match own > 0.0 {
        true if new >= SHARED_MIN * own => {
            ("shared by all flows: new connections", "one queue for all")
        }
        true => (
            "per flow: new connections",
            "a queue for each flow, or priority for new ones",
        ),
        false => return matched,
    };
    matched.because(fact, text, meaning)
}

/// A queue that the probes do not share: only the streams of the load wait in it.
fn queue_per_flow(run: &Run<'_>, own_us: f64) -> Ruling {
    let in_band = run.number("in_band_us")?;
    let probes = run.number("rtt_loaded_us")?;
    let (_, socket_us) = socket_queue(run)?;

    for part in ["sender", "receiver"] {
        let is_full = run.end(part).is_some_and(|host| host.has_full_cpu());
        require(
            !is_full,
            format!("a CPU of the {part} is fully used: echoes may wait for it"),
        )?;
    }

    let waits_us = in_band.value - probes.value - socket_us - own_us;
    require(
        waits_us >= FLOW_QUEUE_MIN_US,
        format!(
            "probes wait less than 5 ms on the path, the streams of the load {} more",
            ms(waits_us.max(0.0))
        ),
    )?;
    Ok(matched()
        .severity(Severity::Low)
        .because(
            "queue per flow",
            ms(waits_us),
            "below 30 ms beyond what waits in the sending host",
        )
        .read(&in_band, "median round trip in the streams of the load")
        .read(&probes, "median of the probes: other flows do not wait")
        .advice(
            "nothing for other flows; a program with a shorter window or BBR keeps its own queue \
             short",
        ))
}

fn ecn_01(host: &Host<'_>) -> Ruling {
    let ecn = host.text("path.ecn");
    let dscp = host.text("path.dscp");
    let is_lost = |marks: &Result<Reading<&str>, NoMatch>| {
        marks.as_ref().is_ok_and(|marks| {
            ["cleared", "changed"]
                .iter()
                .any(|word| marks.value.contains(word))
        })
    };

    let mut found = matched();
    for marks in [&ecn, &dscp] {
        if is_lost(marks)
            && let Ok(marks) = marks
        {
            found = found.read_text(marks, "kept in both directions");
        }
    }

    if is_lost(&ecn) {
        let advice = "look for a router, tunnel or firewall rule that writes the whole TOS byte; \
                      only it can be changed";
        return Ok(found.advice(advice));
    }

    if is_lost(&dscp) {
        // Networks may use other code points than their neighbours.
        return Ok(found
            .severity(Severity::Info)
            .advice("agree on DSCPs with the network in between, or do without them"));
    }

    clear(format!("ECN {}, DSCP {}", ecn?.value, dscp?.value))
}

const fn severity(queue_us: f64) -> Severity {
    if queue_us >= QUEUE_LONG_US {
        Severity::Medium
    } else {
        Severity::Low
    }
}

fn ms(us: f64) -> String {
    format!("{:.1} ms", us / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::command;

    #[test]
    fn token_bucket_keeps_its_rate_and_gets_a_queue_of_20_ms() {
        let bucket = |limit: u32| {
            const BUCKET: &str =
                "tc qdisc replace dev e root handle 1: tbf rate 100000000bit burst 32000 limit {}";
            command(BUCKET, &[&limit]).expect("a token")
        };
        // 32,000 bytes of burst and 100 Mbit/s over 20 ms, which is 250,000 bytes.
        assert_eq!(
            shorter_tbf(&bucket(1_250_000)),
            Some((bucket(282_000), bucket(1_250_000)))
        );
        assert_eq!(shorter_tbf(&bucket(282_000)), None);

        for unreadable in [
            "",
            "tc qdisc del dev e root",
            "tbf rate xbit burst 1 limit 2",
            "tbf rate 1bit burst 1 limit",
        ] {
            assert_eq!(
                shorter_tbf(&command(unreadable, &[]).expect("no values")),
                None,
                "{unreadable}"
            );
        }
    }
}
