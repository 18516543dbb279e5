//! Values of options that the dialects share with each other or with native commands.

use std::ffi::OsStr;
use std::net::Ipv6Addr;
use std::time::Duration;

use crate::policy::{AccessSource, Admission, FactsAccess, Limits, ServerLimits};

use super::numbers::{Base, whole_with_unit};
use crate::Error;

/// Reads a whole number of bytes with an optional K, M, G or T (powers of 1024), at most `max`.
pub fn size_bytes(text: &str, max: u64) -> Option<u64> {
    whole_with_unit(text.as_bytes(), Base::Binary, max).ok()
}

/// Text of a value; bytes that are no UTF-8 are replaced. Names that matter as bytes are kept as
/// paths.
pub fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

/// Splits at the first of these bytes; the second part is absent without one.
pub fn split_at(value: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match value.iter().position(|byte| *byte == separator) {
        Some(at) => (&value[..at], Some(&value[at + 1..])),
        None => (value, None),
    }
}

/// Splits `host%device`. Behind an IPv6 link-local address the device is the scope and stays.
pub fn split_device(address: &str) -> (String, Option<String>) {
    let Some((host, device)) = address.split_once('%') else {
        return (address.to_owned(), None);
    };
    let link_local = host
        .parse::<Ipv6Addr>()
        .is_ok_and(|v6| v6.is_unicast_link_local());
    // The scope of a link-local address is a part of it (RFC 4007 section 11).
    if link_local || device.is_empty() {
        let whole = if link_local { address } else { host };
        return (whole.to_owned(), None);
    }

    (host.to_owned(), Some(device.to_owned()))
}

/// Reads `parallel[:N]`, `queue[:N[/SECONDS]]` or `exclusive`.
///
/// # Errors
/// Another text.
pub fn admission(text: &str) -> Result<Admission, Error> {
    let wrong = || {
        Error::usage(format!(
            "{text:?}: expected parallel[:N], queue[:N[/SECONDS]] or exclusive"
        ))
    };
    let (kind, rest) = match text.split_once(':') {
        Some((kind, rest)) => (kind, Some(rest)),
        None => (text, None),
    };

    let count = |number: &str| {
        number
            .parse()
            .ok()
            .filter(|n| (1..=100_000).contains(n))
            .ok_or_else(wrong)
    };
    match (kind, rest) {
        ("parallel", None) => Ok(Admission::default()),
        ("parallel", Some(number)) => Ok(Admission::Parallel {
            tests_max: count(number)?,
        }),
        ("queue", rest) => {
            let (number, wait) =
                match rest.map(|r| r.split_once('/').map_or((r, None), |(n, s)| (n, Some(s)))) {
                    Some((number, wait)) => (number, wait),
                    // A queue without a number runs one test at a time.
                    None => ("1", None),
                };
            let wait_max = wait
                .map(seconds)
                .transpose()?
                .unwrap_or(Admission::WAIT_MAX);
            Ok(Admission::Queue {
                tests_max: count(number)?,
                wait_max,
            })
        }
        ("exclusive", None) => Ok(Admission::Exclusive),
        _ => Err(wrong()),
    }
}

/// Reads `trusted`, `all` or `none`.
///
/// # Errors
/// Another text.
pub fn facts(text: &str) -> Result<FactsAccess, Error> {
    match text {
        "trusted" => Ok(FactsAccess::Trusted),
        "all" => Ok(FactsAccess::All),
        "none" => Ok(FactsAccess::None),
        _ => Err(Error::usage(format!(
            "{text:?}: expected trusted, all or none"
        ))),
    }
}

/// Reads a time of at least one second.
///
/// # Errors
/// Another text, or a time out of range.
pub fn seconds(text: &str) -> Result<Duration, Error> {
    let number = text.parse().ok().filter(|s| (1..=86_400).contains(s));
    let number = number
        .ok_or_else(|| Error::usage(format!("{text:?}: expected whole seconds, 1 to 86400")))?;
    Ok(Duration::from_secs(number))
}

/// Reads an address range, or `@FILE` for a file of them.
///
/// # Errors
/// Neither a range nor a file.
pub fn access(text: &str) -> Result<AccessSource, Error> {
    match text.strip_prefix('@') {
        Some(path) => Ok(AccessSource::File(path.into())),
        None => text
            .parse()
            .map(AccessSource::Network)
            .map_err(Error::usage),
    }
}

/// Checks of option values that need other parts of the program, which the dialects do not know:
/// each returns the error of the value, or of a build without that part. The default accepts
/// everything.
#[derive(Debug, Clone, Copy)]
pub struct ValueChecks {
    /// Of limits of measures (`--lr-expect`).
    pub expectations: fn(&str) -> Result<(), Error>,
    /// Of labels of a record (`--lr-record`).
    pub labels: fn(&str) -> Result<(), Error>,
    /// Of a diagnosis (`--lr-doctor`), which has no value.
    pub diagnosis: fn() -> Result<(), Error>,
}

impl Default for ValueChecks {
    fn default() -> Self {
        Self {
            expectations: |_| Ok(()),
            labels: |_| Ok(()),
            diagnosis: || Ok(()),
        }
    }
}

/// Limits of one scope, as typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitArg {
    scope: Scope,
    limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scope {
    Server,
    Address,
    User,
}

/// Reads `SCOPE:KEY=N[,KEY=N...]`.
///
/// # Errors
/// An unknown scope or key, or a number out of range.
pub fn limit(text: &str) -> Result<LimitArg, Error> {
    let wrong = |what: &str| Error::usage(format!("{text:?}: {what}"));
    let (scope, settings) = text
        .split_once(':')
        .ok_or_else(|| wrong("expected SCOPE:KEY=N[,KEY=N...]"))?;
    let scope = match scope {
        "server" => Scope::Server,
        "address" => Scope::Address,
        "user" => Scope::User,
        _ => return Err(wrong("the scope is server, address or user")),
    };

    let mut limits = Limits::default();
    for setting in settings.split(',') {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| wrong("expected KEY=N"))?;
        let number = |base| {
            let number = whole_with_unit(value.as_bytes(), base, i64::MAX as u64)
                .ok()
                .filter(|n| *n > 0);
            number.ok_or_else(|| wrong("expected a positive number"))
        };
        let small =
            || u32::try_from(number(Base::Decimal)?).map_err(|_| wrong("the number is too large"));

        match key {
            "tests" => limits.tests = Some(small()?),
            "streams" => limits.streams = Some(small()?),
            "duration" => limits.duration = Some(Duration::from_secs(number(Base::Decimal)?)),
            "bytes" => limits.bytes = Some(number(Base::Binary)?),
            "rate" => limits.rate_bps = Some(number(Base::Decimal)?),
            _ => {
                return Err(wrong(
                    "the keys are tests, streams, duration, bytes and rate",
                ));
            }
        }
    }

    Ok(LimitArg { scope, limits })
}

impl LimitArg {
    /// Sets what was named and leaves the rest.
    pub fn apply(&self, all: &mut ServerLimits) {
        let into = match self.scope {
            Scope::Server => &mut all.server,
            Scope::Address => &mut all.address,
            Scope::User => &mut all.user,
        };
        *into = self.limits.or(*into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admissions_are_read_with_their_numbers() {
        let queue = |tests_max, s| Admission::Queue {
            tests_max,
            wait_max: Duration::from_secs(s),
        };
        let rows = [
            ("parallel", Admission::Parallel { tests_max: 1000 }),
            ("parallel:4", Admission::Parallel { tests_max: 4 }),
            ("queue", queue(1, 25)),
            ("queue:3", queue(3, 25)),
            ("queue:3/60", queue(3, 60)),
            ("exclusive", Admission::Exclusive),
        ];
        for (text, expected) in rows {
            assert_eq!(admission(text), Ok(expected), "{text}");
        }

        for text in [
            "",
            "parallel:0",
            "parallel:x",
            "queue:1/0",
            "queue:/5",
            "exclusive:1",
            "Parallel",
            "parallel:",
        ] {
            assert!(admission(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_add_up_and_near_misses_are_refused() {
        let mut all = ServerLimits::default();
        for text in [
            "address:streams=8,rate=1G",
            "address:bytes=2K",
            "user:duration=60,tests=2",
        ] {
            limit(text).expect(text).apply(&mut all);
        }

        assert_eq!(all.address.tests, None, "what was not named stays");
        assert_eq!(
            (all.address.streams, all.address.bytes),
            (Some(8), Some(2048))
        );
        assert_eq!(
            (all.address.rate_bps, all.user.tests),
            (Some(1_000_000_000), Some(2))
        );
        assert_eq!(
            (all.user.duration, all.server),
            (Some(Duration::from_secs(60)), Limits::default())
        );

        for text in [
            "",
            "address",
            "address:",
            "host:tests=1",
            "user:tests=0",
            "user:tests",
            "user:speed=1",
            "user:tests=-1",
        ] {
            assert!(limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_and_files_are_distinguished() {
        assert_eq!(
            access("@/etc/list"),
            Ok(AccessSource::File("/etc/list".into()))
        );
        assert!(matches!(access("10.0.0.0/8"), Ok(AccessSource::Network(_))));
        assert!(access("10.0.0.0/99").is_err());
    }
}
