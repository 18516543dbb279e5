//! Clients of iperf3 that agree on a UDP test and open none of its streams.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use linerate_interop::{Attacker, frame, fresh_cookie, state};

use super::attacked::{AttackedServer, serve_stock_client};

const CLIENTS: usize = 30;
const PARAMETERS: &str =
    r#"{"udp":true,"time":10,"parallel":1,"len":1000,"bandwidth":1000000,"client_version":"3.12"}"#;

/// A client whose test is accepted, and that awaits its turn or does not use it.
fn client(attacker: &Attacker<'_>) -> Option<TcpStream> {
    let mut control = attacker.connect()?;
    control.write_all(&fresh_cookie()).ok()?;
    let mut answer = [0];
    control.read_exact(&mut answer).ok()?;

    if answer != [state::PARAM_EXCHANGE] {
        return None;
    }

    control.write_all(&frame(PARAMETERS)).ok()?;
    Some(control)
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let began = Instant::now();
    let clients: Vec<TcpStream> = (0..CLIENTS).map_while(|_| client(attacker)).collect();
    while attacker.goes_on_since(began) && !clients.is_empty() {
        attacker.pause(Duration::from_millis(200));
    }
}

/// A turn of each attacker's address, at most.
const SERVED_WITHIN: Duration = Duration::from_secs(8);

#[test]
fn timed_clients_that_open_no_udp_streams_delay_those_of_other_addresses_by_a_turn() {
    let server = AttackedServer::start(&["--allow-split-address"]);
    server.withstands_while(&[attack], |service| {
        serve_stock_client(service, &["-u", "-n", "64K"], SERVED_WITHIN);
    });
}
