//! Facts as a network engineer writes them: `95.7 Mbit/s received`, `RTT 7.3 ms under load`.

use linerate_document::number::general;
use linerate_model::facts;
use linerate_model::finding::Evidence;
use linerate_model::numbers::{digits, scaled};

/// The metric that was read, in words; `None` for a fact that is no metric.
pub(super) fn metric(evidence: &Evidence) -> Option<String> {
    let Evidence {
        fact,
        value,
        threshold,
        ..
    } = evidence;
    let (host, key) = owner(fact);
    let Some(known) = facts::find(&key) else {
        return Some(
            format!("{key} {}", written(value, ""))
                .trim_end()
                .to_owned()
                + &host,
        );
    };
    let value = written(value, known.unit);
    let mut words = match known.phrase {
        Some("-") => return None,
        Some(phrase) => phrase.replace("{}", &value),
        None => format!("{} {value}", name(&key)),
    };

    if threshold.starts_with("total since boot") {
        words.push_str(" since boot");
    }

    Some(words + &host)
}

/// What the metric was compared with, in the unit of [`metric`]: `below 0.1 %` for `below 0.001`.
/// Empty where the metric ends with it, as `95.3 Mbit/s received`.
pub(super) fn threshold(evidence: &Evidence) -> String {
    let text = evidence.threshold.as_str();
    let (_, key) = owner(&evidence.fact);
    let is_share = facts::find(&key).is_some_and(|known| known.unit == "share");
    let number = text.split([' ', ':', ',']).find_map(|word| {
        let share = word.parse::<f64>().ok();
        Some((word, share.filter(|_| word.contains('.'))?))
    });

    match number {
        Some((number, share)) if is_share && !text.contains('%') => {
            text.replacen(number, &percent(share), 1)
        }
        _ if metric(evidence).is_some_and(|metric| metric.ends_with(text)) => String::new(),
        _ => text.to_owned(),
    }
}

/// What a fact was compared with, next to its value, where `within 10 %` alone would describe the
/// value: `expected within 10 %`. A meaning of the fact stays as it is: `of one CPU`.
pub(super) fn comparison(evidence: &Evidence) -> String {
    const LIMITS: [&str; 9] = [
        "above",
        "at least",
        "at most",
        "below",
        "less than",
        "more than",
        "no",
        "up to",
        "within",
    ];

    let text = evidence.threshold.as_str();
    let is_limit = LIMITS
        .iter()
        .filter_map(|limit| text.strip_prefix(limit))
        .any(|rest| rest.starts_with(' '));
    if is_limit {
        format!("expected {text}")
    } else {
        text.to_owned()
    }
}

/// A value with its unit, which may be in its text already.
fn written(value: &str, unit: &str) -> String {
    let rate = |suffix: &str| value.strip_suffix(suffix)?.parse::<f64>().ok();
    match (value.parse(), rate(" Mbit/s"), rate(" Gbit/s")) {
        (Ok(number), ..) => quantity(number, unit),
        (_, Some(mbps), _) => quantity(mbps, "Mbit/s"),
        (.., Some(gbps)) => quantity(gbps * 1e3, "Mbit/s"),
        _ => value.to_owned(),
    }
}

/// The host of a fact in words, and the key of the fact: `server: nic.eth0.net.mtu`,
/// `peer.net.mtu`.
fn owner(fact: &str) -> (String, String) {
    match (fact.split_once(": "), fact.strip_prefix("peer.")) {
        (Some((host, key)), _) => (format!(" ({host})"), key.to_owned()),
        (None, Some(key)) => (" (peer)".to_owned(), format!("nic.peer.{key}")),
        (None, None) => (String::new(), fact.to_owned()),
    }
}

/// A counter, an offload or a kernel variable by its own name.
fn name(key: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    match key.strip_prefix("sysctl.") {
        Some(variable) => variable.to_owned(),
        None if key.contains(".drv.") => last.to_owned(),
        None => last.replace('_', " "),
    }
}

/// A number with its unit; a count is the bare number.
fn quantity(number: f64, unit: &str) -> String {
    const RATES: [&str; 5] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];

    match unit {
        "bit/s" => in_units(number, 1000.0, RATES),
        "Mbit/s" => in_units(number * 1e6, 1000.0, RATES),
        "kHz" => in_units(number * 1e3, 1000.0, ["Hz", "kHz", "MHz", "GHz"]),
        "µs" => in_units(number, 1000.0, ["us", "ms", "s"]),
        "bytes" if number >= 10_000.0 => in_units(number, 1024.0, ["bytes", "KiB", "MiB", "GiB"]),
        "share" => percent(number),
        "s" | "bytes" | "GT/s" => format!("{} {unit}", general(number, 6)),
        _ => general(number, 15),
    }
}

fn in_units<const N: usize>(number: f64, base: f64, units: [&'static str; N]) -> String {
    let (value, unit) = scaled(number, base, units);
    let value = digits(value);
    let value = if value.contains('.') {
        value.trim_end_matches('0').trim_end_matches('.')
    } else {
        &value
    };

    format!("{value} {unit}")
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 {
        format!("{percent:.0} %")
    } else {
        format!("{} %", general(percent, 2))
    }
}

/// Advice without the ids of rules in brackets, which `-v` shows: `more queues (CHN-01)`.
pub(super) fn without_ids(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (inside, after))) = rest
        .split_once(" (")
        .and_then(|(before, tail)| Some((before, tail.split_once(')')?)))
    {
        out.push_str(before);
        if !inside
            .split([',', ' '])
            .filter(|word| !word.is_empty() && *word != "to")
            .all(is_id)
        {
            out.push_str(" (");
            out.push_str(inside);
            out.push(')');
        }

        rest = after;
    }

    out + rest
}

/// `CHN-01`
fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(area, number)| {
        area.chars().all(|c| c.is_ascii_uppercase())
            && number.len() == 2
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_compared_in_percent_and_no_word_is_said_twice() {
        for (fact, read, compared) in [
            ("run.0.retransmit_share", "below 0.001", "below 0.1 %"),
            (
                "run.0.retransmit_share",
                "below 0.9: of all",
                "below 90 %: of all",
            ),
            ("run.0.retransmit_share", "below 0.1 %", "below 0.1 %"),
            ("run.0.rtt_us", "at most 0.5 of that", "at most 0.5 of that"),
            ("run.0.received_bps", "received", ""),
        ] {
            let evidence = Evidence::new(fact, "0.002", read);
            assert_eq!(threshold(&evidence), compared);
        }
    }

    #[test]
    fn a_limit_beside_a_value_is_what_was_expected() {
        for (threshold, shown) in [
            (
                "within 10 % of the other direction",
                "expected within 10 % of the other direction",
            ),
            ("at most 5 %", "expected at most 5 %"),
            ("of one CPU", "of one CPU"),
            ("nothing", "nothing"),
        ] {
            let evidence = Evidence::new("run.0.received_bps", "1", threshold);
            assert_eq!(comparison(&evidence), shown);
        }
    }

    #[test]
    fn metrics_have_the_units_people_use() {
        for (fact, value, threshold, words) in [
            ("run.0.received_bps", "95700000", "", "95.7 Mbit/s received"),
            (
                "run.0.received_bps",
                "16232.8 Mbit/s",
                "",
                "16.2 Gbit/s received",
            ),
            ("goodput", "949.0 Mbit/s", "", "goodput 949 Mbit/s"),
            ("run.0.rtt_us", "7300", "", "RTT 7.3 ms under load"),
            ("run.0.min_rtt_us", "15", "", "RTT 15 us idle"),
            (
                "run.0.retransmit_share",
                "0.00031",
                "",
                "0.031 % retransmitted",
            ),
            ("run.0.snd_wnd_bytes", "65536", "", "receive window 64 KiB"),
            ("nic.eth0.net.mtu", "1500", "", "MTU 1500 bytes"),
            (
                "server: nic.eth0.link.speed_mbps",
                "10000",
                "",
                "link speed 10 Gbit/s (server)",
            ),
            ("peer.net.mtu", "9000", "", "MTU 9000 bytes (peer)"),
            (
                "nic.eth0.drv.rx_missed",
                "3207",
                "total since boot, expected 0",
                "rx_missed 3207 since boot",
            ),
            (
                "nic.eth0.feat.generic-receive-offload",
                "off",
                "on",
                "generic-receive-offload off",
            ),
            ("sysctl.net.ipv4.tcp_sack", "0", "1", "net.ipv4.tcp_sack 0"),
            (
                "client: rustc",
                "0.95 CPUs",
                "another program",
                "rustc 0.95 CPUs (client)",
            ),
            ("a whole statement", "", "", "a whole statement"),
        ] {
            let evidence = Evidence::new(fact, value, threshold);
            assert_eq!(metric(&evidence).as_deref(), Some(words), "{fact}");
        }

        let limit = Evidence::new("run.0.limit", "path", "");
        assert_eq!(metric(&limit), None);
    }

    #[test]
    fn ids_of_rules_are_left_out_of_advice() {
        for (text, expected) in [
            (
                "more queues (CHN-01), or spread interrupts (IRQ-01, IRQ-02)",
                "more queues, or spread interrupts",
            ),
            (
                "raise the limits (SYS-01 to SYS-03) or add a client",
                "raise the limits or add a client",
            ),
            (
                "larger writes (-l 1M), zero copy (-Z)",
                "larger writes (-l 1M), zero copy (-Z)",
            ),
            ("an open (bracket", "an open (bracket"),
        ] {
            assert_eq!(without_ids(text), expected);
        }
    }
}
