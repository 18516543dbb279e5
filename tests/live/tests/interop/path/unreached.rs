//! Goal: a server that cannot be reached, or cannot start, has an error with what failed, on which
//! object, and what to try. Method: a port on which nothing listens, link-local addresses without a
//! device, keys with a passphrase.

use std::process::{Command, Stdio};

use linerate_interop::{TIMEOUT, each_case, free_port, linerate, skip};

#[test]
fn closed_port_comes_with_the_program_that_should_listen_and_its_ports() {
    let port = free_port();
    let rows = [
        (
            format!("test 127.0.0.1:{port}"),
            format!(
                "127.0.0.1:{port}: Connection refused; is `linerate serve` (or `iperf3 -s`) \
                 running there, and are TCP and UDP port {port} open?"
            ),
        ),
        (
            format!("sweep 127.0.0.1 -p {port}"),
            format!(
                "Connection refused; is `linerate serve` (or `iperf3 -s`) running there, and are \
                 TCP and UDP port {port} open?"
            ),
        ),
        (
            format!("http lab http://127.0.0.1:{port}/ --yes"),
            format!(
                "Connection refused; is `linerate http serve` (or another server) running there, \
                 and is TCP port {port} open?"
            ),
        ),
    ];
    each_case(&rows, |(line, expected)| {
        linerate(line)
            .finish_within(TIMEOUT)
            .expect_code(4)
            .expect_stderr(expected);
    });
}

#[test]
fn link_local_address_without_a_device_names_the_form_with_one() {
    let rows = [
        ("test fe80::1", 4),
        ("test 127.0.0.1 --control-via fe80::1", 4),
        ("sweep fe80::1", 4),
        ("http load http://[fe80::1]:8080/", 4),
        ("serve --bind fe80::1", 1),
        ("http serve --bind [fe80::1]:8099", 1),
    ];
    each_case(&rows, |(line, code)| {
        linerate(line)
            .finish_within(TIMEOUT)
            .expect_code(*code)
            .expect_stderr("fe80::1%eth0");
    });
}

/// With its device the address is one like any other: nothing has this address, which is another
/// failure.
#[test]
fn link_local_address_with_a_device_is_read_in_urls() {
    let finished =
        linerate("http load http://[fe80::1%25lo]:8080/ --timeout 1s").finish_within(TIMEOUT);
    finished
        .expect_code(4)
        .expect_stderr("cannot connect to [fe80::1%1]:8080");
    assert!(
        !finished.stderr.contains("Invalid argument"),
        "{finished:?}"
    );
}

#[test]
fn key_with_a_passphrase_is_named_as_such_with_the_way_to_remove_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();

    let make = |line: &str, name: &str| {
        let words = line.split_whitespace().chain(["-out"]);
        let status = Command::new("openssl")
            .args(words)
            .arg(path(name))
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let is_made = make(
        "genpkey -algorithm rsa -pkeyopt rsa_keygen_bits:2048 -aes256 -pass pass:secret",
        "rsa",
    ) && make(
        "genpkey -algorithm ed25519 -aes256 -pass pass:secret",
        "host",
    );
    if !is_made {
        return skip("no openssl that makes such keys");
    }

    std::fs::write(path("users"), "rossi,0\n").expect("written");
    let rows = [
        format!(
            "serve --private-key {} --users {}",
            path("rsa"),
            path("users")
        ),
        format!("serve --host-key {}", path("host")),
        format!(
            "iperf3 -s --rsa-private-key-path {} --authorized-users-path {}",
            path("rsa"),
            path("users")
        ),
    ];
    each_case(&rows, |line| {
        let finished = linerate(&format!("{line} --port {}", free_port())).finish_within(TIMEOUT);
        finished
            .expect_stderr("passphrase")
            .expect_stderr("openssl pkey -in");
        assert_ne!(finished.code(), Some(0), "{finished:?}");
    });
}
