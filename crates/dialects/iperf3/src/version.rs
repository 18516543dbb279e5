//! This program and its system as reports name them.

/// The iperf3 release whose command line and messages this dialect follows.
pub const FOLLOWS: &str = "3.22";

/// Name and version.
pub(crate) fn program_version() -> String {
    format!("iperf {FOLLOWS} (linerate {})", env!("CARGO_PKG_VERSION"))
}

/// The system as `uname -a` names it, without the operating system's title.
pub(crate) fn system_line() -> String {
    linerate_sys::process::uname().to_string()
}
