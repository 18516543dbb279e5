//! `linerate http load`, and its result as data.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::namespaces::{Net, inside};
use crate::process::{Finished, Process};
use crate::program::ours;

/// A load that has ended, with what it found.
pub struct HttpLoad {
    /// End of the program.
    pub finished: Finished,
    result: Value,
}

impl HttpLoad {
    /// Starts the program; [`Self::of`] reads its result.
    pub fn start(url: &str, arguments: &[&str]) -> Process {
        Self::start_by(Command::new(ours().path()), url, arguments)
    }

    /// The same with a command that ends in the program's name.
    pub fn start_by(mut command: Command, url: &str, arguments: &[&str]) -> Process {
        command
            .args(["http", "load", url, "--json"])
            .args(arguments);
        Process::start(command)
    }

    /// The same in the client's namespace.
    pub fn in_net(net: &Net, url: &str, arguments: &[&str]) -> Process {
        Self::start_by(inside(&net.a, ours().path(), &[]), url, arguments)
    }

    /// Runs a load to its end, which has to be one that reports a result.
    #[track_caller]
    pub fn run(url: &str, arguments: &[&str]) -> Self {
        Self::of(Self::start(url, arguments).finish_within(LIMIT))
    }

    /// Reads the result: of the record that `--json` writes, or of a run of a cell.
    #[track_caller]
    pub fn of(finished: Finished) -> Self {
        let whole: Value = serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("no result ({error}): {finished:?}"));
        let result = whole
            .pointer("/trials/0/detail/cell/load")
            .or(whole.get("load"))
            .cloned()
            .unwrap_or(whole);
        assert!(
            result.get("requests").is_some(),
            "no result of a load: {finished:?}"
        );

        Self { finished, result }
    }

    /// A whole number of the result, named as in `connections/opened`.
    #[track_caller]
    pub fn number(&self, path: &str) -> u64 {
        let number = self
            .result
            .pointer(&format!("/{path}"))
            .and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("no number {path} in {self:?}"))
    }

    /// Negotiated versions of HTTP and of TLS, the latter empty in plain text.
    pub fn protocol(&self) -> (String, String) {
        let text = |path: &str| {
            let value = self.result.pointer(path).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        (text("/protocol/http"), text("/protocol/tls/version"))
    }

    /// True if the result has something at a path, and not `null`.
    pub fn has(&self, path: &str) -> bool {
        self.result
            .pointer(&format!("/{path}"))
            .is_some_and(|value| !value.is_null())
    }

    /// A quantile in milliseconds, named as in `latency/p99`.
    #[track_caller]
    pub fn quantile_ms(&self, path: &str) -> f64 {
        self.number(&format!("{path}/ns")) as f64 / 1e6
    }

    /// Failures by their class, those that happened.
    pub fn errors(&self) -> Vec<(String, u64)> {
        let classes = self.result.get("errors").and_then(Value::as_object);
        let classes = classes.into_iter().flatten();
        classes
            .filter_map(|(class, entry)| Some((class.clone(), entry.get("count")?.as_u64()?)))
            .collect()
    }

    /// True if the result says this of itself.
    pub fn has_flag(&self, flag: &str) -> bool {
        let flags = self.result.get("flags").and_then(Value::as_array);
        flags.is_some_and(|flags| flags.iter().any(|known| known == flag))
    }

    /// Checks that every request of the window was answered well, and that there were some.
    #[track_caller]
    pub fn expect_all_well(&self) -> &Self {
        self.finished.expect_code(0);
        assert!(self.errors().is_empty(), "{self:?}");
        assert!(self.number("requests") > 0, "{self:?}");
        assert_eq!(self.number("ok"), self.number("requests"), "{self:?}");
        self
    }

    /// Checks that this number of connections were open when the load began and when it ended, and
    /// none was lost.
    #[track_caller]
    pub fn expect_all_open(&self, connections: u64) -> &Self {
        self.finished.expect_code(0);
        assert!(self.errors().is_empty(), "{self:?}");

        for (name, count) in [
            ("opened", connections),
            ("open_at_end", connections),
            ("dropped", 0),
        ] {
            let path = format!("connections/{name}");
            assert_eq!(self.number(&path), count, "{path}: {self:?}");
        }

        self
    }

    /// Checks that failures of this class happened and no others.
    #[track_caller]
    pub fn expect_only(&self, class: &str) -> &Self {
        let errors = self.errors();
        assert!(
            errors.len() == 1 && errors[0].0 == class,
            "not only {class}: {self:?}"
        );
        self
    }
}

impl fmt::Debug for HttpLoad {
    /// The result stands in what the program wrote already, histograms and all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_histogram = |line: &&str| line.trim_start().starts_with("\"hdr\"");
        let result = serde_json::to_string_pretty(&self.result).unwrap_or_default();
        let text: Vec<&str> = result.lines().filter(|line| !is_histogram(line)).collect();
        let ended = self.finished.code();

        write!(
            f,
            "exit code {ended:?}\n{}\n{}",
            text.join("\n"),
            self.finished.stderr
        )
    }
}

/// Longer than any load of a test lasts on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
