//! Subflows of a Multipath TCP connection over two links, in namespaces.

mod common;
mod namespace;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use common::{accept_one, address, await_readable, await_writable};
use linerate_sys::caps::Capabilities;
use linerate_sys::mptcp::{self, Subflow};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::stream_io;
use namespace::{Namespace, skip};

/// A client and a server with two links; the server announces its address on the second one.
fn ends() -> Option<(Namespace, Namespace)> {
    if !Capabilities::probe().mptcp {
        skip("the kernel has no MPTCP");
        return None;
    }

    let (client, server) = Namespace::new().zip(Namespace::new())?;
    client.join("first", &["192.0.2.2/24"], &server, &["192.0.2.1/24"]);
    client.join(
        "second",
        &["198.51.100.2/24"],
        &server,
        &["198.51.100.1/24"],
    );

    for end in [&client, &server] {
        end.ip("mptcp limits set subflows 2 add_addr_accepted 2");
    }

    server.ip("mptcp endpoint add 198.51.100.1 dev second signal");
    Some((client, server))
}

/// Both ends, and the listener: further subflows come through it.
fn connected(client: &Namespace, server: &Namespace) -> (OwnedFd, OwnedFd, OwnedFd) {
    let listener = server.run(|| {
        let fd = socket::open(&address("0.0.0.0:5201"), Protocol::Mptcp).expect("socket");
        socket::bind(&fd, &address("0.0.0.0:5201")).expect("bind");
        socket::listen(&fd, 1).expect("listen");
        fd
    });
    let fd = client.run(|| {
        let fd = socket::open(&address("192.0.2.1:5201"), Protocol::Mptcp).expect("socket");
        socket::connect(&fd, &address("192.0.2.1:5201")).expect("connect");
        fd
    });
    await_writable(&fd);
    socket::take_error(&fd).expect("handshake");

    (fd, accept_one(&listener), listener)
}

/// The subflows once there are `count`: the second one begins after the connection does.
fn await_subflows(fd: &OwnedFd, count: usize) -> Vec<Subflow> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let subflows = mptcp::subflows(fd).expect("an MPTCP connection");
        if subflows.len() == count && subflows.iter().all(|subflow| subflow.info.rtt_us > 0) {
            return subflows;
        }

        assert!(Instant::now() < end, "{subflows:?}");
        std::thread::yield_now();
    }
}

#[test]
fn each_link_carries_a_subflow_with_its_addresses_and_state() {
    let Some((client, server)) = ends() else {
        return;
    };
    let (client, server, _listener) = connected(&client, &server);
    stream_io::send(&client, &[7; 1000]).expect("send");
    await_readable(&server);

    let subflows = await_subflows(&client, 2);
    let local = socket::local_addr(&client).expect("address");
    assert_eq!(
        (subflows[0].local, subflows[0].remote),
        (Some(local), Some(address("192.0.2.1:5201")))
    );
    assert_eq!(subflows[1].remote, Some(address("198.51.100.1:5201")));
    assert_eq!(
        subflows[1].local.map(|local| local.ip()),
        Some(address("198.51.100.2:0").ip())
    );

    for subflow in &subflows {
        assert_eq!(
            (
                subflow.info.pmtu_bytes,
                subflow.info.bytes_retransmitted.unwrap_or(0)
            ),
            (1500, 0)
        );
    }

    // The number came later than the addresses (Linux 6.5): both have one, or neither.
    let (first, second) = (subflows[0].id, subflows[1].id);
    assert!(
        first < second || (first, second) == (None, None),
        "{first:?} {second:?}"
    );

    // The server sees the same connections from the other side.
    let mirrored = await_subflows(&server, 2);
    for (ours, theirs) in subflows.iter().zip(&mirrored) {
        assert_eq!((ours.local, ours.remote), (theirs.remote, theirs.local));
    }
}
