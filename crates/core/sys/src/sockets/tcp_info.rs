//! State of a TCP connection in the kernel (`TCP_INFO`, tcp(7)).

use std::io;
use std::os::fd::AsFd;

use crate::error::{During, Result};
use crate::option::{SocketOption, option};

/// State of a TCP connection at one instant. `None`: this kernel does not report it, or has
/// measured nothing yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments retransmitted since the connection began.
    pub retransmits_total: u32,
    /// Congestion window in segments of [`Self::snd_mss_bytes`].
    pub snd_cwnd_segments: u32,
    /// Segments in the network: sent, neither acknowledged nor known to be lost, with those sent
    /// again.
    pub in_flight_segments: u32,
    /// Segments the peer received beyond a gap and reported so (SACK, RFC 2018).
    pub sacked_segments: u32,
    /// Payload of a full outgoing segment.
    pub snd_mss_bytes: u32,
    /// Payload of the largest segment this end lets the other send: what it announced, less the
    /// timestamps of every segment where both ends use them.
    pub advertised_mss_bytes: u32,
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time.
    pub rttvar_us: u32,
    /// Path MTU.
    pub pmtu_bytes: u32,
    /// Window the peer announces, scaled (Linux 5.4).
    pub snd_wnd_bytes: Option<u32>,
    /// Segments the peer received twice and reported so (DSACK, RFC 2883; Linux 4.19).
    pub dsack_segments: Option<u32>,
    /// Distance in segments up to which a late one is not taken for lost (Linux 2.6.10).
    pub reordering_segments: u32,
    /// Reordering events seen (Linux 4.19).
    pub reorder_seen: Option<u32>,
    /// Segments received out of order (Linux 5.4).
    pub out_of_order_total: Option<u32>,
    /// Both ends agreed on explicit congestion notification (RFC 3168).
    pub ecn_negotiated: bool,
    /// A packet with an ECT or CE mark arrived on this connection (Linux 3.2).
    pub ecn_seen: bool,
    /// Segments the peer received, repeated ones counted once (Linux 4.18).
    pub delivered_segments: Option<u32>,
    /// Part of [`Self::delivered_segments`] that the peer reported with a CE mark (Linux 4.18).
    pub delivered_ce_segments: Option<u32>,
    /// Bytes written to the socket that have not been sent once (Linux 4.6).
    pub notsent_bytes: Option<u32>,
    /// Smallest round-trip time (Linux 4.6).
    pub min_rtt_us: Option<u32>,
    /// Latest rate of delivery, bits of payload per second (Linux 4.9).
    pub delivery_rate_bps: Option<u64>,
    /// Rate at which the kernel paces, bits per second (Linux 3.15); absent while nothing paces.
    pub pacing_rate_bps: Option<u64>,
    /// Bytes the peer acknowledged (Linux 4.1).
    pub bytes_acked: Option<u64>,
    /// Bytes received in order (Linux 4.1).
    pub bytes_received: Option<u64>,
    /// Bytes sent again (Linux 4.19).
    pub bytes_retransmitted: Option<u64>,
    /// Time with data to send (Linux 4.10).
    pub busy_us: Option<u64>,
    /// Part of [`Self::busy_us`] spent waiting for the peer's window (Linux 4.10).
    pub rwnd_limited_us: Option<u64>,
    /// Part of [`Self::busy_us`] spent waiting for our send buffer (Linux 4.10).
    pub sndbuf_limited_us: Option<u64>,
}

impl TcpInfo {
    /// Congestion window in bytes.
    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.snd_cwnd_segments) * u64::from(self.snd_mss_bytes)
    }

    /// Payload that has reached the peer since the connection began, in order or beyond a gap; full
    /// segments are assumed beyond a gap. `None` where the kernel does not count acknowledged
    /// bytes.
    pub fn delivered_bytes(&self) -> Option<u64> {
        let beyond_a_gap = u64::from(self.sacked_segments) * u64::from(self.snd_mss_bytes);
        Some(self.bytes_acked?.saturating_add(beyond_a_gap))
    }

    /// Bytes in flight.
    pub fn in_flight_bytes(&self) -> u64 {
        u64::from(self.in_flight_segments) * u64::from(self.snd_mss_bytes)
    }
}

/// Reads the kernel's state of a TCP connection. Cheap: 1 to 4 microseconds.
///
/// # Errors
/// The operating system's, for instance on a socket that is not TCP; `InvalidData` when the answer
/// is shorter than any kernel since Linux 2.6.10 gives.
pub fn tcp_info(fd: impl AsFd) -> Result<TcpInfo> {
    let mut answer = [0; SIZE];
    let len = TCP_INFO.get_bytes(fd, &mut answer)?;
    decode(&answer[..len])
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the kernel's answer is too short",
            )
        })
        .during(TCP_INFO.get, "")
}

const TCP_INFO: SocketOption = option!(IPPROTO_TCP, TCP_INFO);

/// Reads the kernel's answer. Older kernels give fewer bytes: what lies beyond is absent. `None`
/// when even the oldest fields are cut.
pub fn decode(answer: &[u8]) -> Option<TcpInfo> {
    let word = |at: usize| {
        answer
            .get(at..)?
            .first_chunk()
            .map(|bytes| u32::from_ne_bytes(*bytes))
    };
    let long = |at: usize| {
        answer
            .get(at..)?
            .first_chunk()
            .map(|bytes| u64::from_ne_bytes(*bytes))
    };

    let bits = |bytes_per_second: u64| bytes_per_second.saturating_mul(8);
    // As the kernel itself counts (`tcp_packets_in_flight`, include/net/tcp.h).
    let left = word(SACKED)?.saturating_add(word(LOST)?);
    let options = *answer.get(OPTIONS)?;
    let in_flight = word(UNACKED)?.saturating_sub(left);

    Some(TcpInfo {
        retransmits_total: word(TOTAL_RETRANS)?,
        snd_cwnd_segments: word(SND_CWND)?,
        in_flight_segments: in_flight.saturating_add(word(RETRANS)?),
        sacked_segments: word(SACKED)?,
        snd_mss_bytes: word(SND_MSS)?,
        advertised_mss_bytes: word(ADVMSS)?,
        rtt_us: word(RTT)?,
        rttvar_us: word(RTTVAR)?,
        pmtu_bytes: word(PMTU)?,
        snd_wnd_bytes: word(SND_WND),
        dsack_segments: word(DSACK_DUPS),
        reordering_segments: word(REORDERING)?,
        reorder_seen: word(REORD_SEEN),
        out_of_order_total: word(RCV_OOOPACK),
        ecn_negotiated: options & OPTION_ECN != 0,
        ecn_seen: options & OPTION_ECN_SEEN != 0,
        delivered_segments: word(DELIVERED),
        delivered_ce_segments: word(DELIVERED_CE),
        notsent_bytes: word(NOTSENT_BYTES),
        // All ones mean "no sample yet"; a measured rate is never 0.
        min_rtt_us: word(MIN_RTT).filter(|us| *us != u32::MAX),
        delivery_rate_bps: long(DELIVERY_RATE).filter(|rate| *rate != 0).map(bits),
        pacing_rate_bps: long(PACING_RATE).filter(|rate| *rate != u64::MAX).map(bits),
        bytes_acked: long(BYTES_ACKED),
        bytes_received: long(BYTES_RECEIVED),
        bytes_retransmitted: long(BYTES_RETRANS),
        busy_us: long(BUSY_TIME),
        rwnd_limited_us: long(RWND_LIMITED),
        sndbuf_limited_us: long(SNDBUF_LIMITED),
    })
}

// Offsets in `struct tcp_info` of `include/uapi/linux/tcp.h`, without the prefix `tcpi_`. It only
// grows, so they hold for every kernel.
const OPTIONS: usize = 5;
const SND_MSS: usize = 16;
const UNACKED: usize = 24;
const SACKED: usize = 28;
const LOST: usize = 32;
const RETRANS: usize = 36;
const PMTU: usize = 60;
const RTT: usize = 68;
const RTTVAR: usize = 72;
const SND_CWND: usize = 80;
const ADVMSS: usize = 84;
const REORDERING: usize = 88;
const TOTAL_RETRANS: usize = 100;
const PACING_RATE: usize = 104;
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
const NOTSENT_BYTES: usize = 144;
const MIN_RTT: usize = 148;
const DELIVERY_RATE: usize = 160;
const BUSY_TIME: usize = 168;
const RWND_LIMITED: usize = 176;
const SNDBUF_LIMITED: usize = 184;
const DELIVERED: usize = 192;
const DELIVERED_CE: usize = 196;
const BYTES_RETRANS: usize = 208;
const DSACK_DUPS: usize = 216;
const REORD_SEEN: usize = 220;
const RCV_OOOPACK: usize = 224;
const SND_WND: usize = 228;
/// `TCPI_OPT_ECN`.
const OPTION_ECN: u8 = 8;
/// `TCPI_OPT_ECN_SEEN`.
const OPTION_ECN_SEEN: u8 = 16;
/// Size up to Linux 5.19.
pub(crate) const SIZE: usize = 240;

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer in which every 32-bit word holds its own index.
    fn numbered(len: usize) -> Vec<u8> {
        (0..len.div_ceil(4) as u32)
            .flat_map(u32::to_ne_bytes)
            .take(len)
            .collect()
    }

    #[test]
    fn a_full_answer_fills_every_field() {
        let info = decode(&numbered(240)).expect("complete");
        assert_eq!(
            (
                info.snd_mss_bytes,
                info.pmtu_bytes,
                info.rtt_us,
                info.rttvar_us
            ),
            (4, 15, 17, 18)
        );
        assert_eq!((info.snd_cwnd_segments, info.retransmits_total), (20, 25));
        assert_eq!(
            (
                info.advertised_mss_bytes,
                info.reordering_segments,
                info.dsack_segments
            ),
            (21, 22, Some(54))
        );
        assert_eq!(
            (info.min_rtt_us, info.reorder_seen, info.snd_wnd_bytes),
            (Some(37), Some(55), Some(57))
        );
        assert_eq!(info.delivery_rate_bps, Some((40 | 41 << 32) * 8));
        assert_eq!(info.bytes_retransmitted, Some(52 | 53 << 32));
        assert_eq!(
            (
                info.notsent_bytes,
                info.delivered_segments,
                info.delivered_ce_segments
            ),
            (Some(36), Some(48), Some(49))
        );

        let long = |index: u64| Some(index | (index + 1) << 32);
        assert_eq!(
            (info.bytes_acked, info.bytes_received),
            (long(30), long(32))
        );
        assert_eq!(
            (info.busy_us, info.rwnd_limited_us, info.sndbuf_limited_us),
            (long(42), long(44), long(46))
        );
        assert_eq!((info.out_of_order_total, info.cwnd_bytes()), (Some(56), 80));

        // Words 6 to 9: nothing is left of 6 when 7 and 8 are subtracted, 9 were sent again.
        assert_eq!((info.in_flight_segments, info.in_flight_bytes()), (9, 36));
        // 7 segments of 4 bytes beyond a gap.
        assert_eq!(info.delivered_bytes(), long(30).map(|acked| acked + 28));
    }

    #[test]
    fn an_old_kernels_short_answer_leaves_later_fields_absent() {
        let info = decode(&numbered(104)).expect("Linux 2.6 gives 104 bytes");
        assert_eq!(info.retransmits_total, 25);
        assert_eq!(
            (info.pacing_rate_bps, info.min_rtt_us, info.snd_wnd_bytes),
            (None, None, None)
        );

        let info = decode(&numbered(192)).expect("Linux 4.10 gives 192 bytes");
        assert_eq!(
            (info.min_rtt_us, info.sndbuf_limited_us.is_some()),
            (Some(37), true)
        );
        assert_eq!((info.reorder_seen, info.snd_wnd_bytes), (None, None));
        assert_eq!(
            (
                info.notsent_bytes,
                info.delivered_segments,
                info.delivered_ce_segments
            ),
            (Some(36), None, None)
        );
        assert_eq!(
            decode(&numbered(147))
                .expect("cut inside a field")
                .notsent_bytes,
            None
        );
        assert_eq!(
            decode(&numbered(231))
                .expect("cut inside a field")
                .snd_wnd_bytes,
            None
        );
        assert_eq!(
            decode(&numbered(232)).expect("whole field").snd_wnd_bytes,
            Some(57)
        );
    }

    #[test]
    fn an_answer_without_the_oldest_fields_is_refused() {
        for len in [0, 1, 8, 103] {
            assert_eq!(decode(&numbered(len)), None, "{len} bytes");
        }
    }

    #[test]
    fn ecn_is_read_from_two_bits_among_the_options() {
        // Timestamps 1, selective acknowledgements 2, window scale 4, ECN 8, ECN seen 16
        // (include/uapi/linux/tcp.h).
        for (options, ecn) in [
            (7, (false, false)),
            (8 | 7, (true, false)),
            (16, (false, true)),
            (24, (true, true)),
        ] {
            let mut answer = vec![0; 104];
            answer[5] = options;
            let info = decode(&answer).expect("complete");
            assert_eq!((info.ecn_negotiated, info.ecn_seen), ecn, "{options}");
        }
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let mut answer = vec![0; 240];
        answer[MIN_RTT..][..4].fill(0xff);
        answer[PACING_RATE..][..8].fill(0xff);

        let info = decode(&answer).expect("complete");
        assert_eq!(
            (
                info.min_rtt_us,
                info.pacing_rate_bps,
                info.delivery_rate_bps
            ),
            (None, None, None)
        );
    }
}
