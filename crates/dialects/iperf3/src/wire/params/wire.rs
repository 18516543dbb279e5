//! To the wire: the key set and key order of release 3.22, without white space.

use linerate_model::Transport;
use linerate_model::spec::{SendPath, SequenceCheck};
use serde_json::{Map, Value};

use super::{FIRST_OF_BURST, Params};

/// A key, and its value unless the key is not sent.
type Member = (&'static str, Option<Value>);

impl Params {
    /// The JSON text a client sends, without its length.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.members()).expect("plain values always serialise")
    }

    fn members(&self) -> Map<String, Value> {
        let carried_by = |transport| flag(self.transport == transport);
        let offload = |value: u32| (self.transport == Transport::Udp).then_some(Value::from(value));
        object([
            ("tcp", carried_by(Transport::Tcp)),
            ("udp", carried_by(Transport::Udp)),
            ("sctp", carried_by(Transport::Sctp)),
            ("omit", Some(self.omit_s.into())),
            ("server_affinity", self.server_affinity.map(Value::from)),
            ("time", Some(self.time_s.into())),
            ("num", Some(self.num_bytes.into())),
            ("blockcount", Some(self.block_count.into())),
            ("MSS", self.mss_bytes.map(Value::from)),
            ("nodelay", flag(self.no_delay)),
            ("parallel", Some(self.parallel.into())),
            ("reverse", flag(self.reverse)),
            ("bidirectional", flag(self.bidirectional)),
            ("mptcp", flag(self.mptcp)),
            ("window", self.window_bytes.map(Value::from)),
            ("len", Some(self.len_bytes.into())),
            ("bandwidth", non_zero(self.bandwidth_bps)),
            ("fqrate", non_zero(self.fq_rate_bps)),
            ("pacing_timer", non_zero(self.pacing_timer_us.into())),
            ("burst", self.burst.map(Value::from)),
            ("gso", offload(self.offload.gso)),
            ("gso_dg_size", offload(self.offload.gso_datagram_bytes)),
            ("gso_bf_size", offload(self.offload.gso_buffer_bytes)),
            ("gro", offload(self.offload.gro)),
            ("gro_bf_size", offload(self.offload.gro_buffer_bytes)),
            ("TOS", non_zero(self.tos.into())),
            ("flowlabel", self.flow_label.map(Value::from)),
            ("title", text(self.title.as_ref())),
            ("extra_data", text(self.extra_data.as_ref())),
            ("congestion", text(self.congestion.as_ref())),
            ("get_server_output", switch(self.get_server_output)),
            ("udp_counters_64bit", switch(self.udp_counters_64bit)),
            ("repeating_payload", switch(self.repeating_payload)),
            ("zerocopy", switch(self.send_path == SendPath::SendFile)),
            ("dont_fragment", switch(self.dont_fragment)),
            ("authtoken", text(self.auth_token.as_ref())),
            ("skip_rx_copy", switch(self.skip_rx_copy)),
            ("client_version", text(self.client_version.as_ref())),
            (
                "linerate",
                self.linerate_protocol
                    .map(|protocol| self.additions(protocol)),
            ),
        ])
    }

    fn additions(&self, protocol: u32) -> Value {
        let checks_bursts = self.udp_check == SequenceCheck::FirstOfBurst;
        Value::Object(object([
            ("protocol", Some(protocol.into())),
            (
                "send_path",
                (self.send_path != SendPath::Auto).then(|| self.send_path.name().into()),
            ),
            ("coalesce", flag(self.coalesce)),
            ("udp_check", checks_bursts.then(|| FIRST_OF_BURST.into())),
            ("facts", flag(self.want_facts)),
        ]))
    }
}

fn object<const N: usize>(members: [Member; N]) -> Map<String, Value> {
    members
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

fn flag(is_on: bool) -> Option<Value> {
    is_on.then_some(Value::Bool(true))
}

/// A switch that travels as 1.
fn switch(is_on: bool) -> Option<Value> {
    is_on.then(|| 1.into())
}

fn non_zero(number: u64) -> Option<Value> {
    (number != 0).then(|| number.into())
}

fn text(text: Option<&String>) -> Option<Value> {
    text.map(|text| text.as_str().into())
}
