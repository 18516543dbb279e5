//! Output of `ip link`, `ip route get`, `tc qdisc` and `tc filter`.

use linerate_model::snapshot::{Snapshot, Value};

use super::blocks::Block;
use super::lines::{after, tc_rate_bps};

/// Reads lines of ip and tc.
pub(super) struct Reader<'a> {
    /// Device the command names.
    device: Option<&'a str>,
    /// Interface the indented lines belong to.
    link: Option<String>,
    /// Counters the next line holds: names in order.
    columns: Option<(&'static str, Vec<String>)>,
    /// Qdisc the indented lines belong to.
    qdisc: Option<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        let words: Vec<&str> = block.words().collect();
        Self { device: after(&words, "dev"), link: None, columns: None, qdisc: None }
    }

    pub(super) fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if !line.starts_with(char::is_whitespace) {
            self.columns = None;
        }
        self.link(snapshot, line).is_some()
            || link_in_brief(snapshot, line).is_some()
            || self.qdisc(snapshot, line).is_some()
            || self.filter(snapshot, line)
            || route(snapshot, line).is_some()
            || self.counters(snapshot, line).is_some()
            || self.link_details(snapshot, line)
            || self.qdisc_counters(snapshot, line)
    }

    /// `3: eth0@if2: <UP,LOWER_UP> mtu 1500 qdisc mq state UP qlen 1000`
    fn link(&mut self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let (index, rest) = line.split_once(": ")?;
        let (name, rest) = rest.split_once(": ")?;
        let rest = rest.strip_prefix('<')?;
        if index.is_empty() || !index.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let name = name.split('@').next().unwrap_or(name);
        let nic = format!("nic.{name}");
        let src = "import:ip link";
        let has =
            |wanted: &str| rest.split('>').next().is_some_and(|flags| flags.split(',').any(|flag| flag == wanted));
        snapshot.set(format!("{nic}.link.up"), has("UP") && has("LOWER_UP"), src);
        if has("LOOPBACK") {
            snapshot.set(format!("{nic}.net.kind"), "loopback", src);
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        for pair in words.windows(2) {
            let [key, value] = pair else { continue };
            match (*key, value.parse::<i64>()) {
                ("mtu", Ok(mtu)) => snapshot.set_in(format!("{nic}.net.mtu"), mtu, "bytes", src),
                ("qlen", Ok(length)) => snapshot.set_in(format!("{nic}.net.txqlen"), length, "packets", src),
                ("master", _) => snapshot.set(format!("{nic}.net.master"), *value, src),
                _ => {}
            }
        }
        self.link = Some(name.to_owned());
        self.qdisc = None;
        Some(())
    }

    fn link_details(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let Some(name) = &self.link else { return false };
        let text = line.trim_start();
        if text == line || text.is_empty() {
            return false;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let nic = format!("nic.{name}");
        let first = words.first().copied().unwrap_or_default();
        let direction = [("RX", "rx"), ("TX", "tx")].into_iter().find(|(name, _)| first.trim_end_matches(':') == *name);
        if let Some((_, direction)) = direction {
            let names = words.iter().skip(1).map(|word| word.trim_end_matches(':').to_owned());
            self.columns = Some((direction, names.collect()));
            return true;
        }
        if ["veth", "bridge", "tun", "dummy", "ifb", "vxlan", "vlan", "bond"].contains(&first) {
            snapshot.set(format!("{nic}.net.kind"), first, "import:ip link");
            return true;
        }
        let known = ["link/", "inet", "valid_lft", "promiscuity", "alias", "altname", "parentbus", "prog/"];
        known.iter().any(|known| first.starts_with(known))
    }

    /// The line of numbers under `RX: bytes packets …`.
    fn counters(&mut self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let ((direction, names), link) = (self.columns.as_ref()?, self.link.as_ref()?);
        let numbers: Option<Vec<u64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
        for (name, number) in names.iter().zip(numbers) {
            let name = match (*direction, name.as_str()) {
                ("rx", "missed") => "rx_missed_errors".to_owned(),
                (direction, name) => format!("{direction}_{name}"),
            };
            snapshot.count(format!("nic.{link}.stats64.{name}"), number, None);
        }
        self.columns = None;
        Some(())
    }

    /// `qdisc tbf 8001: dev eth0 root refcnt 2 rate 1Gbit burst 32Kb lat 400ms`
    fn qdisc(&mut self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (["qdisc", kind, handle, rest @ ..], false) = (words.as_slice(), line.starts_with(char::is_whitespace))
        else {
            return None;
        };
        let after = |wanted| after(rest, wanted);
        let Some(device) = after("dev").or(self.device) else { return Some(()) };
        let place = if rest.contains(&"root") { "root" } else { after("parent").unwrap_or("ingress") };
        let key = format!("nic.{device}.qdisc.{}", place.replace([':', '.'], "_"));
        let src = "import:tc qdisc";
        snapshot.set(format!("{key}.kind"), *kind, src);
        snapshot.set(format!("{key}.handle"), *handle, src);
        let rate_bps = after("rate").or_else(|| after("bandwidth")).and_then(tc_rate_bps);
        snapshot.set_known_in(format!("{key}.rate_bps"), rate_bps, "bit/s", src);
        for name in ["limit", "burst", "bands"] {
            snapshot.set_known(format!("{key}.{name}"), after(name), src);
        }
        if *kind == "tbf" && place == "root" {
            let parameters = rest.iter().skip_while(|word| **word != "rate").copied().collect::<Vec<_>>().join(" ");
            let command = format!(
                "tc qdisc replace dev {device} root handle {handle} tbf {}",
                parameters.replace(" lat ", " latency ")
            );
            snapshot.set(format!("{key}.command"), command, src);
        }
        self.qdisc = Some(key);
        self.link = None;
        Some(())
    }

    /// `Sent 0 bytes 0 pkt (dropped 5, overlimits 0 requeues 0)` and the line below it.
    fn qdisc_counters(&self, snapshot: &mut Snapshot, line: &str) -> bool {
        let Some(key) = &self.qdisc else { return false };
        let text = line.trim_start();
        if text == line {
            return false;
        }
        if !text.starts_with("Sent ") {
            return text.starts_with("backlog ") || text.contains("maxpacket") || text.contains("flows");
        }
        let words: Vec<&str> =
            text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',')).filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            let [name, value] = pair else { continue };
            let counter = match *name {
                "dropped" => "drops",
                "overlimits" => "overlimits",
                "requeues" => "requeues",
                "Sent" => "bytes",
                _ => continue,
            };
            if let Ok(value) = value.parse() {
                snapshot.count(format!("{key}.{counter}"), value, None);
            }
        }
        true
    }

    /// Filters that map onto queues: how many, and how many different priorities they have.
    fn filter(&self, snapshot: &mut Snapshot, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(device) = self.device else {
            return words.first() == Some(&"filter");
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
                if !known.contains(&Value::Integer(priority)) && known.len() < 65_536 {
                    known.push(Value::Integer(priority));
                }
                snapshot.set(format!("{prefix}.priorities"), known.len(), src);
                snapshot.set(seen, Value::List(known), src);
            }
            return true;
        }
        if words.contains(&"skbedit") && words.contains(&"queue_mapping") {
            let count = snapshot.number(&format!("{prefix}.skbedit_count")).unwrap_or(0.0);
            snapshot.set(format!("{prefix}.skbedit_count"), count + 1.0, src);
            return true;
        }
        line.starts_with(char::is_whitespace) && matches!(words.first(), Some(&"match" | &"index"))
    }
}

/// `eth0  DOWN  00:00:5e:00:53:01 <NO-CARRIER,BROADCAST,MULTICAST,UP>` of `ip -br link`
fn link_in_brief(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, "UP" | "DOWN" | "UNKNOWN" | "LOWERLAYERDOWN", .., flags] = words.as_slice() else { return None };
    let flags = flags.strip_prefix('<')?.strip_suffix('>')?;
    let name = name.split('@').next().unwrap_or(name);
    let up = ["UP", "LOWER_UP"].iter().all(|wanted| flags.split(',').any(|flag| flag == *wanted));
    snapshot.set(format!("nic.{name}.link.up"), up, "import:ip link");
    Some(())
}

/// `192.0.2.7 via 192.0.2.1 dev eth0 src 192.0.2.9 uid 0`
fn route(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first()?.parse::<std::net::IpAddr>().ok()?;
    snapshot.set("route.peer.dev", after(&words, "dev")?, "import:ip route get");
    let mtu = after(&words, "mtu").and_then(|word| word.parse::<i64>().ok());
    snapshot.set_known_in("route.peer.mtu", mtu, "bytes", "import:ip route get");
    Some(())
}
