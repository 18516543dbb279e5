//! What `--version` prints.

/// The iperf3 release whose command line and messages this dialect follows.
pub const FOLLOWS: &str = "3.21";

/// Three lines: version, system, features. Scripts expect the first to begin with `iperf 3.`.
pub fn version_text(system: &str, features: &[&str]) -> String {
    let features = features.join(", ");
    format!(
        "{}\n{system}\nOptional features available: {features}\n",
        program_version()
    )
}

/// Name and version as reports show them.
pub fn program_version() -> String {
    format!("iperf {FOLLOWS} (linerate {})", env!("CARGO_PKG_VERSION"))
}

/// The system as `uname -a` names it, without the operating system's title.
pub fn system_line() -> String {
    linerate_sys::process::uname().to_string()
}
