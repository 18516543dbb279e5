//! Output options.

use linerate_model::event::Endpoint;
use linerate_model::spec::Iperf2Defaults;
use linerate_model::units::UnitFormat;

/// Release whose lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// 2.1.8 as distributions build it: times with four decimals.
    #[default]
    V2_1,
    /// 2.2.1 as it is built by default: times with two decimals.
    V2_2,
}

/// Form of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// Lines for people.
    #[default]
    Text,
    /// Comma-separated values (`-y C`).
    Csv,
}

/// Parts of a report that are left out (`-x`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Excluded {
    /// Connect lines.
    pub connection: bool,
    /// Interval and final lines.
    pub data: bool,
    /// Multicast settings.
    pub multicast: bool,
    /// The banner.
    pub settings: bool,
    /// The server's report.
    pub server: bool,
}

/// Everything about the output that is not in the events.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Release whose lines are written.
    pub layout: Layout,
    /// Form of the report.
    pub style: Style,
    /// Which end reports.
    pub endpoint: Endpoint,
    /// Unit of amounts and rates (`-f`).
    pub units: UnitFormat,
    /// More columns (`-e`).
    pub enhanced: bool,
    /// Sums and nothing else (`--sum-only`).
    pub sum_only: bool,
    /// Addresses are not shown (`--hide-ips`).
    pub hide_addresses: bool,
    /// The segment size is shown (`-m`).
    pub print_mss: bool,
    /// Dates are shown in UTC (`--utc`) and not in local time.
    pub utc: bool,
    /// Parts that are left out.
    pub excluded: Excluded,
    /// Process id, shown with more columns.
    pub process_id: u32,
    /// Defaults of a server for every test.
    pub defaults: Option<Box<Iperf2Defaults>>,
}

impl Options {
    pub(super) fn is_new(&self) -> bool {
        self.layout == Layout::V2_2
    }

    pub(super) fn is_client(&self) -> bool {
        self.endpoint == Endpoint::Client
    }
}
