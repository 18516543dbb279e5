//! Conditions between the hosts: policers, queues, hashing, loss.

mod directions;
mod hashing;
mod loss;
mod narrowest_hop;
mod policer;

use linerate_model::finding::{Confidence, Severity};

use crate::rule::Rule;
pub(crate) use narrowest_hop::narrowest_hop;

pub(super) const RULES: &[Rule] = &[
    Rule::run(
        "PATH-01",
        Severity::High,
        "A policer drops above its rate",
        policer::path_01,
    )
    .at_most(Confidence::Medium)
    .explanation(
        "Fast at first, then steady at a lower rate with losses and without a growing queue: the \
         pattern of a token bucket that drops. Pacing at its rate avoids the losses.",
    )
    .reference("Flach and others, An Internet-Wide Analysis of Traffic Policing, 2016"),
    Rule::scope(
        "PATH-09",
        Severity::Info,
        "The narrowest hop of the path sets the rate",
        narrowest_hop::path_09,
    )
    .explanation(
        "The rate is steady, and the round trip or the loss rises with the load, while both hosts \
         have time left and none of their shapers has this rate. Nothing in these two hosts can be \
         tuned for more.",
    )
    .reference("RFC 6349, section 3; RFC 9097"),
    Rule::run(
        "PATH-10",
        Severity::High,
        "The path between the hosts is the limit",
        loss::path_10,
    )
    .explanation(
        "The sender had data outstanding all the time, and neither host was at a limit of its own. \
         The network between them remains.",
    )
    .reference("kernel networking/tcp_info, tcpi_busy_time; RFC 9438"),
    Rule::run(
        "PATH-11",
        Severity::High,
        "Datagrams are lost between the hosts",
        loss::path_11,
    )
    .explanation(
        "Neither the sender's queue nor the firewall, the NIC, the backlog or the socket of the \
         receiver dropped most of the lost datagrams. What is left is the network between the \
         hosts.",
    )
    .reference("kernel networking/snmp_counter, UdpRcvbufErrors; RFC 7680"),
    Rule::host(
        "FW-01",
        Severity::High,
        "The firewall of this host drops packets",
        loss::fw_01,
    )
    .explanation(
        "Rules of this host's own firewall dropped packets while the test ran. This loss is no \
         loss of the network.",
    )
    .reference("nft(8), counter"),
    Rule::run(
        "PATH-02",
        Severity::Medium,
        "A deep queue fills on the path",
        policer::path_02,
    )
    .explanation(
        "The round trip grows several times under load. Throughput does not suffer, but every flow \
         through the queue is delayed.",
    )
    .reference("RFC 8290, RFC 8033"),
    Rule::host(
        "PATH-03",
        Severity::Medium,
        "One flow cannot fill the aggregate",
        hashing::path_03,
    )
    .explanation(
        "Bonds and equal-cost paths send one flow over one member. Several flows spread, one does \
         not.",
    )
    .reference("kernel networking/bonding, xmit_hash_policy"),
    Rule::run(
        "PATH-12",
        Severity::High,
        "All streams share one member of a bond",
        hashing::path_12,
    )
    .explanation(
        "This hash policy chooses the member by addresses alone, which all streams to one host \
         have in common. More streams do not use more members.",
    )
    .reference("kernel networking/bonding, xmit_hash_policy"),
    Rule::host(
        "PATH-13",
        Severity::High,
        "Probes are lost on the path",
        loss::path_13,
    )
    .at_most(Confidence::Medium)
    .explanation(
        "Echo requests to the peer are lost, from one hop on where the hops are known. Loss at one \
         hop alone is a router that limits its answers and no loss of the path.",
    )
    .reference("mtr(8); ping(8); RFC 7680"),
    Rule::run(
        "PATH-06",
        Severity::High,
        "Random loss limits TCP",
        loss::path_06,
    )
    .explanation(
        "The measured rate is what this loss and this round trip allow. The packets are lost \
             on the path, not in the hosts.",
    )
    .reference("Mathis and others, 1997; RFC 9438"),
    Rule::run(
        "PATH-07",
        Severity::Medium,
        "Packets are reordered",
        directions::path_07,
    )
    .explanation(
        "Packets arrive out of order and TCP retransmits segments that were not lost. A hop or a \
         bond balances load per packet.",
    )
    .reference("RFC 8985, RFC 2883"),
    Rule::run(
        "PATH-14",
        Severity::High,
        "The rate is that of a slower link",
        directions::path_14,
    )
    .at_most(Confidence::Medium)
    .explanation(
        "The rate is steady at what a link of a lower speed carries, and the link of this host is \
         faster. Either a hop on the path has that speed, or the test leaves through another \
         interface.",
    )
    .reference("IEEE 802.3 clause 4.4.2; ip-route(8), `ip route get`"),
    Rule::scope(
        "PATH-15",
        Severity::High,
        "This direction is much slower than the other",
        directions::path_15,
    )
    .explanation(
        "The same hosts move more than twice as much in the other direction, and segments of this \
         one are lost. What both directions have alike is not the limit.",
    )
    .reference("iperf3(1), --reverse; RFC 6349, section 3"),
    Rule::host(
        "PATH-08",
        Severity::Info,
        "The directions differ",
        directions::path_08,
    )
    .explanation(
        "One direction is more than a tenth slower. Check the sender of the slower direction \
             first.",
    )
    .reference("iperf3(1), --reverse"),
];
