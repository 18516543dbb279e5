//! Output of `lshw -class network`.

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:lshw";

/// Reads the devices one by one: the name comes after a part of the lines.
pub(super) struct Reader {
    is_lshw: bool,
    lines: Vec<(String, String)>,
}

impl Reader {
    pub(super) fn new(block: &Block<'_>) -> Self {
        Self {
            is_lshw: block.program() == "lshw",
            lines: Vec::new(),
        }
    }

    /// Records the device whose lines were collected.
    fn device(&mut self, snapshot: &mut Snapshot) {
        let lines = std::mem::take(&mut self.lines);
        let value = |key: &str| {
            lines
                .iter()
                .find(|(known, _)| known == key)
                .map(|(_, value)| value.as_str())
        };
        let Some(name) = value("logical name") else {
            return;
        };
        let nic = &mut Recorder::new(snapshot, format!("nic.{name}"), SRC);

        if let Some(address) = value("bus info").and_then(|bus| bus.strip_prefix("pci@")) {
            nic.set("drv.bus", address);
        }

        let capacity = value("capacity").and_then(speed_mbps);
        nic.known_in("link.max_speed_mbps", capacity, "Mbit/s");

        let modes: Vec<Value> = value("capabilities").into_iter().flat_map(modes).collect();
        if !modes.is_empty() {
            nic.set("link.modes.supported", Value::List(modes));
        }

        let speed = value("size").and_then(speed_mbps);
        let configured = value("configuration").unwrap_or_default();
        let setting = |name: &str| {
            configured
                .split_whitespace()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let speed = setting("speed").and_then(speed_mbps).or(speed);
        nic.known_in("link.speed_mbps", speed, "Mbit/s");

        let switch = |name: &str, on: &str| setting(name).map(|value| value == on);
        nic.known("link.autoneg", switch("autonegotiation", "on"));
        nic.known("link.up", switch("link", "yes"));
        nic.known("link.duplex", setting("duplex"));
        nic.known("drv.name", setting("driver"));
    }
}

impl LineReader for Reader {
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("*-") {
            self.is_lshw |= rest.starts_with("network");
            if self.is_lshw {
                self.device(snapshot);
            }
            return self.is_lshw;
        }

        if !self.is_lshw || !line.starts_with(char::is_whitespace) {
            return false;
        }

        let Some((key, value)) = field(text) else {
            return false;
        };

        const LINES_MAX: usize = 64;

        if self.lines.len() < LINES_MAX {
            self.lines.push((key.to_owned(), value.to_owned()));
        }

        true
    }

    fn finish(&mut self, snapshot: &mut Snapshot) {
        self.device(snapshot);
    }
}

/// `100Mbit/s`, `1Gbit/s`
fn speed_mbps(text: &str) -> Option<f64> {
    let number = leading_number(text)?;
    match text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "Mbit/s" => Some(number),
        "Gbit/s" => Some(number * 1000.0),
        _ => None,
    }
}

/// `1000bt-fd` as ethtool names it: `1000baseT/Full`.
fn modes(capabilities: &str) -> impl Iterator<Item = Value> {
    capabilities.split_whitespace().filter_map(|word| {
        let (name, duplex) = word
            .strip_suffix("-fd")
            .map_or((word, "Half"), |name| (name, "Full"));
        let speed: u32 = name.strip_suffix("bt")?.parse().ok()?;
        Some(format!("{speed}baseT/{duplex}").into())
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn devices_with_their_speed_capacity_and_settings() {
        let text = "  *-network:0\n       description: Ethernet interface\n       bus info: \
                    pci@0000:00:1f.6\n       logical name: enp0s31f6\n\
                    \x20      size: 100Mbit/s\n       capacity: 1Gbit/s\n       capabilities: pm \
                    ethernet physical tp 100bt 100bt-fd 1000bt-fd autonegotiation\n\
                    \x20      configuration: autonegotiation=on driver=e1000e duplex=full link=yes \
                    port=twisted pair speed=100Mbit/s\n\
                    \x20 *-network:1 DISABLED\n       logical name: wlp1s0\n       configuration: \
                    driver=iwlwifi link=no\n";
        let mut snapshot = Snapshot::new("a", Source::Import);

        let mut reader = Reader::new(&Block {
            host: None,
            command: "sudo lshw -c network",
            lines: Vec::new(),
        });
        for line in text.lines() {
            assert!(reader.line(&mut snapshot, line), "{line}");
        }

        reader.finish(&mut snapshot);
        let number = |fact: &str| snapshot.number(&format!("nic.enp0s31f6.{fact}"));
        assert_eq!(
            (number("link.speed_mbps"), number("link.max_speed_mbps")),
            (Some(100.0), Some(1000.0))
        );

        let text = |fact: &str| snapshot.text(&format!("nic.enp0s31f6.{fact}"));
        assert_eq!(
            (text("drv.name"), text("drv.bus")),
            (Some("e1000e"), Some("0000:00:1f.6"))
        );
        assert_eq!(
            (
                snapshot.flag("nic.enp0s31f6.link.up"),
                snapshot.flag("nic.wlp1s0.link.up")
            ),
            (Some(true), Some(false))
        );

        let modes = ["100baseT/Half", "100baseT/Full", "1000baseT/Full"]
            .map(Value::from)
            .to_vec();
        assert_eq!(
            snapshot.value("nic.enp0s31f6.link.modes.supported"),
            Some(&Value::List(modes))
        );
    }
}
