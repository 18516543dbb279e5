//! Four short tests of this machine against itself, over the loopback interface.

use std::io;
use std::time::Duration;

use linerate_document::Output;
use linerate_document::trial::Received;
use linerate_iperf3::report::{self, Options};
use linerate_model::event::Endpoint;
use linerate_model::{Direction, EndCondition, Failure, Summary, TestSpec, Transport, measure};
use linerate_sys::signal::Signals;

use crate::{Client, Server};
use linerate_model::outcome::failure;

const LOOPBACK: &str = "127.0.0.1";
/// Long enough for a row per second, short enough to watch.
const SECONDS: u64 = 2;
/// Rate of the UDP tests: high enough to mean something, low enough for any machine.
const UDP_RATE_BPS: u64 = 1_000_000_000;
/// Datagram that fits an Ethernet frame.
const UDP_BLOCK_LEN_BYTES: u32 = 1448;

/// Title, transport and direction of each test.
const TRIALS: [(&str, Transport, Direction); 4] = [
    (
        "TCP, this machine to itself",
        Transport::Tcp,
        Direction::Forward,
    ),
    (
        "TCP, the other direction",
        Transport::Tcp,
        Direction::Reverse,
    ),
    ("UDP at 1 Gbit/s", Transport::Udp, Direction::Forward),
    (
        "UDP at 1 Gbit/s, the other direction",
        Transport::Udp,
        Direction::Reverse,
    ),
];

/// A test that failed.
#[derive(Debug)]
#[non_exhaustive]
pub struct FailedTest {
    /// The test.
    pub title: &'static str,
    /// Why it failed.
    pub failure: Failure,
}

/// Tests this machine against itself: TCP and UDP, both directions. `begin` is called with the
/// title of each test, whose report goes to standard output. Returns what arrived, the TCP tests
/// first.
///
/// # Errors
/// The first test that fails or delivers impossible counts.
pub fn run(
    signals: &Signals,
    begin: &mut dyn FnMut(&str) -> io::Result<()>,
) -> Result<[Received; 4], FailedTest> {
    let at_start = |failure| FailedTest {
        title: "start of the server",
        failure,
    };
    let server = Server::loopback().map_err(at_start)?;

    let mut results = [Received {
        rate_bps: 0.0,
        lost_percent: None,
    }; 4];
    for ((title, transport, direction), result) in TRIALS.into_iter().zip(&mut results) {
        let test = test_spec(transport, direction);
        let outcome = begin(title)
            .map_err(|error| failure(&error))
            .and_then(|()| run_trial(test, server.port(), signals));
        *result = outcome.map_err(|failure| FailedTest { title, failure })?;
    }

    server.stop().map_err(|failure| FailedTest {
        title: "end of the server",
        failure,
    })?;
    Ok(results)
}

fn run_trial(test: TestSpec, port: u16, signals: &Signals) -> Result<Received, Failure> {
    let options = Options::new(Endpoint::Client);
    let mut report = report::client_sink(options, Output::standard());
    let result = Client::to(LOOPBACK, port, test).observe(&mut report, signals);
    result.outcome?;
    received(result.summary.as_ref()).map_err(|text| failure(&text))
}

/// Amount that the only direction of a test received.
fn received(summary: Option<&Summary>) -> Result<Received, &'static str> {
    let ends = || {
        let (summary, flow) = (summary?, summary?.streams.first()?.flow);
        let lost_share =
            measure::datagrams(summary, flow).and_then(|datagrams| datagrams.lost_share());
        Some((
            measure::sent(summary, flow)?,
            measure::received(summary, flow)?,
            lost_share,
        ))
    };
    let (sender, receiver, lost_share) = ends().ok_or("the test has no result")?;
    if receiver.bytes == 0 {
        return Err("nothing was received");
    }
    // A receiver cannot count more than was sent; this finds errors of the counters.
    if receiver.bytes > sender.bytes {
        return Err("more bytes were received than sent");
    }

    Ok(Received {
        rate_bps: receiver.bits_per_second(),
        lost_percent: lost_share.map(|share| share * 100.0),
    })
}

fn test_spec(transport: Transport, direction: Direction) -> TestSpec {
    let mut test = TestSpec {
        transport,
        direction,
        end: EndCondition::Duration(Duration::from_secs(SECONDS)),
        ..TestSpec::default()
    };

    if transport == Transport::Udp {
        test.block_len_bytes = UDP_BLOCK_LEN_BYTES;
        test.block_len_explicit = true;
        test.pacing.rate_bps = Some(UDP_RATE_BPS);
    }

    test
}

#[cfg(test)]
mod tests {
    use linerate_model::summary::UdpTotals;
    use linerate_model::{EndpointTotals, StreamSummary};

    use super::*;

    fn summary(sent: u64, received: u64, udp: Option<UdpTotals>) -> Summary {
        let half = |bytes, udp| Some(EndpointTotals::new(bytes, 1_000_000_000, udp));
        let stream = StreamSummary {
            sender: half(sent, None),
            receiver: half(received, udp),
            ..StreamSummary::default()
        };
        Summary {
            streams: vec![stream],
            ..Summary::default()
        }
    }

    #[test]
    fn a_test_passes_when_something_arrived_and_not_more_than_was_sent() {
        let whole = received(Some(&summary(1000, 1000, None))).expect("a result");
        assert_eq!(
            (whole.rate_bps.to_bits(), whole.lost_percent),
            (8000_f64.to_bits(), None)
        );
        assert!(received(Some(&summary(1000, 0, None))).is_err());
        assert!(received(Some(&summary(1000, 1001, None))).is_err());
        assert!(received(Some(&Summary::default())).is_err());
    }

    #[test]
    fn loss_is_a_share_of_the_datagrams() {
        let udp = UdpTotals::new(200, 50, 0, 0.0);
        let lossy = received(Some(&summary(1000, 750, Some(udp)))).expect("a result");
        assert_eq!(lossy.lost_percent.map(f64::to_bits), Some(25_f64.to_bits()));
    }
}
