//! Proof of a fix: tests without and with the commands of a finding, and the former settings
//! afterwards.

mod command;
mod journal;
mod settings;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use linerate_document::progress::Progress;
use linerate_host::connect_advice::{TEST_SERVER, connect_failure};
use linerate_iperf3::wire::ErrorCode;
use linerate_model::finding::{Diagnosis, Finding};
use linerate_model::numbers::clock;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::spec::ClientSpec;
use linerate_model::{EndCondition, Failure, FailureKind};
use linerate_sys::signal::Signals;
use linerate_sys::{privileges, process};

use super::diagnosed_client::diagnosed;
use super::file_error::at;
use super::query::{address, check_rule};
use crate::proof::{Effect, PROOF_SCHEMA, Proof, ProofPlan};
use command::permitted;
use journal::Journal;
use settings::{Settings, record};

/// A fix to prove.
#[derive(Debug, Clone)]
pub struct ProofSpec {
    /// Rule of the finding.
    pub id: String,
    /// The server of the tests.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// Time for all tests.
    pub budget: Duration,
    /// True if the user has agreed to the changes already.
    pub is_confirmed: bool,
}

impl ProofSpec {
    /// Time for all tests unless named otherwise.
    pub const BUDGET: Duration = Duration::from_secs(120);

    /// The fix of the finding `id`, by tests to port 5201 of `server`; the user confirms the
    /// changes.
    pub fn new(id: impl Into<String>, server: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            server: server.into(),
            port: 5201,
            budget: Self::BUDGET,
            is_confirmed: false,
        }
    }
}

/// The tests of a proof, all with the same settings.
pub trait ProofTests {
    /// The test to the server.
    fn client(&self) -> ClientSpec;

    /// Begins a series of such tests.
    fn series<'a>(&'a self, signals: &'a Signals, progress: Progress) -> Box<dyn TestSeries + 'a>;
}

/// Tests one after the other.
pub trait TestSeries {
    /// The text for people.
    fn progress(&mut self) -> &mut Progress;

    /// Received rate of the next test in bit/s.
    ///
    /// # Errors
    /// The outcome and the reason of a test without a rate.
    fn received_bps(&mut self) -> Result<f64, Error>;
}

/// Diagnoses a test to the server, then compares tests without and with the commands of a finding,
/// which the user confirms. The former settings are in force afterwards, whatever happened; where
/// the process was killed, the next call restores them.
///
/// # Errors
/// A finding that does not exist or whose commands may interrupt connections; tests, commands or
/// files that fail; the user's refusal; a signal.
pub fn prove(
    spec: &ProofSpec,
    plan: ProofPlan,
    tests: &dyn ProofTests,
    signals: &Signals,
    mut progress: Progress,
) -> Result<Proof, Error> {
    let boot_id = boot_id()?;

    // Its lock is held to the end, so that no other proof changes the settings meanwhile.
    let mut journal = Journal::open()?;
    if let Some(record) = journal.read(&boot_id)? {
        let path = journal.path.display();
        progress.line(&format!(
            "{path}: an earlier --prove was killed before it restored the former settings"
        ));
        show(&mut progress, "undo", &record.undo);
        confirm("Restore them?", spec, signals)?;
        Settings {
            journal: &mut journal,
            record,
            are_changed: true,
        }
        .restore()?;
        progress.line("The former settings are restored.");
    }

    let length_s = ProofPlan::DIAGNOSIS_S;
    progress.update(&format!(
        "{}: a test of {length_s} s to {}",
        spec.id, spec.server
    ));

    let diagnosis = diagnosed(&diagnosed_test(tests.client()), signals)
        .map_err(|failure| failed(&failure, spec));
    progress.clear();
    let finding = provable(&diagnosis?, &spec.id).map_err(Error::failed)?;
    progress.line(&format!("{}  {}", finding.id, finding.title));
    show(&mut progress, "do", &finding.remedy);
    show(&mut progress, "undo", &finding.undo);

    let time = clock(plan.time(plan.runs).as_secs_f64());
    confirm(
        &format!(
            "Test {} times without and with these commands, {time} in all?",
            plan.runs
        ),
        spec,
        signals,
    )?;
    // Before the first command, so that the record has the former settings.
    let record = record(address(&spec.server)?, &finding, boot_id);
    let mut settings = Settings {
        journal: &mut journal,
        record,
        are_changed: false,
    };

    let mut series = tests.series(signals, progress);
    let measured = measure(plan, &finding, &mut settings, &mut *series);

    series.progress().clear();
    // Before an error of the tests is returned: the former settings are in force in any case.
    settings.restore()?;

    let [without, with] = measured.map_err(|error| {
        Error::new(
            error.outcome,
            format!("{error}; the former settings are restored"),
        )
    })?;
    let effect = Effect::of(without, with).ok_or_else(|| Error::failed("too few runs"))?;

    let Finding {
        id,
        title,
        remedy,
        undo,
        ..
    } = finding;
    Ok(Proof {
        schema: PROOF_SCHEMA,
        id,
        title,
        server: spec.server.clone(),
        commands: remedy,
        undo,
        effect,
    })
}

/// Checks what can be checked before anything runs: the rule, the time, the user.
///
/// # Errors
/// A request that cannot be proved.
pub fn check(spec: &ProofSpec) -> Result<ProofPlan, Error> {
    check_rule(&spec.id)?;
    let plan = ProofPlan::within(spec.budget).ok_or_else(|| {
        let least = ProofPlan::BUDGET_MIN.as_secs();
        Error::usage(format!(
            "--budget: at least {least}s, for six tests without and six with the fix"
        ))
    })?;

    if !privileges::is_root() {
        return Err(Error::usage(
            "--prove changes settings of this host: run it as root",
        ));
    }
    if !spec.is_confirmed && !io::stdin().is_terminal() {
        return Err(Error::usage(
            "--prove requires confirmation to change settings: use --yes without a terminal",
        ));
    }

    Ok(plan)
}

fn boot_id() -> Result<String, Error> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    Ok(fs::read_to_string(path)
        .map_err(at(path))?
        .trim()
        .to_owned())
}

/// The test that shows the finding.
fn diagnosed_test(mut test: ClientSpec) -> ClientSpec {
    test.test.end = EndCondition::Duration(Duration::from_secs(ProofPlan::DIAGNOSIS_S.into()));
    test.test.omit = Duration::ZERO;
    test.test.want_peer_facts = true;
    test.local.interval = Some(Duration::from_secs(1));
    test
}

fn failed(failure: &Failure, spec: &ProofSpec) -> Error {
    let is_one_of =
        |codes: &[ErrorCode]| codes.iter().any(|code| failure.code == Some(code.number()));
    match failure.kind {
        FailureKind::Interrupted => {
            Error::new(Outcome::Interrupted, "interrupted; nothing was changed")
        }
        _ if is_one_of(&[ErrorCode::Connect]) => {
            let text = connect_failure(&failure.to_string(), &spec.server, spec.port, TEST_SERVER);
            Error::new(Outcome::Unreachable, text)
        }
        _ if is_one_of(&[ErrorCode::AccessDenied, ErrorCode::AuthTest]) => {
            Error::new(Outcome::Unreachable, failure)
        }
        _ => Error::failed(failure),
    }
}

/// The finding of a rule with commands that can be proved, or why there is none.
fn provable(diagnosis: &Diagnosis, id: &str) -> Result<Finding, String> {
    let is_named = |name: &str| name.eq_ignore_ascii_case(id);
    let mut reason = None;

    for finding in diagnosis
        .findings
        .iter()
        .filter(|finding| is_named(&finding.id))
    {
        match refusal(finding) {
            None => return Ok(finding.clone()),
            Some(text) => reason = reason.or(Some(text)),
        }
    }

    let ruled_out = || {
        diagnosis
            .ruled_out
            .iter()
            .find(|rule| is_named(&rule.id))
            .map(|rule| rule.reason.clone())
    };
    // A refusal first: the finding is there, only its commands cannot be proved.
    let reason =
        reason.or_else(|| ruled_out().map(|reason| format!("it does not apply: {reason}")));

    let unknown = || {
        diagnosis
            .not_evaluated
            .iter()
            .find(|rule| is_named(&rule.id))
    };
    let missing = || {
        unknown().map(|rule| format!("it cannot be checked without {}", rule.missing.join(", ")))
    };
    Err(format!(
        "{id}: {}",
        reason
            .or_else(missing)
            .unwrap_or_else(|| "the test does not show it".to_owned())
    ))
}

/// Why the commands of a finding cannot be proved from this end, the client.
fn refusal(finding: &Finding) -> Option<String> {
    let subject = finding.subject.split(' ').next().unwrap_or_default();
    let host = finding.remedy_host.as_deref().unwrap_or(subject);

    let advice = || {
        finding
            .advice
            .as_ref()
            .map_or_else(String::new, |advice| format!("; {advice}"))
    };
    if host != "client" {
        let host = if host == "server" { "the server" } else { host };
        return Some(format!(
            "its commands are for {host}: run --prove on that host"
        ));
    }

    if let Some(first) = &finding.retest_after {
        return Some(format!("repair {first} first"));
    }
    if finding.remedy.is_empty() || finding.remedy.len() != finding.undo.len() {
        return Some(format!(
            "no command with an exact undo repairs it{}",
            advice()
        ));
    }

    // Root has the capabilities; any other need, such as a link flap, disturbs a connection.
    let disturbance = finding.needs.iter().find(|need| !need.starts_with("CAP_"));
    if let Some(need) = disturbance {
        return Some(format!(
            "its commands may interrupt the connection to the server ({need})"
        ));
    }

    finding
        .remedy
        .iter()
        .chain(&finding.undo)
        .find_map(|line| permitted(line).err())
}

/// Commands as a report has them.
fn show(progress: &mut Progress, label: &str, commands: &[String]) {
    commands
        .iter()
        .for_each(|command| progress.line(&format!("  {label:<8}  {command}")));
}

/// Waits for the user's consent.
fn confirm(question: &str, spec: &ProofSpec, signals: &Signals) -> Result<(), Error> {
    if spec.is_confirmed {
        return Ok(());
    }

    let io_failed = |error: io::Error| Error::failed(format!("standard input: {error}"));
    let _ = write!(io::stderr(), "{question} [y/N] ");
    if process::wait_for_line(io::stdin().as_fd(), signals)
        .map_err(io_failed)?
        .is_some()
    {
        return Err(Error::new(
            Outcome::Interrupted,
            "interrupted; nothing was changed",
        ));
    }

    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(io_failed)?;

    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::failed("nothing was changed")),
    }
}

/// Received rates in bit/s, without and with the fix.
fn measure(
    plan: ProofPlan,
    finding: &Finding,
    settings: &mut Settings<'_>,
    series: &mut dyn TestSeries,
) -> Result<[Vec<f64>; 2], Error> {
    let mut rates = [Vec::new(), Vec::new()];
    for number in 0..plan.runs {
        let has_fix = ProofPlan::has_fix(number);
        // Neighbours with the same settings need no command between them.
        match (has_fix, settings.are_changed) {
            (true, false) => settings.apply(&finding.remedy)?,
            (false, true) => settings.restore()?,
            _ => {}
        }

        let words = if has_fix {
            "with the fix"
        } else {
            "without the fix"
        };
        let left = clock(plan.time(plan.runs - number).as_secs_f64());
        series.progress().update(&format!(
            "[{}/{}] {words}; {left} left",
            number + 1,
            plan.runs
        ));

        let received_bps = series.received_bps().map_err(|error| {
            Error::new(
                error.outcome,
                format!("test {} of {}: {error}", number + 1, plan.runs),
            )
        })?;
        // A test that received nothing has a rate below any other one.
        rates[usize::from(has_fix)].push(received_bps.max(1.0));
    }

    Ok(rates)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finding(subject: &str, remedy: &str, undo: &str) -> Finding {
        let lines = |line: &str| {
            if line.is_empty() {
                Vec::new()
            } else {
                vec![line.to_owned()]
            }
        };
        let finding = json!({
            "id": "QD-01", "severity": "high", "confidence": "high", "subject": subject, "title": "", "evidence": [],
            "explanation": "", "reference": "", "advice": "on the receiver", "needs": ["CAP_NET_ADMIN"],
            "remedy": lines(remedy), "undo": lines(undo),
        });
        serde_json::from_value(finding).expect("a finding")
    }

    #[test]
    fn fix_is_refused_with_its_reason() {
        let (command, undo) = (
            "tc qdisc del dev lr0 root",
            "tc qdisc replace dev lr0 root handle 8001: pfifo limit 5",
        );
        let good = finding("client lr0", command, undo);
        assert_eq!(refusal(&good), None);

        let (mut elsewhere, mut held_back, mut disturbing) = (good.clone(), good.clone(), good);
        elsewhere.remedy_host = Some("the receiver".to_owned());
        held_back.retest_after = Some("LNK-01".to_owned());
        disturbing.needs = vec!["link flap of about 2 s".to_owned()];

        let rows = [
            (
                finding("server lr0", command, undo),
                "its commands are for the server: run --prove on that host",
            ),
            (elsewhere, "for the receiver"),
            (held_back, "repair LNK-01 first"),
            (
                finding("client lr0", "", ""),
                "no command with an exact undo repairs it; on the receiver",
            ),
            (finding("client lr0", "ethtool -r lr0", ""), "exact undo"),
            (disturbing, "link flap of about 2 s"),
            (
                finding(
                    "client lr0",
                    "ip link set dev lr0 mtu 1500",
                    "ip link set dev lr0 mtu 9000",
                ),
                "may interrupt",
            ),
            (
                finding("client lr0", command, "sh -c true"),
                "may interrupt",
            ),
        ];
        for (finding, reason) in rows {
            let refused = refusal(&finding).unwrap_or_default();
            assert!(refused.contains(reason), "{refused} for {finding:?}");
        }
    }
}
