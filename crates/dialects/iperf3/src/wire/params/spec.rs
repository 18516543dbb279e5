//! Between the parameters of the wire and the specification everybody else works with.

use std::time::Duration;

use linerate_model::spec::{ClientSpec, Pacing, Payload, Segmentation, SocketTuning, UdpOptions};
use linerate_model::{Direction, EndCondition, TestSpec, Transport};

use super::{
    DEFAULT_BLOCK_LEN_BYTES, LINERATE_PROTOCOL, MAX_UDP_BLOCK_LEN_BYTES, MIN_UDP_BLOCK_LEN_BYTES,
    Params, UdpOffload,
};

/// Version text for servers. They only print it, so the release we imitate comes first.
const CLIENT_VERSION: &str = concat!("3.22 (linerate ", env!("CARGO_PKG_VERSION"), ")");

/// Most datagrams of one segmented buffer (`UDP_MAX_SEGMENTS`, udp(7)).
const MAX_SEGMENTS: u32 = 128;

impl Params {
    /// Parameters of a client. `block_len_bytes` is the block length after all facts of the path
    /// is known. Times are whole seconds on the wire; fractions are cut.
    pub fn from_client(
        client: &ClientSpec,
        block_len_bytes: u32,
        auth_token: Option<String>,
    ) -> Self {
        let test = &client.test;
        let (time, num_bytes, block_count) = test.end.amounts();

        Self {
            transport: test.transport,
            omit_s: whole_seconds(test.omit),
            server_affinity: client.server_cpu,
            time_s: whole_seconds(time),
            num_bytes,
            block_count,
            mss_bytes: test.socket.mss_bytes,
            no_delay: test.socket.no_delay,
            parallel: test.streams,
            reverse: test.direction == Direction::Reverse,
            bidirectional: test.direction == Direction::Bidirectional,
            mptcp: test.mptcp,
            window_bytes: test.socket.window_bytes,
            len_bytes: block_len_bytes,
            bandwidth_bps: test.pacing.rate_bps.unwrap_or(0),
            fq_rate_bps: test.pacing.fq_rate_bps.unwrap_or(0),
            pacing_timer_us: test.pacing.timer_us,
            burst: test.pacing.burst_blocks,
            offload: offload(&test.udp, block_len_bytes),
            tos: test.socket.tos,
            flow_label: test.socket.flow_label,
            title: test.title.clone(),
            extra_data: test.extra_data.clone(),
            congestion: test.socket.congestion.clone(),
            get_server_output: test.want_server_output,
            udp_counters_64bit: test.udp.counters_64bit,
            repeating_payload: test.payload == Payload::Repeating,
            send_path: test.send_path,
            dont_fragment: test.socket.dont_fragment,
            auth_token,
            skip_rx_copy: test.skip_rx_copy,
            client_version: Some(CLIENT_VERSION.to_owned()),
            linerate_protocol: Some(LINERATE_PROTOCOL),
            coalesce: test.coalesce,
            udp_check: test.udp.check,
            want_facts: test.want_peer_facts,
        }
    }

    /// The test these parameters describe, as a server runs it.
    pub fn to_spec(&self) -> TestSpec {
        TestSpec {
            transport: self.transport,
            mptcp: self.mptcp,
            direction: self.direction(),
            streams: self.parallel,
            end: self.end(),
            omit: Duration::from_secs(u64::from(self.omit_s)),
            block_len_bytes: self.len_bytes,
            // Clients always send a length, so only another one than the default is a request.
            block_len_explicit: self.transport == Transport::Udp
                || self.len_bytes != DEFAULT_BLOCK_LEN_BYTES,
            pacing: Pacing {
                rate_bps: non_zero(self.bandwidth_bps),
                burst_blocks: self.burst,
                fq_rate_bps: non_zero(self.fq_rate_bps),
                timer_us: self.pacing_timer_us,
            },
            socket: SocketTuning {
                window_bytes: self.window_bytes,
                mss_bytes: self.mss_bytes,
                no_delay: self.no_delay,
                congestion: self.congestion.clone(),
                tos: self.tos,
                flow_label: self.flow_label,
                dont_fragment: self.dont_fragment,
                ..SocketTuning::default()
            },
            payload: if self.repeating_payload {
                Payload::Repeating
            } else {
                Payload::Random
            },
            send_path: self.send_path,
            coalesce: self.coalesce,
            skip_rx_copy: self.skip_rx_copy,
            udp: self.udp_options(),
            title: self.title.clone(),
            extra_data: self.extra_data.clone(),
            want_server_output: self.get_server_output,
            want_peer_facts: self.want_facts,
            ..TestSpec::default()
        }
    }

    fn direction(&self) -> Direction {
        match (self.bidirectional, self.reverse) {
            (true, _) => Direction::Bidirectional,
            (false, true) => Direction::Reverse,
            (false, false) => Direction::Forward,
        }
    }

    fn end(&self) -> EndCondition {
        if self.num_bytes != 0 {
            EndCondition::Bytes(self.num_bytes)
        } else if self.block_count != 0 {
            EndCondition::Blocks(self.block_count)
        } else if self.time_s != 0 {
            EndCondition::Duration(Duration::from_secs(u64::from(self.time_s)))
        } else {
            EndCondition::Unlimited
        }
    }

    fn udp_options(&self) -> UdpOptions {
        if self.transport != Transport::Udp {
            return UdpOptions::default();
        }

        let offload = self.offload;
        let bounded = |datagram_bytes: u32, buffer_bytes: u32| Segmentation {
            datagram_bytes,
            buffer_bytes: buffer_bytes
                .max(datagram_bytes)
                .min(MAX_UDP_BLOCK_LEN_BYTES),
        };

        UdpOptions {
            counters_64bit: self.udp_counters_64bit,
            // Whatever the client asks for, a datagram is one block: receivers count on it.
            gso: (offload.gso != 0).then(|| bounded(self.len_bytes, offload.gso_buffer_bytes)),
            gro: (offload.gro != 0).then(|| bounded(self.len_bytes, offload.gro_buffer_bytes)),
            check: self.udp_check,
        }
    }
}

/// The offload keys for blocks of this length. A buffer of 0 bytes in the request means as
/// many as fit.
fn offload(udp: &UdpOptions, block_len_bytes: u32) -> UdpOffload {
    let datagram_bytes = block_len_bytes.clamp(MIN_UDP_BLOCK_LEN_BYTES, MAX_UDP_BLOCK_LEN_BYTES);
    let fitting_bytes =
        (MAX_UDP_BLOCK_LEN_BYTES / datagram_bytes).min(MAX_SEGMENTS) * datagram_bytes;
    let mut offload = UdpOffload::default();

    if let Some(gso) = udp.gso {
        offload.gso = 1;
        offload.gso_datagram_bytes = datagram_bytes;
        offload.gso_buffer_bytes = if gso.buffer_bytes == 0 {
            fitting_bytes
        } else {
            gso.buffer_bytes
        };
    }

    // A receiver has no say in the size of datagrams: only its buffer travels.
    if let Some(gro) = udp.gro {
        offload.gro = 1;
        offload.gro_buffer_bytes = if gro.buffer_bytes == 0 {
            MAX_UDP_BLOCK_LEN_BYTES
        } else {
            gro.buffer_bytes
        };
    }

    offload
}

fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

fn non_zero(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}
