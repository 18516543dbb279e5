//! Does the traffic take the right path?

use linerate_model::finding::{Confidence, Severity};

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
    Rule::host("PATH-05", Severity::Info, "IPv4 and IPv6 differ on the same wire", path_05)
        .at_most(Confidence::Low)
        .explanation("Offloads and firewall rules can differ by address family. The slower family shows which one.")
        .reference("nft(8), ethtool(8)"),
];

fn path_04(host: &Host<'_>) -> Ruling {
    let route = host.text("route.peer.dev")?;
    let wanted = host.text("route.wanted_dev")?;
    require(route.value != wanted.value, || format!("the route to the peer uses {}", route.value))?;
    Ok(matched().read_text(&route, format!("the selected interface is {}", wanted.value)).advice(format!(
        "use the peer's address behind {}, or bind the test to it: -B ADDRESS%{}",
        wanted.value, wanted.value
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
    let command = |mtu: f64| format!("ip link set dev {} mtu {mtu}", nic.name);
    let smaller = matched.evidence.iter().filter_map(|e| e.value.parse::<f64>().ok()).fold(old, f64::min);
    matched
        .change_or((smaller < old).then(|| (command(smaller), command(old))), || format!("use {old} at the other end"))
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
