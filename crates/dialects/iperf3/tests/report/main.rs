//! Reports of iperf3 against the recorded ones.

mod golden_json;
mod golden_text;
mod rules;
#[path = "../../../../core/document/tests/support/recorded_reports.rs"]
mod support;
