//! A plan as text, and what follows from its keys.

use std::time::Duration;

use linerate_model::fnv::fnv64;
use linerate_model::http::HttpVersion;

use super::form::{Plan, PlanError};
use super::validity;
use crate::target::Target;

/// Most bytes of a plan file.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

impl Plan {
    /// Reads a plan file. Keys that are absent keep their value of [`Plan::default`].
    ///
    /// # Errors
    /// The line or the key and what is allowed there: no TOML, an unknown key, a value outside its
    /// range, or two values that contradict each other.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        if text.len() > TEXT_BYTES_MAX {
            let len = text.len();
            return Err(PlanError(format!(
                "a plan has at most {TEXT_BYTES_MAX} bytes, this has {len}"
            )));
        }

        let plan: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            // The message of the parser has several lines, an error of the command line one.
            PlanError(format!(
                "line {line}: {}",
                error.message().replace('\n', ", ")
            ))
        })?;
        validity::check(&plan)?;
        Ok(plan)
    }

    /// The plan as a file with every key, explained.
    pub fn to_toml(&self) -> String {
        explained(&self.bare())
    }

    /// Name of the runs. Those of different plans have different names; comments and the rate of
    /// the path play no part.
    pub fn hash(&self) -> String {
        let runs = Self {
            // No run depends on it: `--resume` with another rate judges the same runs.
            line_rate_bps: None,
            ..self.clone()
        };
        format!("{:016x}", fnv64(runs.bare().as_bytes()))
    }

    /// Keys and values alone.
    fn bare(&self) -> String {
        // Every value of a plan that was read or made has a form in TOML.
        toml::to_string(self).unwrap_or_default()
    }

    /// This plan within a few minutes: one short run of each cell, short TCP tests, short holds.
    #[must_use]
    pub fn quick(mut self) -> Self {
        let short = Duration::from_secs(3);
        self.defaults.repeats = 1;
        self.defaults.duration = self.defaults.duration.min(short);
        self.defaults.warmup = self.defaults.warmup.min(Duration::from_secs(1));
        self.defaults.cooldown = self.defaults.cooldown.min(Duration::from_secs(1));
        self.tcp.duration = self.tcp.duration.min(short);
        self.c10k.idle.hold = self.c10k.idle.hold.min(short);
        // A pause that is longer than the hold would be refused by `validity`.
        self.c10k.idle.heartbeat = self
            .c10k
            .idle
            .heartbeat
            .filter(|heartbeat| *heartbeat <= self.c10k.idle.hold);
        self.c10k.low_rate.duration = self.c10k.low_rate.duration.min(Duration::from_secs(10));
        self.c10k.active.duration = self.c10k.active.duration.min(short);

        self
    }

    /// True if the protocol is HTTP/1.1 in plain text, whose bytes on the wire are known.
    pub fn is_plain_http1(&self) -> bool {
        let is_tls = |url: &str| url.parse::<Target>().is_ok_and(|target| target.is_tls);
        self.protocol.version == HttpVersion::Http1 && !self.target.as_deref().is_some_and(is_tls)
    }
}

/// Line of a byte, from 1.
fn line_of(text: &str, byte: usize) -> usize {
    text.bytes()
        .take(byte)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

/// The default plan. Keys without a default are commented out, with an example.
pub(super) const TEMPLATE: &str = include_str!("plan.toml");
/// Column of the comments.
const COMMENT_AT: usize = 44;

/// The template with the values of `bare`, a plan of keys and values alone.
fn explained(bare: &str) -> String {
    let mut table = "";
    let mut out = String::new();

    for line in TEMPLATE.lines() {
        table = table_of(line).unwrap_or(table);
        let key = line
            .trim_start_matches("# ")
            .split_once(" = ")
            .map(|(key, _)| key);
        let value = key.and_then(|key| value_line(bare, table, key));

        let comment = line.rsplit_once(" # ").map(|(_, comment)| comment);
        match (value, comment) {
            (Some(value), Some(comment)) => {
                let width = COMMENT_AT.max(value.chars().count() + 1);
                out.push_str(&format!("{value:<width$}# {comment}"));
            }
            (Some(value), None) => out.push_str(value),
            (None, _) => out.push_str(line),
        }

        out.push('\n');
    }

    out
}

fn value_line<'a>(bare: &'a str, table: &str, key: &str) -> Option<&'a str> {
    let mut current = "";
    bare.lines().find(|line| {
        current = table_of(line).unwrap_or(current);
        current == table && line.split_once(" = ").is_some_and(|(name, _)| name == key)
    })
}

/// `phase3.idle` of `[phase3.idle]  # idle connections`
fn table_of(line: &str) -> Option<&str> {
    line.strip_prefix('[')?
        .split_once(']')
        .map(|(name, _)| name)
}
