//! Serves iperf3 clients of this host on a free port, until the test of one client has ended.
//!
//! `cargo run --example server`; `iperf3 -c 127.0.0.1 -p PORT` would be another client.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use linerate::model::policy::{AccessRules, AccessSource};
use linerate::model::{Direction, EndCondition, TestSpec, Transport};
use linerate::{Client, Server, StopHandle};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let access = AccessRules::new(
        vec![AccessSource::Network("127.0.0.0/8".parse()?)],
        Vec::new(),
    );
    // Port 0 lets the kernel choose; the server listens when `start` returns and runs in a thread
    // of its own.
    let server = Server::start(Some("127.0.0.1".to_owned()), 0, access)?;
    println!("serving on port {}", server.port());

    let spec = TestSpec {
        transport: Transport::Udp,
        direction: Direction::Reverse,
        end: EndCondition::Duration(Duration::from_secs(1)),
        block_len_bytes: 1448,
        ..TestSpec::default()
    };

    let result = Client::to("127.0.0.1", server.port(), spec).run(&StopHandle::new()?);
    result.outcome?;
    let summary = result.summary.ok_or("the test has no totals")?;
    let sent: u64 = summary
        .streams
        .iter()
        .filter_map(|stream| stream.sender)
        .map(|end| end.bytes)
        .sum();
    println!("sent {sent} bytes");

    server.stop()?;
    Ok(())
}
