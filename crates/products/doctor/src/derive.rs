//! Facts that follow from other facts: what two advertisements resolve to, how fast the fastest
//! mode is, how interrupts spread. Collectors and importers record what they read; the conclusions
//! are drawn once, here.

use linerate_model::network::is_software_kind;
use linerate_model::printable::acts;
use linerate_model::snapshot::{Absence, Fact, Quality, Snapshot, Value};

use crate::classes;
use crate::scope::{Facts, Host, Run};

const SRC: &str = "derived";

/// Adds what follows from the facts of a snapshot. Applying it twice changes nothing.
pub fn derive(mut snapshot: Snapshot) -> Snapshot {
    // First: names of interfaces become parts of the keys that follow.
    drop_shell_words(&mut snapshot);
    let names: Vec<String> = snapshot
        .interfaces()
        .into_iter()
        .map(str::to_owned)
        .collect();
    for name in names {
        let nic = format!("nic.{name}");
        link_speeds(&mut snapshot, &nic);
        pause_resolution(&mut snapshot, &nic);
        interrupts(&mut snapshot, &nic);
        counter_widths(&mut snapshot, &nic);
        bus_speed(&mut snapshot, &nic);
        nominal_speed(&mut snapshot, &nic, &name);
        local_cpus(&mut snapshot, &nic);
    }

    contradicted_speeds(&mut snapshot);
    snapshot
}

/// A rate above the speed of a link by more than this is no rounding of a report.
const ABOVE_SPEED: f64 = 1.02;

/// The speed of a virtual machine's NIC is what its driver makes up, and a test can be faster.
fn contradicted_speeds(snapshot: &mut Snapshot) {
    let host = Host {
        snapshot,
        period: None,
        other: None,
    };
    let exceeded = |run: &Run<'_>| {
        let speed = run.nic()?.speed_mbps().ok()?;
        let rate = run.goodput_bps().ok()?;
        (rate > ABOVE_SPEED * speed.value * 1e6).then_some(speed.key)
    };
    let keys: Vec<String> = host
        .runs()
        // The packets of a test on one host do not pass the link.
        .filter(|run| !run.is("same_host"))
        .filter_map(|run| exceeded(&run))
        .collect();
    for key in keys {
        snapshot.qualify(&key, Quality::Contradicted);
    }
}

/// The CPUs of the NIC's node, where only the nodes were listed.
fn local_cpus(snapshot: &mut Snapshot, nic: &str) {
    let key = format!("{nic}.numa.local_cpulist");
    let Some(node) = snapshot
        .whole(&format!("{nic}.numa.node"))
        .filter(|_| snapshot.value(&key).is_none())
    else {
        return;
    };
    let cpus = snapshot
        .text(&format!("numa.node.{node}.cpus"))
        .map(str::to_owned);
    snapshot.set_known(key, cpus, SRC);
}

/// Names and values end up in advice and evidence that users may paste into a shell; pasted text
/// and peers can contain anything. No fact needs these characters. Commands are safe without this:
/// see [`crate::command`].
fn drop_shell_words(snapshot: &mut Snapshot) {
    let is_plain = |text: &str| !text.contains(|c: char| "`$;|&<>\\\"'".contains(c) || acts(c));
    snapshot.counters.retain(|key, _| is_plain(key));
    snapshot.facts.retain(|key, _| is_plain(key));

    for fact in snapshot.facts.values_mut() {
        if let Fact::Known {
            v: Value::Text(text),
            src,
            ..
        } = fact
            && !is_plain(text)
        {
            // Rules that need the fact report it as missing instead of using the text.
            *fact = Fact::Absent {
                absent: Absence::ParseError,
                errno: None,
                src: std::mem::take(src),
            };
        }
    }
}

/// The speed of `lo`, veth and similar devices is a constant of the kernel.
fn nominal_speed(snapshot: &mut Snapshot, nic: &str, name: &str) {
    let kind_key = format!("{nic}.net.kind");
    if name == "lo" && snapshot.text(&kind_key).is_none() {
        snapshot.set(&kind_key, "loopback", SRC);
    }

    // veth claims 10 Gbit/s and tun 10 Mbit/s, whatever passes.
    let is_virtual = snapshot.text(&kind_key).is_some_and(is_software_kind)
        || snapshot
            .text(&format!("{nic}.drv.name"))
            .is_some_and(is_software_kind);
    if is_virtual {
        snapshot.qualify(&format!("{nic}.link.speed_mbps"), Quality::Nominal);
    }
}

fn link_speeds(snapshot: &mut Snapshot, nic: &str) {
    let modes = |side: &str| match snapshot.value(&format!("{nic}.link.modes.{side}")) {
        Some(Value::List(modes)) => modes.clone(),
        _ => Vec::new(),
    };
    let ours = modes("ours");
    let peer = modes("peer");
    let common = ours
        .iter()
        .filter(|mode| peer.contains(mode))
        .cloned()
        .collect();

    for (side, modes) in [
        ("supported", modes("supported")),
        ("common", common),
        ("ours", ours),
        ("peer", peer),
    ] {
        if let Some(fastest) = modes.iter().filter_map(mode_speed_mbps).max() {
            snapshot.set_in(
                format!("{nic}.link.modes.{side}_max_mbps"),
                fastest,
                "Mbit/s",
                SRC,
            );
        }
    }

    chip_speed(snapshot, nic);
}

/// `10000baseT/Full` is 10000.
fn mode_speed_mbps(mode: &Value) -> Option<i64> {
    let Value::Text(name) = mode else { return None };
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && name[digits..].starts_with("base")).then(|| name[..digits].parse().ok())?
}

/// Chips whose firmware or driver names their fastest speed, Mbit/s.
const CHIPS: [(&str, i64); 8] = [
    ("rtl8168", 1000),
    ("rtl8111", 1000),
    ("rtl8125", 2500),
    ("rtl8126", 5000),
    ("e1000", 1000),
    ("e1000e", 1000),
    ("igb", 1000),
    ("igc", 2500),
];

fn chip_speed(snapshot: &mut Snapshot, nic: &str) {
    let key = format!("{nic}.link.max_speed_mbps");
    // The NIC reports its modes itself; the name of a chip is an inference, and marked as one.
    if let Some(fastest) = snapshot.number(&format!("{nic}.link.modes.supported_max_mbps")) {
        snapshot.set_in(key, fastest, "Mbit/s", SRC);
        return;
    }

    let firmware = snapshot
        .text(&format!("{nic}.drv.firmware"))
        .unwrap_or_default();
    let driver = snapshot
        .text(&format!("{nic}.drv.name"))
        .unwrap_or_default();
    let chip = CHIPS.iter().find(|(chip, _)| {
        // r8169 drives chips of several speeds; the name of its firmware begins with the chip.
        (chip.starts_with("rtl") && firmware.starts_with(chip)) || driver == *chip
    });
    if let Some((_, speed)) = chip {
        snapshot.set_in(&key, *speed, "Mbit/s", SRC);
        snapshot.qualify(&key, Quality::Inferred);
    }
}

/// Resolution of two pause advertisements (IEEE 802.3 annex 28B, table 28B-3).
fn pause_resolution(snapshot: &mut Snapshot, nic: &str) {
    let key = format!("{nic}.pause.resolved");
    if matches!(snapshot.facts.get(&key), Some(Fact::Known { src, .. }) if src != SRC) {
        return; // ethtool or the kernel reported the result
    }

    let words = |side: &str| {
        snapshot
            .text(&format!("{nic}.pause.{side}"))
            .map(str::to_owned)
    };
    let Some(ours) = words("advertised").as_deref().and_then(pause_bits) else {
        return;
    };

    let unreported = words("supported").as_deref() == Some("No");
    if ours == (false, false) && unreported {
        // A driver that claims not even to support pause while it has pause settings does not fill
        // in these bits.
        snapshot.set_absent(&key, Absence::NotReported, None, SRC);
        return;
    }

    let resolved = match (ours, words("partner").as_deref().and_then(pause_bits)) {
        // Without an advertisement of this end, that of the partner has no effect.
        ((false, false), _) => "none",
        (_, None) => {
            snapshot.set_absent(
                format!("{nic}.pause.partner"),
                Absence::NotReported,
                None,
                SRC,
            );
            return;
        }
        ((true, _), Some((true, _))) => "rx+tx",
        // Asymmetric: one end sends pause frames, and the other one obeys them.
        ((true, true), Some((false, true))) => "rx",
        ((false, true), Some((true, true))) => "tx",
        _ => "none",
    };
    snapshot.set(key, resolved, SRC);
}

/// The two advertisement bits (pause, asymmetric) behind ethtool's text.
fn pause_bits(words: &str) -> Option<(bool, bool)> {
    match words.trim() {
        "No" => Some((false, false)),
        "Symmetric" => Some((true, false)),
        "Transmit-only" => Some((false, true)),
        "Symmetric Receive-only" => Some((true, true)),
        _ => None,
    }
}

/// Distribution of the interrupts of an interface over the CPUs, from one counter per vector and
/// CPU.
fn interrupts(snapshot: &mut Snapshot, nic: &str) {
    let prefix = format!("{nic}.irq.");
    let mut per_cpu = std::collections::BTreeMap::<String, u64>::new();
    let mut vectors = std::collections::BTreeSet::new();

    for (key, counter) in snapshot.counters_under(&prefix) {
        if let Some((vector, cpu)) = key.split_once(".cpu") {
            vectors.insert(vector.to_owned());
            let sum = per_cpu.entry(cpu.to_owned()).or_default();
            // Counters of pasted text can have any value.
            *sum = sum.saturating_add(counter.v);
        }
    }

    if vectors.is_empty() {
        return;
    }

    let total = per_cpu
        .values()
        .fold(0_u64, |sum, v| sum.saturating_add(*v));
    let used = per_cpu.values().filter(|count| **count > 0).count();
    snapshot.set(format!("{prefix}vectors"), vectors.len(), SRC);
    snapshot.set(format!("{prefix}total"), total, SRC);
    snapshot.set(format!("{prefix}cpus_used"), used, SRC);

    if let Some((cpu, _)) = per_cpu
        .iter()
        .max_by_key(|(_, count)| **count)
        .filter(|_| total > 0)
    {
        snapshot.set(
            format!("{prefix}busiest_cpu"),
            cpu.parse::<i64>().unwrap_or(-1),
            SRC,
        );
    }
}

fn counter_widths(snapshot: &mut Snapshot, nic: &str) {
    let driver = snapshot.text(&format!("{nic}.drv.name")).map(str::to_owned);
    let prefix = format!("{nic}.drv.");

    for (key, counter) in &mut snapshot.counters {
        if let Some(name) = key.strip_prefix(&prefix)
            && let Some(width) = classes::width(driver.as_deref(), name)
        {
            counter.width = Some(width);
        }
    }
}

fn bus_speed(snapshot: &mut Snapshot, nic: &str) {
    for side in ["cur", "max"] {
        let key = format!("{nic}.pci.{side}_speed_gts");
        let width_key = format!("{nic}.pci.{side}_width");

        // A device that is no PCI Express device reports 0 or 255 lanes.
        if snapshot
            .number(&width_key)
            .is_some_and(|width| !(1.0..=32.0).contains(&width))
        {
            for key in [key, width_key] {
                snapshot.facts.remove(&key);
                snapshot.set_absent(key, Absence::NotApplicableToKind, None, SRC);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::snapshot::Source;

    fn resolved(ours: &str, partner: Option<&str>) -> Option<String> {
        let mut snapshot = Snapshot::new("a", Source::Live);
        snapshot.set("nic.x.pause.supported", "Symmetric", "test");
        snapshot.set("nic.x.pause.advertised", ours, "test");

        if let Some(partner) = partner {
            snapshot.set("nic.x.pause.partner", partner, "test");
        }

        derive(snapshot)
            .text("nic.x.pause.resolved")
            .map(str::to_owned)
    }

    #[test]
    fn advertisements_resolve_as_the_standard_says() {
        let rows = [
            ("Symmetric", Some("Symmetric"), Some("rx+tx")),
            ("Symmetric Receive-only", Some("Symmetric"), Some("rx+tx")),
            ("Symmetric Receive-only", Some("Transmit-only"), Some("rx")),
            ("Transmit-only", Some("Symmetric Receive-only"), Some("tx")),
            ("Symmetric", Some("Transmit-only"), Some("none")),
            ("Symmetric", Some("No"), Some("none")),
            ("Symmetric", None, None),
            ("No", None, Some("none")),
        ];
        for (ours, partner, expected) in rows {
            assert_eq!(
                resolved(ours, partner).as_deref(),
                expected,
                "{ours} {partner:?}"
            );
        }
    }

    #[test]
    fn missing_pause_bits_of_a_driver_give_no_resolution() {
        let mut snapshot = Snapshot::new("a", Source::Live);
        snapshot.set("nic.x.pause.supported", "No", "test");
        snapshot.set("nic.x.pause.advertised", "No", "test");
        assert_eq!(derive(snapshot).text("nic.x.pause.resolved"), None);
    }

    #[test]
    fn shell_metacharacters_reach_no_command() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        snapshot.set("nic.x;reboot.net.mtu", 1400_i64, "test");
        snapshot.set("sysctl.net.ipv4.tcp_rmem", "4096 $(reboot) 6291456", "test");
        snapshot.set("sysctl.net.ipv4.tcp_wmem", "4096 16384 4194304", "test");
        snapshot.count("nic.`reboot`.drv.rx_missed", 1);

        let derived = derive(snapshot);
        assert!(derived.interfaces().is_empty());
        assert_eq!(
            derived.absence("sysctl.net.ipv4.tcp_rmem"),
            Some(Absence::ParseError)
        );
        assert_eq!(
            derived.text("sysctl.net.ipv4.tcp_wmem"),
            Some("4096 16384 4194304")
        );
    }

    #[test]
    fn speeds_come_from_modes_or_from_the_chip() {
        let mut snapshot = Snapshot::new("a", Source::Live);
        let modes = |names: &[&str]| Value::List(names.iter().map(|name| (*name).into()).collect());
        snapshot.set(
            "nic.x.link.modes.ours",
            modes(&["100baseT/Full", "10000baseT/Full"]),
            "test",
        );
        snapshot.set("nic.x.link.modes.peer", modes(&["100baseT/Full"]), "test");
        snapshot.set("nic.y.drv.firmware", "rtl8168h-2_0.0.2", "test");

        let derived = derive(snapshot);
        assert_eq!(
            derived.number("nic.x.link.modes.ours_max_mbps"),
            Some(10_000.0)
        );
        assert_eq!(
            derived.number("nic.x.link.modes.common_max_mbps"),
            Some(100.0)
        );
        assert_eq!(derived.number("nic.y.link.max_speed_mbps"), Some(1000.0));
        assert_eq!(
            derive(derived.clone()),
            derived,
            "deriving twice changes nothing"
        );
    }
}
