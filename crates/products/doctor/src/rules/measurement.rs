//! Is the measurement valid?

use linerate_model::placement::cpu_list;
use linerate_model::snapshot::{Quality, Value};

use crate::rules::prelude::*;

rules! {
    Run tool_01,
    Host tool_02,
    Run tool_03,
    Run tool_04,
    Run tool_05,
    Run tool_06,
    Run tool_07,
    Run tool_08,
    Nic meta_01,
    Run meta_03,
    Host meta_02,
}

/// Version from which on iperf3 uses a thread per stream.
const FIRST_THREADED: (u32, u32) = (3, 16);

fn tool_01(run: &Run<'_>) -> Ruling {
    let tool = run.text("tool")?;
    require(tool == "iperf3", format!("{tool} is not iperf3"))?;
    let streams = run.number("streams")?;
    require(streams > 1.0, "one stream")?;

    let version = run.text("version")?;
    let number = version_number(version.value).or_unknown(&version.key, "no version number")?;
    require(
        number < FIRST_THREADED,
        format!("iperf3 {version} has a thread per stream"),
    )?;

    let matched = matched()
        .read_text(&version, "before 3.16: one thread for all streams")
        .read(&streams, "several streams")
        .advice("use linerate on both ends, or one iperf3 process per stream on different ports");
    if let Ok(cpu) = run.number("thread_cpu") {
        require(
            cpu >= 0.9,
            format!("its thread uses {:.0} % of a CPU", cpu.value * 100.0),
        )?;
        return Ok(matched.read(&cpu, "its CPU is saturated"));
    }

    let faster = faster_tool(run)?.or_unknown(run.key("thread_cpu"), run.reason("thread_cpu"))?;
    Ok(matched.because(
        faster.key,
        gbits(faster.value),
        "another tool on the same path is more than 1.3 times as fast",
    ))
}

/// Release of iperf3 without the vulnerabilities that were published before it.
const FIRST_SAFE: (u32, u32) = (3, 22);

/// Vulnerabilities that older releases have as well, and the release without them.
const FIXED: [([u32; 3], &str); 4] = [
    ([3, 14, 0], "CVE-2023-38403"),
    ([3, 17, 0], "CVE-2024-26306"),
    ([3, 18, 0], "CVE-2024-53580"),
    ([3, 19, 1], "CVE-2025-54349, CVE-2025-54350, CVE-2025-54351"),
];

/// The version of a server is that of its own report, or of the report that its client received.
fn tool_08(run: &Run<'_>) -> Ruling {
    let tool = run.text("tool")?;
    require(tool == "iperf3", format!("{tool} is not iperf3"))?;
    let is_of_server = run.is("server");
    let version = run.text(if is_of_server {
        "version"
    } else {
        "peer_version"
    })?;
    require(
        !version.value.contains("linerate"),
        "the server is linerate",
    )?;

    let number = version_number(version.value).or_unknown(&version.key, "no version number")?;
    require(
        number < FIRST_SAFE,
        format!("no vulnerability of iperf3 {version} is known"),
    )?;
    Ok(matched().read_text(&version, safe(version.value)).advice(
        "install iperf3 3.22 on the server, or run `linerate serve` there; until then let only \
         known addresses reach its port",
    ))
}

/// The version that a server should have, and what an old one has besides.
fn safe(version: &str) -> String {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    let numbers: [u32; 3] = std::array::from_fn(|_| {
        let part = parts.next().and_then(|part| part.parse().ok());
        part.unwrap_or_default()
    });
    let older = FIXED.iter().filter(|(fixed, _)| numbers < *fixed);
    let older: Vec<&str> = older.map(|(_, names)| *names).collect();
    match older.as_slice() {
        [] => "3.22 or later".to_owned(),
        names => format!("3.22 or later; also {}", names.join(", ")),
    }
}

/// The first two numbers of a version.
pub(super) fn version_number(text: &str) -> Option<(u32, u32)> {
    // A suffix such as `+` or `-rc1` ends the second number.
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// A run of another tool over the same two addresses that was much faster.
fn faster_tool(run: &Run<'_>) -> Result<Option<Reading<f64>>, NoMatch> {
    let ours = run.goodput_bps()?;
    let path = run.text("path")?;
    let others = run.host.runs().filter(|other| {
        other.text("tool").is_ok_and(|tool| tool != "iperf3") && other.text_is("path", path.value)
    });
    Ok(others
        .filter_map(|other| other.goodput_bps().ok())
        .find(|rate| *rate > 1.3 * ours.value))
}

fn tool_02(host: &Host<'_>) -> Ruling {
    let sweep = sweep(host);
    let (best_streams, best_rate) = sweep
        .iter()
        .copied()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .or_unknown("sweep.streams", host.reason("sweep.streams"))?;
    let after = sweep.iter().filter(|(streams, _)| *streams > best_streams);
    let (streams, rate) = after
        .copied()
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .or_clear(format!(
            "the best of the sweep, {best_streams:.0} streams, is also its largest"
        ))?;
    require(
        rate < 0.9 * best_rate,
        "throughput does not fall with more streams",
    )?;

    Ok(matched()
        .because(
            format!("rate with {best_streams:.0} streams"),
            gbits(best_rate),
            "the maximum of the sweep",
        )
        .because(
            format!("rate with {streams:.0} streams"),
            gbits(rate),
            "over 10 % below the maximum",
        )
        .advice(format!("test with -P {best_streams:.0}")))
}

/// Streams and throughput of a sweep, in the order of the streams.
fn sweep(host: &Host<'_>) -> Vec<(f64, f64)> {
    let facts = host.snapshot.facts_under("sweep.");
    let mut points: Vec<_> = facts
        .filter_map(|(key, _)| {
            let streams: u32 = key.strip_suffix(".rate_bps")?.parse().ok()?;
            let rate = host.number(&format!("sweep.{key}")).ok()?;
            Some((f64::from(streams), rate.value))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));

    points
}

fn tool_03(run: &Run<'_>) -> Ruling {
    let same_host = run.flag("same_host")?;
    require(same_host.value, "client and server run on different hosts")?;
    let server = run.text("server_cpus").or_else(|stop| {
        unpinned(run).map_or(Err(stop), |why| inapplicable(Inapplicable::Test, why))
    })?;
    let confined = cpu_list(server.value);

    // A client that was not pinned may run everywhere, also where the server is.
    let client = run.text("client_cpus");
    let elsewhere = client
        .as_ref()
        .is_ok_and(|client| !shares(client.value, &confined));
    require(
        !elsewhere,
        format!("server on CPUs {server}, the client on others"),
    )?;

    let client = match client {
        Ok(client) => client,
        Err(stop) => return unpinned(run).map_or(Err(stop), |_| crowded(run, &server, &confined)),
    };
    Ok(matched()
        .read_text(
            &client,
            format!("shares a CPU with the server, on {server}"),
        )
        .read_text(&server, "must not share a CPU with the client")
        .advice("give both disjoint lists with -A or `taskset -c`, or drop the pinning"))
}

/// Why no CPUs are known: each end reports its own, and only pinned processes have a list.
fn unpinned(run: &Run<'_>) -> Option<&'static str> {
    run.part().and(run.host.other).map(|_| "not pinned")
}

fn shares(list: &str, others: &[u32]) -> bool {
    cpu_list(list).iter().any(|cpu| others.contains(cpu))
}

/// A server alone is pinned: too narrow when its only CPUs have no time left, or when it has fewer
/// than streams.
fn crowded(run: &Run<'_>, server: &Reading<&str>, confined: &[u32]) -> Ruling {
    let streams = run.number("streams")?;
    let busy = run.number("receiver_thread_cpu")?;
    let few = to_f64(confined.len() as u64) < streams.value;
    require(
        few || busy >= 0.9,
        format!("CPUs {server} are enough for {streams} streams"),
    )?;

    Ok(matched()
        .read_text(server, "enough CPUs for every stream")
        .read(&streams, "streams")
        .read(&busy, "of a CPU, used by the receiving thread")
        .advice("give the server more CPUs, or drop the pinning"))
}

fn tool_04(run: &Run<'_>) -> Ruling {
    if run.is_examined() {
        return inapplicable(
            Inapplicable::Test,
            "`linerate test` states the confidence of each load",
        );
    }

    let seconds = run.number("seconds")?;
    // Slow start and the growth of buffers lower the average of a short test.
    if seconds < 5.0 {
        return Ok(matched()
            .read(&seconds, "at least 5 s")
            .advice("test for at least 10 s and leave out the first two: -t 10 -O 2"));
    }
    if run.number("omit_seconds").is_ok_and(|omit| omit > 0.0) {
        return clear("the first seconds are left out");
    }

    let first = run.number("first_second_bps")?;
    let rest = run.number("later_median_bps")?;
    require(
        first < 0.8 * rest.value,
        "the first second is as fast as the others",
    )?;

    Ok(matched()
        .read(&first, "at least 0.8 of the median of the other seconds")
        .read(&rest, "median of the other seconds")
        .advice("leave out the first two seconds: -O 2"))
}

fn tool_05(run: &Run<'_>) -> Ruling {
    let is_whole = run
        .flag("interrupted")
        .is_ok_and(|interrupted| !interrupted.value);
    require(
        !(is_whole && run.part().is_some()),
        "the run came to its end, and both sides have totals",
    )?;
    let is_stalled = run.number("stalled_share").is_ok_and(|share| share > 0.0);
    require(
        !(is_whole && is_stalled),
        "nothing arrived: the test stalled and came to its end",
    )?;

    let found =
        matched().advice("let the test run to its end, or use the intervals of the other side");
    let received = match run.number("received_bytes") {
        Err(_) if run.part().is_none() && run.is("interrupted") => {
            let sent = run.number("sent_bytes")?;
            let missing = "the receiver's total is missing: the test was ended";
            return Ok(found.read(&sent, missing));
        }
        received => received?,
    };
    require(received == 0.0, "both sides have totals")?;

    let sent = run.number("sent_bytes")?;
    require(sent > 0.0, "nothing was sent")?;
    Ok(found
        .read(&received, "0 although data was sent")
        .read(&sent, "data was sent"))
}

fn tool_06(run: &Run<'_>) -> Ruling {
    run.over_udp()?;
    if run.number("target_bps").is_ok_and(|target| target > 0.0) {
        return clear("a target rate was given");
    }

    let rate = run.goodput_bps()?;
    // iperf3 counts its default of 1 Mbit/s as 1,048,576 bit/s.
    let default = 1.05e6;
    require(
        (rate.value - default).abs() <= 0.05 * default,
        "not at the default rate",
    )?;

    Ok(matched()
        .read(&rate, "the default of iperf3")
        .advice("give a target rate: -b 1G, or -b 0 for as fast as possible"))
}

fn tool_07(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    let size = run.number("block_len_bytes")?;
    require(size < 1448.0, format!("writes of {size} bytes"))?;

    let cpu = run.number("sender_thread_cpu").suspect(format!(
        "writes of {size} bytes: the rate of system calls may be the limit"
    ))?;
    require(cpu >= 0.9, "the sender's CPU is not saturated")?;
    Ok(matched()
        .read(&size, "smaller than one segment of 1448 bytes")
        .read(&cpu, "its CPU is saturated")
        .advice("use larger writes: -l 128K"))
}

fn meta_01(nic: &Nic<'_>) -> Ruling {
    let prefix = nic.key("drv.");
    if let Some(period) = nic.host.period {
        let odd = period
            .deltas()
            .find(|(key, delta)| key.starts_with(&prefix) && (delta.reset || delta.at_least));
        let (key, delta) = odd.or_clear("no counter went backwards")?;
        return Ok(matched().because(key, delta.value, "went backwards: reset, or wrapped"));
    }

    nic.text("drv.name")?;
    let counters = nic.host.snapshot.counters_under(&prefix);
    // Such drivers exist: r8169 keeps `rx_missed` in 16 bits.
    let narrow = counters.filter(|(_, counter)| counter.width.is_some() && counter.v > 0);
    let Some((name, counter)) = narrow.min_by_key(|(_, counter)| counter.width) else {
        return match nic.host.snapshot.counters_under(&prefix).next() {
            Some(_) => clear("no counter of 16 or 32 bits is above zero"),
            None => unknown(format!("{prefix}*"), nic.reason("drv.counters")),
        };
    };
    // The filter leaves counters with a width alone.
    let bits = counter.width.unwrap_or(64);

    Ok(matched()
        .because(
            format!("{prefix}{name}"),
            counter.v,
            format!("kept in {bits} bits, so it may have wrapped"),
        )
        .advice("sample it more often: linerate doctor --window 10s"))
}

fn meta_03(run: &Run<'_>) -> Ruling {
    require(!run.is("same_host"), "both ends are on one host")?;
    let nic = run
        .nic()
        .or_unknown("nic.*.link.speed_mbps", run.host.reason("nic"))?;
    nic.wired()?;

    let speed = nic.number("link.speed_mbps")?;
    let rate = run.goodput_bps()?;
    let is_contradicted = nic.host.snapshot.quality(&speed.key) == Some(Quality::Contradicted);
    require(
        is_contradicted,
        format!(
            "{:.0} Mbit/s over a link of {speed} Mbit/s",
            rate.value / 1e6
        ),
    )?;

    Ok(matched()
        .read_rate(&rate, "faster than the link")
        .read(&speed, "what the driver reports, Mbit/s")
        .advice(
            "give the speed that the provider or the host grants: `linerate doctor --line-rate \
             RATE`",
        ))
}

fn meta_02(host: &Host<'_>) -> Ruling {
    let kpps = host.number("ovs.pmd.kpps_max")?;
    require(kpps <= 0.0, format!("taken under load: up to {kpps} kpps"))?;
    let idle = host.number("ovs.pmd.idle_min")?;
    require(idle >= 99.9, "the CPUs were not idle")?;

    Ok(matched()
        .read(&kpps, "above 0 on at least one CPU")
        .read(&idle, "below 99.9 % on at least one CPU")
        .because(
            "ovs.pmd.rows_with_cycles",
            host.value("ovs.pmd.rows_with_cycles")
                .map(Value::to_string)
                .unwrap_or_default(),
            "rows with a value",
        )
        .advice(
            "clear, load, then read: ovs-appctl dpif-netdev/pmd-stats-clear; (load for 10 s); \
             ovs-appctl dpif-netdev/pmd-perf-show",
        ))
}

/// Continues if per-packet statistics of a virtual switch may be judged at all.
pub(super) fn under_load(host: &Host<'_>) -> Result<(), NoMatch> {
    match meta_02(host) {
        Ok(_) => unknown(
            "ovs.pmd.* under load",
            "META-02: the sample was taken without load",
        ),
        Err(missing @ NoMatch::Unknown(_)) => Err(missing),
        // META-02 is ruled out: the sample was taken under load.
        Err(_) => Ok(()),
    }
}
