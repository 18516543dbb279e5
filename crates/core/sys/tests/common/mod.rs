//! Connected sockets on loopback for the tests of this folder.
#![allow(dead_code)] // Every test binary takes what it needs.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::socket::{self, Connect, Protocol};

/// Far beyond what anything on loopback takes; reaching it is a failure.
pub(crate) const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));

pub(crate) const V4: &str = "127.0.0.1:0";
pub(crate) const V6: &str = "[::1]:0";

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().expect("test address")
}

pub(crate) fn open(local: &str, protocol: Protocol) -> OwnedFd {
    socket::open(&address(local), protocol).expect("socket")
}

pub(crate) fn listener(local: &str) -> (OwnedFd, SocketAddr) {
    let fd = open(local, Protocol::Tcp);
    socket::bind(&fd, &address(local)).expect("bind");
    socket::listen(&fd, 16).expect("listen");
    let local = socket::local_addr(&fd).expect("local address");
    (fd, local)
}

/// Connects `client`, which may carry options already, to a new listener and returns the accepted
/// end.
pub(crate) fn accept_from(client: impl AsFd, local: &str) -> OwnedFd {
    let (listener, server) = listener(local);
    if socket::connect(&client, &server).expect("connect") == Connect::InProgress {
        await_writable(&client);
        socket::take_error(&client).expect("handshake");
    }
    accept_one(&listener)
}

pub(crate) fn accept_one(listener: impl AsFd) -> OwnedFd {
    await_readable(&listener);
    socket::accept(&listener)
        .expect("accept")
        .expect("the test waits")
        .0
}

pub(crate) fn tcp_pair() -> (OwnedFd, OwnedFd) {
    let client = open(V4, Protocol::Tcp);
    let server = accept_from(&client, V4);
    (client, server)
}

/// A bound receiver and a sender connected to it.
pub(crate) fn udp_pair(local: &str) -> (OwnedFd, OwnedFd) {
    let receiver = open(local, Protocol::Udp);
    socket::bind(&receiver, &address(local)).expect("bind");
    let sender = open(local, Protocol::Udp);
    socket::connect(&sender, &socket::local_addr(&receiver).expect("address")).expect("connect");
    (sender, receiver)
}

pub(crate) fn await_readable(fd: impl AsFd) {
    assert!(
        wait_fd(fd, Interest::READ, TIMEOUT).expect("poll"),
        "nothing to read came"
    );
}

pub(crate) fn await_writable(fd: impl AsFd) {
    assert!(
        wait_fd(fd, Interest::WRITE, TIMEOUT).expect("poll"),
        "no room to write came"
    );
}

/// Bytes in which a shift or a swap shows.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(31) ^ (i >> 8)) as u8)
        .collect()
}

/// Sets the time to live, and on an IPv6 socket the hop limit, of what leaves a socket.
pub(crate) fn set_ttl(fd: impl AsFd, ttl: u32) {
    let socket = socket2::SockRef::from(&fd);
    // An IPv6 socket has both: mapped addresses are those of IPv4.
    socket.set_ttl_v4(ttl).expect("set");
    if socket.domain().expect("a socket") == socket2::Domain::IPV6 {
        socket.set_unicast_hops_v6(ttl).expect("set");
    }
}
