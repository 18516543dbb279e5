//! Which program the caller believes to have started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A command line this binary understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// iperf3, option for option.
    Iperf3,
    /// iperf 2, option for option.
    Iperf2,
    /// Our own.
    Native,
}

/// Decides by the file name of `argv[0]`: `iperf3…`, `iperf` or `iperf2` with an optional suffix
/// after `-`, else native.
pub(crate) fn dialect(argv0: &OsStr) -> Dialect {
    let name = Path::new(argv0).file_name().unwrap_or_default().as_bytes();
    let stem = name.split(|byte| *byte == b'-').next().unwrap_or_default();
    match stem {
        _ if name.starts_with(b"iperf3") => Dialect::Iperf3,
        b"iperf" | b"iperf2" => Dialect::Iperf2,
        // A name such as `iperf3.exe` has no dash before its suffix, so a prefix is enough.
        _ => Dialect::Native,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_selects_the_dialect() {
        let rows = [
            ("iperf3", Dialect::Iperf3),
            ("/usr/bin/iperf3", Dialect::Iperf3),
            ("./iperf3-3.21", Dialect::Iperf3),
            ("iperf3.exe", Dialect::Iperf3),
            ("iperf", Dialect::Iperf2),
            ("/opt/iperf2-2.1.8", Dialect::Iperf2),
            ("iperf-2", Dialect::Iperf2),
            ("linerate", Dialect::Native),
            ("/iperf3/linerate", Dialect::Native),
            ("iperfect", Dialect::Native),
            ("", Dialect::Native),
            ("..", Dialect::Native),
        ];
        for (argv0, expected) in rows {
            assert_eq!(dialect(OsStr::new(argv0)), expected, "{argv0:?}");
        }
    }
}
