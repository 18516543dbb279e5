//! Ceiling of the network: answers per second for a payload on a link.
//!
//! Every answer starts a segment of its own, so a small one pays for whole frames: its head and
//! body are cut into segments of at most MSS bytes, and each of them costs the bytes of its headers
//! and of the Ethernet frame around it.

use linerate_model::http::{Baseline, CellRun, Environment};

/// Preamble 8, addresses and type 14, checksum 4, gap 12 (IEEE 802.3).
const ETHERNET_BYTES: u32 = 38;
/// Tag of a VLAN (IEEE 802.1Q).
const VLAN_BYTES: u32 = 4;
/// Header of IPv4 without options (RFC 791).
const IPV4_BYTES: u32 = 20;
/// Header of IPv6 (RFC 8200).
const IPV6_BYTES: u32 = 40;
/// Header of TCP without options (RFC 9293).
const TCP_BYTES: u32 = 20;
/// The timestamps option with its padding (RFC 7323).
const TIMESTAMPS_BYTES: u32 = 12;
/// From here on acknowledgements and requests may slow down the answers where the directions share
/// or differ.
pub(crate) const OPPOSITE_SHARE_WARNING: f64 = 0.8;

/// An Ethernet link and what TCP puts on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Link {
    /// Speed in bit/s.
    pub bps: f64,
    /// Largest packet in bytes.
    pub mtu_bytes: u32,
    /// Packets are of IPv6.
    pub is_ipv6: bool,
    /// Every segment carries timestamps.
    pub has_timestamps: bool,
    /// Frames carry the tag of a VLAN.
    pub has_vlan: bool,
    /// Most bytes of payload in a segment as the kernel has it for the connections; `None` where
    /// that is not known. It may be less than fits into the packet: the path has a smaller MTU, or
    /// a router on it clamps the MSS.
    pub mss_measured_bytes: Option<u32>,
}

impl Link {
    /// A link of this speed with the usual rest: MTU 1500, IPv4, timestamps, no VLAN.
    pub(crate) fn of_speed(bps: f64) -> Self {
        Self {
            bps,
            mtu_bytes: 1500,
            is_ipv6: false,
            has_timestamps: true,
            has_vlan: false,
            mss_measured_bytes: None,
        }
    }

    /// The link between two hosts: the slower speed and the smaller packet of what is known of the
    /// two; `bps` instead of the speed where it is given. `None` on one host, and where neither
    /// speed nor packet size are known.
    pub(crate) fn between(
        client: &Environment,
        server: Option<&Environment>,
        is_ipv6: bool,
        bps: Option<f64>,
    ) -> Option<Self> {
        let ends = || std::iter::once(client).chain(server);
        if ends().any(|end| end.is_loopback) {
            return None;
        }

        Some(Self {
            bps: bps.or_else(|| {
                Some(
                    ends()
                        .filter_map(|end| end.link_bps)
                        .filter(|bps| *bps > 0)
                        .min()? as f64,
                )
            })?,
            mtu_bytes: ends().filter_map(|end| end.mtu_bytes).min()?,
            is_ipv6,
            // The option is used only where both ends offer it (RFC 7323, section 3.2).
            has_timestamps: ends().all(|end| end.timestamps != Some(0)),
            has_vlan: ends().any(|end| end.is_vlan == Some(true)),
            mss_measured_bytes: None,
        })
    }

    /// This link, with the segments that these runs had.
    #[must_use]
    pub(crate) fn with_segments_of(self, runs: &[CellRun]) -> Self {
        let ends = runs
            .iter()
            .flat_map(|run| std::iter::once(&run.client).chain(&run.server));
        Self {
            mss_measured_bytes: ends
                .filter_map(|end| end.mss_bytes)
                .filter(|mss| *mss > 0)
                .min(),
            ..self
        }
    }

    /// Most bytes of payload in a segment; `None` when the headers alone fill the packet.
    pub(crate) fn mss_bytes(&self) -> Option<u32> {
        let most = self
            .mtu_bytes
            .checked_sub(self.header_bytes())
            .filter(|mss| *mss > 0)?;
        Some(
            self.mss_measured_bytes
                .map_or(most, |measured| measured.min(most)),
        )
    }

    /// Bytes on the wire of a frame that is full.
    pub(crate) fn full_frame_bytes(&self) -> u32 {
        let packet_bytes = self.mss_bytes().map(|mss| mss + self.header_bytes());
        packet_bytes
            .unwrap_or(self.mtu_bytes)
            .saturating_add(self.framing_bytes())
    }

    /// Bytes on the wire of every frame beside the payload of TCP.
    pub(crate) fn overhead_bytes(&self) -> u32 {
        self.framing_bytes() + self.header_bytes()
    }

    /// Payload of TCP in bit/s when every frame is full; `None` where no payload fits.
    pub(crate) fn goodput_bps(&self) -> Option<f64> {
        Some(self.bps * f64::from(self.mss_bytes()?) / f64::from(self.full_frame_bytes()))
    }

    /// Bits per second on the wire of these bytes per second of HTTP, at least: when every frame
    /// is full.
    pub(crate) fn wire_bps_of(&self, http_bytes_per_s: f64) -> Option<f64> {
        Some(
            8.0 * http_bytes_per_s * f64::from(self.full_frame_bytes())
                / f64::from(self.mss_bytes()?),
        )
    }

    fn header_bytes(&self) -> u32 {
        let options = if self.has_timestamps {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        let ip = if self.is_ipv6 { IPV6_BYTES } else { IPV4_BYTES };
        ip + TCP_BYTES + options
    }

    fn framing_bytes(&self) -> u32 {
        ETHERNET_BYTES + if self.has_vlan { VLAN_BYTES } else { 0 }
    }
}

/// Most that TCP alone reached in the direction of the answers, in bit/s of payload; 0 without such
/// a test.
pub(crate) fn reached_bps(baseline: &[Baseline]) -> f64 {
    baseline
        .iter()
        .filter(|test| test.is_reverse)
        .map(|test| test.goodput_bps)
        .fold(0.0, f64::max)
}

/// Share of the link that TCP alone reached in the direction of the answers, at most 1; 1 without
/// such a test.
pub(crate) fn reached_share(baseline: &[Baseline], link: &Link) -> f64 {
    let reached = reached_bps(baseline);
    match link.goodput_bps() {
        Some(theory) if reached > 0.0 && theory > 0.0 => (reached / theory).min(1.0),
        _ => 1.0,
    }
}

/// Rule for segments: an answer may or may not share one with the answer before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segments {
    /// Every answer begins one: one request at a time on a connection.
    Own,
    /// Answers follow each other without a gap: pipelining, HTTP/2.
    Shared,
}

/// Upper bound of the use of a link by answers of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ceiling {
    link: Link,
    mss_bytes: u64,
    reached: f64,
    segments: Segments,
}

impl Ceiling {
    /// The ceiling of a link of which TCP alone reaches this share (see [`reached_share`]). `None`
    /// where no payload fits into a packet.
    pub(crate) fn new(link: Link, reached: f64, segments: Segments) -> Option<Self> {
        Some(Self {
            link,
            mss_bytes: u64::from(link.mss_bytes()?),
            reached,
            segments,
        })
    }

    /// Most answers per second. The bytes of the head are those measured, not assumed.
    pub(crate) fn responses_per_s(&self, header_bytes: u64, payload_bytes: u64) -> f64 {
        self.reached * self.link.bps / self.bits_per_response(header_bytes, payload_bytes)
    }

    /// Bits on the wire of an answer, with all headers and the frames around them.
    pub(crate) fn bits_per_response(&self, header_bytes: u64, payload_bytes: u64) -> f64 {
        // An answer of no bytes would have an infinite rate.
        let answer = header_bytes.saturating_add(payload_bytes).max(1);
        8.0 * self.wire_bytes(answer, self.segments)
    }

    /// Share of the link in the direction of the requests at this many answers per second: the
    /// requests themselves, and one acknowledgement for two segments of an answer. Receive offload
    /// lowers it.
    pub(crate) fn opposite_share(
        &self,
        responses_per_s: f64,
        request_bytes: u64,
        response_bytes: u64,
    ) -> f64 {
        let acknowledgements = self.segments_of(response_bytes).div_ceil(2) as f64;
        let each =
            self.wire_bytes(request_bytes, self.segments) + self.overhead() * acknowledgements;
        8.0 * responses_per_s * each / self.link.bps
    }

    fn wire_bytes(&self, bytes: u64, segments: Segments) -> f64 {
        match segments {
            Segments::Own => bytes as f64 + self.overhead() * self.segments_of(bytes) as f64,
            Segments::Shared => {
                bytes as f64 * f64::from(self.link.full_frame_bytes()) / self.mss_bytes as f64
            }
        }
    }

    fn segments_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss_bytes)
    }

    fn overhead(&self) -> f64 {
        f64::from(self.link.overhead_bytes())
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::http::EndpointStats;

    use super::*;
    use crate::plan::estimate::usual_header_bytes;

    const KIB: u64 = 1024;

    fn gigabit() -> Ceiling {
        Ceiling::new(Link::of_speed(1e9), 1.0, Segments::Own).expect("a payload fits")
    }

    fn responses_per_s(ceiling: &Ceiling, payload_bytes: u64) -> f64 {
        ceiling.responses_per_s(usual_header_bytes(payload_bytes), payload_bytes)
    }

    /// The published table of a gigabit between two small hosts. Its first column of throughput
    /// counts heads as well and is in MiB/s, its second counts bodies alone and is in MB/s, though
    /// both are labelled MB/s.
    #[test]
    fn the_published_numbers_are_those_of_the_model_each_in_its_own_unit() {
        for (payload_bytes, computed, rps, mib_per_s_with_heads, mb_per_s_of_bodies) in [
            (KIB, 101_461.0, 101_431.0, 110.47, 103.8),
            (10 * KIB, 11_283.0, 11_281.0, 111.45, 115.5),
            (100 * KIB, 1_148.0, 1_147.0, 112.20, 117.5),
        ] {
            let model = responses_per_s(&gigabit(), payload_bytes);
            assert!(
                (model - computed).abs() <= 1.0,
                "{payload_bytes} B: {model}"
            );
            let body = payload_bytes as f64;
            let answer = body + usual_header_bytes(payload_bytes) as f64;

            for (published, of_model) in [
                (rps, model),
                (mib_per_s_with_heads, model * answer / f64::from(1 << 20)),
                (mb_per_s_of_bodies, model * body / 1e6),
            ] {
                let off = (of_model / published - 1.0).abs();
                assert!(
                    off <= 0.001,
                    "{payload_bytes} B: {published} published, {of_model} of the model"
                );
            }
        }
    }

    fn link(change: fn(&mut Link)) -> Link {
        let mut link = Link::of_speed(1e9);
        change(&mut link);
        link
    }

    #[test]
    fn header_and_segment_sizes_follow_from_ip_version_timestamps_vlan_and_measured_segments() {
        for (link, mss, overhead, full_frame) in [
            (link(|_| ()), 1448, 90, 1538),
            (link(|link| link.is_ipv6 = true), 1428, 110, 1538),
            (link(|link| link.has_timestamps = false), 1460, 78, 1538),
            (link(|link| link.has_vlan = true), 1448, 94, 1542),
            (
                link(|link| link.mss_measured_bytes = Some(988)),
                988,
                90,
                1078,
            ),
            (
                link(|link| link.mss_measured_bytes = Some(1448)),
                1448,
                90,
                1538,
            ),
            (
                link(|link| link.mss_measured_bytes = Some(8948)),
                1448,
                90,
                1538,
            ),
        ] {
            let found = (
                link.mss_bytes(),
                link.overhead_bytes(),
                link.full_frame_bytes(),
            );
            assert_eq!(found, (Some(mss), overhead, full_frame), "{link:?}");
        }

        let goodput = link(|_| ()).goodput_bps().expect("fits");
        assert!((goodput - 941.48e6).abs() < 0.01e6, "{goodput}");
        let clamped = link(|link| link.mss_measured_bytes = Some(988));
        let ceiling = Ceiling::new(clamped, 1.0, Segments::Own).expect("fits");

        // 1142 bytes of answer in two segments.
        let expected = 1e9 / 8.0 / (1142.0 + 2.0 * 90.0);
        assert!((responses_per_s(&ceiling, KIB) - expected).abs() < 1e-6);
    }

    #[test]
    fn the_segments_of_a_run_are_the_smaller_ones_of_its_two_ends() {
        let end = |mss_bytes| EndpointStats {
            mss_bytes,
            ..EndpointStats::default()
        };
        let runs = |client, server| {
            let mut run = crate::conclude::tests::fixture::done(1, 100.0);
            (run.client, run.server) = (end(client), Some(end(server)));
            Link::of_speed(1e9).with_segments_of(&[run]).mss_bytes()
        };
        assert_eq!(runs(Some(1448), Some(988)), Some(988));
        assert_eq!(runs(Some(988), None), Some(988), "without an agent");
        assert_eq!(runs(None, None), Some(1448), "nothing was read");
    }

    #[test]
    fn a_packet_without_room_for_payload_has_no_ceiling() {
        let tiny = link(|link| link.mtu_bytes = 52);
        assert_eq!(tiny.mss_bytes(), None);
        assert_eq!(Ceiling::new(tiny, 1.0, Segments::Own), None);
        assert_eq!(tiny.goodput_bps(), None);
    }

    #[test]
    fn pipelined_answers_share_segments_and_so_more_fit() {
        let shared = Ceiling::new(Link::of_speed(1e9), 1.0, Segments::Shared).expect("fits");
        let found = responses_per_s(&shared, KIB);
        assert!(
            (found - 1e9 / 8.0 / (1142.0 * 1538.0 / 1448.0)).abs() < 0.1,
            "{found}"
        );
        assert!(found > responses_per_s(&gigabit(), KIB));
    }

    #[test]
    fn what_tcp_alone_does_not_reach_http_does_not_reach_either() {
        let link = Link::of_speed(1e9);
        let theory = link.goodput_bps().expect("fits");

        let test = |is_reverse, share: f64| Baseline {
            is_reverse,
            streams: 1,
            goodput_bps: theory * share,
            ..Baseline::default()
        };
        assert!(
            (reached_share(
                &[test(true, 0.5), test(true, 0.8), test(false, 0.99)],
                &link
            ) - 0.8)
                .abs()
                < 1e-9
        );
        assert!((reached_share(&[test(true, 1.02)], &link) - 1.0).abs() < 1e-9);
        assert!((reached_share(&[test(false, 0.5)], &link) - 1.0).abs() < 1e-9);

        let ceiling = Ceiling::new(link, 0.8, Segments::Own).expect("fits");
        assert!(
            (responses_per_s(&ceiling, KIB) / responses_per_s(&gigabit(), KIB) - 0.8).abs() < 1e-9
        );
    }

    #[test]
    fn small_answers_load_the_way_of_the_requests_more_than_large_ones() {
        let small = gigabit().opposite_share(101_461.0, 60, 1142);
        assert!(
            (small - 101_461.0 * 8.0 * (150.0 + 90.0) / 1e9).abs() < 1e-9,
            "{small}"
        );
        let large = gigabit().opposite_share(1_148.0, 60, 102_520);
        let expected = 1_148.0 * 8.0 * (150.0 + 90.0 * 36.0) / 1e9;
        assert!((large - expected).abs() < 1e-9, "{large}");
        assert!(small > large);
    }

    #[test]
    fn the_link_between_two_hosts_is_the_lesser_of_what_is_known() {
        let end = |link_bps, mtu_bytes| {
            let mut end = Environment::default();
            (end.link_bps, end.mtu_bytes) = (link_bps, mtu_bytes);
            end
        };
        let fast = end(Some(10_000_000_000), Some(9000));
        let slow = end(Some(1_000_000_000), Some(1500));
        let link = Link::between(&fast, Some(&slow), false, None).expect("both are known");
        assert_eq!((link.bps, link.mtu_bytes), (1e9, 1500));

        let alone = Link::between(&fast, None, true, None).expect("one is known");
        assert_eq!(alone.bps, 1e10);
        assert_eq!(
            Link::between(&end(None, Some(1500)), None, false, None),
            None
        );

        let mut tagged = slow.clone();
        tagged.is_vlan = Some(true);
        assert!(!link.has_vlan);
        assert!(Link::between(&fast, Some(&tagged), false, None).is_some_and(|link| link.has_vlan));
        assert!(Link::between(&tagged, None, false, None).is_some_and(|link| link.has_vlan));

        let mut loopback = fast;
        loopback.is_loopback = true;
        let given = Link::between(&end(None, Some(1500)), None, false, Some(2e9));
        assert_eq!(given.map(|link| link.bps), Some(2e9));
        assert_eq!(Link::between(&loopback, Some(&slow), false, None), None);
    }

    #[test]
    fn the_usual_head_grows_with_the_digits_of_the_length() {
        let rows = [
            (0, 115),
            (9, 115),
            (10, 116),
            (1024, 118),
            (10_240, 119),
            (102_400, 120),
        ];
        for (payload_bytes, header_bytes) in rows {
            assert_eq!(usual_header_bytes(payload_bytes), header_bytes);
        }
    }
}
