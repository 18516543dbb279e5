//! Which lines of an agent a bus keeps until the coordinator reads them.

use linerate_model::record::RunId;

use super::{AgentMessage, Envelope, decode};

/// Delivery of an agent's line by a bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Those who listen now receive it.
    Live,
    /// It is kept: a result, or the end of a round or run.
    Kept {
        /// The run.
        run: RunId,
        /// Identity that all copies of a result share, and no other result of this agent has; none
        /// for ends, which may be repeated.
        id: Option<String>,
    },
}

/// Delivery of an agent's line by a bus. A task that runs again in another round has another
/// result.
pub fn delivery(line: &str) -> Delivery {
    let Ok(Envelope {
        run: Some(run),
        epoch,
        message,
        ..
    }) = decode::<AgentMessage>(line.as_bytes())
    else {
        // A line without a run is HELLO or an early FAIL, for the coordinator of the moment alone.
        return Delivery::Live;
    };
    let id = match message {
        // The number of the message is not part of the id: an agent that started again begins at 1.
        AgentMessage::Result(part) => Some(format!(
            "{run}/{epoch}/{}/{}/{}",
            part.round, part.task, part.part
        )),
        AgentMessage::Done { .. } => None,
        // Clocks and beats are of no value once they are late.
        _ => return Delivery::Live,
    };
    Delivery::Kept { run, id }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "0199aaaa-0000-7000-8000-000000000001";

    fn line(kind: &str, body: &str) -> String {
        format!(r#"{{"v":1,"run":"{RUN}","epoch":3,"seq":9,"type":"{kind}","body":{body}}}"#)
    }

    fn result(round: u32, part: u32) -> String {
        let end = if part == 0 {
            r#""end":{"outcome":"done"},"#
        } else {
            ""
        };
        let task = format!("{:032x}", 17);
        line(
            "result",
            &format!(r#"{{"round":{round},"task":"{task}",{end}"part":{part},"parts":2}}"#),
        )
    }

    fn id(line: &str) -> Option<String> {
        match delivery(line) {
            Delivery::Kept { id, .. } => id,
            Delivery::Live => panic!("{line} is not kept"),
        }
    }

    #[test]
    fn results_are_kept_under_names_of_their_own_and_ends_without() {
        let lines = [result(1, 0), result(1, 1), result(2, 0)];
        let ids: std::collections::BTreeSet<_> =
            lines.iter().map(|line| id(line).expect("a name")).collect();
        assert_eq!(ids.len(), lines.len());
        assert!(ids.iter().all(|id| id.starts_with(RUN)), "{ids:?}");
        assert_eq!(id(&result(1, 0)), id(&result(1, 0)));
        assert_eq!(id(&line("done", "{}")), None);
    }

    #[test]
    fn other_lines_are_live() {
        let started = format!(r#"{{"round":1,"task":"{:032x}","at_ns":5}}"#, 17);
        for line in [
            line("started", &started),
            line("beat", "{}"),
            "garbage".to_owned(),
        ] {
            assert_eq!(delivery(&line), Delivery::Live, "{line}");
        }
    }
}
