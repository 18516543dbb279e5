//! Notes of users: `key=value` lines, and small tables of measurements.

use linerate_model::runs;

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:note";

/// Reads the lines of a note.
#[derive(Default)]
pub(super) struct Reader<'a> {
    command: &'a str,
    is_note: bool,
    idle_connections: f64,
    active_connections: Option<f64>,
    left_waiting: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        Self {
            command: block.command,
            is_note: block.host == Some("note") || block.command == "role",
            ..Self::default()
        }
    }

    pub(super) fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if !self.is_note || line.trim().is_empty() {
            return false;
        }

        measured(snapshot, line);
        self.link_rate(snapshot, line);
        self.connections(snapshot, line).is_some()
            || self.concurrency(snapshot, line).is_some()
            || self.sweep(snapshot, line).is_some()
            || self.cards(snapshot, line).is_some()
            || fanout(snapshot, line).is_some()
            || clients(snapshot, line).is_some()
            || role(snapshot, line).is_some()
            || line.contains('=')
            || leading_number(line).is_some()
            || self.command.starts_with("phase")
    }

    pub(super) fn finish(self, snapshot: &mut Snapshot) {
        let Some(active) = self.active_connections else {
            return;
        };
        snapshot.set("load.connections", active, SRC);

        if self.left_waiting {
            // What was opened before and closed meanwhile still holds its port.
            snapshot.set("sock.tcp.tw", self.idle_connections, SRC);
            snapshot.set("load.ports_used", self.idle_connections + active, SRC);
        }
    }

    /// `… dedicated 1 GbE`
    fn link_rate(&self, snapshot: &mut Snapshot, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let [number, unit] = pair else { continue };
            if let Ok(number) = number.parse::<f64>()
                && unit.trim_end_matches(';') == "GbE"
            {
                snapshot.set_in("path.line_rate_mbps", number * 1000.0, "Mbit/s", SRC);
            }
        }
    }

    /// `idle connections=20000 …`,
    /// `active connections=10000: client nofile limit 1024 hit first; …`
    fn connections(&mut self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(" connections=")?;
        let count = leading_number(rest)?;

        match kind {
            "idle" => self.idle_connections = self.idle_connections.max(count),
            "active" => self.active_connections = Some(count),
            _ => return Some(()),
        }

        if let Some(limit) = number_after(rest, "nofile limit ") {
            snapshot.set("limits.nofile.soft", limit, SRC);
        }

        let hit = rest
            .split_once("client ")
            .and_then(|(_, rest)| rest.split_once(" hit first"));
        snapshot.set_known("load.client_limit", hit.map(|(limit, _)| limit), SRC);
        snapshot.set_known(
            "limits.local_ports",
            number_after(rest, "ephemeral ports about "),
            SRC,
        );
        self.left_waiting |= rest.contains("left in TIME_WAIT");

        Some(())
    }

    /// A table of rates: the command names the concurrencies, a line the payload and its rates in
    /// MB/s.
    fn concurrency(&self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let (_, columns) = self.command.split_once("MB/s at concurrency ")?;
        let numbers = |text: &str| -> Option<Vec<f64>> {
            text.split_whitespace()
                .map(|word| word.parse().ok())
                .collect()
        };
        let (points, (row, rates)) = (numbers(columns)?, line.split_once(' ')?);
        let rates = numbers(rates).filter(|rates| rates.len() == points.len())?;
        let peak = rates.iter().copied().fold(0.0, f64::max);
        snapshot.set(
            format!("http.row.{row}.best_bytes_per_second"),
            peak * 1e6,
            SRC,
        );

        // Rates within 2 % of the peak are alike.
        let alike = || {
            points
                .iter()
                .zip(&rates)
                .filter(|(_, rate)| **rate >= 0.98 * peak)
                .map(|(point, _)| *point)
        };
        snapshot.set_known(
            format!("http.row.{row}.best_concurrency"),
            alike().reduce(f64::min),
            SRC,
        );
        snapshot.set_known(
            format!("http.row.{row}.flat_concurrency"),
            alike().reduce(f64::max),
            SRC,
        );

        Some(())
    }

    /// `P=10 288`, in Gbit/s, under a command that calls it a sweep.
    fn sweep(&self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        if !self.command.contains("sweep") {
            return None;
        }

        let mut words = line.split_whitespace();
        let streams: u32 = words.next()?.strip_prefix("P=")?.parse().ok()?;
        let rate: f64 = words.next()?.parse().ok()?;
        let key = format!("sweep.{streams}.rate_bps");
        if snapshot.value(&key).is_none() {
            snapshot.set(key, rate * 1e9, SRC);
        }

        Some(())
    }

    /// Throughput through one card and through two: `via software switch=42.3`, in Gbit/s.
    fn cards(&self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let command = self.command;
        let (_, slot) = command.split_once("PCIe ")?;
        let (what, rate) = line.split_once('=')?;
        let rate = leading_number(rate)?;

        let key = match what {
            what if what.contains("both ports on one card") => "cards.same_card_bps",
            "via software switch" => "cards.two_cards_bps",
            "direct best" => "cards.direct_bps",
            _ => return None,
        };
        snapshot.set(key, rate * 1e9, SRC);
        let generation = leading_number(slot);

        // Generations of PCI Express, and the gigatransfers per second of a lane.
        let speed = [
            (1.0, 2.5),
            (2.0, 5.0),
            (3.0, 8.0),
            (4.0, 16.0),
            (5.0, 32.0),
            (6.0, 64.0),
        ];
        let speed = speed
            .into_iter()
            .find(|(known, _)| generation == Some(*known));
        snapshot.set_known("cards.pci.speed_gts", speed.map(|(_, speed)| speed), SRC);
        snapshot.set_known("cards.pci.width", number_after(slot, " x"), SRC);

        if let Some(port) = command
            .split_once(", ")
            .and_then(|(_, rest)| leading_number(rest))
        {
            snapshot.set("cards.port_mbps", port * 1000.0, SRC);
            snapshot.set("cards.ports_in_use", 2.0, SRC);
        }

        Some(())
    }
}

/// `iperf3 reverse=941 Mbit/s retransmits=0`
fn measured(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    let rest = line
        .strip_prefix("iperf3 ")
        .filter(|rest| rest.contains("Mbit/s"))?;
    let (_, value) = rest.split_once('=')?;
    let is_reverse = rest.starts_with("reverse=");

    let facts: [(&str, Value); 8] = [
        ("tool", "iperf3".into()),
        (
            "label",
            if is_reverse { "iperf3 -R" } else { "iperf3" }.into(),
        ),
        ("transport", "tcp".into()),
        ("options_known", false.into()),
        ("interrupted", false.into()),
        ("reverse", is_reverse.into()),
        ("streams", 1_i64.into()),
        ("received_bps", (leading_number(value)? * 1e6).into()),
    ];

    runs::add(
        snapshot,
        SRC,
        facts.map(|(name, value)| (name.to_owned(), value)),
    );
    Some(())
}

fn number_after(text: &str, words: &str) -> Option<f64> {
    leading_number(text.split_once(words)?.1)
}

/// One fast host that sends to several slow ones.
fn fanout(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    if let Some(rest) = line.strip_prefix("direction=") {
        snapshot.set_known("fanout.destinations", number_after(rest, ") to "), SRC);
        return Some(());
    }

    if let Some(sum) = line
        .strip_prefix("sum_mbps other direction = ")
        .and_then(leading_number)
    {
        snapshot.set("fanout.reverse_sum_mbps", sum, SRC);
        return Some(());
    }

    let queues = leading_number(line.strip_prefix("sum_mbps with ")?)?;
    let (_, range) = line.split_once("= ")?;

    let fewest = snapshot
        .number("fanout.queues")
        .is_none_or(|known| queues < known);
    if let Some(low) = range.split("..").next().and_then(leading_number)
        && fewest
    {
        snapshot.set("fanout.queues", queues, SRC);
        snapshot.set("fanout.sum_mbps_min", low, SRC);
    }

    snapshot.set_known("fanout.step_mbps", number_after(range, "multiple of "), SRC);
    Some(())
}

/// Several stations behind one host.
fn clients(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    let (key, value) = line.split_once('=')?;
    match key {
        "clients" => snapshot.set("clients.count", leading_number(value)?, SRC),
        "client_link_mbps" => {
            let speeds: Vec<f64> = value
                .split(',')
                .filter_map(|part| leading_number(part.trim()))
                .collect();
            snapshot.set_known(
                "clients.link_mbps_min",
                speeds.iter().copied().reduce(f64::min),
                SRC,
            );
            snapshot.set_known(
                "clients.link_mbps_max",
                speeds.iter().copied().reduce(f64::max),
                SRC,
            );
        }
        "per_client_mbps_observed" => {
            snapshot.set("clients.observed_mbps", leading_number(value)?, SRC);
        }
        _ => return None,
    }

    Some(())
}

/// `ip_forward=1 nat=SNAT`
fn role(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    let forward = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix("ip_forward="))?;
    snapshot.set(
        "sysctl.net.ipv4.ip_forward",
        Value::Integer(forward.parse().ok()?),
        SRC,
    );
    Some(())
}
