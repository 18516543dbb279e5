//! Resources of the agreed test of a client.

use std::net::IpAddr;
use std::time::Duration;

use linerate_iperf3::wire::Params;
use linerate_iperf3::wire::server::AcceptedTest;
use linerate_model::network::Network;
use linerate_model::{Direction, Transport};

use crate::server::{QuotaRequest, Requirements};

pub(super) fn of(address: IpAddr, test: &AcceptedTest) -> QuotaRequest {
    let params = &test.params;
    let blocks = params
        .block_count
        .saturating_mul(u64::from(params.len_bytes));
    QuotaRequest {
        address: Network::of_client(address),
        user: test.user.clone(),
        streams: test.spec.total_streams(),
        duration: planned(params),
        bytes: params.num_bytes.max(blocks),
        last_blocks_bytes: u64::from(params.len_bytes)
            .saturating_mul(u64::from(test.spec.total_streams())),
        rate_bps: announced_rate_bps(test),
        requirements: Requirements::of(&test.spec, test.spec.total_streams()),
    }
}

/// A UDP sender without a rate takes all there is, and a receiver cannot slow it down.
fn announced_rate_bps(test: &AcceptedTest) -> u64 {
    let client_sends = test.spec.direction != Direction::Reverse;
    match test.params.requested_rate_bps() {
        0 if test.spec.transport == Transport::Udp && client_sends => u64::MAX,
        announced => announced,
    }
}

/// Length of the whole test; `None` without a time limit.
pub(super) fn planned(params: &Params) -> Option<Duration> {
    (params.time_s > 0)
        .then(|| Duration::from_secs(u64::from(params.time_s) + u64::from(params.omit_s)))
}
