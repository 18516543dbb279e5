//! Output of `tc qdisc`, `tc class` and `tc filter`.

use std::collections::BTreeMap;

use super::lines::*;
use crate::prelude::*;

/// Reads lines of tc.
pub(super) struct Reader<'a> {
    /// Device the command names.
    device: Option<&'a str>,
    /// Qdisc or class the indented lines belong to.
    entry: Option<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        let words: Vec<&str> = block.words().collect();
        Self {
            device: after(&words, "dev"),
            entry: None,
        }
    }

    pub(super) fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        self.qdisc(snapshot, line).is_some()
            || self.class(snapshot, line).is_some()
            || self.filter(snapshot, line)
            || self.counters(snapshot, line)
    }

    /// `qdisc tbf 8001: dev eth0 root refcnt 2 rate 1Gbit burst 32Kb lat 400ms`
    fn qdisc(&mut self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (["qdisc", kind, handle, rest @ ..], false) =
            (words.as_slice(), line.starts_with(char::is_whitespace))
        else {
            return None;
        };
        let after = |wanted| after(rest, wanted);
        let device = after("dev")
            .or(self.device)
            .filter(|_| handle.contains(':'))?;

        let place = if rest.contains(&"root") {
            "root"
        } else {
            after("parent").unwrap_or("ingress")
        };
        let prefix = format!("nic.{device}.qdisc.{}", place.replace([':', '.'], "_"));
        let qdisc = &mut Recorder::new(snapshot, &*prefix, "import:tc qdisc");
        qdisc.set("kind", *kind);
        qdisc.set("handle", *handle);

        let rate_bps = after("rate")
            .or_else(|| after("bandwidth"))
            .and_then(tc_rate_bps);
        qdisc.known_in("rate_bps", rate_bps, "bit/s");

        // cake prints `bandwidth unlimited`.
        if *kind == "cake" && rate_bps.is_none() {
            qdisc.absent("rate_bps", Absence::NotApplicableToKind);
        }

        for name in ["limit", "burst", "bands", "default"] {
            qdisc.known(name, after(name));
        }

        let flow_limit = after("flow_limit").and_then(leading_number);
        qdisc.known_in("flow_limit", flow_limit, "packets");

        if *kind == "tbf" && place == "root" {
            let parameters = rest
                .iter()
                .skip_while(|word| **word != "rate")
                .copied()
                .collect::<Vec<_>>()
                .join(" ");
            let command = format!(
                "tc qdisc replace dev {device} root handle {handle} tbf {}",
                // tc prints `lat` and reads `latency` (tc-tbf(8)).
                parameters.replace(" lat ", " latency ")
            );
            qdisc.set("command", command);
        }

        self.entry = Some(prefix);
        Some(())
    }

    /// `class htb 1:12 parent 1:1 leaf 120: prio 2 rate 1333Kbit ceil 7984Kbit burst 1600b cburst
    /// 1600b`
    fn class(&mut self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (["class", kind, id, rest @ ..], false) =
            (words.as_slice(), line.starts_with(char::is_whitespace))
        else {
            return None;
        };
        let device = after(rest, "dev")
            .or(self.device)
            .filter(|_| id.contains(':'))?;
        let prefix = format!("nic.{device}.qdisc.class.{}", id.replace([':', '.'], "_"));
        let class = &mut Recorder::new(snapshot, &*prefix, "import:tc class");

        let most = match *kind {
            "htb" => after(rest, "ceil").and_then(tc_rate_bps),
            // The upper limit of the service curve; without one nothing but the classes above
            // limits.
            "hfsc" => {
                let upper: Vec<&str> = rest
                    .iter()
                    .skip_while(|word| **word != "ul")
                    .copied()
                    .collect();
                after(&upper, "m2").and_then(tc_rate_bps)
            }
            _ => None,
        };
        if ["htb", "hfsc"].contains(kind) {
            class.set("discipline", *kind);
            class.set("parent", after(rest, "parent").unwrap_or("root"));
            class.known_in("ceil_bps", most, "bit/s");
        }

        self.entry = Some(prefix);
        Some(())
    }

    /// `Sent 0 bytes 0 pkt (dropped 5, overlimits 0 requeues 0)` and the lines below it.
    fn counters(&self, snapshot: &mut Snapshot, line: &str) -> bool {
        let Some(key) = &self.entry else { return false };
        let text = line.trim_start();
        if text == line {
            return false;
        }

        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','))
            .filter(|w| !w.is_empty())
            .collect();
        let first = words.first().copied().unwrap_or_default();
        let is_statistic = STATISTICS
            .split(' ')
            .any(|known| known == first.trim_end_matches(':'));

        for pair in words.windows(2) {
            let [name, value] = pair else { continue };
            let counter = match (*name, first) {
                ("dropped", "Sent") => "drops",
                ("overlimits", "Sent") => "overlimits",
                ("requeues", "Sent") => "requeues",
                ("Sent", "Sent") => "bytes",
                ("flows_plimit", _) => "flows_plimit",
                _ => continue,
            };

            if let Ok(value) = value.parse() {
                snapshot.count(format!("{key}.{counter}"), value);
            }
        }

        is_statistic
    }

    /// Filters that map onto queues: how many, and how many different priorities they have.
    fn filter(&self, snapshot: &mut Snapshot, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(device) = after(&words, "dev").or(self.device) else {
            return false;
        };
        let prefix = format!("nic.{device}.qdisc.filter");
        let src = "import:tc filter";

        if words.first() == Some(&"filter") {
            if let Some(Ok(priority)) = after(&words, "pref").map(str::parse::<i64>) {
                let seen = format!("{prefix}.pref");
                let mut known = match snapshot.value(&seen) {
                    Some(Value::List(known)) => known.clone(),
                    _ => Vec::new(),
                };
                // Priorities of filters have 16 bits.
                if !known.contains(&Value::Integer(priority)) && known.len() < 65_536 {
                    known.push(Value::Integer(priority));
                }

                snapshot.set(format!("{prefix}.priorities"), known.len(), src);
                snapshot.set(seen, Value::List(known), src);
            }

            return true;
        }

        if words.contains(&"skbedit") && words.contains(&"queue_mapping") {
            let count = snapshot
                .number(&format!("{prefix}.skbedit_count"))
                .unwrap_or(0.0);
            snapshot.set(format!("{prefix}.skbedit_count"), count + 1.0, src);
            return true;
        }

        line.starts_with(char::is_whitespace) && matches!(words.first(), Some(&"match" | &"index"))
    }
}

/// First words of the lines below a discipline or a class.
const STATISTICS: &str = "\
    Sent backlog rate maxpacket new_flows_len flows gc lended tokens period level deficit \
    dropping count prob pkts_in marked Pkts throttled highprio horizon_drops capacity memory \
    min/max average Bulk Best Tin thresh target interval pk_delay av_delay sp_delay pkts bytes \
    way_inds way_miss way_cols drops marks ack_drop sp_flows bk_flows un_flows max_len quantum \
    allot depth cwnd borrowed";

/// The rate of a discipline with classes: the lowest on the way from the class of packets that
/// match no filter up to the root. Where that class is not known, the one that sent most.
pub(super) fn hierarchies(snapshot: &mut Snapshot) {
    let names: Vec<String> = snapshot
        .interfaces()
        .into_iter()
        .map(str::to_owned)
        .collect();
    for name in names {
        hierarchy(snapshot, &name);
    }
}

/// A class: the one above, and the most that it lets through, bit/s.
struct Class {
    parent: String,
    most: Option<f64>,
    bytes: u64,
}

fn hierarchy(snapshot: &mut Snapshot, name: &str) {
    let prefix = format!("nic.{name}.qdisc.class.");
    let classes: BTreeMap<String, Class> = classes(snapshot, &prefix);
    let Some(first) = classes.keys().next() else {
        return;
    };
    let root = format!("nic.{name}.qdisc.root");
    let kind_key = format!("{root}.kind");
    let kind = snapshot
        .text(&format!("{prefix}{first}.discipline"))
        .map(str::to_owned);

    if snapshot.value(&kind_key).is_none() {
        snapshot.set_known(&kind_key, kind, "import:tc class");
    }

    let major = first.split('_').next().unwrap_or_default();
    let default = snapshot
        .value(&format!("{root}.default"))
        .map(ToString::to_string);
    // htb prints the default class as a minor number in hexadecimal, without the major of the
    // discipline.
    let default = default.map(|minor| format!("{major}_{}", minor.trim_start_matches("0x")));
    let default = default.filter(|id| classes.contains_key(id));
    // Only leaves hold packets; inner classes count what their leaves sent.
    let is_leaf = |id: &&String| !classes.values().any(|class| class.parent == **id);
    let busiest = || {
        classes
            .keys()
            .filter(is_leaf)
            .max_by_key(|id| classes.get(*id).map(|class| class.bytes))
            .cloned()
    };

    let is_default = default.is_some();
    let Some(start) = default.or_else(busiest) else {
        return;
    };

    let key = format!("{root}.rate_bps");
    let Some(rate) = ceiling(&classes, &start) else {
        snapshot.set_absent(key, Absence::NotReported, None, "import:tc class");
        return;
    };
    snapshot.set_in(&key, rate, "bit/s", "import:tc class");

    if !is_default {
        snapshot.qualify(&key, Quality::Inferred);
    }
}

fn classes(snapshot: &Snapshot, prefix: &str) -> BTreeMap<String, Class> {
    let ids = snapshot
        .facts_under(prefix)
        .filter_map(|(key, _)| key.strip_suffix(".parent"));
    ids.map(|id| {
        let key = |fact: &str| format!("{prefix}{id}.{fact}");
        let parent = snapshot
            .text(&key("parent"))
            .unwrap_or_default()
            .replace(':', "_");
        let bytes = snapshot
            .counters
            .get(&key("bytes"))
            .map_or(0, |counter| counter.v);
        (
            id.to_owned(),
            Class {
                parent,
                most: snapshot.number(&key("ceil_bps")),
                bytes,
            },
        )
    })
    .collect()
}

/// Rate limit of a class and all above it, bit/s; `None` when nothing limits it.
fn ceiling(classes: &BTreeMap<String, Class>, from: &str) -> Option<f64> {
    // The kernel allows eight levels.
    const LEVELS_MAX: usize = 16;

    let mut least: Option<f64> = None;
    let mut at = from;

    for _ in 0..LEVELS_MAX {
        let Some(class) = classes.get(at) else { break };
        least = least.into_iter().chain(class.most).reduce(f64::min);
        at = &class.parent;
    }

    least
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    fn facts(text: &str) -> Snapshot {
        let mut snapshot = Snapshot::new("a", Source::Import);
        let mut reader = Reader::new(&Block {
            host: None,
            command: "tc -s class show dev e",
            lines: Vec::new(),
        });

        for line in text.lines() {
            assert!(reader.line(&mut snapshot, line), "{line}");
        }

        hierarchies(&mut snapshot);
        snapshot
    }

    const CLASSES: &str = "\
class htb 1:11 parent 1:1 leaf 110: prio 1 rate 128Kbit ceil 2Mbit burst 1600b cburst 1599b
 Sent 3367 bytes 33 pkt (dropped 0, overlimits 0 requeues 0)
 rate 0bit 0pps backlog 0b 0p requeues 0
 lended: 33 borrowed: 0 giants: 0
 tokens: 1087890 ctokens: 52228
class htb 1:1 root rate 8Mbit ceil 8Mbit burst 1600b cburst 1600b
 Sent 900000 bytes 537457 pkt (dropped 0, overlimits 0 requeues 0)
class htb 1:12 parent 1:1 leaf 120: prio 2 rate 1Mbit ceil 10Mbit burst 1600b cburst 1600b
 Sent 800000 bytes 537424 pkt (dropped 213, overlimits 65672 requeues 0)
";

    #[test]
    fn the_narrowest_class_above_the_default_one_sets_the_rate() {
        let rate = |snapshot: &Snapshot| snapshot.number("nic.e.qdisc.root.rate_bps");
        let qdisc = |default: &str| {
            format!(
                "qdisc htb 1: root refcnt 2 r2q 10 default {default} direct_packets_stat \
                 0\n{CLASSES}"
            )
        };
        assert_eq!(rate(&facts(&qdisc("0x12"))), Some(8e6));
        assert_eq!(rate(&facts(&qdisc("0x11"))), Some(2e6));

        // Without the discipline the class that sent most is the one of the test.
        let alone = facts(CLASSES);
        assert_eq!(
            (rate(&alone), alone.text("nic.e.qdisc.root.kind")),
            (Some(8e6), Some("htb"))
        );
        assert_eq!(
            alone.quality("nic.e.qdisc.root.rate_bps"),
            Some(Quality::Inferred)
        );
        assert_eq!(alone.counters["nic.e.qdisc.class.1_12.drops"].v, 213);
    }

    #[test]
    fn upper_limit_of_hfsc() {
        let text = "qdisc hfsc 1: root refcnt 2 default 30\nclass hfsc 1: root\n\
                    class hfsc 1:1 parent 1: ls m1 0bit d 0us m2 90Mbit ul m1 0bit d 0us m2 \
                    20Mbit\n\
                    class hfsc 1:30 parent 1:1 rt m1 0bit d 0us m2 5Mbit ls m1 0bit d 0us m2 \
                    5Mbit\n Sent 9 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)\n period 3 \
                    work 9 bytes level 0\n";
        assert_eq!(facts(text).number("nic.e.qdisc.root.rate_bps"), Some(2e7));
    }

    #[test]
    fn lines_without_a_device_are_not_understood() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        let mut reader = Reader::new(&Block {
            host: None,
            command: "",
            lines: Vec::new(),
        });

        for line in [
            "qdisc fq 0: root",
            "class htb 1:1 root rate 8Mbit ceil 8Mbit",
            "filter parent 1: protocol ip pref 1 u32",
            " Sent 1 bytes",
        ] {
            assert!(!reader.line(&mut snapshot, line), "{line}");
        }

        assert!(reader.line(
            &mut snapshot,
            "qdisc fq 0: dev e root refcnt 2 limit 10000p flow_limit 100p"
        ));
        assert!(reader.line(
            &mut snapshot,
            "  gc 0 highprio 0 throttled 1 latency 18.3us flows_plimit 6113"
        ));
        assert_eq!(snapshot.counters["nic.e.qdisc.root.flows_plimit"].v, 6113);
    }
}
