//! Segmentation and receive offloads.

use linerate_model::finding::Severity;

use super::cpu::thread_or_cpu_load;
use crate::rule::{NoMatch, Rule, Ruling, Suspect, matched, require};
use crate::scope::Nic;

pub(super) const RULES: &[Rule] = &[
    Rule::nic("OFF-01", Severity::Medium, "Segmentation offload is off", off_01)
        .explanation(
            "Every packet crosses the whole stack on its own. With the offload the stack handles up to 64 KB at once.",
        )
        .reference("kernel networking/segmentation-offloads"),
    Rule::nic("OFF-02", Severity::Medium, "Receive offload is off on a host that does not forward", off_02)
        .explanation(
            "Without GRO every packet climbs the stack on its own. Receiving then costs several times the CPU.",
        )
        .reference("kernel networking/segmentation-offloads, GRO"),
    Rule::nic("OFF-03", Severity::High, "LRO is active on a host that forwards", off_03)
        .explanation(
            "LRO merges packets in a way that cannot be undone, so forwarded packets break or exceed the MTU. GRO is \
             safe to forward and may stay on.",
        )
        .reference("kernel networking/segmentation-offloads; ethtool(8), --offload"),
];

fn off_01(nic: &Nic<'_>) -> Ruling {
    let tso = nic.text("feat.tcp-segmentation-offload")?;
    let gso = nic.text("feat.generic-segmentation-offload")?;
    let on = |words: &str| words.starts_with("on");
    require(!on(tso.value) && !on(gso.value), || format!("TSO {}, GSO {}", tso.value, gso.value))?;
    require(!gso.value.contains("requested on") && !gso.value.contains("[fixed]"), || {
        "it cannot be switched on from here (VIRT-01)".to_owned()
    })?;
    let busy = thread_or_cpu_load(&nic.host, "sender_thread_cpu")
        .suspect(|| "segmentation offload is off; it matters when the sender's core is busy".to_owned())?;
    require(busy >= 0.7, || format!("the sender is {:.0} % busy", busy * 100.0))?;
    Ok(matched()
        .read_text(&tso, "on")
        .read_text(&gso, "on")
        .because("load of the sender", format!("{:.0} %", busy * 100.0), "below 70 %")
        .fix(
            format!("ethtool -K {} sg on tso on gso on tx on", nic.name),
            format!("ethtool -K {} tso off gso off", nic.name),
        ))
}

fn off_02(nic: &Nic<'_>) -> Ruling {
    let gro = nic.feature("generic-receive-offload")?;
    require(!gro.value, || "GRO is on".to_owned())?;
    let forwards = nic.host.forwards()?;
    require(!forwards, || "this host forwards".to_owned())?;
    if nic.host.period.is_some() {
        let (received, sent) = (nic.bytes("rx")?, nic.bytes("tx")?);
        require(received > sent, || "this end mostly sends".to_owned())?;
    }
    let busy = thread_or_cpu_load(&nic.host, "receiver_thread_cpu")
        .suspect(|| "GRO is off; it matters when the receiver's core is busy".to_owned())?;
    require(busy >= 0.7, || format!("the receiver is {:.0} % busy", busy * 100.0))?;
    let matched = matched()
        .because(gro.key, "off", "on")
        .because("load of the receiver", format!("{:.0} %", busy * 100.0), "below 70 %")
        .fix(format!("ethtool -K {} gro on", nic.name), format!("ethtool -K {} gro off", nic.name));
    Ok(match nic.text("net.kind") {
        Ok(kind) if kind.value == "veth" => matched.advice("veth pairs have GRO off by default"),
        _ => matched,
    })
}

fn off_03(nic: &Nic<'_>) -> Ruling {
    let lro = nic.feature("large-receive-offload")?;
    require(lro.value, || "LRO is off".to_owned())?;
    if !nic.text("net.master_kind").is_ok_and(|kind| kind.value == "bridge") {
        forwarding(nic)?;
    }
    Ok(matched()
        .because(lro.key, "on", "off where packets are forwarded")
        .fix(format!("ethtool -K {} lro off", nic.name), format!("ethtool -K {} lro on", nic.name))
        .advice("leave GRO on: it is safe to forward"))
}

fn forwarding(nic: &Nic<'_>) -> Result<(), NoMatch> {
    let forwards = nic.host.forwards().suspect(|| "LRO is on; it matters on a host that forwards".to_owned())?;
    require(forwards, || "LRO is on, and this host does not forward".to_owned())
}
