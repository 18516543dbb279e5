//! Every socket option on loopback: set, read back, and observed where its effect shows.

mod common;

use common::{V4, V6, accept_from, address, listener, open, tcp_pair, udp_pair};
use linerate_sys::caps::Capabilities;
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{sockopt, stream_io, tcp_info, udp};
use socket2::SockRef;

#[test]
fn reuse_addr_lets_a_restarted_server_bind_while_old_connections_linger() {
    let first = open(V4, Protocol::Tcp);
    sockopt::SO_REUSEADDR.set(&first, true).expect("set");
    socket::bind(&first, &address(V4)).expect("bind");
    socket::listen(&first, 1).expect("listen");

    let port = socket::local_addr(&first).expect("address");
    let client = open(V4, Protocol::Tcp);
    socket::connect(&client, &port).expect("connect");

    let accepted = common::accept_one(&first);
    // The end that closes first keeps the address for a minute.
    drop(accepted);
    common::await_readable(&client);
    drop((client, first));

    let refused =
        socket::bind(open(V4, Protocol::Tcp), &port).expect_err("the old connection lingers");
    assert_eq!(
        refused.to_string(),
        format!("bind {port}: Address already in use")
    );
    let second = open(V4, Protocol::Tcp);
    sockopt::SO_REUSEADDR.set(&second, true).expect("set");
    socket::bind(&second, &port).expect("bind with reuse");
}

#[test]
fn reuse_port_lets_two_sockets_share_a_port() {
    let bound = |at: &std::net::SocketAddr, share| {
        let fd = open(V4, Protocol::Udp);
        sockopt::SO_REUSEPORT.set(&fd, share).expect("set");
        socket::bind(&fd, at).map(|()| fd)
    };
    let first = bound(&address(V4), true).expect("bind");
    let port = socket::local_addr(&first).expect("address");
    bound(&port, false).expect_err("not shared");
    bound(&port, true).expect("shared");
}

#[test]
fn v6_only_decides_whether_a_listener_takes_ipv4() {
    for only in [false, true] {
        let fd = open("[::]:0", Protocol::Tcp);
        sockopt::IPV6_V6ONLY.set(&fd, only).expect("set");
        assert_eq!(sockopt::IPV6_V6ONLY.get(&fd).expect("get"), only);
        socket::bind(&fd, &address("[::]:0")).expect("bind");
        socket::listen(&fd, 1).expect("listen");

        let port = socket::local_addr(&fd).expect("address").port();
        let client = open(V4, Protocol::Tcp);
        let outcome = socket::connect(&client, &(std::net::Ipv4Addr::LOCALHOST, port).into());
        let connected = outcome.is_ok() && {
            common::await_writable(&client);
            socket::take_error(&client).is_ok()
        };
        assert_eq!(connected, !only, "v6 only: {only}");
    }
}

#[test]
fn mss_limits_the_segments_of_a_connection() {
    let client = open(V4, Protocol::Tcp);
    assert_eq!(
        sockopt::TCP_MAXSEG.get(&client).expect("get"),
        536,
        "before a connection"
    );
    sockopt::TCP_MAXSEG.set(&client, 1000).expect("set");

    let _server = accept_from(&client, V4);
    let mss = sockopt::TCP_MAXSEG.get(&client).expect("get");
    // Options of the header may take part of the thousand.
    assert!((940..=1000).contains(&mss), "{mss}");

    let error = sockopt::TCP_MAXSEG
        .set(&client, 40_000)
        .expect_err("out of range");
    assert_eq!(
        error.to_string(),
        "setsockopt TCP_MAXSEG 40000: Invalid argument"
    );
}

#[test]
fn buffers_are_doubled_by_the_kernel_and_capped() {
    let fd = open(V4, Protocol::Tcp);
    sockopt::SO_SNDBUF.set(&fd, 65_536).expect("set");
    sockopt::SO_RCVBUF.set(&fd, 32_768).expect("set");
    assert_eq!(sockopt::SO_SNDBUF.get(&fd).expect("get"), 131_072);
    assert_eq!(sockopt::SO_RCVBUF.get(&fd).expect("get"), 65_536);

    sockopt::SO_SNDBUF
        .set(&fd, 1 << 30)
        .expect("a request above the limit is no error");
    assert_eq!(
        sockopt::SO_SNDBUF.get(&fd).expect("get"),
        2 * sysctl("wmem_max")
    );
}

#[test]
fn a_forced_buffer_exceeds_the_cap_with_the_privilege_and_reaches_it_without() {
    let fd = open(V4, Protocol::Udp);
    let factor = if has_net_admin() { 2 } else { 1 };
    let max = sysctl("rmem_max");
    sockopt::force_receive_buffer(&fd, 2 * max).expect("set");
    assert_eq!(sockopt::SO_RCVBUF.get(&fd).expect("get"), 2 * factor * max);
}

#[test]
fn tos_goes_into_the_header_the_packets_have() {
    let v4 = open(V4, Protocol::Udp);
    sockopt::set_tos(&v4, 0xb8).expect("set");
    assert_eq!(SockRef::from(&v4).tos_v4().expect("get"), 0xb8);

    let v6 = open(V6, Protocol::Udp);
    sockopt::set_tos(&v6, 255).expect("set");
    assert_eq!(SockRef::from(&v6).tclass_v6().expect("get"), 255);
}

#[test]
fn tos_of_a_mapped_connection_is_ipv4s() {
    let (_receiver, port) = {
        let fd = open(V4, Protocol::Udp);
        socket::bind(&fd, &address(V4)).expect("bind");
        let port = socket::local_addr(&fd).expect("address").port();
        (fd, port)
    };
    let dual = open(V6, Protocol::Udp);
    sockopt::IPV6_V6ONLY.set(&dual, false).expect("set");
    assert!(!socket::is_ipv4_socket(&dual));
    socket::connect(&dual, &address(&format!("[::ffff:127.0.0.1]:{port}"))).expect("connect");
    assert!(socket::is_ipv4_socket(&dual));
    sockopt::set_tos(&dual, 0x20).expect("set");
    assert_eq!(
        SockRef::from(&dual).tos_v4().expect("get"),
        0x20,
        "IPv4's field, not IPv6's alone"
    );
}

#[test]
fn congestion_control_is_chosen_by_name() {
    let fd = open(V4, Protocol::Tcp);
    // Every kernel has reno built in.
    sockopt::set_congestion(&fd, "reno").expect("set");
    assert_eq!(sockopt::congestion(&fd).expect("get"), "reno");

    let error = sockopt::set_congestion(&fd, "nosuch").expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "setsockopt TCP_CONGESTION nosuch: No such file or directory"
    );
    assert!(!error.is_unsupported());
}

#[test]
fn values_are_read_back_and_those_out_of_range_refused() {
    let fd = open(V4, Protocol::Tcp);
    for switch in [sockopt::TCP_NODELAY, sockopt::SO_KEEPALIVE] {
        assert!(!switch.get(&fd).expect("get"));
        switch.set(&fd, true).expect("set");
        assert!(switch.get(&fd).expect("get"));
    }

    for (number, value) in [
        (sockopt::TCP_USER_TIMEOUT, 1_500),
        (sockopt::TCP_KEEPIDLE, 11),
        (sockopt::TCP_KEEPINTVL, 7),
        (sockopt::TCP_KEEPCNT, 3),
    ] {
        number.set(&fd, value).expect("set");
        assert_eq!(number.get(&fd).expect("get"), value);
    }

    let error = sockopt::TCP_KEEPCNT
        .set(&fd, 1_000)
        .expect_err("out of range");
    assert_eq!(error.operation, "setsockopt TCP_KEEPCNT");
    let error = sockopt::SO_SNDBUF
        .set(&fd, u32::MAX)
        .expect_err("not wrapped to a negative size");
    assert_eq!(
        error.to_string(),
        "setsockopt SO_SNDBUF 4294967295: Invalid argument"
    );
}

#[test]
fn pacing_rate_caps_what_the_kernel_paces_with() {
    let (client, server) = tcp_pair();
    assert_eq!(sockopt::get_max_pacing_rate(&client).expect("get"), None);
    let rate = 10_000_000_000_u64;
    sockopt::set_max_pacing_rate(&client, rate).expect("set");
    assert_eq!(
        sockopt::get_max_pacing_rate(&client).expect("get"),
        Some(rate),
        "more than 32 bits"
    );
    sockopt::set_max_pacing_rate(&client, 1_000_000).expect("set");
    stream_io::send(&client, &[0; 1000]).expect("send");
    common::await_readable(&server);

    let paced = tcp_info::tcp_info(&client)
        .expect("info")
        .pacing_rate_bps
        .expect("paced");
    assert!(paced <= 8_000_000, "{paced}");
    sockopt::set_max_pacing_rate(&client, u64::MAX).expect("set");
    assert_eq!(sockopt::get_max_pacing_rate(&client).expect("get"), None);
}

#[test]
fn dont_fragment_is_set_and_cleared_for_both_families() {
    // The numbers of `IP_PMTUDISC_DO` and `IP_PMTUDISC_DONT` are those of IPv6.
    for (local, option) in [
        (V4, sockopt::IP_MTU_DISCOVER),
        (V6, sockopt::IPV6_MTU_DISCOVER),
    ] {
        let fd = open(local, Protocol::Udp);
        for (on, mode) in [(true, 2), (false, 0), (true, 2)] {
            sockopt::set_dont_fragment(&fd, on).expect("set");
            assert_eq!(option.get(&fd).expect("get"), mode, "{local}");
        }
    }
}

#[test]
fn a_flow_label_is_leased_and_sent() {
    let label = 0xabcde;
    let (server, std::net::SocketAddr::V6(remote)) = listener(V6) else {
        panic!("a listener on ::1 is IPv6")
    };
    let client = open(V6, Protocol::Tcp);
    sockopt::lease_flow_label(&client, &remote, label).expect("lease");

    let leases = std::fs::read_to_string("/proc/net/ip6_flowlabel").expect("leases");
    assert!(leases.contains("ABCDE "), "{leases}");

    let labelled = sockopt::with_flow_label(remote, label);
    socket::connect(&client, &labelled.into()).expect("connect");
    common::accept_one(&server);

    let std::net::SocketAddr::V6(peer) = socket::peer_addr(&client).expect("peer") else {
        panic!("IPv6")
    };
    assert_eq!(
        u32::from_be(peer.flowinfo()),
        label,
        "the label the kernel puts into the header"
    );
}

#[test]
fn flow_labels_beyond_20_bits_or_without_ipv6_are_refused() {
    let std::net::SocketAddr::V6(remote) = address(V6) else {
        panic!("IPv6")
    };
    for label in [0, 0x10_0000] {
        let error = sockopt::lease_flow_label(open(V6, Protocol::Tcp), &remote, label)
            .expect_err("out of range");
        assert_eq!(
            error.to_string(),
            format!("setsockopt IPV6_FLOWLABEL_MGR {label}: Invalid argument")
        );
    }

    let error = sockopt::lease_flow_label(open(V4, Protocol::Tcp), &remote, 1)
        .expect_err("not an IPv6 socket");
    assert_eq!(error.operation, "setsockopt IPV6_FLOWLABEL_MGR");
}

#[test]
fn bind_device_takes_existing_devices_only() {
    let fd = open(V4, Protocol::Udp);
    sockopt::bind_device(&fd, "lo").expect("loopback exists");
    assert_eq!(
        SockRef::from(&fd).device().expect("get").as_deref(),
        Some(b"lo".as_slice())
    );

    let error =
        sockopt::bind_device(open(V4, Protocol::Udp), "nosuchdev0").expect_err("no such device");
    assert_eq!(
        error.to_string(),
        "setsockopt SO_BINDTODEVICE nosuchdev0: No such device"
    );
}

#[test]
fn udp_segment_cuts_every_write() {
    let (sender, receiver) = udp_pair(V4);
    match sockopt::UDP_SEGMENT.set(&sender, 1000) {
        Ok(()) => {}
        Err(error) => {
            assert!(
                error.is_unsupported() && !Capabilities::probe().udp_gso,
                "{error}"
            );
            return;
        }
    }

    assert_eq!(sockopt::UDP_SEGMENT.get(&sender).expect("get"), 1000);
    let data = common::pattern(2500);
    assert_eq!(udp::send(&sender, &data).expect("send"), 2500);

    let mut buffer = [0; 4096];
    for expected in data.chunks(1000) {
        common::await_readable(&receiver);
        let len = udp::recv(&receiver, &mut buffer).expect("recv");
        assert_eq!(&buffer[..len], expected);
    }

    sockopt::UDP_SEGMENT.set(&sender, 0).expect("off");
    udp::send(&sender, &data).expect("send");
    common::await_readable(&receiver);
    assert_eq!(udp::recv(&receiver, &mut buffer).expect("recv"), 2500);
}

#[test]
fn options_of_another_protocol_are_typed_as_unsupported() {
    let tcp = open(V4, Protocol::Tcp);
    let udp = open(V4, Protocol::Udp);

    for (error, operation) in [
        (
            sockopt::UDP_SEGMENT.set(&tcp, 1000),
            "setsockopt UDP_SEGMENT",
        ),
        (sockopt::UDP_GRO.set(&tcp, true), "setsockopt UDP_GRO"),
        (
            sockopt::TCP_NODELAY.set(&udp, true),
            "setsockopt TCP_NODELAY",
        ),
        (
            sockopt::SCTP_NODELAY.set(&tcp, true),
            "setsockopt SCTP_NODELAY",
        ),
        (
            sockopt::set_sctp_init_streams(&tcp, 4),
            "setsockopt SCTP_INITMSG",
        ),
        (
            sockopt::sctp_bindx(&tcp, &[address(V4)]),
            "setsockopt SCTP_SOCKOPT_BINDX_ADD",
        ),
    ] {
        let error = error.expect_err(operation);
        assert_eq!(error.operation, operation);
        assert!(error.is_unsupported(), "{error}");
    }
}

/// Where the kernel has SCTP its options are set; where not, the socket itself is the typed error.
#[test]
fn sctp_options_work_or_the_socket_says_that_sctp_is_absent() {
    let fd = match socket::open(&address(V4), Protocol::Sctp) {
        Ok(fd) => fd,
        Err(error) => {
            assert_eq!(
                error.to_string(),
                "socket sctp ipv4: Protocol not supported"
            );
            assert!(error.is_unsupported() && !Capabilities::probe().sctp);
            return;
        }
    };
    sockopt::SCTP_NODELAY.set(&fd, true).expect("no delay");
    sockopt::set_sctp_init_streams(&fd, 4).expect("streams");
    sockopt::sctp_bindx(&fd, &[address(V4)]).expect("bindx");
}

#[test]
fn outq_counts_what_the_peer_did_not_acknowledge() {
    let (client, server) = tcp_pair();
    assert_eq!(sockopt::outq_bytes(&client).expect("ioctl"), 0);
    let mut sent = 0;

    while let Ok(more) = stream_io::send(&client, &[0; 65_536]) {
        sent += more as u64;
    }

    let waiting = sockopt::outq_bytes(&client).expect("ioctl");
    assert!(
        waiting > 0 && u64::from(waiting) <= sent,
        "{waiting} of {sent}"
    );
    drop(server);
}

#[test]
fn tcp_info_describes_a_live_connection() {
    let (client, server) = tcp_pair();
    stream_io::send(&client, &[0; 5000]).expect("send");
    common::await_readable(&server);

    let info = tcp_info::tcp_info(&client).expect("info");
    assert_eq!(
        info.snd_mss_bytes,
        sockopt::TCP_MAXSEG.get(&client).expect("get")
    );
    assert!(info.cwnd_bytes() >= u64::from(info.snd_mss_bytes));
    assert!(info.rtt_us > 0 && info.pmtu_bytes > info.snd_mss_bytes);
    assert!(info.snd_wnd_bytes.is_none_or(|window| window > 0));

    let received = tcp_info::tcp_info(&server).expect("info").bytes_received;
    assert!(received.is_none_or(|bytes| bytes == 5000), "{received:?}");
    let error = tcp_info::tcp_info(open(V4, Protocol::Udp)).expect_err("not TCP");
    assert_eq!(error.operation, "getsockopt TCP_INFO");
}

#[test]
fn mptcp_opens_where_the_kernel_has_it() {
    match socket::open(&address(V4), Protocol::Mptcp) {
        Ok(_) => assert!(Capabilities::probe().mptcp),
        Err(error) => {
            assert!(
                !Capabilities::probe().mptcp && error.is_unsupported(),
                "{error}"
            );
            assert_eq!(error.operation, "socket");
        }
    }
}

fn sysctl(name: &str) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).expect("sysctl");
    text.trim().parse().expect("number")
}

fn has_net_admin() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .expect("CapEff");
    u64::from_str_radix(effective.trim(), 16).expect("hexadecimal") & (1 << 12) != 0
}
