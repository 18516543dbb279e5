//! Plays a dialogue over a carrier: feeds lines and expects lines.

use serde_json::Value;

use crate::dialogue::{Dialogue, Step};

/// The way to a machine: an in-memory pipe here, ssh or a bus elsewhere.
pub(crate) trait Carrier {
    /// Sends a line to the machine, from a host or from the coordinator (`""`).
    fn feed(&mut self, host: &str, line: &str);

    /// The next line of the machine to a host or to the coordinator, if there is one.
    fn next_line(&mut self, host: &str) -> Option<String>;

    /// Time passes until this many ms after the begin.
    fn pass_until(&mut self, ms: u64);

    /// The owner of the machine does something.
    fn own(&mut self, command: &str);

    /// Actions of the machine so far, other than lines.
    fn actions(&self) -> &[String];
}

/// Plays all steps.
///
/// # Errors
/// The first step that fails, with its line.
pub(crate) fn play(dialogue: &Dialogue, carrier: &mut dyn Carrier) -> Result<(), String> {
    let mut seen = 0;
    for (number, step) in &dialogue.steps {
        play_step(step, carrier, &mut seen).map_err(|text| format!("line {number}: {text}"))?;
    }
    Ok(())
}

/// `seen` actions were expected before.
fn play_step(step: &Step, carrier: &mut dyn Carrier, seen: &mut usize) -> Result<(), String> {
    match step {
        Step::Time(ms) => carrier.pass_until(*ms),
        Step::Feed { host, line } => carrier.feed(host, line),
        Step::Owner(command) => carrier.own(command),
        Step::ExpectRaw { host, line } => {
            let found = carrier.next_line(host);
            require(found.as_ref() == Some(line), || {
                format!("{found:?}, {line:?} expected")
            })?;
        }
        Step::Expect { host, kind, body } => {
            let found = next_message(carrier, host, kind)
                .ok_or_else(|| format!("no line, {kind} expected"))?;
            let fits = found["type"] == *kind && is_within(body, &found["body"]);
            require(fits, || format!("{found}\nexpected: {kind} {body}"))?;
        }
        Step::Quiet { host } => {
            let found = next_message(carrier, host, "");
            require(found.is_none(), || format!("{found:?}, nothing expected"))?;
        }
        Step::Action(wanted) => {
            let mut later = carrier.actions().iter().skip(*seen);
            let found = later.position(|action| action.starts_with(wanted.as_str()));
            *seen += 1 + found
                .ok_or_else(|| format!("no {wanted:?} after {seen} of {:#?}", carrier.actions()))?;
        }
        Step::NoAction(unwanted) => {
            let found = carrier
                .actions()
                .iter()
                .skip(*seen)
                .find(|action| action.starts_with(unwanted.as_str()));
            require(found.is_none(), || format!("{found:?}"))?;
        }
    }

    Ok(())
}

fn require(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(text()) }
}

/// The next message; BEAT only where it is wanted.
fn next_message(carrier: &mut dyn Carrier, host: &str, wanted: &str) -> Option<Value> {
    loop {
        let line = carrier.next_line(host)?;
        let message: Value = serde_json::from_str(&line).unwrap_or(Value::String(line));
        if message["type"] != "beat" || wanted == "beat" {
            return Some(message);
        }
    }
}

/// All members of `wanted` are in `found`; arrays have equal lengths.
fn is_within(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted
            .iter()
            .all(|(key, value)| is_within(value, found.get(key).unwrap_or(&Value::Null))),
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len()
                && wanted
                    .iter()
                    .zip(found)
                    .all(|(wanted, found)| is_within(wanted, found))
        }
        _ => wanted == found,
    }
}
