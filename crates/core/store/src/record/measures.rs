//! The measures of a trial.

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::measure::{self, MeasureName};
use linerate_model::record::{Measure, Way};
use linerate_model::{CpuUsage, EndpointTotals, Flow, Summary};

const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;

/// The measures of a throughput test.
pub(crate) fn of_test(
    summary: &Summary,
    header: &TestHeader,
    mss_bytes: impl Fn(Flow) -> Option<u32>,
) -> Vec<Measure> {
    let mut all = Vec::new();
    let mut add = |name, way, value: Option<f64>| {
        let value = value.filter(|value| value.is_finite());
        all.extend(value.map(|value| Measure::new(name, way, value)));
    };

    for flow in [Flow::Forward, Flow::Reverse] {
        let way = Way::from(flow);
        let sent = measure::sent(summary, flow);
        let received = measure::received(summary, flow);
        add(MeasureName::ReceivedBps, way, received.and_then(rate));
        add(MeasureName::SentBps, way, sent.and_then(rate));

        let retransmits = measure::retransmits(summary, flow);
        add(
            MeasureName::Retransmits,
            way,
            retransmits.map(|count| count as f64),
        );
        let mss_bytes = mss_bytes(flow).or(header.control_mss_bytes);
        let share = retransmits.zip(sent).zip(mss_bytes);
        let share = share
            .and_then(|((count, sent), mss)| measure::retransmit_share(count, sent.bytes, mss));
        add(MeasureName::RetransmitShare, way, share);

        let udp = received.and_then(|received| received.udp);
        let datagrams = measure::datagrams(summary, flow);
        add(
            MeasureName::LostShare,
            way,
            datagrams.and_then(|datagrams| datagrams.lost_share()),
        );
        add(
            MeasureName::OutOfOrder,
            way,
            udp.map(|udp| udp.out_of_order as f64),
        );
        add(
            MeasureName::JitterNs,
            way,
            udp.map(|udp| udp.jitter_s * 1e9),
        );
        add(
            MeasureName::RttMeanNs,
            way,
            measure::rtt_mean_us(summary, flow).map(|us| us * 1e3),
        );
        add(
            MeasureName::RttMinNs,
            way,
            measure::rtt_min_us(summary, flow).map(|us| us * 1e3),
        );
        add(
            MeasureName::FairnessJain,
            way,
            measure::fairness_jain(summary, flow),
        );
    }

    let (client, server) = match header.endpoint {
        Endpoint::Client => (summary.cpu_local, summary.cpu_remote),
        Endpoint::Server => (summary.cpu_remote, summary.cpu_local),
    };
    add(
        MeasureName::CpuClientCores,
        Way::Sum,
        client.map(measure::cpus),
    );
    add(
        MeasureName::CpuServerCores,
        Way::Sum,
        server.map(measure::cpus),
    );
    add(
        MeasureName::CpuSPerGib,
        Way::Sum,
        client
            .zip(server)
            .and_then(|both| cpu_s_per_gib(summary, both)),
    );

    all
}

fn rate(end: EndpointTotals) -> Option<f64> {
    (end.duration_ns > 0).then(|| end.bits_per_second())
}

/// CPU time of both ends per GiB that arrived.
fn cpu_s_per_gib(summary: &Summary, (client, server): (CpuUsage, CpuUsage)) -> Option<f64> {
    let ways = [Flow::Forward, Flow::Reverse].map(|flow| measure::received(summary, flow));
    let received = ways.iter().flatten();
    let (bytes, ns) = received.fold((0, 0), |(bytes, ns), end| {
        (bytes + end.bytes, end.duration_ns.max(ns))
    });
    let cpu_s = (measure::cpus(client) + measure::cpus(server)) * ns as f64 / 1e9;
    (bytes > 0).then(|| cpu_s * BYTES_PER_GIB / bytes as f64)
}
