//! Options of the server: what it refuses, when it gives up, and how it leaves.

use linerate_interop::{
    Control, Pairing, Process, RawClient, Report, Server, Signal, TIMEOUT, each_case, free_port,
    listens, original, ours, ours_only, run_pair, wait_until, words,
};

#[test]
fn one_off_serves_one_test_and_leaves() {
    each_case(&Pairing::ALL, |pairing| {
        let server = Server::start(pairing.server(), &["-1"]);
        let port = server.port;
        server.run(pairing.client(), &["-n", "1M"]).expect_clean();
        server.finish().expect_clean();
        assert!(!listens(port));
    });
}

#[test]
fn a_server_numbers_its_tests() {
    let server = Server::start(ours(), &[]);
    for client in [ours(), original(), ours()] {
        server.run(client, &["-n", "64K"]).expect_clean();
    }

    server.process.signal(Signal::Terminate);
    let banner = |number| format!("Server listening on {} (test #{number})", server.port);
    let banners = [banner(1), banner(2), banner(3), banner(4)];
    let server = server.finish();

    for banner in &banners {
        server.expect_stdout(banner);
    }
}

#[test]
fn second_client_is_refused_as_busy() {
    each_case(&Pairing::ALL, |pairing| {
        let server = Server::start(pairing.server(), &["-1"]);
        let first = server.client(
            pairing.client(),
            "127.0.0.1",
            &["-t", "2", "-i", "0.1", "--forceflush", "-b", "5M"],
        );
        first.wait_for_stdout("/sec", 1);

        let second = server.run(pairing.client(), &["-t", "1"]);
        second
            .expect_code(1)
            .expect_stderr("the server is busy running a test. try again later");
        first.finish().expect_clean();
        server.finish().expect_clean();
    });
}

#[test]
fn bitrate_limit_refuses_a_faster_test() {
    each_case(&Pairing::ALL, |pairing| {
        let limit = ["--server-bitrate-limit", "10M"];
        let options = ["-t", "1", "-b", "20M"];
        let refused = run_pair((pairing.server(), &limit), (pairing.client(), &options));
        refused.client.expect_code(1);
        refused
            .server
            .expect_stderr("total required bandwidth is larger than server limit");

        let options = ["-t", "1", "-b", "4M", "-P", "2"];
        run_pair((pairing.server(), &limit), (pairing.client(), &options))
            .client
            .expect_clean();
    });
}

#[test]
fn bitrate_limit_ends_a_test_that_exceeds_it() {
    each_case(&Pairing::ALL, |pairing| {
        let limit = ["--server-bitrate-limit", "10M/1"];
        let pair = run_pair(
            (pairing.server(), &limit),
            (pairing.client(), &["-t", "20"]),
        );
        pair.client.expect_code(1);
        pair.server
            .expect_stderr("total required bandwidth is larger than server limit");
    });
}

#[test]
fn timed_idle_timeout_ends_a_one_off_server() {
    let started = Server::start(ours(), &["-1", "--idle-timeout", "1"]);
    let server = started.finish();
    server.expect_clean();
    assert!(
        (0.9..3.0).contains(&server.elapsed.as_secs_f64()),
        "{server:?}"
    );
}

/// The original waits for a silent client without an end. Here others are served after five
/// seconds.
#[test]
fn strangers_that_connect_and_are_silent_do_not_end_a_one_off_server() {
    let mut server = Server::start(ours_only!("it serves no other client meanwhile"), &["-1"]);
    let mut silent = Control::connect(server.port);
    let mut named = RawClient::named(server.port).control;
    for stranger in [&mut silent, &mut named] {
        stranger.drain();
    }

    assert!(!server.process.has_ended(), "{server:?}");
    let mut accepted = RawClient::accepted(
        server.port,
        r#"{"tcp":true,"time":1,"parallel":1,"client_version":"3.12"}"#,
    );
    accepted.control.drain();
    assert!(!server.process.has_ended(), "{server:?}");

    server.run(original(), &["-n", "64K"]).expect_clean();
    server.finish().expect_code(0);
}

#[test]
fn idle_timeout_leaves_a_lasting_server_in_service() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &["-V", "--idle-timeout", "1"]);
    // With -V the server repeats its version whenever it opens its listener again.
    server.process.wait_for_stdout("iperf 3.", 2);
    assert!(
        wait_until(TIMEOUT, || listens(server.port)),
        "the server listens again"
    );
    server.run(original(), &["-n", "64K"]).expect_clean();
}

#[test]
fn a_frozen_client_runs_into_the_receive_timeout() {
    each_case(&Pairing::ALL, |pairing| {
        let server = Server::start(pairing.server(), &["-1", "--rcv-timeout", "500"]);
        let client = server.client(
            pairing.client(),
            "127.0.0.1",
            &["-t", "20", "-i", "0.1", "--forceflush", "-b", "5M"],
        );
        client.wait_for_stdout("/sec", 1);
        client.signal(Signal::Stop);
        server
            .finish()
            .expect_stderr("iperf3: error - idle timeout for receiving data");
        client.signal(Signal::Continue);
        client.finish().expect_code(1);
    });
}

#[test]
fn a_client_that_receives_nothing_runs_into_its_own_timeout() {
    each_case(&Pairing::ALL, |pairing| {
        let server = Server::start(pairing.server(), &["-1"]);
        let options = words("-t 20 -i 0.1 --forceflush -b 5M -R --rcv-timeout 500");
        let client = server.client(pairing.client(), "127.0.0.1", &options);
        client.wait_for_stdout("/sec", 1);
        server.process.signal(Signal::Stop);
        client
            .finish()
            .expect_code(1)
            .expect_stderr("idle timeout for receiving data");
        server.process.signal(Signal::Continue);
    });
}

#[test]
fn a_port_in_use_is_an_error() {
    for program in [ours(), original()] {
        let server = Server::start(original(), &[]);
        let port = server.port.to_string();
        let second = Process::start(program.command(["-s", "-1", "-p", &port])).finish();
        second
            .expect_code(1)
            .expect_stderr("unable to start listener for connections: Address already in use");
    }
}

#[test]
fn missing_server_is_an_error_in_the_json_report() {
    let port = free_port().to_string();
    let text = Process::start(ours().command(["-c", "127.0.0.1", "-p", &port])).finish();
    text.expect_code(1)
        .expect_stderr("iperf3: error - unable to connect to server")
        .expect_stderr("Connection refused");

    let json = Process::start(ours().command(["-c", "127.0.0.1", "-p", &port, "-J"])).finish();
    assert_eq!(json.stderr, "");
    let report = Report::parse(&json.stdout);
    assert!(
        report
            .text("/error")
            .starts_with("unable to connect to server")
    );
    assert!(report.array("/intervals").is_empty());

    // 3.12 forgets the exit code of a failed test with -J.
    json.expect_code(i32::from(!ours().is_original()));
}

/// A server that does not refuse what it should would let this test wait for 30 s, hence the limit
/// on time.
#[test]
fn max_duration_refuses_longer_and_endless_tests() {
    let program = ours_only!("it has what 3.12 lacks");
    for options in [["-t", "5"], ["-n", "1M"]] {
        let pair = run_pair(
            (program, &["--server-max-duration", "2"]),
            (original(), &options),
        );
        pair.client.expect_code(1);
        pair.server.expect_stderr(
            "client's requested duration exceeds the server's maximum permitted limit",
        );

        let pair = run_pair(
            (program, &["--server-max-duration", "2"]),
            (program, &options),
        );
        pair.client
            .expect_code(1)
            .expect_stderr("client's requested duration exceeds the server's maximum");
    }

    run_pair(
        (program, &["--server-max-duration", "2"]),
        (original(), &["-t", "1", "-b", "5M"]),
    )
    .client
    .expect_clean();
}
