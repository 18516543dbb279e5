//! Segmentation and receive offloads.

use linerate_model::snapshot::Source;

use super::cpu::thread_or_cpu_load;
use crate::rules::prelude::*;

rules! {
    Nic off_01,
    Nic off_02,
    Nic off_03,
    Nic off_04,
    Nic tun_01,
}

/// CPUs that handle small packets in turn, sender, interrupts and receiver, are never full.
const SMALL_PACKETS_BUSY: f64 = 0.5;
/// Share of a CPU below which a thread of a sender does not limit the test.
const SENDER_ACTIVE: f64 = 0.2;

fn off_01(nic: &Nic<'_>) -> Ruling {
    let tso = nic.text("feat.tcp-segmentation-offload")?;
    let gso = nic.text("feat.generic-segmentation-offload")?;
    let on = |words: &str| words.starts_with("on");
    let (matched, change) = if on(tso.value) || on(gso.value) {
        few_segments(nic).map_err(|stop| match stop {
            NoMatch::Unknown(_) if nic.host.snapshot.source == Source::Live => stop,
            _ => NoMatch::Clear(format!("TSO {tso}, GSO {gso}")),
        })?
    } else {
        let off: Vec<&str> = SWITCHES
            .iter()
            .filter(|(_, of)| is_switched_off(nic, of))
            .map(|(name, _)| *name)
            .collect();
        require(
            !off.is_empty(),
            "fixed off: it cannot be switched on here (VIRT-01)",
        )?;
        let switch = |to: &str| {
            let words: Vec<&str> = off.iter().flat_map(|name| [name, to]).collect();
            command("ethtool -K {}", &[&nic.name])?.with_words(&words)
        };
        (
            matched().read_text(&tso, "on").read_text(&gso, "on"),
            switch("on").zip(switch("off")),
        )
    };

    let has = |fact: &str| nic.host.runs().any(|run| run.number(fact).is_ok());
    require(
        has("sender_thread_cpu") || !has("receiver_thread_cpu"),
        "this host only receives",
    )?;

    let thread = match thread_or_cpu_load(&nic.host, "sender_thread_cpu") {
        Ok(thread) => thread,
        // All of them are seldom off without a reason, and a text of a slow test seldom has the
        // load.
        Err(_) if nic.host.is_pasted() && nic.host.runs().next().is_some() => {
            return Ok(matched.cap(Confidence::Low).fix_of_tokens(change).advice(
                "it matters where the sender's CPU is busy: see `mpstat -P ALL 1` during a \
                 test",
            ));
        }
        Err(stop) => {
            return Err(stop)
                .suspect("segmentation offload is off; it matters when the sender's CPU is busy");
        }
    };
    let busy = load_of_sending(nic, thread);

    // Samples of the test can show what its mean does not.
    let is_limit = nic
        .host
        .runs()
        .any(|run| run.limit() == Some(limit::OFFLOAD));
    // With one segment per packet over a veth pair the busiest CPU was used for 63 %.
    require(
        is_limit || busy >= SMALL_PACKETS_BUSY,
        format!("the sender is {:.0} % busy", busy * 100.0),
    )?;
    Ok(matched
        .because("load of the sender", percent(busy), "below 50 %")
        .fix_of_tokens(change))
}

/// Largest packet inside the stack without BIG TCP.
const PACKET_MAX_BYTES: f64 = 65536.0;

/// The stack handles 64 KiB at once where the device accepts more (BIG TCP).
fn off_04(nic: &Nic<'_>) -> Ruling {
    if nic.text_is("net.kind", "loopback") {
        return inapplicable(Inapplicable::Device, "it is the loopback");
    }
    let most = nic.number("net.tso_max")?;
    require(
        most > PACKET_MAX_BYTES,
        format!("it accepts {most} bytes at once"),
    )?;

    let is_own = |run: &Run<'_>| run.nic().is_some_and(|used| used.name == nic.name);
    let run = nic
        .host
        .runs()
        .find(|run| is_own(run) && !run.is_udp())
        .or_unknown("run.*", "needs a TCP test over this interface")?;
    let concluded = run.text("limit")?;
    let of_cpus = [
        limit::SENDER_CPU,
        limit::RECEIVER_CPU,
        limit::RECEIVER_SOFTIRQ,
    ];
    require(
        of_cpus.contains(&concluded.value),
        format!("the limit is {concluded}"),
    )?;

    let family = run.text("family")?;
    let infix = if family == "ipv4" { "ipv4_" } else { "" };
    let [sent, received] = ["gso", "gro"].map(|way| nic.number(&format!("net.{way}_{infix}max")));
    let sent = sent?;
    let received = received?;
    require(
        sent <= PACKET_MAX_BYTES,
        format!("packets of up to {sent} bytes"),
    )?;

    let set = |sent: f64, received: f64| {
        let [gso, gro] = ["gso", "gro"].map(|way| format!("{way}_{infix}max_size"));
        command(
            "ip link set dev {} {} {} {} {}",
            &[&nic.name, &gso, &sent, &gro, &received],
        )
    };
    Ok(matched()
        .read(&sent, "more: the device accepts it")
        .read(&most, "accepted by the device")
        .fix_of_tokens(set(most.value, most.value).zip(set(sent.value, received.value)))
        .persist("repeat the command on both hosts, from their network configuration")
        .advice("the receiver of the test needs the same; iproute2 6.3 sets the sizes of IPv4"))
}

/// Feature of a NIC that cuts the packets of a kind of tunnel.
const TUNNEL_FEATURES: [(&str, &str); 8] = [
    ("vxlan", "tx-udp_tnl-segmentation"),
    ("geneve", "tx-udp_tnl-segmentation"),
    ("gre", "tx-gre-segmentation"),
    ("gretap", "tx-gre-segmentation"),
    ("ip6gre", "tx-gre-segmentation"),
    ("ipip", "tx-ipxip4-segmentation"),
    ("sit", "tx-ipxip4-segmentation"),
    ("ip6tnl", "tx-ipxip6-segmentation"),
];

/// The device below a tunnel does not cut its packets.
fn tun_01(nic: &Nic<'_>) -> Ruling {
    let kind = nic.text("net.kind")?;
    let known = TUNNEL_FEATURES.iter().find(|(name, _)| *name == kind.value);
    let Some((_, feature)) = known else {
        return inapplicable(Inapplicable::Device, "it is no tunnel");
    };
    let name = nic.text("tunnel.below")?;
    let carriers = || nic.host.nics().filter(|other| other.name == name.value);
    let below = carriers()
        .next()
        .or_unknown("nic.*.feat", "the device below the tunnel is not known")?;

    let state = below.text(&format!("feat.{feature}"))?;
    require(
        !state.value.starts_with("on"),
        format!("{feature} is {state}"),
    )?;
    let thread = thread_or_cpu_load(&nic.host, "sender_thread_cpu").suspect(
        "the NIC does not cut the packets of the tunnel; it matters when the sender's CPU is busy",
    )?;
    let busy = load_of_sending(nic, thread);
    require(
        busy >= SMALL_PACKETS_BUSY,
        format!("the sender is {:.0} % busy", busy * 100.0),
    )?;

    let found = matched()
        .read_text(&name, "carries the tunnel")
        .read_text(&state, "on")
        .because("load of the sender", percent(busy), "below 50 %");
    let switch = |to: &str| command("ethtool -K {} {} {}", &[&below.name, feature, &to]);
    Ok(if state.value.contains("fixed") {
        found.advice("use a NIC that cuts packets of this tunnel, or more queues and CPUs")
    } else {
        found.fix_of_tokens(switch("on").zip(switch("off")))
    })
}

/// Load of the sender's thread, or of the busiest CPU beside it.
fn load_of_sending(nic: &Nic<'_>, thread: f64) -> f64 {
    // Small packets cost most where interrupts and the other end handle them, which is no time of
    // the sender's thread. Beside a thread that is idle a busy CPU has other work.
    let cpu = nic
        .host
        .busiest_cpu()
        .ok()
        .filter(|_| thread >= SENDER_ACTIVE);
    cpu.map_or(thread, |cpu| cpu.max(thread))
}

/// Features that segmentation needs, as ethtool(8) names them, and the kernel's features behind
/// each name.
const SWITCHES: [(&str, &[&str]); 4] = [
    (
        "tx",
        &[
            "tx-checksum-ip-generic",
            "tx-checksum-ipv4",
            "tx-checksum-ipv6",
            "tx-checksumming",
        ],
    ),
    ("sg", &["tx-scatter-gather", "scatter-gather"]),
    (
        "tso",
        &[
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tcp-segmentation-offload",
        ],
    ),
    ("gso", &["generic-segmentation-offload"]),
];

/// True if the first feature that can be switched is off, and on request: one that waits for
/// another returns with it.
fn is_switched_off(nic: &Nic<'_>, features: &[&str]) -> bool {
    let words = |feature: &&str| {
        nic.text(&format!("feat.{feature}"))
            .ok()
            .map(|words| words.value)
    };
    features
        .iter()
        .filter_map(words)
        .find(|words| !words.contains("[fixed]"))
        == Some("off")
}

/// Packets before segmentation hold fewer segments than the interface can take.
fn few_segments(nic: &Nic<'_>) -> Result<(Match, Option<Change>), NoMatch> {
    let segments = nic.number("net.gso_max_segs")?;
    let most = nic
        .number("net.tso_max_segs")
        .map_or(SEGMENTS_MAX, |most| most.value.min(SEGMENTS_MAX));
    require(
        segments < SEGMENTS_FEW.min(most),
        format!("{segments} segments"),
    )?;

    let limit = |segments: f64| {
        command(
            "ip link set dev {} gso_max_segs {}",
            &[&nic.name, &segments],
        )
    };
    Ok((
        matched().read(&segments, format!("up to {most}")),
        limit(most).zip(limit(segments.value)),
    ))
}

/// The kernel's limit of segments in one packet (`GSO_MAX_SEGS`).
const SEGMENTS_MAX: f64 = 65535.0;
/// Fewer segments than this at once save little.
const SEGMENTS_FEW: f64 = 16.0;

fn off_02(nic: &Nic<'_>) -> Ruling {
    let gro = nic.feature("generic-receive-offload")?;
    require(!gro.value, "GRO is on")?;
    let is_fixed = nic
        .text("feat.generic-receive-offload")
        .is_ok_and(|words| words.value.contains("[fixed]"));
    require(!is_fixed, "fixed off: it cannot be switched on here")?;

    let forwards = nic.host.forwards()?;
    require(!forwards, "this host forwards")?;

    if nic.host.period.is_some() {
        let received = nic.bytes("rx")?;
        let sent = nic.bytes("tx")?;
        require(received > sent, "this end mostly sends")?;
        arrive_one_by_one(nic, received)?;
    }

    let busy = thread_or_cpu_load(&nic.host, "receiver_thread_cpu")
        .suspect("GRO is off; it matters when the receiver's CPU is busy")?;
    require(
        busy >= 0.7,
        format!("the receiver is {:.0} % busy", busy * 100.0),
    )?;

    let matched = matched()
        .because(gro.key, "off", "on")
        .because("load of the receiver", percent(busy), "below 70 %")
        .fix_of_tokens(feature(nic, "gro", ["on", "off"]));
    Ok(match nic.text("net.kind") {
        Ok(kind) if kind == "veth" => matched.advice("veth pairs have GRO off by default"),
        _ => matched,
    })
}

/// Switches a feature (ethtool(8), `-K`) from the second state to the first.
pub(super) fn feature(nic: &Nic<'_>, name: &str, [new, old]: [&str; 2]) -> Option<Change> {
    let switch = |to: &str| command("ethtool -K {} {} {}", &[&nic.name, &name, &to]);
    switch(new).zip(switch(old))
}

/// A virtual NIC hands over the sender's packets before segmentation; nothing is left to join.
fn arrive_one_by_one(nic: &Nic<'_>, received_bytes: f64) -> Result<(), NoMatch> {
    // Without the number of packets, or the MTU, nothing shows that packets were joined.
    let packets = nic.delta("stats64.rx_packets").unwrap_or_default();
    let mtu = nic.number("net.mtu").map_or(f64::INFINITY, |mtu| mtu.value);
    let mean_bytes = received_bytes / packets.max(1.0);

    require(
        packets < 1.0 || mean_bytes <= JOINED_MTUS * mtu,
        format!(
            "received packets are joined already: {mean_bytes:.0} bytes on average, the MTU is \
             {mtu:.0}"
        ),
    )
}

/// Packets of more MTUs than this on average are joined ones.
const JOINED_MTUS: f64 = 2.0;

fn off_03(nic: &Nic<'_>) -> Ruling {
    let lro = nic.feature("large-receive-offload")?;
    require(lro.value, "LRO is off")?;

    // A port of a bridge forwards whatever ip_forward is.
    if !nic.text_is("net.master_kind", "bridge") {
        forwarding(nic)?;
    }

    Ok(matched()
        .because(lro.key, "on", "off where packets are forwarded")
        .fix_of_tokens(feature(nic, "lro", ["off", "on"]))
        .advice("leave GRO on: it is safe to forward"))
}

fn forwarding(nic: &Nic<'_>) -> Result<(), NoMatch> {
    let forwards = nic
        .host
        .forwards()
        .suspect("LRO is on; it matters on a host that forwards")?;
    require(forwards, "LRO is on, and this host does not forward")
}
