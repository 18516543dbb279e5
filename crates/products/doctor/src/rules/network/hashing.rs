//! Several links between the hosts, and how flows are hashed to them.

use crate::rules::prelude::*;

pub(super) fn path_03(host: &Host<'_>) -> Ruling {
    let member = host.number("path.member_mbps")?;
    let rate = |wanted: fn(f64) -> bool| {
        let run = host.runs().find(|run| {
            run.number("streams")
                .is_ok_and(|streams| wanted(streams.value))
        });
        run.or_unknown(
            "run.*.streams",
            "needs a run with one stream and one with four or more",
        )?
        .goodput_bps()
    };
    let one = rate(|streams| streams <= 1.0)?;
    let many = rate(|streams| streams >= 4.0)?;
    require(many > 1.3 * one.value, "several flows are no faster")?;
    require(
        (one.value / 1e6 - member.value).abs() < 0.1 * member.value,
        "one flow is not at a member's speed",
    )?;

    Ok(matched()
        .read(&one, format!("about one member ({member} Mbit/s)"))
        .read(&many, "over 1.3 times the rate of one stream")
        .advice("use several streams, or hash over ports: xmit_hash_policy layer3+4"))
}

/// Policies that see what differs between the streams of a test.
const POLICIES_BY_PORT: [&str; 2] = ["layer3+4", "encap3+4"];

pub(super) fn path_12(run: &Run<'_>) -> Ruling {
    let mut nics = run.host.nics();
    nics.find(|nic| nic.text("bond.mode").is_ok())
        .or_unknown("nic.*.bond.mode", run.host.reason("nic"))?;

    let nic = run.used_nic()?;
    require(
        nic.text("bond.mode").is_ok(),
        "the test did not use the bond",
    )?;
    let policy = nic.text("bond.hash_policy")?;
    require(
        !POLICIES_BY_PORT.contains(&policy.value),
        format!("{policy} spreads streams"),
    )?;

    let streams = run.number("streams")?;
    require(streams > 1.0, "one stream")?;

    let is_member = |other: &Nic<'_>| other.text_is("net.master", nic.name);
    let speeds = nic
        .host
        .nics()
        .filter(is_member)
        .filter_map(|member| member.number("link.speed_mbps").ok());
    let member = speeds
        .max_by(|a, b| a.value.total_cmp(&b.value))
        .or_unknown("nic.*.link.speed_mbps", "the speed of no member is known")?;
    let rate = run.goodput_bps()?;
    let ceiling = tcp_ceiling(member.value * 1e6, nic.mtu());
    require(
        (0.9 * ceiling..=1.02 * ceiling).contains(&rate.value),
        format!(
            "{:.0} Mbit/s, a member carries {:.0}",
            rate.value / 1e6,
            ceiling / 1e6
        ),
    )?;

    Ok(matched()
        .read_rate(
            &rate,
            format!("a member carries {:.1} Mbit/s", ceiling / 1e6),
        )
        .read(&member, "speed of a member, Mbit/s")
        .read_text(&policy, "layer3+4 for several streams to one host")
        .read(&streams, "all between the same addresses")
        .advice(format!(
            "`ip link set dev {} type bond xmit_hash_policy layer3+4`, and the same on the switch \
             for the other direction; one stream never exceeds a member",
            nic.word()
        )))
}
