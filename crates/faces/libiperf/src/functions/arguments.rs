//! Command lines, and the log file that they name.

use std::ffi::c_int;
use std::io::Write;
use std::path::PathBuf;

use linerate::command_line::iperf3::{Request, read_args};
use linerate_boundary::{ArgVector, Stderr, Stdout, Text, guard};
use linerate_iperf3::wire::ErrorCode;

use crate::error::{fail, fail_with};
use crate::functions::run::open_log;
use crate::test::{Test, change, read};

/// Takes the settings of an iperf3 command line; the first is the name of the program. A
/// command line that requests a text alone prints it and fails with `IENOROLE`.
#[unsafe(no_mangle)]
extern "C" fn iperf_parse_arguments(test: Option<&Test>, count: c_int, args: ArgVector) -> c_int {
    guard(-1, || {
        let args = args.read(count);
        match read_args(args.get(1..).unwrap_or_default()) {
            Ok(Request::Run(command, warnings)) => {
                for warning in warnings {
                    // A program without a standard error has no reader of warnings.
                    let _ = writeln!(Stderr, "{warning}");
                }

                change(test, |settings| settings.take_command(*command));
                0
            }
            Ok(Request::Print(text)) => {
                let _ = Stdout
                    .write_all(text.as_bytes())
                    .and_then(|()| Stdout.flush());
                // The original ends the process after a help text; a library returns.
                fail_with(ErrorCode::NoRole)
            }
            Err(failure) => fail(failure),
        }
    })
}

/// A test opens its log file when it runs; this checks that it can.
#[unsafe(no_mangle)]
extern "C" fn iperf_open_logfile(test: Option<&Test>) -> c_int {
    guard(-1, || {
        let path = read(test, None, |settings| {
            settings.logfile.get().map(PathBuf::from)
        });
        // The file is opened by the run; here only the possibility counts.
        path.map_or(0, |path| open_log(&path).map_or_else(fail, |_| 0))
    })
}

/// A test closes its log file at its end.
#[unsafe(no_mangle)]
extern "C" fn iperf_close_logfile(_: Option<&Test>) {}

/// Writes what the standard output of the program holds back.
#[unsafe(no_mangle)]
extern "C" fn iflush(_: Option<&Test>) -> c_int {
    if Stdout.flush().is_ok() { 0 } else { -1 }
}

/// Prints a warning.
#[unsafe(no_mangle)]
extern "C" fn warning(text: Text) {
    guard((), || {
        let _ = writeln!(Stderr, "warning: {}", text.read().unwrap_or_default());
    });
}
