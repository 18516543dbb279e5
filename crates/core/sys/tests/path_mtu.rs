//! Path MTU and the error queue, in namespaces: a client and a router with a narrower link behind
//! it.

mod common;
mod namespace;

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use common::{TIMEOUT, V4, V6, address, open, pattern};
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::errno::{ECONNREFUSED, EHOSTUNREACH, EMSGSIZE};
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::sockopt;
use linerate_sys::udp::{self, ErrorOrigin, QueuedError};
use namespace::Namespace;

/// A client, a link of MTU 1500, a router, a link of MTU 1400 with no host on it.
struct Path {
    client: Namespace,
    _router: Namespace,
}

/// Kind, family of the socket, destination behind the router, and the router's address on the
/// client's link.
const CASES: [(&str, &str, &str, &str); 3] = [
    ("IPv4", V4, "198.51.100.9:5201", "192.0.2.1"),
    ("mapped", V6, "[::ffff:198.51.100.9]:5201", "192.0.2.1"),
    ("IPv6", V6, "[2001:db8:2::9]:5201", "2001:db8:1::1"),
];

impl Path {
    /// `None`, with the reason on stderr, where the test must be skipped.
    fn new() -> Option<Self> {
        let (client, router) = Namespace::new().zip(Namespace::new())?;
        let client_addresses = ["192.0.2.2/24", "2001:db8:1::2/64 nodad"];
        client.join(
            "near",
            &client_addresses,
            &router,
            &["192.0.2.1/24", "2001:db8:1::1/64 nodad"],
        );
        client.ip("route add default via 192.0.2.1");
        client.ip("route add default via 2001:db8:1::1");
        router.ip("link add far mtu 1400 type veth peer name end mtu 1400");

        for command in [
            "address add 198.51.100.1/24 dev far",
            "address add 2001:db8:2::1/64 dev far nodad",
        ] {
            router.ip(command);
        }

        for name in ["end", "far"] {
            router.ip(&format!("link set {name} up"));
        }

        router.await_up("far");
        router.set("ipv4/ip_forward", "1");
        router.set("ipv6/conf/all/forwarding", "1");
        Some(Self {
            client,
            _router: router,
        })
    }

    /// A socket that probes, with an error queue, connected to `remote`.
    fn prober(&self, local: &'static str, remote: &'static str) -> OwnedFd {
        self.client.run(move || prober(local, remote))
    }
}

fn prober(local: &str, remote: &str) -> OwnedFd {
    let fd = open(local, Protocol::Udp);
    sockopt::set_path_mtu_probe(&fd).expect("set");
    sockopt::set_receive_errors(&fd, true).expect("set");
    socket::connect(&fd, &address(remote)).expect("connect");
    fd
}

/// A datagram whose packet has `mtu` bytes: headers are 20 + 8 (RFC 791, RFC 768) and 40 + 8 bytes
/// (RFC 8200).
fn datagram_of(mtu: usize, is_ipv4: bool) -> Vec<u8> {
    pattern(mtu - if is_ipv4 { 28 } else { 48 })
}

fn await_error(fd: impl AsFd, buffer: &mut [u8]) -> QueuedError<'_> {
    assert!(
        wait_fd(&fd, Interest::READ, TIMEOUT).expect("poll"),
        "no error came"
    );
    udp::take_error(&fd, buffer).expect("an entry")
}

fn assert_empty(fd: impl AsFd) {
    let error = udp::take_error(fd, &mut []).expect_err("the queue is empty");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_router_reports_the_mtu_of_its_link_and_the_kernel_learns_it() {
    let Some(path) = Path::new() else { return };
    for (kind, local, remote, router) in CASES {
        let fd = path.prober(local, remote);
        let far = socket::unmap(address(remote));
        let datagram = datagram_of(1500, far.is_ipv4());
        udp::send(&fd, &datagram).expect("it fits the own device");

        let mut buffer = [0; 64];
        let error = await_error(&fd, &mut buffer);
        assert_eq!(
            (error.errno, error.mtu_bytes()),
            (EMSGSIZE, Some(1400)),
            "{kind}"
        );

        // Fragmentation needed (RFC 792), packet too big (RFC 4443 section 3.2).
        let icmp = if far.is_ipv4() {
            (ErrorOrigin::Icmp, 3, 4)
        } else {
            (ErrorOrigin::Icmp6, 2, 0)
        };
        assert_eq!(
            (error.origin, error.icmp_type, error.icmp_code),
            icmp,
            "{kind}"
        );
        assert_eq!(
            (error.offender, error.to),
            (router.parse::<IpAddr>().ok(), Some(far)),
            "{kind}"
        );
        assert_eq!(error.quoted, &datagram[..64], "{kind}");
        assert_empty(&fd);
        assert_eq!(sockopt::path_mtu(&fd).expect("connected"), 1400, "{kind}");
        udp::send(&fd, &datagram)
            .expect("no pending error is left, and a probe ignores the learned path MTU");
        sockopt::set_dont_fragment(&fd, true).expect("set");

        let _ = await_error(&fd, &mut buffer);
        let refused =
            udp::send(&fd, &datagram).expect_err("without a probe the learned path MTU holds");
        assert_eq!(refused.raw_os_error(), Some(EMSGSIZE), "{kind}");
    }
}

#[test]
fn a_datagram_beyond_the_own_device_does_not_leave_and_the_queue_holds_its_mtu() {
    let Some(path) = Path::new() else { return };
    path.client.ip("link set near mtu 1400");

    for (kind, local, remote, _) in CASES {
        let fd = path.prober(local, remote);
        let far = socket::unmap(address(remote));
        let refused =
            udp::send(&fd, &datagram_of(1401, far.is_ipv4())).expect_err("one byte too long");
        assert_eq!(refused.raw_os_error(), Some(EMSGSIZE), "{kind}");

        let mut buffer = [0; 64];
        let error = udp::take_error(&fd, &mut buffer).expect("it is there when the call returns");
        assert_eq!(
            (error.origin, error.errno, error.mtu_bytes()),
            (ErrorOrigin::Local, EMSGSIZE, Some(1400)),
            "{kind}"
        );
        assert_eq!((error.offender, error.quoted), (None, &[][..]), "{kind}");
        assert_empty(&fd);
        udp::send(&fd, &datagram_of(1400, far.is_ipv4())).expect("it fits");
    }
}

#[test]
fn a_router_that_discards_a_packet_for_its_ttl_is_the_offender() {
    let Some(path) = Path::new() else { return };
    for (kind, local, remote, router) in CASES {
        let fd = path.prober(local, remote);
        let far = socket::unmap(address(remote));
        sockopt::set_ttl(&fd, 1).expect("set");
        sockopt::set_receive_ttl(&fd, true).expect("set");
        sockopt::set_receive_tos(&fd, true).expect("set");
        sockopt::SO_TIMESTAMPNS.set(&fd, true).expect("set");

        let (offset, sent_ns) = (RealtimeOffset::read(), clock::monotonic_ns());
        udp::send(&fd, b"numbered 7").expect("send");
        let mut buffer = [0; 64];
        let error = await_error(&fd, &mut buffer);
        let read_ns = clock::monotonic_ns();

        // Time to live exceeded in transit (RFC 792), hop limit exceeded (RFC 4443 section 3.3).
        let icmp = if far.is_ipv4() {
            (ErrorOrigin::Icmp, 11, 0)
        } else {
            (ErrorOrigin::Icmp6, 3, 0)
        };
        assert_eq!(
            (error.origin, error.icmp_type, error.icmp_code),
            icmp,
            "{kind}"
        );
        assert_eq!(
            (error.errno, error.mtu_bytes(), error.ttl),
            (EHOSTUNREACH, None, Some(64)),
            "{kind}"
        );
        assert_eq!(
            (error.offender, error.to),
            (router.parse::<IpAddr>().ok(), Some(far)),
            "{kind}"
        );
        assert_eq!(error.quoted, b"numbered 7", "{kind}");

        let stamp_ns = offset.monotonic_ns(error.stamped_unix_ns.expect("requested"));
        assert!(
            (sent_ns - 50_000..=read_ns + 50_000).contains(&stamp_ns),
            "{kind}: {sent_ns} {stamp_ns} {read_ns}"
        );
    }
}

#[test]
fn a_closed_port_is_an_entry_of_the_queue() {
    for (local, origin) in [(V4, ErrorOrigin::Icmp), (V6, ErrorOrigin::Icmp6)] {
        let closed = {
            let fd = open(local, Protocol::Udp);
            socket::bind(&fd, &address(local)).expect("bind");
            socket::local_addr(&fd).expect("address")
        };
        let fd = prober(local, &closed.to_string());
        assert_empty(&fd);
        udp::send(&fd, b"x").expect("send");

        let mut buffer = [0; 64];
        let error = await_error(&fd, &mut buffer);
        assert_eq!(
            (error.errno, error.origin, error.to),
            (ECONNREFUSED, origin, Some(closed))
        );
        assert_eq!(
            (error.offender, error.quoted),
            (Some(closed.ip()), &b"x"[..])
        );
        assert_eq!(
            (error.stamped_unix_ns, error.ttl),
            (None, None),
            "not requested"
        );
    }
}

#[test]
fn a_socket_without_a_peer_has_no_path_mtu() {
    for local in [V4, V6] {
        let fd = open(local, Protocol::Udp);
        let error = sockopt::path_mtu(&fd).expect_err("not connected");
        assert!(
            error
                .to_string()
                .ends_with("Transport endpoint is not connected"),
            "{error}"
        );
        sockopt::set_path_mtu_probe(&fd).expect("set");
        assert_eq!(
            sockopt::IP_MTU_DISCOVER.get(&fd).expect("get"),
            3,
            "IP_PMTUDISC_PROBE"
        );
    }
}
