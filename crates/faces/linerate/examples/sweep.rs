//! Compares numbers of streams over the path to a server and prints the best one.
//!
//! `cargo run --example sweep -- HOST [PORT]`; without an argument the server runs in this process,
//! on the loopback interface, and the runs are short.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use linerate::model::record::Body;
use linerate::model::sweep::Recommendation;
use linerate::record::RecordOptions;
use linerate::sweep::SweepSpec;
use linerate::{Progress, Server, StopHandle};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        Some(host) => {
            let port = arguments.next().map_or(Ok(5201), |port| port.parse())?;
            sweep(&SweepSpec::to(&host, port).over("streams=1..8")?)
        }
        None => sweep_loopback(),
    }
}

pub(crate) fn sweep_loopback() -> Result<(), Box<dyn Error>> {
    let server = Server::loopback()?;
    let mut spec = SweepSpec::to("127.0.0.1", server.port()).over("streams=1..2")?;
    (spec.time_s, spec.omit_s, spec.repetitions) = (1, 0, 1);

    // What is spent then is less than a further run: the sweep ends after the first runs.
    spec.budget = Duration::from_secs(3);
    sweep(&spec)
}

fn sweep(spec: &SweepSpec) -> Result<(), Box<dyn Error>> {
    // Another thread may call `stop` to end the sweep with the runs made until then.
    let interrupts = StopHandle::new()?;
    let result = linerate::sweep(
        spec,
        RecordOptions::default(),
        &interrupts,
        Progress::new(true),
        None,
    )?;
    let Body::Sweep(Some(found)) = result.recorded.record.body else {
        return Err("the sweep has no result".into());
    };
    match found.answer {
        Recommendation::Use { leader, .. } => {
            println!("{}: {:.0} bit/s", leader.command, leader.value);
        }
        Recommendation::Inconclusive { reason, .. } => println!("no answer: {reason}"),
        _ => println!("no answer that this program knows"),
    }

    println!("{} runs", result.recorded.record.trials.len());
    Ok(())
}
