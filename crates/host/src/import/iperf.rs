//! Transcripts of iperf3 and iperf 2, as text. A server's transcript is joined with its client's by their ports.

use std::collections::BTreeSet;

use linerate_model::snapshot::{Quality, Snapshot, Value};

use super::blocks::Block;
use super::lines::iperf_amount;
use super::ovs::upper_median;
use linerate_model::runs;

/// Runs one text may contain, and intervals and ports of one run that are kept.
const RUNS_MAX: usize = 1000;
const KEPT_MAX: usize = 4096;

/// All transcripts of one host.
#[derive(Debug, Default)]
pub(super) struct Transcripts {
    pub(super) runs: Vec<Transcript>,
    pub(super) version: Option<String>,
    active: bool,
}

/// One test as one end printed it.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    tool: String,
    command: String,
    pub(super) server: bool,
    pub(super) reverse: bool,
    pub(super) udp: bool,
    pub(super) interrupted: bool,
    /// Ports of the client's ends.
    ports: BTreeSet<u16>,
    addresses: Option<(String, String)>,
    streams: usize,
    /// Rates of whole intervals.
    rates: Vec<f64>,
    pub(super) sent: Option<(f64, f64)>,
    pub(super) received: Option<(f64, f64)>,
    pub(super) retransmits: Option<f64>,
    pub(super) longest_seconds: f64,
    pub(super) mss_bytes: Option<f64>,
    pub(super) rtt_us: Option<f64>,
    /// Version of the server, from the report of it that the client received.
    pub(super) peer_version: Option<String>,
}

impl Transcripts {
    /// Parses the command of a block; returns whether it starts a test.
    pub(super) fn command(&mut self, block: &Block<'_>) -> bool {
        let words: Vec<&str> = block.words().collect();
        let tool = words.iter().find_map(|word| match word.rsplit('/').next().unwrap_or(word) {
            "iperf3" => Some("iperf3"),
            "iperf" => Some("iperf2"),
            _ => None,
        });
        self.active = tool.is_some();
        let Some(tool) = tool else { return false };
        // What precedes the tool belongs to another command: `taskset -c 0 iperf3 -s`.
        let options = words.iter().skip_while(|word| !word.contains("iperf"));
        let mut options = options.copied();
        let role = options.find(|word| matches!(*word, "-c" | "-s" | "--client" | "--server"));
        if let Some(role) = role {
            self.start(tool, block.command, matches!(role, "-s" | "--server"));
        }
        role.is_some()
    }

    pub(super) fn start(&mut self, tool: &str, command: &str, server: bool) {
        if self.runs.len() < RUNS_MAX {
            let (tool, command) = (tool.to_owned(), command.to_owned());
            self.runs.push(Transcript { tool, command, server, ..Transcript::default() });
        }
    }

    /// A result in a note.
    pub(super) fn noted(&mut self, tool: &str, reverse: bool, rate_bps: f64) {
        self.start(tool, "", false);
        if let Some(run) = self.runs.last_mut() {
            run.reverse = reverse;
            run.received = Some((rate_bps, f64::NAN));
        }
    }

    pub(super) fn line(&mut self, line: &str) -> bool {
        if let Some(rest) = line.strip_prefix("iperf 3") {
            self.version = Some(format!("3{}", rest.split_whitespace().next().unwrap_or_default()));
            return true;
        }
        if line.starts_with("iperf version ") || line.starts_with("Optional features available") {
            return true;
        }
        if line.starts_with("Connecting to host ") && !self.fresh(false) {
            self.start("iperf3", "", false);
        }
        let Some(run) = self.runs.last_mut() else { return false };
        run.line(line)
    }

    /// Whether the last transcript is of this end and has printed nothing yet.
    pub(super) fn fresh(&self, server: bool) -> bool {
        self.runs.last().is_some_and(|run| run.server == server && run.ports.is_empty() && run.received.is_none())
    }

    pub(super) fn finish(self, snapshot: &mut Snapshot) {
        let (servers, clients): (Vec<Transcript>, Vec<Transcript>) = self.runs.into_iter().partition(|run| run.server);
        let mut over_loopback = false;
        for client in clients.iter().filter(|client| client.has_result()) {
            let server = servers.iter().find(|server| !server.ports.is_disjoint(&client.ports));
            over_loopback |= client.same_host() == Some(true);
            let facts = client.facts(server, self.version.as_deref());
            runs::add(snapshot, "import:iperf", facts);
        }
        for server in servers.iter().filter(|server| server.has_result()) {
            if !clients.iter().any(|client| !client.ports.is_disjoint(&server.ports)) {
                runs::add(snapshot, "import:iperf", server.facts(None, self.version.as_deref()));
            }
        }
        if over_loopback {
            snapshot.set("nic.lo.net.kind", "loopback", "import:iperf");
            snapshot.qualify("nic.lo.net.kind", Quality::Inferred);
        }
    }
}

impl Transcript {
    fn line(&mut self, line: &str) -> bool {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix('[') {
            return self.bracketed(rest);
        }
        let ends = ["the client has terminated", "interrupt - ", "the server has terminated"];
        if ends.iter().any(|end| text.contains(end)) {
            self.interrupted = true;
            return true;
        }
        if text.starts_with("Reverse mode") {
            self.reverse = true;
            return true;
        }
        const KNOWN: [&str; 8] = [
            "Connecting to host ",
            "Accepted connection",
            "Server listening on",
            "Client connecting to",
            "TCP window size",
            "UDP buffer size",
            "iperf Done",
            "iperf3: ",
        ];
        KNOWN.iter().any(|known| text.starts_with(known))
    }

    fn bracketed(&mut self, rest: &str) -> bool {
        let Some((id, rest)) = rest.split_once(']') else {
            return false;
        };
        let id = id.trim();
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            ["local", local, "port", local_port, "connected", "to" | "with", remote, "port", remote_port, ..] => {
                self.connected(local, local_port, remote, remote_port);
                true
            }
            ["Interval", ..] => {
                self.udp |= words.contains(&"Jitter") || words.contains(&"Datagrams");
                true
            }
            [range, "sec", amount, amount_unit, rate, rate_unit, rest @ ..] => {
                self.amounts(id == "SUM", range, (amount, amount_unit), (rate, rate_unit), rest).is_some()
            }
            _ => false,
        }
    }

    pub(super) fn connected(&mut self, local: &str, local_port: &str, remote: &str, remote_port: &str) {
        let (local_port, remote_port) = (local_port.parse::<u16>(), remote_port.parse::<u16>());
        let client_port = if self.server { remote_port } else { local_port };
        if let Ok(port) = client_port
            && self.ports.len() < KEPT_MAX
        {
            self.ports.insert(port);
        }
        self.streams = self.streams.saturating_add(1);
        self.addresses = Some((local.to_owned(), remote.to_owned()));
    }

    fn amounts(
        &mut self,
        sum: bool,
        range: &str,
        amount: (&str, &str),
        rate: (&str, &str),
        rest: &[&str],
    ) -> Option<()> {
        let (start, end) = range.split_once('-')?;
        let (start, end): (f64, f64) = (start.parse().ok()?, end.parse().ok()?);
        let (bytes, rate) = (iperf_amount(amount.0, amount.1)?, iperf_amount(rate.0, rate.1)?);
        if !sum && self.streams > 1 {
            return Some(()); // one of several streams: the sum is read
        }
        match rest.last() {
            Some(&"sender") => {
                self.sent = Some((rate, bytes));
                self.retransmits = rest.first().and_then(|word| word.parse().ok());
            }
            Some(&"receiver") => self.received = Some((rate, bytes)),
            // iperf 2 marks its total with nothing but its length.
            _ if self.tool == "iperf2" && start == 0.0 && end > self.longest_seconds + 1.5 => {
                self.received = Some((rate, bytes));
            }
            _ => self.interval(end - start, rate),
        }
        self.longest_seconds = self.longest_seconds.max(end);
        Some(())
    }

    /// Fragments at the end of an interrupted run are no interval.
    pub(super) fn interval(&mut self, seconds: f64, rate: f64) {
        if seconds >= 0.5 && self.rates.len() < KEPT_MAX {
            self.rates.push(rate);
        }
    }

    fn has_result(&self) -> bool {
        self.sent.is_some() || self.received.is_some() || !self.rates.is_empty()
    }

    fn same_host(&self) -> Option<bool> {
        let (local, remote) = self.addresses.as_ref()?;
        Some(local == remote || local.starts_with("127.") || local == "::1")
    }

    fn facts(&self, server: Option<&Self>, version: Option<&str>) -> Vec<(String, Value)> {
        let mut facts: Vec<(String, Value)> = Vec::new();
        let mut set = |key: &str, value: Option<Value>| facts.extend(value.map(|value| (key.to_owned(), value)));
        let options = Options::of(&self.command);
        set("tool", Some(self.tool.as_str().into()));
        set("version", version.filter(|_| self.tool == "iperf3").map(Value::from));
        set("peer_version", self.peer_version.as_deref().map(Value::from));
        set("label", Some(self.label().into()));
        set("options_known", Some((!self.command.is_empty()).into()));
        set("transport", Some(if self.udp || options.udp { "udp" } else { "tcp" }.into()));
        set("same_host", self.same_host().map(Value::from));
        let addresses = self.addresses.as_ref();
        set("path", addresses.map(|(a, b)| format!("{} {}", a.min(b), a.max(b)).into()));
        set("local", addresses.map(|(local, _)| local.as_str().into()));
        set("family", addresses.map(|(a, _)| if a.contains(':') { "ipv6" } else { "ipv4" }.into()));
        set("reverse", Some((self.reverse || options.reverse).into()));
        set("server", self.server.then(|| true.into()));
        set("interrupted", Some(self.interrupted.into()));
        set("streams", Some(options.streams.unwrap_or_else(|| self.streams.max(1)).into()));
        let measured = (self.longest_seconds > 0.0 && !self.interrupted).then_some(self.longest_seconds);
        set("seconds", options.seconds.or(measured).map(Value::from));
        set("omit_seconds", options.omit.map(Value::from));
        set("block_len_bytes", options.length.map(Value::from));
        set("window_bytes", options.window.map(Value::from));
        set("target_bps", options.target.map(Value::from));
        let total = |total: Option<(f64, f64)>| total.filter(|(_, bytes)| bytes.is_finite());
        set("sent_bps", self.sent.map(|(rate, _)| rate.into()));
        set("sent_bytes", total(self.sent).map(|(_, bytes)| bytes.into()));
        set("received_bps", self.received.map(|(rate, _)| rate.into()));
        set("received_bytes", total(self.received).map(|(_, bytes)| bytes.into()));
        set("retransmits", self.retransmits.map(Value::from));
        set("mss_bytes", self.mss_bytes.map(Value::from));
        set("rtt_us", self.rtt_us.map(Value::from));
        if let (Some(lost), Some(mss), Some((_, bytes))) = (self.retransmits, self.mss_bytes, total(self.sent)) {
            set("retransmit_share", Some((lost * mss / bytes.max(mss)).into()));
        }
        if let [first, rest @ ..] = self.rates.as_slice()
            && !rest.is_empty()
        {
            set("first_second_bps", Some((*first).into()));
            set("later_median_bps", upper_median(rest).map(Value::from));
        }
        set("client_cpus", options.cpus.map(Value::from).filter(|_| !self.server));
        let server_cpus = server.and_then(|server| Options::of(&server.command).cpus);
        set("server_cpus", server_cpus.map(Value::from));
        facts
    }

    fn label(&self) -> String {
        if !self.command.is_empty() {
            return self.command.clone();
        }
        let direction = if self.reverse { " -R" } else { "" };
        format!("{}{direction}", self.tool)
    }
}

/// Options of a command that matter to rules.
#[derive(Debug, Default)]
struct Options {
    streams: Option<usize>,
    seconds: Option<f64>,
    omit: Option<f64>,
    length: Option<f64>,
    window: Option<f64>,
    target: Option<f64>,
    reverse: bool,
    udp: bool,
    cpus: Option<String>,
}

impl Options {
    fn of(command: &str) -> Self {
        let mut options = Self::default();
        let words: Vec<&str> = command.split_whitespace().collect();
        for pair in words.windows(2) {
            let [option, value] = pair else { continue };
            let number = || value.parse::<f64>().ok().filter(|number| number.is_finite());
            match *option {
                "-P" | "--parallel" => options.streams = value.parse().ok(),
                "-t" | "--time" => options.seconds = number(),
                "-O" | "--omit" => options.omit = number(),
                "-l" | "--length" => options.length = amount(value, 1024.0),
                "-w" | "--window" => options.window = amount(value, 1024.0),
                "-b" | "--bitrate" | "--bandwidth" => options.target = amount(value, 1000.0),
                "-c" if words.first() == Some(&"taskset") && options.cpus.is_none() => {
                    options.cpus = Some((*value).to_owned());
                }
                _ => {}
            }
        }
        options.reverse = words.iter().any(|word| matches!(*word, "-R" | "--reverse"));
        options.udp = words.iter().any(|word| matches!(*word, "-u" | "--udp"));
        options
    }
}

/// `128K`, `1.5M`: a number with a prefix.
fn amount(text: &str, base: f64) -> Option<f64> {
    let power = " KMG".find(text.chars().last()?.to_ascii_uppercase()).unwrap_or(0);
    let number = if power > 0 { text.get(..text.len() - 1)? } else { text };
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite())?;
    Some(number * base.powi(power as i32))
}
