//! `LINERATE_LOG` adds the events of the control threads to standard error, and nothing does
//! without it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Bytes that a client sends first: 36 characters and NUL.
const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";
/// The server's answer to an admitted client.
const PARAM_EXCHANGE: u8 = 9;

/// Starts a server, begins a test at it, ends it; returns what was written to standard error.
fn stderr_of_server(level: Option<&str>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command
        .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("LINERATE_LOG");

    if let Some(level) = level {
        command.env("LINERATE_LOG", level);
    }

    let mut server = command.spawn().expect("the program was just built");
    let mut client =
        TcpStream::connect(("127.0.0.1", port(&mut server))).expect("the server listens");
    client.write_all(COOKIE).expect("the server reads");

    let mut answer = [0];
    client
        .read_exact(&mut answer)
        .expect("the server admits the client");
    assert_eq!(answer, [PARAM_EXCHANGE]);
    server.kill().expect("it runs");

    let output = server.wait_with_output().expect("it was started");
    String::from_utf8(output.stderr).expect("our own texts are UTF-8")
}

/// The port in the first line of the log.
fn port(server: &mut Child) -> u16 {
    let mut line = String::new();
    let stdout = server.stdout.as_mut().expect("it is a pipe");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("a line of the log");

    let digits = line.rsplit(':').next().unwrap_or_default();
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no port in {line:?}"))
}

#[test]
fn debug_log_holds_the_steps_of_a_connection_in_order() {
    let log = stderr_of_server(Some("debug"));
    let mut rest = log.as_str();

    for event in [
        "Listening",
        "connection accepted",
        "dialect recognised",
        "admission decided",
        "state sent",
    ] {
        let found = rest
            .find(event)
            .unwrap_or_else(|| panic!("no {event:?} in order in {log}"));
        rest = &rest[found..];
    }

    assert!(
        log.contains("peer=127.0.0.1:") && !log.contains('\x1b'),
        "{log}"
    );
}

#[test]
fn standard_error_is_empty_without_the_variable_and_with_an_unknown_level() {
    assert_eq!(stderr_of_server(None), "");
    assert_eq!(stderr_of_server(Some("nonsense")), "");
}
