//! Opening, naming, joining and ending connections on loopback, and resolving names.

mod common;

use std::net::SocketAddr;

use common::{V4, V6, accept_from, address, await_readable, listener, open, tcp_pair};
use linerate_sys::socket::{self, Connect, Family, Protocol};
use linerate_sys::stream_io;

#[test]
fn both_ends_name_each_other() {
    for local in [V4, V6] {
        let client = open(local, Protocol::Tcp);
        let server = accept_from(&client, local);

        let ends = |fd| {
            (
                socket::local_addr(fd).expect("local"),
                socket::peer_addr(fd).expect("peer"),
            )
        };
        let (here, there) = ends(&client);
        assert_eq!(ends(&server), (there, here));
        assert_eq!(socket::is_ipv4_socket(&client), local == V4);
    }
}

#[test]
fn accept_returns_none_without_a_connection() {
    let (fd, _) = listener(V4);
    assert!(socket::accept(&fd).expect("no error").is_none());
}

#[test]
fn accept_fails_on_what_is_no_listener() {
    let error = socket::accept(open(V4, Protocol::Tcp)).expect_err("not listening");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn accepted_and_opened_sockets_do_not_wait_and_do_not_leak_into_children() {
    let (client, server) = tcp_pair();
    for fd in [&client, &server] {
        let socket = socket2::SockRef::from(fd);
        assert!(socket.nonblocking().expect("get"));
        let number = std::os::fd::AsRawFd::as_raw_fd(fd);
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).expect("fdinfo");
        let flags = info
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .expect("flags")
            .trim();

        let close_on_exec = 0o2_000_000;
        assert_ne!(
            u32::from_str_radix(flags, 8).expect("octal") & close_on_exec,
            0,
            "{flags}"
        );
    }
}

#[test]
fn an_ipv4_peer_of_a_dual_stack_listener_is_shown_as_ipv4() {
    let fd = open("[::]:0", Protocol::Tcp);
    linerate_sys::sockopt::IPV6_V6ONLY
        .set(&fd, false)
        .expect("set");
    socket::bind(&fd, &address("[::]:0")).expect("bind");
    socket::listen(&fd, 1).expect("listen");

    let port = socket::local_addr(&fd).expect("address").port();
    let client = open(V4, Protocol::Tcp);
    socket::connect(&client, &address(&format!("127.0.0.1:{port}"))).expect("connect");
    await_readable(&fd);

    let (accepted, peer) = socket::accept(&fd)
        .expect("accept")
        .expect("the test waits");
    assert_eq!(peer, socket::local_addr(&client).expect("local"));
    assert!(peer.is_ipv4());
    assert_eq!(socket::peer_addr(&accepted).expect("peer"), peer);
    assert!(socket::is_ipv4_socket(&accepted), "its packets are IPv4");
    assert!(!socket::is_ipv4_socket(&fd), "the listener itself is not");
}

#[test]
fn a_refused_connection_names_operation_address_and_reason() {
    let (fd, server) = listener(V4);
    drop(fd);
    let client = open(V4, Protocol::Tcp);
    let error = match socket::connect(&client, &server) {
        Err(error) => error,
        Ok(_) => {
            common::await_writable(&client);
            socket::take_error(&client).expect_err("no listener")
        }
    };
    assert_eq!(error.operation, "connect");
    assert_eq!(error.text(), "Connection refused");
}

#[test]
fn a_pending_error_is_taken_once() {
    let (fd, server) = listener(V4);
    drop(fd);
    // A datagram to a closed port is answered by ICMP, which the socket keeps as pending error.
    let client = open(V4, Protocol::Udp);
    assert_eq!(
        socket::connect(&client, &server).expect("connect"),
        Connect::Done
    );
    linerate_sys::udp::send(&client, b"x").expect("send");
    await_readable(&client);

    let error = socket::take_error(&client).expect_err("refused");
    assert_eq!(
        error.to_string(),
        format!("connect {server}: Connection refused")
    );
    socket::take_error(&client).expect("taken");
}

#[test]
fn binding_a_taken_port_names_the_address() {
    let (_fd, taken) = listener(V4);
    let error = socket::bind(open(V4, Protocol::Tcp), &taken).expect_err("taken");
    assert_eq!(
        error.to_string(),
        format!("bind {taken}: Address already in use")
    );
}

#[test]
fn shutdown_write_ends_one_direction() {
    let (client, server) = tcp_pair();
    socket::shutdown_write(&client).expect("shutdown");
    await_readable(&server);
    assert_eq!(
        stream_io::recv(&server, &mut [0; 8]).expect("end of file"),
        0
    );
    assert_eq!(
        stream_io::send(&server, b"still").expect("other direction"),
        5
    );
    await_readable(&client);
    assert_eq!(stream_io::recv(&client, &mut [0; 8]).expect("recv"), 5);
}

#[test]
fn shutdown_both_ends_both_directions() {
    let (client, server) = tcp_pair();
    socket::shutdown_both(&client).expect("shutdown");
    assert_eq!(
        stream_io::recv(&client, &mut [0; 8]).expect("end of file"),
        0
    );
    assert_eq!(
        stream_io::send(&client, b"x").expect_err("closed").kind(),
        std::io::ErrorKind::BrokenPipe
    );
    await_readable(&server);
    assert_eq!(
        stream_io::recv(&server, &mut [0; 8]).expect("end of file"),
        0
    );

    let unconnected = socket::shutdown_both(open(V4, Protocol::Tcp)).expect_err("not connected");
    assert_eq!(unconnected.text(), "Transport endpoint is not connected");
}

#[test]
fn unmap_touches_mapped_addresses_only() {
    for (given, expected) in [
        ("[::ffff:192.0.2.1]:80", "192.0.2.1:80"),
        ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("[fe80::1%2]:80", "[fe80::1%2]:80"),
        ("[::1]:80", "[::1]:80"),
        ("192.0.2.1:80", "192.0.2.1:80"),
    ] {
        assert_eq!(socket::unmap(address(given)), address(expected), "{given}");
    }
}

#[test]
fn numeric_addresses_resolve_to_themselves_with_the_port() {
    for (host, expected) in [
        ("192.0.2.7", "192.0.2.7:5201"),
        ("2001:db8::7", "[2001:db8::7]:5201"),
    ] {
        assert_eq!(
            socket::resolve(host, 5201, None).expect(host),
            [address(expected)]
        );
    }
}

#[test]
fn an_ipv6_scope_is_kept_by_name_and_by_number() {
    // The loopback device is number 1 everywhere.
    for host in ["fe80::1%lo", "fe80::1%1"] {
        let found = socket::resolve(host, 9, None).expect(host);
        let [SocketAddr::V6(v6)] = found.as_slice() else {
            panic!("{host}: {found:?}")
        };
        assert_eq!(
            (v6.scope_id(), v6.port(), v6.ip().to_string().as_str()),
            (1, 9, "fe80::1")
        );
    }
}

#[test]
fn the_family_is_honoured() {
    assert!(
        socket::resolve("localhost", 1, Some(Family::V4))
            .expect("localhost")
            .iter()
            .all(SocketAddr::is_ipv4)
    );
    for (host, family) in [("::1", Family::V4), ("127.0.0.1", Family::V6)] {
        let error = socket::resolve(host, 1, Some(family)).expect_err(host);
        assert_eq!(
            error.to_string(),
            "Address family for hostname not supported"
        );
        assert_eq!(error.host, host);
    }
}

#[test]
fn impossible_names_are_refused_with_the_resolvers_text() {
    for host in ["with\0nul".to_owned(), "x".repeat(5000)] {
        let error = socket::resolve(&host, 1, None).expect_err("impossible");
        assert_eq!(error.to_string(), "Name or service not known");
    }
}
