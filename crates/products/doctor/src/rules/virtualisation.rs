//! Virtual NICs and virtual switches.

use super::measurement::under_load;
use super::offload::feature;
use crate::rules::prelude::*;

rules! {
    Nic virt_01,
    Scope virt_02,
    Host virt_03,
    Host virt_04,
}

/// Features of a virtio NIC whose back end has no offloads. The fixed receive checksum identifies
/// virtio.
const MARKS: [(&str, &str); 5] = [
    ("tx-checksum-ip-generic", "off [fixed]"),
    ("tx-scatter-gather", "off [fixed]"),
    ("tx-tcp-segmentation", "off [fixed]"),
    ("generic-segmentation-offload", "off [requested on]"),
    ("rx-checksumming", "on [fixed]"),
];

fn virt_01(nic: &Nic<'_>) -> Ruling {
    let mut matched = matched();
    // Back ends of QEMU without vnet_hdr, such as `socket`, have exactly these values.
    for (name, expected) in MARKS {
        let found = nic.text(&format!("feat.{name}"))?;
        require(found == expected, format!("{name} is {found}"))?;
        matched = matched.read_text(&found, "offered by the host");
    }

    Ok(matched.advice(
        "on the host: enable csum and host_tso4/host_tso6 of the virtio device (vhost), or \
         userspace TSO of Open vSwitch: ovs-vsctl set Open_vSwitch . \
         other_config:userspace-tso-enable=true, then restart it",
    ))
}

/// One host has nothing to differ from; a comparison uses [`receive_aggregation_differs`].
fn virt_02(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let nics = scope
        .nics()
        .filter(|nic| nic.text("feat.rx-gro-hw").is_ok());
    nics.map(|nic| {
        (
            nic.subject(),
            unknown("a second host", "compare two hosts with --diff"),
        )
    })
    .collect()
}

/// VIRT-02 on two interfaces that were mapped onto each other.
pub(crate) fn receive_aggregation_differs(a: &Nic<'_>, b: &Nic<'_>) -> Ruling {
    let left = a.text("feat.rx-gro-hw")?;
    let right = b.text("feat.rx-gro-hw")?;
    let on = |words: &str| words.starts_with("on");
    require(on(left.value) != on(right.value), format!("{left} on both"))?;

    let active = if on(left.value) { a } else { b };
    let matched: Match = matched()
        .because(
            format!("{}: {}", a.host.name(), left.key),
            left.value,
            "equal on both",
        )
        .because(
            format!("{}: {}", b.host.name(), right.key),
            right.value,
            "equal on both",
        )
        .advice("align kernel and back end, or switch it off where it is on and compare again");
    Ok(matched.fix_of_tokens(feature(active, "rx-gro-hw", ["off", "on"])))
}

fn virt_03(host: &Host<'_>) -> Ruling {
    under_load(host)?;
    let max = host.number("ovs.pmd.kpps_max")?;
    let median = host.number("ovs.pmd.kpps_median")?;
    if max > 2.0 * median.value {
        return Ok(matched()
            .read(&max, format!("at most twice the median of {median} kpps"))
            .advice("ovs-appctl dpif-netdev/pmd-rxq-rebalance assigns the queues again"));
    }

    let node = host.number("ovs.vm_node")?;
    let nodes = host.text("ovs.pmd.numa_nodes")?;
    require(
        !nodes
            .value
            .split(", ")
            .any(|pmd| pmd == node.value.to_string()),
        "a thread polls on the guest's node",
    )?;

    Ok(matched()
        .read_text(&nodes, format!("node {node} of the guest among them"))
        .advice("add CPUs of that node to pmd-cpu-mask"))
}

fn virt_04(host: &Host<'_>) -> Ruling {
    under_load(host)?;
    let rate = host.number("ovs.pmd.kpps_max")?;
    require(rate > 10.0, "little load")?;

    let hits = host.number("ovs.pmd.emc_mean")?;
    require(hits < 50.0, format!("{hits:.0} % hits"))?;
    let cycles = host.number("ovs.pmd.cyclepp_median")?;
    if cycles <= 3000.0 {
        return clear(format!("{cycles} cycles per packet"));
    }

    Ok(matched()
        .read(&hits, "at least 50 %")
        .read(&cycles, "at most 3000 cycles per packet")
        .advice("ovs-vsctl set Open_vSwitch . other_config:smc-enable=true, if it is not set"))
}
