//! The two programs under comparison.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::process::Process;

/// A program with iperf3's command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// A command that calls the program under the name `iperf3`, as a drop-in replacement is
    /// called.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0("iperf3").args(arguments);
        // Messages of the C library and dates follow the locale; comparisons need one.
        command.env("LC_ALL", "C").env("TZ", "UTC");
        command
    }

    /// Where the program is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The release of iperf3 that it is or follows: 22 of 3.22.
    pub fn release(&self) -> u32 {
        let output = self
            .command(["--version"])
            .output()
            .expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let release = text
            .strip_prefix("iperf 3.")
            .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());

        release
            .and_then(|release| release.parse().ok())
            .expect("its version is one of iperf3")
    }

    /// True if this is the original, so that options it does not have cannot be asked of it.
    pub fn is_original(&self) -> bool {
        self == original()
    }
}

/// Our program; where it is the original, the test ends with the reason.
#[macro_export]
macro_rules! ours_only {
    ($reason:literal) => {{
        if $crate::ours().is_original() {
            return $crate::unsupported($reason);
        }
        $crate::ours()
    }};
}

/// Our program in a shell that limits it first, for example by `ulimit -n 64`.
pub fn limited(limits: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{limits}; exec \"$@\""), "sh"])
        .arg(ours().path());
    command
}

/// Starts `linerate` with the words of a line.
pub fn linerate(line: &str) -> Process {
    let mut command = Command::new(ours().path());
    command.args(words(line));
    Process::start(command)
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The program under test.
pub fn ours() -> &'static Program {
    static OURS: OnceLock<Program> = OnceLock::new();

    OURS.get_or_init(|| {
        locate(
            "LINERATE_BIN",
            &beside_this_test(),
            "build it: cargo build -p linerate-cli",
        )
    })
}

/// The original iperf3.
pub fn original() -> &'static Program {
    static ORIGINAL: OnceLock<Program> = OnceLock::new();

    ORIGINAL.get_or_init(|| {
        locate(
            "IPERF3_BIN",
            Path::new("/usr/bin/iperf3"),
            "install it: apt-get install iperf3",
        )
    })
}

fn locate(variable: &str, default: &Path, advice: &str) -> Program {
    let path = env::var_os(variable).map_or_else(|| default.to_path_buf(), PathBuf::from);
    match fs::canonicalize(&path) {
        Ok(path) => Program { path },
        Err(error) => panic!("{}: {error} ({advice}, or set {variable})", path.display()),
    }
}

/// Test programs lie in `target/PROFILE/deps`, the program itself one level up.
fn beside_this_test() -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    profile.join("linerate")
}
