//! To the wire: the key set and key order of release 3.21, without white space.

use linerate_model::Transport;
use linerate_model::spec::{SendPath, SequenceCheck};
use serde::Serialize;

use super::{FIRST_OF_BURST, Params};

/// The declared layout: a field that is `None` is a key that is not sent.
#[derive(Serialize)]
struct Wire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sctp: Option<bool>,
    omit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_affinity: Option<u32>,
    time: u32,
    num: u64,
    blockcount: u64,
    #[serde(rename = "MSS", skip_serializing_if = "Option::is_none")]
    mss: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodelay: Option<bool>,
    parallel: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bidirectional: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mptcp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u32>,
    len: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fqrate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_timer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u32>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    offload: Option<WireOffload>,
    #[serde(rename = "TOS", skip_serializing_if = "Option::is_none")]
    tos: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flowlabel: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    get_server_output: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp_counters_64bit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeating_payload: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zerocopy: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dont_fragment: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authtoken: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_rx_copy: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    linerate: Option<WireLinerate>,
}

#[derive(Serialize)]
struct WireOffload {
    gso: u32,
    gso_dg_size: u32,
    gso_bf_size: u32,
    gro: u32,
    gro_bf_size: u32,
}

#[derive(Serialize)]
struct WireLinerate {
    protocol: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    send_path: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coalesce: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp_check: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<bool>,
}

impl Params {
    /// The JSON text a client sends, without its length.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.wire()).expect("plain fields always serialise")
    }

    fn wire(&self) -> Wire<'_> {
        let carried_by = |transport| (self.transport == transport).then_some(true);
        let offload = self.offload;
        Wire {
            tcp: carried_by(Transport::Tcp),
            udp: carried_by(Transport::Udp),
            sctp: carried_by(Transport::Sctp),
            omit: self.omit_s,
            server_affinity: self.server_affinity,
            time: self.time_s,
            num: self.num_bytes,
            blockcount: self.block_count,
            mss: self.mss_bytes,
            nodelay: self.no_delay.then_some(true),
            parallel: self.parallel,
            reverse: self.reverse.then_some(true),
            bidirectional: self.bidirectional.then_some(true),
            mptcp: self.mptcp.then_some(true),
            window: self.window_bytes,
            len: self.len_bytes,
            bandwidth: (self.bandwidth_bps != 0).then_some(self.bandwidth_bps),
            fqrate: (self.fq_rate_bps != 0).then_some(self.fq_rate_bps),
            pacing_timer: (self.pacing_timer_us != 0).then_some(self.pacing_timer_us),
            burst: self.burst,
            offload: (self.transport == Transport::Udp).then_some(WireOffload {
                gso: offload.gso,
                gso_dg_size: offload.gso_datagram_bytes,
                gso_bf_size: offload.gso_buffer_bytes,
                gro: offload.gro,
                gro_bf_size: offload.gro_buffer_bytes,
            }),
            tos: (self.tos != 0).then_some(self.tos),
            flowlabel: self.flow_label,
            title: self.title.as_deref(),
            extra_data: self.extra_data.as_deref(),
            congestion: self.congestion.as_deref(),
            get_server_output: self.get_server_output.then_some(1),
            udp_counters_64bit: self.udp_counters_64bit.then_some(1),
            repeating_payload: self.repeating_payload.then_some(1),
            zerocopy: (self.send_path == SendPath::SendFile).then_some(1),
            dont_fragment: self.dont_fragment.then_some(1),
            authtoken: self.auth_token.as_deref(),
            skip_rx_copy: self.skip_rx_copy.then_some(1),
            client_version: self.client_version.as_deref(),
            linerate: self.linerate_protocol.map(|protocol| WireLinerate {
                protocol,
                send_path: (self.send_path != SendPath::Auto).then(|| self.send_path.name()),
                coalesce: self.coalesce.then_some(true),
                udp_check: (self.udp_check == SequenceCheck::FirstOfBurst).then_some(FIRST_OF_BURST),
                facts: self.want_facts.then_some(true),
            }),
        }
    }
}
