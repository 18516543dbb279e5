//! Tests the path to a server for one second and prints what each interval and the whole test
//! received.
//!
//! `cargo run --example client -- HOST [PORT]`; without an argument the server runs in this
//! process, on the loopback interface.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use linerate::model::{EndCondition, Event, EventSink, SinkError, TestSpec};
use linerate::{Client, Server, StopHandle};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        Some(host) => test(
            &host,
            arguments.next().map_or(Ok(5201), |port| port.parse())?,
        ),
        None => test_loopback(),
    }
}

pub(crate) fn test_loopback() -> Result<(), Box<dyn Error>> {
    let server = Server::loopback()?;
    test("127.0.0.1", server.port())
}

fn test(host: &str, port: u16) -> Result<(), Box<dyn Error>> {
    let spec = TestSpec {
        end: EndCondition::Duration(Duration::from_secs(1)),
        ..TestSpec::default()
    };
    let client = Client::to(host, port, spec);

    // Another thread may call `stop` to end the test early.
    let interrupts = StopHandle::new()?;
    let result = client.observe(&mut Intervals, &interrupts);
    result.outcome?;

    let summary = result.summary.ok_or("the test has no totals")?;
    for stream in summary.streams {
        let received = stream.receiver.ok_or("the server reported no totals")?;
        println!(
            "received {} bytes at {:.0} bit/s",
            received.bytes,
            received.bits_per_second()
        );
    }

    Ok(())
}

/// Prints a line per interval and stream.
struct Intervals;

impl EventSink for Intervals {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::Interval(report) = event {
            for row in &report.streams {
                println!("{:.1} s: {:.0} bit/s", row.seconds(), row.bits_per_second());
            }
        }
        Ok(())
    }
}
