//! An agent over pipes: plan, preflight, one task between two addresses of this host, and every end
//! that leaves nothing.

use std::process::Command;
use std::time::Duration;

use linerate_interop::{
    FleetAgent, FleetRun, Process, Signal, free_port_run, listens, ours, wait_until,
};
use serde_json::{Value, json};

const HERE: &str = "127.0.0.2";
const THERE: &str = "127.0.0.3";
const TASK: &str = "000000000000000000000000000000a1";
/// A lease that no test outlives.
const LONG_LEASE_MS: u64 = 60_000;
/// 1 s is promised from the end of the input to the end of everything; the rest is for a busy
/// machine.
const GONE: Duration = Duration::from_secs(3);
const RATE_BPS: u64 = 80_000_000;

/// Two agents with a plan: a client at one address, a server at the other.
struct Hosts {
    run: FleetRun,
    client: FleetAgent,
    server: FleetAgent,
    client_port: u64,
    server_port: u64,
}

impl Hosts {
    fn planned(lease_ms: u64) -> Self {
        let run = FleetRun::new();
        let first_port = free_port_run(8);
        let (mut client, mut server) = (run.agent(HERE), run.agent(THERE));
        let client_port = client.plan(&[THERE], first_port, lease_ms);
        let server_port = server.plan(&[HERE], first_port + 4, lease_ms);

        Self {
            run,
            client,
            server,
            client_port,
            server_port,
        }
    }

    fn task(&self, role: &str, time_ms: u64) -> Value {
        json!({
            "task": TASK, "role": role, "peer": if role == "client" { THERE } else { HERE }, "port": self.server_port,
            "streams": 2, "time_ms": time_ms, "rate_bps": RATE_BPS,
        })
    }

    /// Arms both ends, and starts the round after this time. Returns the start on the monotonic
    /// clock.
    fn start(&mut self, round: u32, time_ms: u64, lead_ms: u64) -> u64 {
        let (client, server) = (self.task("client", time_ms), self.task("server", time_ms));
        self.server.arm(round, &server, &[HERE]);
        self.client.arm(round, &client, &[THERE]);

        let t0_ns = self.client.clock_ns() + lead_ms * 1_000_000;
        for agent in [&mut self.client, &mut self.server] {
            agent.send("go", &json!({ "round": round, "t0_ns": t0_ns }));
        }

        t0_ns
    }

    fn listens(&self) -> bool {
        [self.client_port, self.server_port]
            .iter()
            .any(|port| listens(u16::try_from(*port).expect("a port")))
    }

    /// Nothing of the run is left, soon.
    fn expect_gone(&self) {
        assert!(
            wait_until(GONE, || self.run.workers().is_empty()),
            "workers {:?}",
            self.run.workers()
        );
        assert!(wait_until(GONE, || !self.listens()), "a listener is left");
    }
}

#[test]
fn task_between_two_agents_runs_and_both_report_it() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    let t0_ns = hosts.start(1, 1_000, 500);
    let (client_end, client_record) = hosts.client.result(TASK);
    let (server_end, server_record) = hosts.server.result(TASK);

    for (end, record, name) in [
        (client_end, client_record, "client"),
        (server_end, server_record, "server"),
    ] {
        assert_eq!(end["outcome"], "done", "{name}: {end}");
        assert_eq!(end["planned_ns"], t0_ns, "{name}: {end}");
        // The rate for a second; the last blocks may be missing.
        let wanted = RATE_BPS / 8;
        let bytes = end["bytes"].as_u64().expect("bytes");
        assert!(
            (wanted * 7 / 10..=wanted * 11 / 10).contains(&bytes),
            "{name}: {bytes} of {wanted} bytes"
        );

        let record = record.unwrap_or_else(|| panic!("{name}: no record"));
        assert_eq!(
            (&record["schema"], &record["state"]),
            (&"linerate.run/1".into(), &"complete".into()),
            "{name}"
        );
        let series = record["trials"][0]["series"].as_array().map_or(0, Vec::len);
        assert!(series > 0, "{name}: no series");
    }

    assert_eq!(hosts.client.messages("started").len(), 1);
    hosts.client.send("cancel", &json!({}));
    hosts.server.send("cancel", &json!({}));

    hosts.server.wait_for("done");
    hosts.expect_gone();
}

#[test]
fn timed_data_begins_at_the_planned_time_on_a_quiet_host() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    let mut late_ns = Vec::new();

    for round in 1..=5 {
        let t0_ns = hosts.start(round, 200, 600);
        let before = usize::try_from(round - 1).expect("few rounds");
        let started = hosts.client.wait_for_nth("started", before);
        let at_ns = started["at_ns"].as_u64().expect("a time");
        assert!(
            at_ns + 10_000_000 > t0_ns,
            "round {round} begins {} ns early",
            t0_ns.saturating_sub(at_ns)
        );
        late_ns.push(at_ns.saturating_sub(t0_ns));
        hosts.client.wait_for_nth("result", before);
        hosts.server.wait_for_nth("result", before);
    }

    // A busy machine delays some of them.
    assert!(
        late_ns.iter().any(|late_ns| *late_ns <= 10_000_000),
        "{late_ns:?}"
    );
}

#[test]
fn end_of_the_input_in_a_test_leaves_no_process_and_no_listener() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    hosts.start(1, 20_000, 500);
    hosts.client.wait_for("started");
    assert!(
        hosts.run.workers().len() == 3 && hosts.listens(),
        "{:?}",
        hosts.run.workers()
    );
    hosts.client.close();
    hosts.server.close();
    hosts.expect_gone();
    assert!(wait_until(GONE, || hosts.client.has_ended()
        && hosts.server.has_ended()));
}

#[test]
fn workers_end_with_an_agent_that_is_killed() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    hosts.start(1, 20_000, 500);
    hosts.client.wait_for("started");
    hosts.client.signal(Signal::Kill);
    hosts.server.signal(Signal::Kill);
    hosts.expect_gone();
}

#[test]
fn test_whose_partner_vanished_is_reported_and_the_agent_goes_on() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    hosts.start(1, 20_000, 500);
    hosts.client.wait_for("started");
    hosts.server.signal(Signal::Kill);

    let (end, _) = hosts.client.result(TASK);
    assert_eq!(end["outcome"], "failed", "{end}");
    hosts.client.clock_ns();
}

#[test]
fn garbage_is_answered_by_fail_and_changes_nothing() {
    let run = FleetRun::new();
    let mut agent = run.agent(HERE);
    agent.wait_for("hello");
    agent.send_line(b"\xff\xfe{");
    agent.send_line(b"{\"v\":1,\"seq\":1,\"type\":\"dance\",\"body\":{}}");
    agent.send_line(&vec![b'x'; 300 << 10]);
    agent.send("go", &json!({ "round": 1, "t0_ns": 1 }));

    let codes = wait_until(GONE, || agent.messages("fail").len() == 4);
    let fails = agent.messages("fail");
    assert!(codes, "{fails:?}");

    let codes: Vec<&str> = fails
        .iter()
        .filter_map(|fail| fail["code"].as_str())
        .collect();
    assert_eq!(codes, ["json", "type", "limit", "state"]);
    let port = agent.plan(&[THERE], free_port_run(4), LONG_LEASE_MS);
    assert!(listens(u16::try_from(port).expect("a port")));
}

#[test]
fn plan_with_an_address_of_another_host_is_refused() {
    let run = FleetRun::new();
    let mut agent = run.agent("192.0.2.1");
    let seq = agent.send(
        "plan",
        &json!({ "lease_ms": 5000, "addresses": [{ "path": "phys", "address": "192.0.2.1" }],
            "ports": { "first": 5201, "last": 5209 } }),
    );

    let fail = agent.wait_for("fail");
    assert_eq!(
        (fail["code"].as_str(), fail["seq"].as_u64()),
        (Some("failed"), Some(seq)),
        "{fail}"
    );
    assert!(
        fail["text"]
            .as_str()
            .is_some_and(|text| text.contains("192.0.2.1")),
        "{fail}"
    );
}

#[test]
fn expired_lease_aborts_the_test_and_ends_the_agent() {
    let mut hosts = Hosts::planned(3_000);
    hosts.start(1, 30_000, 500);
    hosts.client.wait_for("started");

    let (end, _) = hosts.client.result(TASK);
    assert_eq!(
        (&end["outcome"], &end["reason"]),
        (&"aborted".into(), &"lease".into()),
        "{end}"
    );
    hosts.client.wait_for("done");
    hosts.expect_gone();
    assert!(wait_until(GONE, || hosts.client.has_ended()
        && hosts.server.has_ended()));
}

#[test]
fn cancelled_round_ends_its_client_and_the_next_one_runs() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    hosts.start(1, 20_000, 500);
    hosts.client.wait_for("started");

    for agent in [&mut hosts.client, &mut hosts.server] {
        agent.send("cancel", &json!({ "round": 1 }));
    }

    assert_eq!(hosts.client.wait_for("done")["round"], 1);
    hosts.server.wait_for("done");
    hosts.start(2, 200, 500);

    let (end, second) = (
        hosts.client.wait_for_nth("result", 0),
        hosts.client.wait_for_nth("result", 1),
    );
    assert_eq!(
        (&end["end"]["outcome"], &second["end"]["outcome"]),
        (&"aborted".into(), &"done".into()),
        "{second}"
    );
}

#[test]
fn address_that_is_not_admitted_gets_no_test() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    let (client, server) = (hosts.task("client", 500), hosts.task("server", 500));
    hosts.server.arm(1, &server, &[]);
    hosts.client.arm(1, &client, &[]);

    let t0_ns = hosts.client.clock_ns() + 300_000_000;
    hosts
        .client
        .send("go", &json!({ "round": 1, "t0_ns": t0_ns }));
    let (end, _) = hosts.client.result(TASK);
    assert_eq!(end["outcome"], "failed", "{end}");
}

#[test]
fn preflight_reports_open_and_closed_ports_with_their_route() {
    let mut hosts = Hosts::planned(LONG_LEASE_MS);
    let closed = free_port_run(1);
    let peers =
        json!([{ "peer": THERE, "port": hosts.server_port }, { "peer": THERE, "port": closed }]);
    hosts.client.send(
        "preflight",
        &json!({ "partners": [THERE], "peers": peers, "has_facts": true }),
    );

    let report = hosts.client.wait_for_nth("preflighted", 1);
    let [open, refused] = report["peers"].as_array().expect("a list").as_slice() else {
        panic!("{report}")
    };
    assert_eq!(
        (&open["outcome"], &open["device"]),
        (&"ok".into(), &"lo".into()),
        "{open}"
    );
    assert!(
        open["rtt_ns"].as_u64() > Some(0) && open["mtu_bytes"].as_u64() > Some(1000),
        "{open}"
    );
    assert_eq!(refused["outcome"], "refused", "{refused}");
    assert_eq!(report["facts"]["schema"], "linerate.snapshot/1", "{report}");
}

#[test]
fn agent_without_pipes_is_refused_with_what_to_do() {
    let mut command = Command::new(ours().path());
    command.args(["fleet", "agent", "--stdio"]);
    // Its input is /dev/null.
    let refused = Process::start(command).finish();
    refused
        .expect_code(2)
        .expect_stderr("wait for standard input: Operation not permitted")
        .expect_stderr("--bus");
}
