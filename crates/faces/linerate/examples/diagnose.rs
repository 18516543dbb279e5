//! Reads the settings and counters of this host and prints what limits its network, with the
//! commands that change it.
//!
//! `cargo run --example diagnose`; nothing is changed.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use linerate::diagnose::{Query, Source};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let period = Some(Duration::from_millis(200));
    let host = Source::Host {
        interfaces: Vec::new(),
        peer: None,
        period,
    };
    let diagnosis = linerate::diagnose(&Query::of(host))?;
    println!("{}", diagnosis.verdict.sentence);

    for finding in &diagnosis.findings {
        println!("{} ({:?}): {}", finding.id, finding.severity, finding.title);
        for command in &finding.remedy {
            println!("  {command}");
        }
    }

    println!(
        "{} rules ruled out, {} not checkable",
        diagnosis.ruled_out.len(),
        diagnosis.not_evaluated.len()
    );
    Ok(())
}
