//! UDP hellos that reach no server: the port is closed between two tests or streams, or the
//! datagram is lost.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use linerate_interop::{Control, Process, TIMEOUT, ours, ours_only, state, wait_until};

#[test]
fn a_refused_udp_hello_is_repeated() {
    ours_only!("the original gives up");
    let (listener, port) = Control::listen();

    let _client = Process::start(ours().command([
        "-c",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-u",
        "-t",
        "1",
    ]));
    let (mut control, _) = Control::parametrised(&listener);
    let before = refused_datagrams();

    control.send(&[state::CREATE_STREAMS]);
    assert!(
        wait_until(TIMEOUT, || refused_datagrams() > before),
        "the first hello is refused"
    );
    let socket = UdpSocket::bind(("127.0.0.1", port)).expect("the port is free");
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a socket has time-outs");

    let (len, _) = socket
        .recv_from(&mut [0; 64])
        .expect("the hello is repeated");
    assert_eq!(len, 4);
}

#[test]
fn a_lost_udp_hello_is_repeated() {
    ours_only!("the original waits for 30 s and gives up");
    let (listener, port) = Control::listen();
    let socket = UdpSocket::bind(("127.0.0.1", port)).expect("the port is free");
    socket
        .set_read_timeout(Some(TIMEOUT))
        .expect("a socket has time-outs");

    let _client = Process::start(ours().command([
        "-c",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-u",
        "-t",
        "1",
    ]));
    let (mut control, _) = Control::parametrised(&listener);
    control.send(&[state::CREATE_STREAMS]);

    for number in ["first", "second"] {
        let (len, _) = socket
            .recv_from(&mut [0; 64])
            .unwrap_or_else(|error| panic!("the {number} hello: {error}"));
        assert_eq!(len, 4);
    }
}

/// UDP datagrams to closed ports of this host (`NoPorts` of proc_net_snmp(5)).
fn refused_datagrams() -> u64 {
    let table = fs::read_to_string("/proc/net/snmp").expect("the kernel counts");
    let mut lines = table.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let place = lines
        .next()
        .and_then(|names| names.split(' ').position(|name| name == "NoPorts"));
    let value = lines
        .next()
        .zip(place)
        .and_then(|(values, place)| values.split(' ').nth(place));

    value
        .and_then(|value| value.parse().ok())
        .expect("a number")
}
