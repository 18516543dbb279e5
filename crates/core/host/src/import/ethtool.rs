//! Output of ethtool, of many versions.

use super::ethtool_headings::HEADINGS;
use super::ethtool_headings::Kind::{self, *};
use super::lines::*;
use crate::prelude::*;

/// Reads the output of one ethtool command line by line.
pub(super) struct Reader<'a> {
    /// Option and device of the command, where it is known.
    command: Option<(&'a str, &'a str)>,
    section: Option<Section>,
    /// A hierarchy of statistics: indentation and name of what encloses the line.
    path: Vec<(usize, String)>,
}

#[derive(PartialEq, Eq)]
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
        let section = statistics.map(|(_, device)| Section::new(Statistics, device));

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
                .is_some_and(|section| section.kind == Other)
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
            ("NIC statistics:", Some(_)) => Statistics,
            (text, Some(_)) if text.starts_with("driver: ") => Driver,
            _ => return false,
        };
        self.section = Some(Section::new(kind, device.unwrap_or_default()));
        self.path.clear();

        // `driver: NAME` is also the first field of its section, and is read as one.
        kind == Statistics
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
                format!("import:ethtool {option}").trim_end(),
            );
        }

        true
    }

    fn inside(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let Some(section) = &mut self.section else {
            return false;
        };
        let src = match section.kind {
            Features => "import:ethtool -k",
            Ring | Channels => "import:ethtool -g",
            Pause => "import:ethtool -a",
            Coalesce => "import:ethtool -c",
            Driver => "import:ethtool -i",
            Eee => "import:ethtool --show-eee",
            Link | Statistics | Other => "import:ethtool",
        };
        let nic = &mut Recorder::new(snapshot, format!("nic.{}", section.device), src);

        match (section.kind, field(line)) {
            (Statistics, _) => statistic(nic, &mut self.path, line),
            (Link, Some(field)) => link(nic, section, field),
            (Link, None) => link_modes(nic, section, line),
            (Eee | Other, None) => line.starts_with(char::is_whitespace),
            (_, None) => false,
            (Features, Some(field)) => feature(nic, field),
            (Ring, Some(field)) => sizes(nic, section, field, &RING),
            (Channels, Some(field)) => sizes(nic, section, field, &CHANNELS),
            (Pause, Some(field)) => pause(nic, field),
            (Coalesce, Some(field)) => coalesce(nic, field),
            (Driver, Some(field)) => driver(nic, field),
            (Eee, Some(field)) => eee(nic, field),
            (Other, Some(_)) => true,
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

/// `Speed: 1000Mb/s` and the other fields of a link.
fn link(nic: &mut Recorder<'_>, section: &mut Section, (key, value): (&str, &str)) -> bool {
    section.list = match key {
        "Supported link modes" => Some("supported"),
        "Advertised link modes" => Some("ours"),
        "Link partner advertised link modes" => Some("peer"),
        _ => None,
    };
    if let Some(list) = section.list {
        let words = value
            .split_whitespace()
            .filter(|word| word.contains("base"));
        let key = nic.key(format!("link.modes.{list}"));
        // A second output of the command replaces the list of the first.
        nic.snapshot.facts.remove(&key);
        add_modes(nic, list, words);
        return true;
    }

    match key {
        "Supported pause frame use" => nic.set("pause.supported", value),
        "Advertised pause frame use" => nic.set("pause.advertised", value),
        "Link partner advertised pause frame use" => {
            nic.set("pause.partner", value);
        }
        "Speed" => match leading_number(value) {
            Some(speed) => nic.set_in("link.speed_mbps", whole(speed), "Mbit/s"),
            None => nic.absent("link.speed_mbps", Absence::NotReported),
        },
        "Duplex" => {
            let known = matches!(value, "Full" | "Half").then(|| value.to_lowercase());
            nic.or_absent("link.duplex", known, Absence::NotReported);
        }
        "Supports auto-negotiation" => {
            nic.set("link.autoneg_supported", value == "Yes");
        }
        "Auto-negotiation" => nic.known("link.autoneg", switch(value)),
        "Port" => nic.set("link.port", value),
        "Link detected" => nic.known("link.up", switch(value)),
        _ => {
            const KNOWN: &str = "\
                Support|Advertised|Link partner|PHYAD|Transceiver|MDI-X|Wake-on|Current message|\
                SecureOn|master-slave";

            return KNOWN.split('|').any(|known| key.starts_with(known));
        }
    }

    true
}

/// The rest of a list of link modes.
fn link_modes(nic: &mut Recorder<'_>, section: &Section, line: &str) -> bool {
    let mut words = line.split_whitespace();
    match section
        .list
        .filter(|_| words.clone().all(|word| word.contains("base")))
    {
        Some(list) => add_modes(nic, list, words.by_ref()),
        // The names of message levels, or the rest of a list that no rule reads.
        None => return line.starts_with(char::is_whitespace),
    }

    true
}

/// Link modes of one list; a list may not be longer than the kernel's.
fn add_modes<'a>(nic: &mut Recorder<'_>, list: &str, words: impl Iterator<Item = &'a str>) {
    const MODES_MAX: usize = 256;

    let fact = format!("link.modes.{list}");
    let mut modes = match nic.snapshot.value(&nic.key(&fact)) {
        Some(Value::List(modes)) => modes.clone(),
        _ => Vec::new(),
    };
    modes.extend(words.map(Value::from));
    modes.truncate(MODES_MAX);
    nic.known(fact, (!modes.is_empty()).then_some(Value::List(modes)));
}

fn whole(number: f64) -> i64 {
    // Up to 2^53, about 9.007e15, a float is an exact integer.
    if number.abs() < 9e15 {
        number as i64
    } else {
        0
    }
}

fn feature(nic: &mut Recorder<'_>, (name, value): (&str, &str)) -> bool {
    let is_feature = switch(value).is_some() && !name.contains(char::is_whitespace);
    if is_feature {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        nic.set(format!("feat.{name}"), value);
    }

    is_feature
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
    nic: &mut Recorder<'_>,
    section: &mut Section,
    (key, value): (&str, &str),
    names: &[(&str, &str)],
) -> bool {
    if key == "Pre-set maximums" || key == "Current hardware settings" {
        section.current = key != "Pre-set maximums";
        return true;
    }

    let Some((_, fact)) = names.iter().find(|(name, _)| *name == key) else {
        // Newer versions of ethtool print more sizes in either section.
        return value == "n/a" || switch(value).is_some() || leading_number(value).is_some();
    };
    let which = if section.current { "cur" } else { "max" };
    // An unsupported size is printed as 0 or as n/a.
    let size = leading_number(value).filter(|size| *size > 0.0).map(whole);
    nic.or_absent(
        format!("{fact}.{which}"),
        size,
        Absence::UnsupportedByDriver,
    );

    true
}

fn pause(nic: &mut Recorder<'_>, (key, value): (&str, &str)) -> bool {
    match (key, switch(value)) {
        ("Autonegotiate", Some(on)) => nic.set("pause.autoneg", on),
        ("RX", Some(on)) => nic.set("pause.rx", on),
        ("TX", Some(on)) => nic.set("pause.tx", on),
        ("RX negotiated" | "TX negotiated", Some(on)) => {
            negotiated(nic, key.starts_with("RX"), on);
        }
        ("tx_pause_frames", _) => nic.count("drv.pause_tx_frames", value.parse().ok()),
        ("rx_pause_frames", _) => nic.count("drv.pause_rx_frames", value.parse().ok()),
        ("Statistics", _) => {}
        _ => return false,
    }

    true
}

/// Newer versions print the result of the negotiation, which beats any conclusion from the
/// advertisements.
fn negotiated(nic: &mut Recorder<'_>, rx: bool, on: bool) {
    let key = nic.key("pause.resolved");
    let known = nic.snapshot.text(&key).unwrap_or_default();
    // Each direction has a line of its own: what the other line said is kept.
    let other = |part: &str| known.contains(part);
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
    nic.set("pause.resolved", resolved);
}

fn coalesce(nic: &mut Recorder<'_>, (key, value): (&str, &str)) -> bool {
    if key == "Adaptive RX" {
        nic.known("coal.adaptive_rx", switch(value));
        return true;
    }

    let known = key.starts_with("rx-")
        || key.starts_with("tx-")
        || key.contains("-rate-")
        || key.ends_with("-interval")
        || key.ends_with("-usecs")
        || key.starts_with("CQE");
    if known {
        let number = leading_number(value).map(whole);
        let fact = format!("coal.{}", key.replace('-', "_"));
        nic.or_absent(fact, number, Absence::UnsupportedByDriver);
    }

    known
}

/// Names may repeat on different levels of a hierarchy, so the key is the path. A line such as
/// `Rx Queue#: 0` opens a level and counts nothing.
fn statistic(nic: &mut Recorder<'_>, path: &mut Vec<(usize, String)>, line: &str) -> bool {
    let Some((name, value)) = line.rsplit_once(':') else {
        return false;
    };
    let (name, Ok(value)) = (name.trim(), value.trim().parse::<u64>()) else {
        return false;
    };
    let depth = indent(line);
    // A line ends all levels that are indented as far as itself, or further.
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
        nic.count(format!("drv.{}", parts.join("/")), Some(value));
    }

    path.push((depth, label));
    true
}

fn driver(nic: &mut Recorder<'_>, (key, value): (&str, &str)) -> bool {
    let fact = match key {
        "driver" => "name",
        "version" => "version",
        "firmware-version" => "firmware",
        "bus-info" => "bus",
        _ => return key.starts_with("supports-") || key.starts_with("expansion-rom"),
    };

    if !value.is_empty() {
        nic.set(format!("drv.{fact}"), value);
    }

    true
}

fn eee(nic: &mut Recorder<'_>, (key, value): (&str, &str)) -> bool {
    match (key, value) {
        ("EEE status", "not supported") => nic.absent("link.eee", Absence::UnsupportedByDriver),
        ("EEE status", value) => {
            nic.set("link.eee.enabled", value.starts_with("enabled"));
            nic.set("link.eee.active", value.ends_with("- active"));
        }
        _ => {}
    }

    true
}
