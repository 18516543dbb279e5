//! Does the traffic take the right path?

use linerate_model::finding::{Confidence, Severity};

use crate::command::{command, token_or};
use crate::rule::{Match, Rule, Ruling, Suspect, clear, matched, require, unknown};
use crate::scope::{Host, Nic, Run};

pub(super) const RULES: &[Rule] = &[
    Rule::host("PATH-04", Severity::Blocker, "Test traffic leaves through another interface", path_04)
        .explanation(
            "The route to the peer does not use the selected interface. The test measures another network than the one \
             intended.",
        )
        .reference("ip-route(8), `ip route get`"),
    Rule::nic("MTU-01", Severity::Medium, "MTU differs between the ends or along the path", mtu_01)
        .explanation(
            "One end sends packets that the other drops or reports as too large. Lowering the MTU of a few hosts \
             treats a symptom and breaks others.",
        )
        .reference("RFC 1191, RFC 4821"),
    Rule::host("MTU-02", Severity::High, "Path MTU black hole", mtu_02)
        .at_most(Confidence::Medium)
        .explanation(
            "Small packets pass and full-size packets vanish without an error message. A device on the path filters \
             the ICMP messages that path MTU discovery needs.",
        )
        .reference("kernel networking/ip-sysctl, tcp_mtu_probing; RFC 2923"),
    Rule::nic("ADDR-01", Severity::High, "An IPv6 address belongs to another host as well", addr_01)
        .explanation("Another host on the link answered for this address. This host does not use it.")
        .reference("RFC 4862, duplicate address detection; ip-address(8), dadfailed"),
    Rule::host("ADDR-02", Severity::High, "The next hop has more than one MAC address", addr_02)
        .explanation(
            "The address of the peer, or of the router to it, moved between MAC addresses while the test ran. Two hosts use the \
             address, or a router failed over.",
        )
        .reference("RFC 5227; arp(7)"),
    Rule::host("PATH-05", Severity::Info, "IPv4 and IPv6 differ on the same wire", path_05)
        .at_most(Confidence::Low)
        .explanation("Offloads and firewall rules can differ by address family. The slower family shows which one.")
        .reference("nft(8), ethtool(8)"),
];

fn addr_01(nic: &Nic<'_>) -> Ruling {
    let duplicates = nic.text("net.duplicates")?;
    require(duplicates.value != "none", || "no address failed duplicate address detection".to_owned())?;
    let address = duplicates.value.split(' ').next().unwrap_or_default();
    Ok(matched()
        .read_text(&duplicates, "none: another host on the link has the address")
        .advice(format!("give one of the two hosts another address; then remove {address} here and add it again")))
}

fn addr_02(host: &Host<'_>) -> Ruling {
    let changes = host.number("route.peer.lladdr_changes")?;
    require(changes.value > 0.0, || "the next hop kept its MAC address".to_owned())?;
    let mut matched = matched().read(&changes, "0");
    for fact in ["route.peer.lladdr", "route.peer.lladdr_former"] {
        if let Ok(address) = host.text(fact) {
            matched = matched.read_text(&address, "one of the MAC addresses");
        }
    }
    // A router that fails over moves its address once, and no connection through it is reset.
    let is_failover = changes.value < 2.0 && !host.runs().any(|run| run.is("interrupted"));
    let matched = if is_failover { matched.severity(Severity::Medium).cap(Confidence::Low) } else { matched };
    Ok(matched.advice(
        "find both hosts by their MAC addresses (ip neigh, the switch's forwarding table) and change one's address",
    ))
}

fn path_04(host: &Host<'_>) -> Ruling {
    let route = host.text("route.peer.dev")?;
    let wanted = host.text("route.wanted_dev")?;
    require(route.value != wanted.value, || format!("the route to the peer uses {}", route.value))?;
    Ok(matched().read_text(&route, format!("the selected interface is {}", wanted.value)).advice(format!(
        "use the peer's address behind {}, or bind the test to it: -B ADDRESS%{}",
        wanted.value,
        token_or(wanted.value, "DEVICE")
    )))
}

fn mtu_01(nic: &Nic<'_>) -> Ruling {
    nic.wired_or_pair()?;
    let mtu = nic.number("net.mtu")?;
    let is_route = nic.host.text("route.peer.dev").is_ok_and(|dev| dev.value == nic.name);
    let route = nic.host.number("route.peer.mtu").ok().filter(|route| is_route && route.value > 0.0);
    let run = nic.host.runs().find(|run| run.nic().is_some_and(|used| used.name == nic.name));
    let path = run.and_then(|run| run.number("pmtu_bytes").ok());
    for (path, threshold) in [
        (route, "the path MTU is smaller than the MTU of the interface"),
        (path, "the path MTU is smaller than the MTU of the interface"),
    ] {
        if let Some(path) = path.filter(|path| path.value < mtu.value) {
            let matched = matched().read(&path, threshold).read(&mtu, "MTU of the interface");
            return Ok(common_mtu(nic, matched, mtu.value));
        }
    }
    let peer = nic.peer_number("net.mtu").suspect(|| {
        if mtu.value < 1500.0 {
            format!("an MTU of {} on Ethernet looks like a work-around for a smaller MTU elsewhere", mtu.value)
        } else {
            "only this end is known".to_owned()
        }
    })?;
    require(peer.value != mtu.value, || format!("both ends use {}", mtu.value))?;
    Ok(common_mtu(nic, matched().read(&mtu, "must equal the peer's MTU").read(&peer, "MTU of the peer"), mtu.value))
}

fn common_mtu(nic: &Nic<'_>, matched: Match, old: f64) -> Match {
    let set = |mtu: f64| command("ip link set dev {} mtu {}", &[&nic.name, &mtu]);
    let smaller = matched.evidence.iter().filter_map(|e| e.value.parse::<f64>().ok()).fold(old, f64::min);
    matched
        .change_or((smaller < old).then(|| set(smaller).zip(set(old))).flatten(), || {
            format!("use {old} at the other end")
        })
        .advice("give both ends and everything between them the same MTU")
        .persist("set the MTU in the network configuration of both hosts")
}

fn mtu_02(host: &Host<'_>) -> Ruling {
    let small = host.flag("path.small_passes")?;
    let large = host.flag("path.large_passes")?;
    require(!large.value, || "full-size packets pass".to_owned())?;
    if !small.value {
        return clear("no packet of any size passes");
    }
    let reported = host.flag("path.told_mtu")?;
    require(!reported.value, || "ICMP reports the path MTU".to_owned())?;
    Ok(matched()
        .because(small.key, "on", "small packets pass")
        .because(large.key, "off", "full-size packets must pass or cause an ICMP error")
        .because(reported.key, "off", "no ICMP message reports the path MTU")
        .raise(host, "net.ipv4.tcp_mtu_probing", 1.0)
        .advice("better: let ICMP `fragmentation needed` and ICMPv6 `packet too big` through the filter"))
}

fn path_05(host: &Host<'_>) -> Ruling {
    let family = |wanted: &str| {
        let of_family = |run: &Run<'_>| run.text("family").is_ok_and(|family| family.value == wanted);
        match host.runs().find(of_family) {
            Some(run) => run.goodput_bps(),
            None => unknown(format!("run.*.family = {wanted}"), "needs a run over each family"),
        }
    };
    let (v4, v6) = (family("ipv4")?, family("ipv6")?);
    let (low, high) = (v4.value.min(v6.value), v4.value.max(v6.value));
    require(low < 0.8 * high, || "both families are equally fast".to_owned())?;
    Ok(matched()
        .read(&v4, "within 20 % of the other family")
        .read(&v6, "within 20 % of the other family")
        .advice("compare the firewall's counters with -4 and -6"))
}
