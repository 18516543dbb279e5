//! Work that clients cause and that takes long is done beside the thread that answers: others do
//! not wait for it.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use linerate_interop::{
    Control, Keys, RawClient, RawNative, Received, Service, Signal, TIMEOUT, frame, fresh_cookie,
    hello, original, ours_only, state, wait_until,
};

/// Clients that send long results at the same moment.
const CLIENTS: usize = 60;
/// The longest results a server accepts of a test with few streams.
const RESULTS_BYTES: usize = 1 << 20;

/// A test that has moved nothing and whose results are awaited.
fn awaiting_results(port: u16) -> RawClient {
    let parameters = r#"{"tcp":true,"time":60,"parallel":1,"len":1000,"client_version":"3.20"}"#;
    let mut client = RawClient::running(port, parameters);
    client.end();
    client
}

/// An object whose text is as long as a server accepts.
fn long_results() -> String {
    let member = r#""\u0061":0,"#;
    let mut text = format!(
        "{{{}\"a\":0}}",
        member.repeat(RESULTS_BYTES / member.len() - 1)
    );
    text.extend(std::iter::repeat_n(' ', RESULTS_BYTES - text.len()));
    text
}

/// Received bytes that sockets of this local port have not read (proc(5), `/proc/net/tcp`).
fn unread_bytes(port: u16) -> u64 {
    let suffix = format!(":{port:04X}");
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());

    let unread = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let queue = fields.get(4)?.split(':').nth(1)?;
        fields
            .get(1)?
            .ends_with(&suffix)
            .then(|| u64::from_str_radix(queue, 16).ok())?
    };
    tables
        .iter()
        .flat_map(|table| table.lines())
        .filter_map(unread)
        .sum()
}

#[test]
fn long_results_of_many_clients_do_not_hold_up_another_client() {
    ours_only!("the original serves one client");
    let service = Service::start(&["--limit", "address:tests=200"]);
    let mut flood: Vec<_> = (0..CLIENTS)
        .map(|_| awaiting_results(service.port))
        .collect();
    let results = frame(&long_results());
    let (last, first) = results.split_last().expect("a megabyte");

    for client in &mut flood {
        assert!(client.control.send(first));
    }

    assert!(
        wait_until(TIMEOUT, || unread_bytes(service.port) == 0),
        "{service:?}"
    );
    // All of them have ended their results when the server looks again.
    service.process.signal(Signal::Stop);

    for client in &mut flood {
        assert!(client.control.send(&[*last]));
    }

    let mut probe = Control::connect(service.port);
    probe.send(&fresh_cookie());
    service.process.signal(Signal::Continue);
    probe.expect(state::PARAM_EXCHANGE);

    let last_of_flood = flood.last_mut().expect("clients");
    let without_response = last_of_flood
        .control
        .response_within(Duration::from_millis(1));
    assert_eq!(
        without_response,
        Received::Silence,
        "the probe waited for all of the flood"
    );

    for client in &mut flood {
        assert_ne!(
            client.control.response(),
            Received::Silence,
            "long results are answered too"
        );
    }

    service
        .client(original(), &["-n", "64K"])
        .finish()
        .expect_clean();
}

/// Logins are checked with a file of users that is a pipe without a writer, so a check blocks until
/// the test writes to it.
fn with_users_in_a_pipe() -> (Keys, Service, Vec<u8>) {
    let keys = Keys::make();
    let service = keys.service(&[]);
    let users = keys.path("users");
    let text = fs::read(&users).expect("a file of users");

    fs::remove_file(&users).expect("the folder is writable");
    let made = Command::new("mkfifo")
        .arg(&users)
        .status()
        .expect("mkfifo runs");
    assert!(made.success());

    (keys, service, text)
}

#[test]
fn a_login_that_is_being_checked_does_not_hold_up_another_client() {
    ours_only!("the original serves one client");
    let (keys, service, text) = with_users_in_a_pipe();
    let token = keys.token("mario", "rossi", 0, "oaep");
    let mut waiting = RawClient::named(service.port).control;
    waiting.send(&frame(&format!(
        r#"{{"tcp":true,"time":1,"authtoken":"{token}"}}"#
    )));

    for _ in 0..3 {
        let _probe = RawClient::named(service.port);
    }

    assert_eq!(
        waiting.response_within(Duration::from_millis(1)),
        Received::Silence
    );
    fs::write(keys.path("users"), text).expect("the check reads the pipe");
    assert_eq!(
        waiting.response_within(TIMEOUT),
        Received::Byte(state::CREATE_STREAMS),
        "{service:?}"
    );
}

#[test]
fn a_native_login_that_is_being_checked_does_not_hold_up_another_client() {
    ours_only!("the original has no native tests");
    let (keys, service, text) = with_users_in_a_pipe();
    let mut waiting = RawNative::connect((Ipv4Addr::LOCALHOST, service.port));
    let mut login = hello();
    login["user"] = "mario".into();
    login["password"] = "rossi".into();
    waiting.send(login);

    for _ in 0..3 {
        let _probe = RawClient::named(service.port);
        let _native_probe = RawNative::connect((Ipv4Addr::LOCALHOST, service.port));
    }

    fs::write(keys.path("users"), text).expect("the check reads the pipe");
    waiting.expect("welcome");
}
