//! Commands of the products, which the drop-in program leaves out.

use clap::Subcommand;
use linerate::Outcome;

use crate::compare::{self, CompareArgs};
use crate::doctor::{self, DoctorArgs};
use crate::fleet::{self, FleetArgs};
use crate::history::{self, HistoryArgs};
use crate::http::{self, HttpArgs};
use crate::report::{self, ReportArgs};
use crate::sweep::{self, SweepArgs};
use crate::watch::{self, WatchArgs};

/// A command of a product.
#[derive(Debug, Subcommand)]
pub(crate) enum ProductCommand {
    /// Find what limits the network, with evidence, fix and undo
    ///
    /// Examines this host, or pasted output of commands. Reports what was found with its evidence,
    /// what was ruled out and why, and what could not be checked.
    Doctor(Box<DoctorArgs>),
    /// Find the best number of streams, window, rate or CPU for a path
    ///
    /// Runs many short tests against a server, iperf3 or linerate, in random order. Reports the
    /// best setting with its confidence, where the result falls and why, and the iperf3 command of
    /// that setting.
    Sweep(Box<SweepArgs>),
    /// Compare runs: is B worse than A, and what is configured differently?
    ///
    /// Judges every measure of two runs, or of several on each side, by their trials. Differences
    /// of the tests, the programs and the settings of the hosts are listed beside the result.
    Compare(Box<CompareArgs>),
    /// List, show, label and keep the runs that were recorded
    ///
    /// Runs are named by their id or its end, last, last~2, @BASELINE, label:KEY=VALUE, or the file
    /// of a record.
    History(Box<HistoryArgs>),
    /// Measure many hosts as one system
    Fleet(Box<FleetArgs>),
    /// Serve, load and measure HTTP: requests per second, latency, ten thousand connections
    Http(Box<HttpArgs>),
    /// Repeat a run on a grid, record each, and report when its state changes
    Watch(Box<WatchArgs>),
    /// Write a report of recorded runs: a page with charts, Markdown or text
    Report(Box<ReportArgs>),
}

/// Carries out a command of a product.
pub(crate) fn main(command: ProductCommand) -> Outcome {
    match command {
        ProductCommand::Doctor(args) => doctor::main(&args),
        ProductCommand::Sweep(args) => sweep::main(*args),
        ProductCommand::Compare(args) => compare::main(&args),
        ProductCommand::History(args) => history::main(*args),
        ProductCommand::Fleet(args) => fleet::main(*args),
        ProductCommand::Http(args) => http::main(&args),
        ProductCommand::Watch(args) => watch::main(*args),
        ProductCommand::Report(args) => report::main(&args),
    }
}
