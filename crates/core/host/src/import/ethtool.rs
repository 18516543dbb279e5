//! Output of ethtool, of many versions.

use linerate_model::snapshot::{Absence, Snapshot, Value};

use super::ethtool_headings::{HEADINGS, Kind};
use super::lines::{field, indent, leading_number, switch};
use super::sections::Block;

/// Reads the output of one ethtool command line by line.
pub(super) struct Reader<'a> {
    /// Option and device of the command, where it is known.
    command: Option<(&'a str, &'a str)>,
    section: Option<Section>,
    /// A hierarchy of statistics: indentation and name of what encloses the line.
    path: Vec<(usize, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    kind: Kind,
    device: String,
    /// The list that continues on indented lines.
    list: Option<&'static str>,
    /// Past `Current hardware settings:`.
    current: bool,
}

/// Group of facts of each option in its spellings, to record what a driver does not have.
const GROUPS: [(&str, &str); 15] = [
    ("-l --show-channels", "chan"),
    ("-g --show-ring", "ring"),
    ("-a --show-pause", "pause"),
    ("-c --show-coalesce", "coal"),
    ("-S --statistics", "drv.counters"),
    ("-k", "feat"),
    ("-i", "drv"),
    ("-x", "rss"),
    ("-n", "rss.rules"),
    ("-m", "link.module"),
    ("--show-eee", "link.eee"),
    ("--show-fec", "link.fec"),
    ("--show-priv-flags", "privflags"),
    ("-T", "ts"),
    ("-s", "link.speed_settable"),
];

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        let command = block.ethtool();
        // A grep'ed fragment of statistics has lost its heading.
        let statistics = command.filter(|(option, _)| matches!(*option, "-S" | "--statistics"));
        let section = statistics.map(|(_, device)| Section::new(Kind::Statistics, device));

        Self {
            command,
            section,
            path: Vec::new(),
        }
    }

    /// Reads a line; returns whether it was understood.
    pub(super) fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if line.trim().is_empty()
            && self
                .section
                .as_ref()
                .is_some_and(|section| section.kind == Kind::Other)
        {
            self.section = None;
        }

        self.heading(line) || self.refusal(snapshot, line) || self.inside(snapshot, line)
    }

    fn heading(&mut self, line: &str) -> bool {
        let text = line.trim_end();
        let named = HEADINGS
            .iter()
            .find_map(|(words, kind)| Some((text.strip_prefix(words)?, *kind)));
        if let Some((rest, kind)) = named {
            let device = rest
                .split_whitespace()
                .next()
                .unwrap_or(rest)
                .trim_end_matches(':');
            self.section = Some(Section::new(kind, device));
            return true;
        }

        let device = self.command.map(|(_, device)| device);
        let kind = match (text, device) {
            ("NIC statistics:", Some(_)) => Kind::Statistics,
            (text, Some(_)) if text.starts_with("driver: ") => Kind::Driver,
            _ => return false,
        };
        self.section = Some(Section::new(kind, device.unwrap_or_default()));
        self.path.clear();

        kind == Kind::Statistics
    }

    /// Request that the driver or the kernel refused.
    fn refusal(&self, snapshot: &mut Snapshot, line: &str) -> bool {
        let text = line.trim();
        let Some((option, device)) = self.command else {
            return false;
        };
        let reason = match text {
            text if text.ends_with("Operation not supported") => Absence::UnsupportedByDriver,
            text if text.ends_with("Operation not permitted") => Absence::Permission,
            text if text.ends_with("No such device") => Absence::NoSuchDevice,
            text if text.starts_with("Cannot set new settings") => Absence::UnsupportedByDriver,
            text => {
                return ["not setting ", "RX classification rule retrieval failed"]
                    .iter()
                    .any(|s| text.starts_with(s))
                    || [
                        "unmodified, ignoring",
                        "parameters changed, aborting",
                        "RX rings available",
                    ]
                    .iter()
                    .any(|end| text.ends_with(end));
            }
        };

        if let Some((_, group)) = GROUPS
            .iter()
            .find(|(known, _)| known.split(' ').any(|known| known == option))
        {
            snapshot.set_absent(
                format!("nic.{device}.{group}"),
                reason,
                None,
                &source(option),
            );
        }

        true
    }

    fn inside(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let Some(section) = &mut self.section else {
            return false;
        };
        let nic = format!("nic.{}", section.device);

        match section.kind {
            Kind::Link => link(snapshot, section, &nic, line),
            Kind::Features => feature(snapshot, &nic, line),
            Kind::Ring => sizes(snapshot, section, &nic, line, &RING),
            Kind::Channels => sizes(snapshot, section, &nic, line, &CHANNELS),
            Kind::Pause => pause(snapshot, &nic, line),
            Kind::Coalesce => coalesce(snapshot, &nic, line),
            Kind::Statistics => statistic(snapshot, &mut self.path, &nic, line),
            Kind::Driver => driver(snapshot, &nic, line),
            Kind::Eee => eee(snapshot, &nic, line),
            Kind::Other => line.starts_with(char::is_whitespace) || field(line).is_some(),
        }
    }
}

impl Section {
    fn new(kind: Kind, device: &str) -> Self {
        Self {
            kind,
            device: device.to_owned(),
            list: None,
            current: false,
        }
    }
}

fn source(option: &str) -> String {
    format!("import:ethtool {option}").trim_end().to_owned()
}

fn link(snapshot: &mut Snapshot, section: &mut Section, nic: &str, line: &str) -> bool {
    let src = &source("");
    let Some((key, value)) = field(line) else {
        let words: Vec<&str> = line.split_whitespace().collect();
        return match section
            .list
            .filter(|_| words.iter().all(|word| word.contains("base")))
        {
            Some(list) => add_modes(snapshot, &format!("{nic}.link.modes.{list}"), &words),
            // The names of message levels, or the rest of a list that no rule reads.
            None => line.starts_with(char::is_whitespace),
        };
    };

    section.list = None;
    let list = match key {
        "Supported link modes" => Some("supported"),
        "Advertised link modes" => Some("ours"),
        "Link partner advertised link modes" => Some("peer"),
        _ => None,
    };
    if let Some(list) = list {
        section.list = Some(list);
        let words: Vec<&str> = value
            .split_whitespace()
            .filter(|word| word.contains("base"))
            .collect();
        snapshot.facts.remove(&format!("{nic}.link.modes.{list}"));
        return add_modes(snapshot, &format!("{nic}.link.modes.{list}"), &words);
    }

    match key {
        "Supported pause frame use" => snapshot.set(format!("{nic}.pause.supported"), value, src),
        "Advertised pause frame use" => snapshot.set(format!("{nic}.pause.advertised"), value, src),
        "Link partner advertised pause frame use" => {
            snapshot.set(format!("{nic}.pause.partner"), value, src);
        }
        "Speed" => match leading_number(value) {
            Some(speed) => snapshot.set_in(
                format!("{nic}.link.speed_mbps"),
                whole(speed),
                "Mbit/s",
                src,
            ),
            None => snapshot.set_absent(
                format!("{nic}.link.speed_mbps"),
                Absence::NotReported,
                None,
                src,
            ),
        },
        "Duplex" => {
            let known = matches!(value, "Full" | "Half").then(|| value.to_lowercase());
            snapshot.set_or_absent(
                format!("{nic}.link.duplex"),
                known,
                Absence::NotReported,
                src,
            );
        }
        "Supports auto-negotiation" => {
            snapshot.set(format!("{nic}.link.autoneg_supported"), value == "Yes", src);
        }
        "Auto-negotiation" => snapshot.set_known(format!("{nic}.link.autoneg"), switch(value), src),
        "Port" => snapshot.set(format!("{nic}.link.port"), value, src),
        "Link detected" => snapshot.set_known(format!("{nic}.link.up"), switch(value), src),
        _ => {
            const KNOWN: [&str; 10] = [
                "Support",
                "Advertised",
                "Link partner",
                "PHYAD",
                "Transceiver",
                "MDI-X",
                "Wake-on",
                "Current message",
                "SecureOn",
                "master-slave",
            ];

            return KNOWN.iter().any(|known| key.starts_with(known));
        }
    }

    true
}

/// Link modes of one list; a list may not be longer than the kernel's.
fn add_modes(snapshot: &mut Snapshot, key: &str, words: &[&str]) -> bool {
    const MODES_MAX: usize = 256;

    let mut modes = match snapshot.value(key) {
        Some(Value::List(modes)) => modes.clone(),
        _ => Vec::new(),
    };
    modes.extend(words.iter().map(|word| Value::from(*word)));
    modes.truncate(MODES_MAX);

    if !modes.is_empty() {
        snapshot.set(key, Value::List(modes), &source(""));
    }

    true
}

fn whole(number: f64) -> i64 {
    if number.abs() < 9e15 {
        number as i64
    } else {
        0
    }
}

fn feature(snapshot: &mut Snapshot, nic: &str, line: &str) -> bool {
    let Some((name, value)) = field(line) else {
        return false;
    };
    if switch(value).is_none() || name.contains(char::is_whitespace) {
        return false;
    }

    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    snapshot.set(format!("{nic}.feat.{name}"), value, &source("-k"));
    true
}

const RING: [(&str, &str); 4] = [
    ("RX", "ring.rx"),
    ("TX", "ring.tx"),
    ("RX Mini", "ring.rx_mini"),
    ("RX Jumbo", "ring.rx_jumbo"),
];
const CHANNELS: [(&str, &str); 4] = [
    ("RX", "chan.rx"),
    ("TX", "chan.tx"),
    ("Other", "chan.other"),
    ("Combined", "chan.combined"),
];

/// Two sections of sizes: what the device could, and what is set.
fn sizes(
    snapshot: &mut Snapshot,
    section: &mut Section,
    nic: &str,
    line: &str,
    names: &[(&str, &str)],
) -> bool {
    let Some((key, value)) = field(line) else {
        return false;
    };
    if key == "Pre-set maximums" || key == "Current hardware settings" {
        section.current = key != "Pre-set maximums";
        return true;
    }

    let Some((_, fact)) = names.iter().find(|(name, _)| *name == key) else {
        // Newer versions of ethtool print more sizes in either section.
        return value == "n/a" || switch(value).is_some() || leading_number(value).is_some();
    };
    let which = if section.current { "cur" } else { "max" };
    let key = format!("{nic}.{fact}.{which}");

    match leading_number(value) {
        // An unsupported size is printed as 0 or as n/a.
        Some(size) if size > 0.0 => snapshot.set(key, whole(size), &source("-g")),
        _ => snapshot.set_absent(key, Absence::UnsupportedByDriver, None, &source("-g")),
    }

    true
}

fn pause(snapshot: &mut Snapshot, nic: &str, line: &str) -> bool {
    let src = &source("-a");
    let Some((key, value)) = field(line) else {
        return false;
    };
    let on = switch(value);
    match (key, on) {
        ("Autonegotiate", Some(on)) => snapshot.set(format!("{nic}.pause.autoneg"), on, src),
        ("RX", Some(on)) => snapshot.set(format!("{nic}.pause.rx"), on, src),
        ("TX", Some(on)) => snapshot.set(format!("{nic}.pause.tx"), on, src),
        ("RX negotiated" | "TX negotiated", Some(on)) => {
            negotiated(snapshot, nic, key.starts_with("RX"), on);
        }
        ("tx_pause_frames" | "rx_pause_frames", _) => {
            if let Ok(frames) = value.parse() {
                let name = if key.starts_with("tx") {
                    "pause_tx_frames"
                } else {
                    "pause_rx_frames"
                };
                snapshot.count(format!("{nic}.drv.{name}"), frames, None);
            }
        }
        ("Statistics", _) => {}
        _ => return false,
    }

    true
}

/// Newer versions print the result of the negotiation, which beats any conclusion from the
/// advertisements.
fn negotiated(snapshot: &mut Snapshot, nic: &str, rx: bool, on: bool) {
    let key = format!("{nic}.pause.resolved");
    let other = |part: &str| {
        snapshot
            .text(&key)
            .is_some_and(|known| known.contains(part))
    };
    let (rx, tx) = if rx {
        (on, other("tx"))
    } else {
        (other("rx"), on)
    };
    let resolved = match (rx, tx) {
        (true, true) => "rx+tx",
        (true, false) => "rx",
        (false, true) => "tx",
        (false, false) => "none",
    };
    snapshot.set(key, resolved, &source("-a"));
}

fn coalesce(snapshot: &mut Snapshot, nic: &str, line: &str) -> bool {
    let src = &source("-c");
    let Some((key, value)) = field(line) else {
        return false;
    };
    if key == "Adaptive RX" {
        snapshot.set_known(format!("{nic}.coal.adaptive_rx"), switch(value), src);
        return true;
    }

    let known = key.starts_with("rx-")
        || key.starts_with("tx-")
        || key.contains("-rate-")
        || key.ends_with("-interval")
        || key.ends_with("-usecs")
        || key.starts_with("CQE");
    let fact = format!("{nic}.coal.{}", key.replace('-', "_"));

    match leading_number(value) {
        Some(number) if known => snapshot.set(fact, whole(number), src),
        _ if known => snapshot.set_absent(fact, Absence::UnsupportedByDriver, None, src),
        _ => {}
    }

    known
}

/// Names may repeat on different levels of a hierarchy, so the key is the path. A line such as
/// `Rx Queue#: 0` opens a level and counts nothing.
fn statistic(
    snapshot: &mut Snapshot,
    path: &mut Vec<(usize, String)>,
    nic: &str,
    line: &str,
) -> bool {
    let Some((name, value)) = line.rsplit_once(':') else {
        return false;
    };
    let (name, Ok(value)) = (name.trim(), value.trim().parse::<u64>()) else {
        return false;
    };
    let depth = indent(line);
    path.retain(|(enclosing, _)| *enclosing < depth);

    let opens = name.ends_with('#');
    let label = if opens {
        format!("{name}{value}")
    } else {
        name.to_owned()
    };

    if !opens {
        let mut parts: Vec<&str> = path.iter().map(|(_, name)| name.as_str()).collect();
        parts.push(name);
        snapshot.count(format!("{nic}.drv.{}", parts.join("/")), value, None);
    }

    path.push((depth, label));
    true
}

fn driver(snapshot: &mut Snapshot, nic: &str, line: &str) -> bool {
    let src = &source("-i");
    let Some((key, value)) = field(line) else {
        return false;
    };
    let fact = match key {
        "driver" => "name",
        "version" => "version",
        "firmware-version" => "firmware",
        "bus-info" => "bus",
        _ => return key.starts_with("supports-") || key.starts_with("expansion-rom"),
    };

    if !value.is_empty() {
        snapshot.set(format!("{nic}.drv.{fact}"), value, src);
    }

    true
}

fn eee(snapshot: &mut Snapshot, nic: &str, line: &str) -> bool {
    let Some((key, value)) = field(line) else {
        return line.starts_with(char::is_whitespace);
    };
    if key == "EEE status" {
        let src = &source("--show-eee");
        if value == "not supported" {
            snapshot.set_absent(
                format!("{nic}.link.eee"),
                Absence::UnsupportedByDriver,
                None,
                src,
            );
        } else {
            snapshot.set(
                format!("{nic}.link.eee.enabled"),
                value.starts_with("enabled"),
                src,
            );
            snapshot.set(
                format!("{nic}.link.eee.active"),
                value.ends_with("- active"),
                src,
            );
        }
    }

    true
}
