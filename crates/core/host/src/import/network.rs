//! Output of `ip link`, `ip -br link` and `ip route get`.

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:ip link";

/// Reads lines of ip.
#[derive(Default)]
pub(super) struct Reader {
    /// Interface the indented lines belong to.
    link: Option<String>,
    /// Counters the next line holds: names in order.
    columns: Option<(&'static str, Vec<String>)>,
}

impl Reader {
    pub(super) fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if !line.starts_with(char::is_whitespace) {
            self.columns = None;
        }

        self.link(snapshot, line).is_some()
            || link_in_brief(snapshot, line).is_some()
            || route(snapshot, line).is_some()
            || self.counters(snapshot, line).is_some()
            || self.link_details(snapshot, line)
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
        let nic = &mut Recorder::new(snapshot, format!("nic.{name}"), SRC);
        let has = |wanted: &str| {
            rest.split('>')
                .next()
                .is_some_and(|flags| flags.split(',').any(|flag| flag == wanted))
        };
        // `UP` alone is the administrator's setting, `LOWER_UP` the carrier (netdevice(7)).
        nic.set("link.up", has("UP") && has("LOWER_UP"));

        if has("LOOPBACK") {
            nic.set("net.kind", "loopback");
        } else if let Some(kind) = kind_by_name(name) {
            let key = nic.key("net.kind");
            if nic.snapshot.value(&key).is_none() {
                nic.set("net.kind", kind);
                nic.snapshot.qualify(&key, Quality::Inferred);
            }
        }

        let words: Vec<&str> = rest.split_whitespace().collect();
        for pair in words.windows(2) {
            let [key, value] = pair else { continue };
            match (*key, value.parse::<i64>()) {
                ("mtu", Ok(mtu)) => nic.set_in("net.mtu", mtu, "bytes"),
                ("qlen", Ok(length)) => {
                    nic.set_in("net.txqlen", length, "packets");
                }
                ("master", _) => nic.set("net.master", *value),
                _ => {}
            }
        }

        self.link = Some(name.to_owned());
        Some(())
    }

    fn link_details(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let Some(name) = &self.link else { return false };
        let text = line.trim_start();
        if text == line || text.is_empty() {
            return false;
        }

        let words: Vec<&str> = text.split_whitespace().collect();
        let nic = &mut Recorder::new(snapshot, format!("nic.{name}"), SRC);
        let first = words.first().copied().unwrap_or_default();
        let direction = [("RX", "rx"), ("TX", "tx")]
            .into_iter()
            .find(|(name, _)| first.trim_end_matches(':') == *name);
        if let Some((_, direction)) = direction {
            let names = words
                .iter()
                .skip(1)
                .map(|word| word.trim_end_matches(':').to_owned());
            self.columns = Some((direction, names.collect()));
            return true;
        }

        const KINDS: &str =
            "veth bridge tun dummy ifb vxlan vlan bond wireguard gre ipip sit macvlan";

        if KINDS.split(' ').any(|kind| kind == first) {
            nic.set("net.kind", first);
            return true;
        }

        const KNOWN: &str = "\
            link/ inet valid_lft promiscuity alias altname parentbus prog/ bridge_slave \
            bond_slave openvswitch vrf";

        KNOWN.split(' ').any(|known| first.starts_with(known))
    }

    /// The line of numbers under `RX: bytes packets …`.
    fn counters(&mut self, snapshot: &mut Snapshot, line: &str) -> Option<()> {
        let ((direction, names), link) = (self.columns.as_ref()?, self.link.as_ref()?);
        let numbers: Option<Vec<u64>> = line
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
        for (name, number) in names.iter().zip(numbers) {
            let name = match (*direction, name.as_str()) {
                ("rx", "missed") => "rx_missed_errors".to_owned(),
                (direction, name) => format!("{direction}_{name}"),
            };
            snapshot.count(format!("nic.{link}.stats64.{name}"), number);
        }

        self.columns = None;
        Some(())
    }
}

/// The kind that programs give an interface of this name, where the output does not have it:
/// `docker0`, `wg0`.
fn kind_by_name(name: &str) -> Option<&'static str> {
    const KINDS: [(&str, &str); 12] = [
        ("docker", "bridge"),
        ("br-", "bridge"),
        ("virbr", "bridge"),
        ("lxcbr", "bridge"),
        ("lxdbr", "bridge"),
        ("cni", "bridge"),
        ("veth", "veth"),
        ("wg", "wireguard"),
        ("tun", "tun"),
        ("tap", "tun"),
        ("tailscale", "tun"),
        ("vxlan", "vxlan"),
    ];

    let is_numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let known = KINDS
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map(|(_, kind)| *kind);
    known.or_else(|| is_numbered("br").then_some("bridge"))
}

/// `eth0  DOWN  00:00:5e:00:53:01 <NO-CARRIER,BROADCAST,MULTICAST,UP>` of `ip -br link`
fn link_in_brief(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        name,
        "UP" | "DOWN" | "UNKNOWN" | "LOWERLAYERDOWN",
        ..,
        flags,
    ] = words.as_slice()
    else {
        return None;
    };
    let flags = flags.strip_prefix('<')?.strip_suffix('>')?;
    let name = name.split('@').next().unwrap_or(name);
    let up = ["UP", "LOWER_UP"]
        .iter()
        .all(|wanted| flags.split(',').any(|flag| flag == *wanted));
    snapshot.set(format!("nic.{name}.link.up"), up, SRC);

    Some(())
}

/// `192.0.2.7 via 192.0.2.1 dev eth0 src 192.0.2.9 uid 0`
fn route(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }

    let words: Vec<&str> = line.split_whitespace().collect();
    words.first()?.parse::<std::net::IpAddr>().ok()?;
    snapshot.set(
        "route.peer.dev",
        after(&words, "dev")?,
        "import:ip route get",
    );

    let mtu = after(&words, "mtu").and_then(|word| word.parse::<i64>().ok());
    snapshot.set_known_in("route.peer.mtu", mtu, "bytes", "import:ip route get");
    Some(())
}
