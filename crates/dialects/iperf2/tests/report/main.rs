//! Reports of iperf 2 against the recorded ones.

mod golden;
mod lines;
mod rules;
#[path = "../../../../core/document/tests/support/recorded_reports.rs"]
mod support;
mod values;
