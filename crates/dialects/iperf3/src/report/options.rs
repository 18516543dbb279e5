//! Output options.

use linerate_model::event::Endpoint;
use linerate_model::units::UnitFormat;

use crate::version::{program_version, system_line};

/// Form of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON document per test, when the test has ended (`-J`).
    Json,
    /// One JSON object per event and line (`--json-stream`).
    JsonStream {
        /// The whole document follows the last event (`--json-stream-full-output`).
        full_output: bool,
    },
}

/// Everything about the output that is not in the events.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Form of the report.
    pub style: Style,
    /// Which end reports.
    pub endpoint: Endpoint,
    /// Unit of bit rates in text (`-f`).
    pub format: UnitFormat,
    /// More facts about the test (`-V`).
    pub verbose: bool,
    /// Level of debug output, 0 for none (`-d`).
    pub debug: u8,
    /// strftime(3) format of the local time before every line (`--timestamps`).
    pub timestamps: Option<String>,
    /// Label before every line of a client (`-T`).
    pub title: Option<String>,
    /// Name and version of this program, for example `iperf 3.22 (linerate 0.1.0)`.
    pub version: String,
    /// The host in one line, as `uname -a` prints it.
    pub system_info: String,
    /// Show what the original does not report: more verbose lines, and a member of the JSON report.
    pub additions: bool,
}

impl Options {
    /// Text of this program and host, with iperf3's defaults.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            version: program_version(),
            system_info: system_line(),
            ..Self::default()
        }
    }
}
