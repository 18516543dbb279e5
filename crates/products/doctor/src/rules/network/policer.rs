//! A policer on the way, or a queue that grows.

use crate::rules::latency::longest_queue_us;
use crate::rules::prelude::*;

pub(super) fn path_01(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    // The bucket of a policer is full at first, so its burst passes faster than its rate.
    let first = run.number("first_second_bps")?;
    let later = run.number("later_median_bps")?;
    require(later <= 0.7 * first.value, "the rate does not step down")?;

    let spread = run.number("later_spread")?;
    require(spread < 0.03, "the later rate is not steady")?;
    let loss = run.number("retransmit_share")?;
    require(loss >= 0.005, "hardly any loss")?;

    // A policer drops without a queue; a shaper delays first (Flach et al. 2016).
    let no_queue = without_queue(run, later.value)?;
    Ok(matched()
        .read(&first, "the first second")
        .read(&later, "steady and at most 0.7 of the first second")
        .read(&loss, "below 0.005")
        .because_all(no_queue.evidence)
        .advice(format!(
            "pace at {:.0} Mbit/s ({}), and request shaping instead of policing",
            0.95 * later.value / 1e6,
            if run.is_examined() {
                "-b"
            } else {
                "-b, or --fq-rate"
            }
        )))
}

/// Continues where no queue grows before the loss. Without round trips, where segments are lost in
/// every second although so little is in flight that it takes no time at this rate: a queue would
/// hold more.
fn without_queue(run: &Run<'_>, rate_bps: f64) -> Ruling {
    const INFLATION_MAX: f64 = 1.3;
    const LOSSY_MIN: f64 = 0.9;

    let inflation = run.number("rtt_inflation");
    if run.part().is_some() || inflation.is_ok() {
        let inflation = inflation?;
        require(inflation < INFLATION_MAX, "a queue grows before the loss")?;
        return Ok(matched().read(&inflation, "a growing queue would show 1.3 or more"));
    }

    let lossy = run.number("lossy_seconds_share")?;
    require(lossy >= LOSSY_MIN, "seconds without loss")?;
    let window = run.number("cwnd_min_bytes")?;
    let in_flight_us = window.value * 8.0 / rate_bps * 1e6;
    require(
        in_flight_us < QUEUE_RTT_MIN_US,
        format!("{:.0} ms in flight: a queue", in_flight_us / 1e3),
    )?;

    Ok(matched()
        .read(&lossy, "below 0.9 of the seconds")
        .read(&window, "a queue would hold more than 5 ms"))
}

pub(super) fn path_02(run: &Run<'_>) -> Ruling {
    let grown = run.inflation()?;
    require(
        grown.times >= QUEUE_INFLATION_MIN,
        format!("RTT under load {:.1} times that without", grown.times),
    )?;
    let rtt = grown.loaded?;

    // On a path of microseconds the scheduler alone triples the round trip.
    require(
        rtt >= QUEUE_RTT_MIN_US,
        format!("a round trip of {rtt:.0} us under load"),
    )?;
    if run.number("rtt_idle_us").is_ok() {
        let longest = longest_queue_us(run)?;
        require(
            longest >= QUEUE_RTT_MIN_US,
            "most of the queue is in the sending host (LAT-01)",
        )?;
    }

    Ok(matched()
        .read(&grown.read, growth_text(&grown.read, grown.times))
        .read(&rtt, "microseconds under load")
        .advice("use active queue management at the narrowest hop (cake, fq_codel), or BBR"))
}

/// Values that the growth of a round trip is compared with, as text.
fn growth_text(read: &Reading<f64>, times: f64) -> String {
    if read.key.ends_with("_us") {
        format!("it grows {times:.1} times, below 3 without a queue")
    } else {
        "below 3".to_owned()
    }
}
