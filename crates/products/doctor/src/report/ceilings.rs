//! Arithmetic limits of links, buses and windows as text.

use std::fmt::Write as _;

use crate::arithmetic::{self, Network, Transport};

/// Tables: the highest goodput of links and of PCI Express, and the bytes in flight that fill a
/// path.
pub fn ceilings() -> String {
    let mut out = String::from(
        "Goodput of a 1 Gbit/s link in Mbit/s (linear in speed)\n   MTU    TCP/4 TCP/4 ts    TCP/6 \
         TCP/6 ts    UDP/4    UDP/6\n",
    );
    let columns = [
        (Network::V4, Transport::Tcp),
        (Network::V4, Transport::TcpTimestamps),
        (Network::V6, Transport::Tcp),
        (Network::V6, Transport::TcpTimestamps),
        (Network::V4, Transport::Udp),
        (Network::V6, Transport::Udp),
    ];

    for mtu in [576.0, 1280.0, 1400.0, 1500.0, 9000.0] {
        let _ = write!(out, "{mtu:>6}");
        for (network, transport) in columns {
            // The headers fit into each of these sizes.
            let ceiling = arithmetic::goodput_ceiling(1000.0, mtu, network, transport);
            let _ = write!(out, " {:>8.1}", ceiling.unwrap_or(0.0));
        }

        out.push('\n');
    }

    out.push_str(
        "\nPCI Express, one direction, 128 bytes per packet, in Gbit/s\n   GT/s       x1       x4       x8      x16\n",
    );
    for speed in [2.5, 5.0, 8.0, 16.0, 32.0, 64.0] {
        let _ = write!(out, "{speed:>7}");
        for lanes in [1.0, 4.0, 8.0, 16.0] {
            // Each of these speeds is that of a generation.
            let usable = arithmetic::pcie_usable_bps(speed, lanes, 128.0).unwrap_or(0.0);
            let _ = write!(out, " {:>8.1}", usable / 1e9);
        }

        out.push('\n');
    }

    out.push_str(
        "\nBytes in flight that fill the path, in MB; a receive buffer needs twice as much\n   RTT \
         ms   1 Gbit/s  10 Gbit/s 100 Gbit/s\n",
    );
    for rtt_ms in [0.1, 1.0, 10.0, 100.0] {
        let _ = write!(out, "{rtt_ms:>9}");
        for rate in [1e9, 1e10, 1e11] {
            // From milliseconds to microseconds, and from bytes to megabytes.
            let _ = write!(
                out,
                " {:>10.3}",
                arithmetic::bdp_bytes(rate, rtt_ms * 1000.0) / 1e6
            );
        }

        out.push('\n');
    }

    out
}
