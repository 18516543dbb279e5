//! Does the traffic take the right path?

use crate::rules::prelude::*;

rules! {
    Host path_04,
    Nic mtu_01,
    Host mtu_02,
    Scope mtu_03,
    Run mtu_04,
    Nic addr_01,
    Host addr_02,
    Host path_05,
}

fn addr_01(nic: &Nic<'_>) -> Ruling {
    let duplicates = nic.text("net.duplicates")?;
    require(
        duplicates != "none",
        "no address failed duplicate address detection",
    )?;
    let address = duplicates.value.split(' ').next().unwrap_or_default();

    Ok(matched()
        .read_text(
            &duplicates,
            "none: another host on the link has the address",
        )
        .advice(format!(
            "give one of the two hosts another address; then remove {address} here and add it again"
        )))
}

fn addr_02(host: &Host<'_>) -> Ruling {
    let changes = host.number("route.peer.lladdr_changes")?;
    require(changes > 0.0, "the next hop kept its MAC address")?;
    let mut matched = matched().read(&changes, "0");

    for fact in ["route.peer.lladdr", "route.peer.lladdr_former"] {
        if let Ok(address) = host.text(fact) {
            matched = matched.read_text(&address, "one of the MAC addresses");
        }
    }

    // A router that fails over moves its address once, and no connection through it is reset.
    let is_failover = changes < 2.0 && !host.runs().any(|run| run.is("interrupted"));
    Ok(matched
        .severity_if(is_failover, Severity::Medium)
        .cap_if(is_failover, Confidence::Low)
        .advice(
            "find both hosts by their MAC addresses (ip neigh, the switch's forwarding table) and \
         change one's address",
        ))
}

fn path_04(host: &Host<'_>) -> Ruling {
    let route = host.text("route.peer.dev")?;
    let wanted = host.text("route.wanted_dev")?;
    require(
        route != wanted,
        format!("the route to the peer uses {route}"),
    )?;

    Ok(matched()
        .read_text(&route, format!("the selected interface is {wanted}"))
        .advice(format!(
            "use the peer's address behind {wanted}, or bind the test to it: -B ADDRESS%{}",
            token_or(wanted.value, "DEVICE")
        )))
}

fn mtu_01(nic: &Nic<'_>) -> Ruling {
    nic.wired_or_pair()?;
    let mtu = nic.number("net.mtu")?;
    let is_route = nic.host.text_is("route.peer.dev", nic.name);

    let route = nic
        .host
        .number("route.peer.mtu")
        .ok()
        .filter(|route| is_route && *route > 0.0);
    let mut runs = nic.host.runs();
    let run = runs.find(|run| run.nic().is_some_and(|used| used.name == nic.name));
    let path = run.and_then(|run| run.number("pmtu_bytes").ok());
    let mut paths = route.into_iter().chain(path);
    if let Some(path) = paths.find(|path| *path < mtu) {
        let matched = matched()
            .read(
                &path,
                "the path MTU is smaller than the MTU of the interface",
            )
            .read(&mtu, "MTU of the interface");
        return Ok(common_mtu(nic, matched, mtu.value));
    }

    let peer = nic.peer_number("net.mtu").suspect(if mtu < 1500.0 {
        format!("an MTU of {mtu} on Ethernet looks like a work-around for a smaller MTU elsewhere")
    } else {
        "only this end is known".to_owned()
    })?;
    require(peer != mtu, format!("both ends use {mtu}"))?;
    Ok(common_mtu(
        nic,
        matched()
            .read(&mtu, "must equal the peer's MTU")
            .read(&peer, "MTU of the peer"),
        mtu.value,
    ))
}

fn common_mtu(nic: &Nic<'_>, matched: Match, old: f64) -> Match {
    let set = |mtu: f64| set_mtu(nic.name, mtu);
    let smaller = matched
        .evidence
        .iter()
        .filter_map(|e| e.value.parse::<f64>().ok())
        .fold(old, f64::min);
    matched
        .change_or(
            (smaller < old)
                .then(|| set(smaller).zip(set(old)))
                .flatten(),
            format!("use {old} at the other end"),
        )
        .advice("give both ends and everything between them the same MTU")
        .persist("set the MTU in the network configuration of both hosts")
}

fn mtu_02(host: &Host<'_>) -> Ruling {
    let small = host.flag("path.small_passes")?;
    let large = host.flag("path.large_passes")?;
    require(!large.value, "full-size packets pass")?;

    require(small.value, "no packet of any size passes")?;
    let reported = host.flag("path.told_mtu")?;
    require(!reported.value, "ICMP reports the path MTU")?;

    let mut found = matched()
        .read_known(host, "path.passed_bytes", "the largest that passed")
        .read_known(host, "path.failed_bytes", "must pass as well")
        .because(small.key, "on", "small packets pass")
        .because(
            large.key,
            "off",
            "full-size packets must pass or cause an ICMP error",
        )
        .because(reported.key, "off", "no ICMP message reports the path MTU")
        .read_known(
            host,
            "path.forward_mtu",
            "largest packet to the server that passed",
        )
        .read_known(
            host,
            "path.reverse_mtu",
            "largest packet from the server that passed",
        );

    if let Some(change) = smaller_mtu(host) {
        found = found
            .change(Some(change))
            .advice("or give every hop the larger MTU");
    }

    Ok(found
        .raise(host, "net.ipv4.tcp_mtu_probing", 1.0)
        .advice(
            "better: let ICMP `fragmentation needed` and ICMPv6 `packet too big` through the \
             filter",
        )
        .advice(clamp(host)))
}

/// Setting of a router for the TCP connections of hosts that cannot be changed.
fn clamp(host: &Host<'_>) -> String {
    /// IPv4 and TCP without options.
    const HEADERS_BYTES: f64 = 40.0;

    let passes = ["path.forward_mtu", "path.reverse_mtu"]
        .into_iter()
        .filter_map(|fact| host.number(fact).ok());
    let least = passes.map(|mtu| mtu.value).reduce(f64::min);
    let size = least.map_or_else(
        || "rt mtu".to_owned(),
        |mtu| format!("{}", mtu - HEADERS_BYTES),
    );

    format!(
        "or clamp the MSS on a router of the path: nft add rule ip TABLE FORWARD tcp flags syn tcp \
         option maxseg size set {size}"
    )
}

/// The only NIC with the MTU of the packets that vanish gets that of those that pass.
fn smaller_mtu(host: &Host<'_>) -> Option<Change> {
    let passed = host.number("path.passed_bytes").ok()?;
    let failed = host.number("path.failed_bytes").ok()?;
    let has_failed_size =
        |nic: &Nic<'_>| nic.wired().is_ok() && nic.number("net.mtu").is_ok_and(|mtu| mtu == failed);
    let mut nics = host.nics().filter(has_failed_size);
    let nic = nics.next().filter(|_| nics.next().is_none())?;

    set_mtu(nic.name, passed.value).zip(set_mtu(nic.name, failed.value))
}

/// The command that sets the MTU of an interface; `None` where its name is no token.
fn set_mtu(name: &str, mtu: f64) -> Option<Command> {
    command("ip link set dev {} mtu {}", &[&name, &mtu])
}

/// Bytes that a tunnel adds to a packet over IPv4, at least.
const TUNNELS: [(&str, f64); 12] = [
    ("wireguard", 60.0),
    ("xfrm", 42.0),
    ("vxlan", 50.0),
    ("gre", 24.0),
    ("geneve", 50.0),
    ("gretap", 38.0),
    ("ip6gre", 44.0),
    ("ip6tnl", 40.0),
    ("ipip", 20.0),
    ("sit", 20.0),
    ("tun", 20.0),
    ("bridge", 0.0),
];

fn mtu_03(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let upper = scope
        .nics()
        .filter_map(|nic| Some((nic.subject(), larger_than_below(&nic, tunnel(&nic)?))));
    upper.collect()
}

/// Kind of a tunnel or a bridge, and the bytes that it adds to a packet.
fn tunnel(nic: &Nic<'_>) -> Option<(&'static str, f64)> {
    let kind = nic
        .text("net.kind")
        .or_else(|_| nic.text("drv.name"))
        .ok()?;
    TUNNELS.into_iter().find(|(known, _)| *known == kind.value)
}

fn larger_than_below(nic: &Nic<'_>, (kind, least_overhead): (&str, f64)) -> Ruling {
    let mtu = nic.number("net.mtu")?;
    // With the ends of the tunnel its headers are known.
    let known_overhead = nic.number("tunnel.overhead").ok();
    let overhead = known_overhead
        .as_ref()
        .map_or(least_overhead, |bytes| bytes.value);
    let carrier = nic.text("tunnel.below").ok();
    let is_below = |other: &Nic<'_>| match &carrier {
        Some(name) => other.name == name.value,
        None => other.name != nic.name && other.carrier().is_ok(),
    };
    let below: Vec<Nic<'_>> = nic.host.nics().filter(is_below).collect();
    let sizes = below
        .iter()
        .filter_map(|nic| Some((nic.name, nic.number("net.mtu").ok()?)));
    // Any NIC may carry the tunnel: an MTU beyond that of the largest fits none of them.
    let (below, largest) = sizes
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value))
        .or_unknown("nic.*.net.mtu", "no NIC with an MTU is known")?;
    let most = largest.value - overhead;
    // The headers of IPsec follow from its algorithms: the least ones that fit are no proof.
    if kind == "xfrm" && mtu <= most {
        nic.number("tunnel.overhead")?;
    }
    require(
        mtu > most,
        format!("an MTU of {mtu} over a NIC with {largest}"),
    )?;

    let change = |wanted: f64| set_mtu(nic.name, wanted).zip(set_mtu(nic.name, mtu.value));
    let named = |name: &str, mtu: &Reading<f64>| format!("{name}: {}", mtu.key);
    let found = matched()
        .because(named(nic.name, &mtu), mtu.value, format!("at most {most}"))
        .because(
            named(below, &largest),
            largest.value,
            "MTU of the NIC below",
        );

    Ok(if overhead == 0.0 {
        let advice = "give the bridge and its containers the MTU of the NIC, for Docker with \
                      \"mtu\" in daemon.json";
        found.fix_of_tokens(change(most)).advice(advice)
    } else {
        let advice = format!(
            "a tunnel adds at least {overhead} bytes to each packet; both ends of it need the \
             smaller MTU"
        );
        // Over IPv6, which a peer without an address may be reached by, it adds 20 bytes more.
        let safe = if kind == "wireguard" && known_overhead.is_none() {
            most - 20.0
        } else {
            most
        };
        found.fix_of_tokens(change(safe)).advice(advice)
    })
}

/// Part of the intervals without data from which on a test stalls.
const STALLED_MIN: f64 = 0.2;
/// A congestion window of at most one full-size segment.
const ONE_SEGMENT_BYTES: f64 = 1500.0;

fn mtu_04(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    let stalled = run.number("stalled_share")?;
    // A test without stalls is no proof that the MTUs fit.
    if stalled < STALLED_MIN {
        return inapplicable(Inapplicable::Test, "the test does not stall");
    }

    let window = run.number("cwnd_min_bytes")?;
    require(
        window <= ONE_SEGMENT_BYTES,
        format!("the window is {window} bytes at least"),
    )?;
    let found = matched()
        .read(&stalled, "data in every interval")
        .read(&window, "several segments");

    let tunnel = run
        .host
        .nics()
        .find_map(|nic| Some((larger_than_below(&nic, tunnel(&nic)?).ok()?, nic)));
    let mtu = run.nic().map_or(1500.0, |nic| nic.mtu());
    let peer = run.remote().unwrap_or("HOST");

    let found = match tunnel {
        Some((tunnel, nic)) => found.because_all(tunnel.evidence).advice(format!(
            "{} has a larger MTU than the NIC below it can carry (MTU-03)",
            nic.word()
        )),
        None => found.cap(Confidence::Low),
    };
    Ok(found.advice(format!(
        "suspect the path MTU: `ping -M do -s {} {peer}` sends full-size packets; lower -s until \
         they pass, the path MTU is 28 more",
        // ping(8): `-s` counts neither the 8 bytes of ICMP nor the 20 of IPv4.
        mtu - 28.0
    )))
}

fn path_05(host: &Host<'_>) -> Ruling {
    let family = |wanted: &str| {
        let of_family = |run: &Run<'_>| run.text_is("family", wanted);
        let fact = format!("run.*.family = {wanted}");
        let run = host.runs().find(of_family);
        run.or_unknown(fact, "needs a run over each family")?
            .goodput_bps()
    };
    let v4 = family("ipv4")?;
    let v6 = family("ipv6")?;
    let low = v4.value.min(v6.value);
    let high = v4.value.max(v6.value);
    require(low < 0.8 * high, "both families are equally fast")?;

    Ok(matched()
        .read(&v4, "within 20 % of the other family")
        .read(&v6, "within 20 % of the other family")
        .advice("compare the firewall's counters with -4 and -6"))
}
