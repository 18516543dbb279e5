//! Goal: the ceiling of an experiment is that of the segments and frames the path really has,
//! whatever the adapters' packets would hold. Method: one short cell between two namespaces on
//! whose routes segments are made smaller, or whose traffic goes over VLAN devices; the record is
//! compared with the arithmetic.

use linerate_interop::namespaces::{CLIENT, DEVICE, Net, SERVER, run, try_run};
use linerate_interop::{HttpLab, HttpStudy, unsupported};
use serde_json::Value;

/// Head and body of the answers of the cell, 4 connections with 1 KiB.
const ANSWER_BYTES: f64 = 118.0 + 1024.0;
const LINE_RATE_BPS: f64 = 10e9;
/// Frame, IP, TCP and timestamps around a segment.
const HEADERS_BYTES: f64 = 90.0;

/// Most responses per second when each takes this number of segments of this overhead.
fn ceiling(study: &HttpStudy, segments: f64, overhead_bytes: f64) -> f64 {
    assert_eq!(
        study.json["client"]["link_bps"],
        Value::Null,
        "the speed of a veth is a constant: {study:?}"
    );
    LINE_RATE_BPS / 8.0 / (ANSWER_BYTES + segments * overhead_bytes)
}

#[track_caller]
fn expect_ceiling(name: &str, study: &HttpStudy, expected: f64) {
    let found = study.cell("matrix", 1024, 4)["ceiling_per_s"].as_f64();
    assert!(
        found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-6),
        "{name}: {found:?}, not {expected}: {study:?}"
    );
}

fn mss<'a>(study: &'a HttpStudy, end: &str) -> &'a Value {
    &study.cell("matrix", 1024, 4)["runs"][0][end]["mss_bytes"]
}

/// Changes the route of one end of the pair.
fn route(namespace: &str, address: &str, words: &str) {
    run(&format!(
        "ip -n {namespace} route replace 10.99.0.0/24 dev {DEVICE} src {address} {words}"
    ));
}

/// Changes at the client and at the server, whether there is an agent, and what follows:
/// segments of an answer, and what each end knows of them.
struct Row {
    name: &'static str,
    client: &'static str,
    server: &'static str,
    has_agent: bool,
    segments: f64,
    of_client: Option<u64>,
    of_server: Option<u64>,
}

#[test]
fn segments_smaller_than_the_mtu_lower_the_ceiling() {
    let usual = Row {
        name: "an answer fits into one segment",
        client: "",
        server: "",
        has_agent: true,
        segments: 1.0,
        of_client: Some(1448),
        of_server: Some(1448),
    };
    let rows = [
        Row {
            name: "the client announces less",
            client: "advmss 1000",
            segments: 2.0,
            of_client: Some(988),
            of_server: Some(988),
            ..usual
        },
        Row {
            name: "the client announces less, and the server is not asked",
            client: "advmss 1000",
            has_agent: false,
            segments: 2.0,
            of_client: Some(988),
            of_server: None,
            ..usual
        },
        Row {
            name: "the server's path carries less, which only the server knows",
            server: "mtu 1040",
            segments: 2.0,
            of_server: Some(988),
            ..usual
        },
        usual,
    ];

    let Some(net) = Net::new() else { return };
    for row in &rows {
        let name = row.name;
        route(&net.a, CLIENT, row.client);
        route(&net.b, SERVER, row.server);

        let lab = HttpLab::in_net(
            &net,
            if row.has_agent {
                &[]
            } else {
                &["--no-control"]
            },
        );
        let (plan, directory) = (lab.plan_of_one_cell("plan.toml", "4"), lab.path("kept"));
        let words = [
            "lab",
            "--phases",
            "2",
            &lab.url,
            &plan,
            "--out",
            &directory,
            "--json",
            "--yes",
            "--line-rate",
            "10G",
        ];
        let study = HttpStudy::of(lab.run(&words));
        expect_ceiling(name, &study, ceiling(&study, row.segments, HEADERS_BYTES));
        assert_eq!(
            mss(&study, "client").as_u64(),
            row.of_client,
            "{name}: {study:?}"
        );
        assert_eq!(
            mss(&study, "server").as_u64(),
            row.of_server,
            "{name}: {study:?}"
        );

        let again = HttpStudy::of(lab.run(&[
            "lab", "--phases", "2", "--resume", &directory, "--json", "--yes",
        ]));
        expect_ceiling(name, &again, ceiling(&again, row.segments, HEADERS_BYTES));
    }
}

#[test]
fn the_tag_of_a_vlan_is_a_part_of_every_frame() {
    const SERVER_OF_VLAN: &str = "10.99.7.2";

    let Some(net) = Net::new() else { return };
    for (namespace, address) in [(&net.a, "10.99.7.1"), (&net.b, SERVER_OF_VLAN)] {
        if !try_run(&format!(
            "ip -n {namespace} link add link {DEVICE} name lr7 type vlan id 7"
        )) {
            return unsupported("this kernel has no VLAN devices");
        }

        run(&format!("ip -n {namespace} addr add {address}/24 dev lr7"));
        run(&format!("ip -n {namespace} link set lr7 up"));
    }

    let [client, server] = [&net.a, &net.b].map(|name| ["ip", "netns", "exec", name.as_str()]);
    let lab = HttpLab::start_by(&client, &server, SERVER_OF_VLAN, &[]);
    let study = lab.study(
        &["lab", "--phases", "2", "--line-rate", "10G"],
        &lab.plan_of_one_cell("plan.toml", "4"),
    );
    assert_eq!(study.json["client"]["is_vlan"], true, "{study:?}");
    assert_eq!(study.json["server"]["is_vlan"], true, "{study:?}");
    expect_ceiling("VLAN", &study, ceiling(&study, 1.0, HEADERS_BYTES + 4.0));
}
