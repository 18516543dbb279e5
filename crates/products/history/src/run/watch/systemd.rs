//! Units that repeat a run: a service for one run, and its timer.

use std::path::Path;
use std::time::Duration;

use linerate_store::scrubbed;

/// Texts of both units and the name of their files without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Units {
    /// `linerate-watch-NAME`.
    pub name: String,
    /// The service.
    pub service: String,
    /// The timer.
    pub timer: String,
}

/// Units that start `program watch --once WORDS` every `period`; `words` are options of `watch`,
/// `--` and the command.
///
/// # Errors
/// A period that no calendar expresses, with the nearest ones that a calendar does; and words with
/// a secret.
pub fn units(
    program: &Path,
    name: &str,
    period: Duration,
    words: &[String],
) -> Result<Units, String> {
    check_secrets(words)?;
    let calendar = calendar(period)?;

    let start: Vec<String> = [
        program.display().to_string(),
        "watch".to_owned(),
        "--once".to_owned(),
    ]
    .iter()
    .chain(words)
    .map(|word| quoted(word))
    .collect();
    let (start, period_s, delay_s) = (
        start.join(" "),
        period.as_secs(),
        // The jitter of a timer is that of the grid: a tenth of the period.
        period.as_secs_f64() / 10.0,
    );

    let service = format!(
        "\
[Unit]
Description=linerate watch {name}
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
ExecStart={start}
# Units that share the history have one user, otherwise each start takes it from the others.
User=linerate
DynamicUser=yes
StateDirectory=linerate
TimeoutStartSec={period_s}
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
"
    );
    let timer = format!(
        "\
[Unit]
Description=linerate watch {name}

[Timer]
OnCalendar={calendar}
RandomizedDelaySec={delay_s}
FixedRandomDelay=true
AccuracySec=1s
Persistent=false

[Install]
WantedBy=timers.target
"
    );
    Ok(Units {
        name: format!("linerate-watch-{name}"),
        service,
        timer,
    })
}

/// The grid as a calendar expression (systemd.time(7)): parts of a minute, of an hour or of a day.
fn calendar(period: Duration) -> Result<String, String> {
    let seconds = period.as_secs();
    expression(seconds).ok_or_else(|| {
        let below = (1..seconds)
            .rev()
            .find(|seconds| expression(*seconds).is_some());
        let above = (seconds + 1..=86_400).find(|seconds| expression(*seconds).is_some());
        let near: Vec<String> = below.into_iter().chain(above).map(words).collect();
        let verb = if near.len() == 1 { "is" } else { "are" };

        format!(
            "{} is no whole part of a minute, an hour or a day, which a timer needs; the nearest \
             {verb} {}",
            words(seconds),
            near.join(" and ")
        )
    })
}

/// Every user of a host can read its units.
fn check_secrets(words: &[String]) -> Result<(), String> {
    let scrubbed = scrubbed(words);
    match words
        .iter()
        .zip(&scrubbed)
        .find(|(word, scrubbed)| word != scrubbed)
    {
        None => Ok(()),
        Some((_, scrubbed)) => Err(format!(
            "{scrubbed}: every user can read the secret in a unit; put a password of PostgreSQL \
             into the file that PGPASSFILE names, and a token into a file"
        )),
    }
}

fn expression(seconds: u64) -> Option<String> {
    match (seconds, seconds / 60, seconds / 3600) {
        (1..60, ..) if 60 % seconds == 0 => Some(format!("*-*-* *:*:00/{seconds}")),
        // A step of a calendar begins again with each hour, so that it must divide it.
        (_, minutes @ 1..60, _) if seconds.is_multiple_of(60) && 60 % minutes == 0 => {
            Some(format!("*-*-* *:00/{minutes}:00"))
        }
        (_, _, hours @ 1..=24) if seconds.is_multiple_of(3600) && 24 % hours == 0 => {
            Some(match hours {
                24 => "*-*-* 00:00:00".to_owned(),
                hours => format!("*-*-* 00/{hours}:00:00"),
            })
        }
        _ => None,
    }
}

fn words(seconds: u64) -> String {
    match seconds {
        s if s % 3600 == 0 => format!("{}h", s / 3600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

/// A word of a command line (systemd.service(5)); `%` and `$` would be replaced.
fn quoted(word: &str) -> String {
    // systemd expands specifiers and variables in `ExecStart` (systemd.unit(5),
    // systemd.service(5)).
    let word = word.replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%$@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }

    format!(
        "\"{}\"",
        word.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn made(seconds: u64) -> Result<Units, String> {
        let words = [
            "--every",
            "5m",
            "--",
            "iperf3",
            "-c",
            "192.0.2.7",
            "-T",
            "50 % \"$HOME\"",
        ]
        .map(str::to_owned);
        units(
            Path::new("/bin/true"),
            "uplink",
            Duration::from_secs(seconds),
            &words,
        )
    }

    #[test]
    fn a_secret_is_not_written_into_a_unit() {
        let made = |store: &str| {
            let words = ["--store", store, "--", "iperf3", "-c", "192.0.2.7"].map(str::to_owned);
            units(
                Path::new("/bin/true"),
                "uplink",
                Duration::from_secs(300),
                &words,
            )
        };
        let error = made("postgresql://me:pw@db/runs").expect_err("a password");
        assert!(
            error.starts_with("postgresql://me:***@db/runs: ") && error.contains("PGPASSFILE"),
            "{error}"
        );
        assert!(made("postgresql://me@db/runs").is_ok());
    }

    #[test]
    fn service_runs_the_command_once_and_may_write_its_state() {
        let units = made(300).expect("units");
        let start = "ExecStart=/bin/true watch --once --every 5m -- iperf3 -c 192.0.2.7 -T \"50 %% \
                     \\\"$$HOME\\\"\"\n";
        assert!(units.service.contains(start), "{}", units.service);

        for line in [
            "Type=oneshot",
            "User=linerate",
            "DynamicUser=yes",
            "StateDirectory=linerate",
        ] {
            assert!(
                units.service.lines().any(|found| found == line),
                "{line}\n{}",
                units.service
            );
        }

        for line in [
            "OnCalendar=*-*-* *:00/5:00",
            "RandomizedDelaySec=30",
            "FixedRandomDelay=true",
            "AccuracySec=1s",
            "Persistent=false",
        ] {
            assert!(
                units.timer.lines().any(|found| found == line),
                "{line}\n{}",
                units.timer
            );
        }
    }

    #[test]
    fn period_that_is_no_part_of_a_day_is_refused_with_the_nearest() {
        let text = "7m is no whole part of a minute, an hour or a day, which a timer needs; the \
                    nearest are 6m and 10m";
        assert_eq!(made(420), Err(text.to_owned()));
        assert!(made(7 * 86_400).is_err_and(|text| text.ends_with("the nearest is 24h")));
    }

    /// systemd itself checks the units and computes the grid; skipped where it is not installed.
    #[test]
    fn systemd_accepts_the_units_and_computes_the_grid() {
        let analyze = |words: &[&str]| Command::new("systemd-analyze").args(words).output();
        let Ok(version) = analyze(&["--version"]) else {
            return eprint_skipped();
        };
        assert!(version.status.success());

        let directory = tempfile::tempdir().expect("a directory");
        for (seconds, hour) in [(5, 720), (300, 12), (3600, 1), (7200, 1), (86_400, 1)] {
            let units = made(seconds).expect("units");
            let files =
                [("service", &units.service), ("timer", &units.timer)].map(|(ending, text)| {
                    let path = directory.path().join(format!("{}.{ending}", units.name));
                    fs::write(&path, text).expect("a file");
                    path.display().to_string()
                });
            let verified = analyze(&["verify", "--man=no", &files[0], &files[1]])
                .expect("systemd-analyze runs");
            let output = [verified.stdout, verified.stderr].concat();
            assert!(
                verified.status.success() && output.is_empty(),
                "{}",
                String::from_utf8_lossy(&output)
            );

            let expression = units
                .timer
                .lines()
                .find_map(|line| line.strip_prefix("OnCalendar="))
                .expect("a grid");
            let iterations = format!("--iterations={}", hour + 1);
            let base = "--base-time=2026-06-01 00:00:00 UTC";
            let grid = Command::new("systemd-analyze")
                .args(["calendar", base, &iterations, expression])
                .env("TZ", "UTC")
                .output()
                .expect("systemd-analyze runs");
            let text = String::from_utf8_lossy(&grid.stdout).into_owned();
            let times: Vec<jiff::civil::DateTime> = text.lines().filter_map(elapse).collect();
            assert_eq!(times.len(), hour + 1, "{text}");

            for pair in times.windows(2) {
                assert_eq!(
                    pair[1].duration_since(pair[0]).as_secs(),
                    seconds as i64,
                    "{text}"
                );
            }
        }
    }

    /// `Next elapse: Mon 2026-06-01 00:05:00 UTC`, and `Iter. #2: …`.
    fn elapse(line: &str) -> Option<jiff::civil::DateTime> {
        let (head, time) = line.split_once(": ")?;
        let is_elapse = head.trim() == "Next elapse" || head.trim().starts_with("Iter");
        let words: Vec<&str> = time.split_whitespace().collect();
        is_elapse
            .then(|| format!("{}T{}", words.get(1)?, words.get(2)?).parse().ok())
            .flatten()
    }

    #[expect(clippy::print_stderr, reason = "a test names why it is skipped")]
    fn eprint_skipped() {
        eprintln!("skipped: systemd-analyze is not installed");
    }
}
