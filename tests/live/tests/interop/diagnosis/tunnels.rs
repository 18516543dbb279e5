//! Goal: what a tunnel is and costs. Method: VXLAN over a veth pair whose MTU and offloads are set.

use linerate_interop::namespaces::{CLIENT, DEVICE, Net, SERVER, inside, run};
use linerate_interop::{Process, ours};
use serde_json::Value;

/// Addresses inside the tunnel.
const INNER: [&str; 2] = ["10.98.0.1", "10.98.0.2"];

/// A pair with a VXLAN whose packets are `mtu` bytes.
fn tunnel(mtu: u32) -> Option<Net> {
    let net = Net::new()?;
    let ends = [(&net.a, CLIENT, SERVER), (&net.b, SERVER, CLIENT)];
    for ((namespace, local, remote), inner) in ends.into_iter().zip(INNER) {
        run(&format!(
            "ip -n {namespace} link add vx0 type vxlan id 7 local {local} remote {remote} \
             dstport 4789"
        ));
        run(&format!("ip -n {namespace} addr add {inner}/24 dev vx0"));
        run(&format!("ip -n {namespace} link set vx0 mtu {mtu} up"));
    }
    Some(net)
}

fn finding<'a>(report: &'a Value, id: &str) -> Option<&'a Value> {
    let findings = report["findings"].as_array()?;
    findings.iter().find(|finding| finding["id"] == id)
}

#[test]
fn ends_device_and_headers_of_a_tunnel_are_facts_and_its_mtu_is_judged() {
    let Some(net) = tunnel(1450) else { return };
    let facts = net.snapshot(&net.a, &["vx0"]);
    for (fact, value) in [
        ("local", Value::from(CLIENT)),
        ("remote", SERVER.into()),
        ("port", 4789.into()),
        ("below", DEVICE.into()),
        ("below_mtu", 1500.into()),
        ("overhead", 50.into()),
    ] {
        let found = &facts["facts"][format!("nic.vx0.tunnel.{fact}")]["v"];
        assert_eq!(*found, value, "{fact}");
    }
    // The device below is read with its features.
    let feature = format!("nic.{DEVICE}.feat.tx-udp_tnl-segmentation");
    assert!(facts["facts"][feature]["v"].is_string());

    let fits = net.doctor(&net.a, &["vx0"]);
    assert!(finding(&fits, "MTU-03").is_none(), "{fits:#}");
    run(&format!("ip -n {} link set vx0 mtu 1460", net.a));
    let report = net.doctor(&net.a, &["vx0"]);
    let found = finding(&report, "MTU-03").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(found["remedy"][0], "ip link set dev vx0 mtu 1450");
}

#[test]
fn timed_a_tunnel_over_a_device_without_its_offload_is_named() {
    let Some(net) = tunnel(1450) else { return };
    run(&format!(
        "ip netns exec {} ethtool -K {DEVICE} tx-udp_tnl-segmentation off \
         tx-udp_tnl-csum-segmentation off",
        net.a
    ));
    let server = net.server();
    let client = Process::start(inside(
        &net.a,
        ours().path(),
        &["iperf3", "-c", INNER[1], "-t", "4", "-J", "--lr-doctor"],
    ));
    let report = client.finish().expect_code(0).json();
    let diagnosis = &report["lr_doctor"];
    let found = finding(diagnosis, "TUN-01").unwrap_or_else(|| panic!("{diagnosis:#}"));
    assert_eq!(
        found["remedy"][0],
        format!("ethtool -K {DEVICE} tx-udp_tnl-segmentation on")
    );
    drop(server);
}
