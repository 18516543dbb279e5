//! Keys of [`PathReport::absent`](super::PathReport::absent): what a test of a path may lack. A
//! phase that did not run is absent under its own [name](super::PhaseKind::name).

/// Payload rate.
pub const GOODPUT: &str = "goodput";
/// Payload rate of one stream.
pub const SINGLE_STREAM: &str = "rate of one stream";
/// Retransmitted segments.
pub const RETRANSMITS: &str = "retransmitted segments";
/// Round-trip time without load.
pub const IDLE_RTT: &str = "idle RTT";
/// Round-trip time under load.
pub const LOADED_RTT: &str = "RTT under load";
/// Delay of each direction.
pub const ONE_WAY_DELAY: &str = "one-way delay";
/// Round trips per minute.
pub const RESPONSIVENESS: &str = "responsiveness";
/// Echo within the streams of the load.
pub const IN_BAND: &str = "in-band echo";
/// Grade of the delay that load adds.
pub const BUFFERBLOAT: &str = "bufferbloat";
/// Opinion score of a call.
pub const CALL: &str = "call quality";
/// Largest packet from client to server.
pub const MTU_UP: &str = "MTU up";
/// Largest packet from server to client.
pub const MTU_DOWN: &str = "MTU down";
/// Treatment of DSCP and ECN on the path.
pub const MARKS: &str = "DSCP and ECN";
/// Hops of the path.
pub const HOPS: &str = "hops";
/// Paced datagrams.
pub const DATAGRAMS: &str = "datagrams";
/// Loss by place at the server.
pub const LOSS_BY_PLACE: &str = "loss by place at the server";
/// Loss of each direction.
pub const LOSS_BY_DIRECTION: &str = "loss by direction";
/// Round-trip time that the server's TCP measures as sender.
pub const SERVER_RTT: &str = "RTT as the server's TCP measures it";
/// Facts and CPU time of the server.
pub const SERVER_FACTS: &str = "facts and CPU of the server";
/// UDP flows bound to a token of the control connection.
pub const UDP_TOKENS: &str = "UDP flows bound to a token";
/// Resumption of a control connection that was lost.
pub const RESUME: &str = "resumption of the control connection";
/// Replies of probes that are not counted.
pub const PROBES: &str = "probes";

/// Reason for what needs a UDP flow that the server did not open.
pub const UDP_BLOCKED: &str = "UDP is blocked: no datagram was answered";
/// Reason for what the protocol of iperf3 does not have.
pub const IPERF3_ONLY: &str = "the server speaks iperf3 only";
/// Reason for what the protocol of ndt7 does not have.
pub const NDT7_ONLY: &str = "the server speaks ndt7 only";
/// Reason for datagrams whose rate depends on a load that found none.
pub const NO_RATE: &str = "no load found a rate for it";
