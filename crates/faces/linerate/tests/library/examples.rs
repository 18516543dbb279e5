//! The examples run to their end against a server of their own.

#[path = "../../examples/client.rs"]
#[allow(dead_code, reason = "the test has no command line")]
mod client;
#[path = "../../examples/diagnose.rs"]
mod diagnose;
#[path = "../../examples/server.rs"]
mod server;
#[path = "../../examples/sweep.rs"]
#[allow(dead_code, reason = "the test has no command line")]
mod sweep;

#[test]
fn client_example_reports_what_the_server_received() {
    client::test_loopback().expect("a test over loopback");
}

#[test]
fn server_example_serves_one_client_and_stops() {
    server::main().expect("a test over loopback");
}

#[test]
fn diagnose_example_applies_every_rule() {
    diagnose::main().expect("this host can be read");
}

#[test]
fn sweep_example_compares_numbers_of_streams() {
    sweep::sweep_loopback().expect("tests over loopback");
}
