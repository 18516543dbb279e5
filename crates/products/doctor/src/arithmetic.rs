//! Upper bounds of links, buses, windows and hashes. Nothing here is measured; everything can be
//! checked by hand.

/// Bytes every Ethernet frame costs on the wire beyond its payload: preamble 8, header 14, checksum
/// 4, gap 12 (IEEE 802.3, clause 4.4.2).
pub const ETHERNET_OVERHEAD_BYTES: f64 = 38.0;
/// Ethernet header, the only part of a frame that tbf and htb count beyond the payload.
pub const SHAPER_HEADER_BYTES: f64 = 14.0;

/// Version of the internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// 20 bytes of header.
    V4,
    /// 40 bytes of header.
    V6,
}

/// Transport and its options on full-size segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// 20 bytes of header.
    Tcp,
    /// 32 bytes: with timestamps (RFC 7323), the default of Linux.
    TcpTimestamps,
    /// 8 bytes of header.
    Udp,
}

impl Network {
    const fn header_bytes(self) -> f64 {
        match self {
            Self::V4 => 20.0,
            Self::V6 => 40.0,
        }
    }
}

impl Transport {
    const fn header_bytes(self) -> f64 {
        match self {
            Self::Tcp => 20.0,
            Self::TcpTimestamps => 32.0,
            Self::Udp => 8.0,
        }
    }
}

/// Best goodput of a link with full-size packets, in the unit of `speed`: 941.5 of 1000 with IPv4,
/// timestamps and an MTU of 1500; `None` when the headers do not fit.
pub fn goodput_ceiling(
    speed: f64,
    mtu_bytes: f64,
    network: Network,
    transport: Transport,
) -> Option<f64> {
    // Headers are a part of the MTU, the overhead of the frame is not.
    let payload_bytes = mtu_bytes - network.header_bytes() - transport.header_bytes();
    (payload_bytes > 0.0).then(|| speed * (payload_bytes / (mtu_bytes + ETHERNET_OVERHEAD_BYTES)))
}

/// Best TCP goodput over IPv4 with timestamps, the ordinary case, in the unit of `speed`.
pub fn tcp_ceiling(speed: f64, mtu_bytes: f64) -> f64 {
    goodput_ceiling(speed, mtu_bytes, Network::V4, Transport::TcpTimestamps).unwrap_or(0.0)
}

/// Payload a local tbf or htb lets through at `rate`: it counts the MTU and 14 bytes of header per
/// packet, not the preamble, checksum and gap the wire needs (`tc-tbf(8)`).
pub fn shaper_payload(rate: f64, mtu_bytes: f64) -> f64 {
    // IPv4 has 20 bytes, TCP with time stamps 32.
    rate * (mtu_bytes - 52.0) / (mtu_bytes + SHAPER_HEADER_BYTES)
}

/// Full-size frames per second at `speed_bps`.
pub fn frames_per_second(speed_bps: f64, mtu_bytes: f64) -> f64 {
    speed_bps / 8.0 / (mtu_bytes + ETHERNET_OVERHEAD_BYTES)
}

/// Time a receive ring of `entries` descriptors bridges at line rate, microseconds.
pub fn ring_time_us(entries: f64, mtu_bytes: f64, speed_bps: f64) -> f64 {
    entries / frames_per_second(speed_bps, mtu_bytes) * 1e6
}

/// Payload of data packets that one direction of a PCI Express link carries, bit/s.
///
/// `gigatransfers` is the speed of one lane (2.5 for the first generation), `max_payload_bytes` the
/// negotiated maximum payload. Flow control and descriptors cost about five per cent more, so a bus
/// counts as full from 0.9 of this figure on. `None` for a speed no generation has.
pub fn pcie_usable_bps(gigatransfers: f64, lanes: f64, max_payload_bytes: f64) -> Option<f64> {
    // Line code and bytes of framing, sequence number, header and checksum per data packet (PCIe
    // base specification).
    let (code, overhead) = match gigatransfers {
        g if near(g, 2.5) || near(g, 5.0) => (8.0 / 10.0, 24.0),
        g if near(g, 8.0) || near(g, 16.0) || near(g, 32.0) => (128.0 / 130.0, 26.0),
        // A flit of 256 bytes has 8 of CRC and 6 of forward error correction.
        g if near(g, 64.0) => (242.0 / 256.0, 16.0),
        _ => return None,
    };
    let raw = gigatransfers * 1e9 * lanes * code;
    Some(raw * max_payload_bytes / (max_payload_bytes + overhead))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.05
}

/// Generation of a PCI Express lane by its speed.
pub fn pcie_generation(gigatransfers: f64) -> Option<u8> {
    let speeds = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
    let at = speeds
        .iter()
        .position(|speed| near(*speed, gigatransfers))?;
    u8::try_from(at + 1).ok()
}

/// Bytes in flight that fill a path: bandwidth times delay.
pub fn bdp_bytes(rate_bps: f64, rtt_us: f64) -> f64 {
    // 8 bits per byte and 10^6 microseconds per second.
    rate_bps * rtt_us / 8e6
}

/// Rate a window allows, bit/s: one window per round trip.
pub fn window_ceiling_bps(window_bytes: f64, rtt_us: f64) -> f64 {
    window_bytes * 8e6 / rtt_us
}

/// Buffer that holds the data in flight and their overhead: two bandwidth-delay products, because a
/// send buffer also holds what is repeated, and with `tcp_adv_win_scale` 1 half of a receive buffer
/// is kept for its packets (`tcp(7)`).
pub fn buffer_bytes(rate_bps: f64, rtt_us: f64) -> f64 {
    2.0 * bdp_bytes(rate_bps, rtt_us)
}

/// Rate of a Reno flow under random loss, bit/s (Mathis and others, 1997). CUBIC is close to it
/// where the product of bandwidth and delay is small.
pub fn mathis_bps(mss_bytes: f64, rtt_us: f64, loss: f64) -> f64 {
    // 1.22 is the square root of 3/2: losses at equal distances, one acknowledgement per segment.
    mss_bytes * 8e6 / rtt_us * 1.22 / loss.sqrt()
}

/// Expected number of queues, of `queues`, that a hash uses for `flows` flows: 10 flows on 8 queues
/// use 5.9.
pub fn expected_queues(flows: f64, queues: f64) -> f64 {
    if queues < 1.0 {
        return 0.0;
    }
    // A queue stays without a flow with the probability (1 - 1/queues)^flows.
    queues * (1.0 - (1.0 - 1.0 / queues).powf(flows))
}

/// Speeds most Ethernet links have, Mbit/s.
pub const COMMON_SPEEDS_MBPS: [f64; 9] = [
    10.0, 100.0, 1000.0, 2500.0, 5000.0, 10_000.0, 25_000.0, 40_000.0, 100_000.0,
];

/// A share as whole per cent: `95 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A rate: `941.4 Mbit/s`.
pub(crate) fn mbits(rate_bps: f64) -> String {
    format!("{:.1} Mbit/s", rate_bps / 1e6)
}

/// A rate: `9.4 Gbit/s`.
pub(crate) fn gbits(rate_bps: f64) -> String {
    format!("{:.1} Gbit/s", rate_bps / 1e9)
}

/// Counters stay far below 2^53 over a period; a total that does not is rounded.
#[expect(clippy::cast_precision_loss, reason = "rounding is harmless here")]
pub(crate) const fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(value: f64, places: i32) -> f64 {
        let scale = 10_f64.powi(places);
        (value * scale).round() / scale
    }

    #[test]
    fn ceilings_of_a_gigabit_link() {
        use Network::{V4, V6};
        use Transport::{Tcp, TcpTimestamps, Udp};

        let rows = [
            (576.0, [873.0, 853.4, 840.4, 820.8, 892.5, 859.9]),
            (1280.0, [940.8, 931.7, 925.6, 916.5, 949.9, 934.7]),
            (1400.0, [945.8, 937.4, 931.8, 923.5, 954.1, 940.2]),
            (1500.0, [949.3, 941.5, 936.3, 928.5, 957.1, 944.1]),
            (9000.0, [991.4, 990.0, 989.2, 987.8, 992.7, 990.5]),
        ];
        let columns = [
            (V4, Tcp),
            (V4, TcpTimestamps),
            (V6, Tcp),
            (V6, TcpTimestamps),
            (V4, Udp),
            (V6, Udp),
        ];

        for (mtu, expected) in rows {
            for ((network, transport), expected) in columns.iter().zip(expected) {
                let found =
                    goodput_ceiling(1000.0, mtu, *network, *transport).expect("the headers fit");
                assert!(
                    (found - expected).abs() < 0.06,
                    "{mtu} {network:?} {transport:?}: {found} {expected}"
                );
            }
        }

        assert_eq!(goodput_ceiling(1000.0, 40.0, V4, Tcp), None);
    }

    #[test]
    fn frames_and_rings() {
        assert_eq!(frames_per_second(1e9, 1500.0).round(), 81_274.0);
        assert_eq!(frames_per_second(1e9, 46.0).round(), 1_488_095.0);
        assert_eq!(rounded(ring_time_us(256.0, 1500.0, 1e9) / 1000.0, 1), 3.1);
        assert_eq!(rounded(shaper_payload(1000.0, 1500.0), 1), 956.4);
    }

    #[test]
    fn usable_bandwidth_of_the_bus() {
        let rows = [
            (2.5, 1.0, 128.0, 1.68),
            (2.5, 8.0, 128.0, 13.47),
            (5.0, 4.0, 256.0, 14.63),
            (8.0, 1.0, 128.0, 6.55),
            (8.0, 8.0, 128.0, 52.38),
            (16.0, 16.0, 128.0, 209.51),
            (32.0, 16.0, 256.0, 457.64),
            (64.0, 1.0, 128.0, 53.78),
        ];
        for (speed, lanes, payload, expected) in rows {
            let usable = pcie_usable_bps(speed, lanes, payload).expect("a known generation") / 1e9;
            assert!(
                (usable - expected).abs() < 0.01,
                "{speed} x{lanes}: {usable}"
            );
        }

        assert_eq!(pcie_usable_bps(3.0, 1.0, 128.0), None);
        assert_eq!(pcie_generation(8.0), Some(3));
    }

    #[test]
    fn windows_loss_and_hashing() {
        assert_eq!(
            rounded(window_ceiling_bps(65_536.0, 20_000.0) / 1e6, 1),
            26.2
        );
        assert_eq!(
            rounded(window_ceiling_bps(1_048_576.0, 100_000.0) / 1e6, 1),
            83.9
        );
        assert_eq!(bdp_bytes(1e9, 20_000.0), 2_500_000.0);
        assert_eq!(buffer_bytes(1e9, 20_000.0), 5_000_000.0);
        assert_eq!(rounded(expected_queues(10.0, 8.0), 1), 5.9);
        assert_eq!(rounded(expected_queues(10.0, 63.0), 1), 9.3);
        assert_eq!(rounded(mathis_bps(1448.0, 20_000.0, 1e-4) / 1e6, 1), 70.7);
    }
}
