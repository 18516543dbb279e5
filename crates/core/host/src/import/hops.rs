//! Hops of a path: `mtr -r` and `mtr --json`, `traceroute`, `tracert` and `tracepath`.

use serde_json::Value;

use super::lines::*;
use crate::prelude::*;

/// More than the field for the number of hops of a packet allows.
const HOPS_MAX: usize = 256;

/// One hop, as far as it is known.
#[derive(Default)]
struct Hop {
    address: Option<String>,
    loss_share: Option<f64>,
    sent: Option<f64>,
    mean_ms: Option<f64>,
}

/// Reads lines of these programs.
pub(super) struct Reader {
    tool: Option<Tool>,
    hops: usize,
}

#[derive(Clone, Copy)]
enum Tool {
    Mtr,
    Traceroute,
    Tracepath,
}

impl Tool {
    const fn source(self) -> &'static str {
        match self {
            Self::Mtr => "import:mtr",
            Self::Traceroute => "import:traceroute",
            Self::Tracepath => "import:tracepath",
        }
    }
}

impl Reader {
    pub(super) fn new(block: &Block<'_>) -> Self {
        let tool = match block.program() {
            "mtr" => Some(Tool::Mtr),
            "traceroute" | "tracert" => Some(Tool::Traceroute),
            "tracepath" => Some(Tool::Tracepath),
            _ => None,
        };
        Self { tool, hops: 0 }
    }

    fn beginning(&mut self, line: &str) -> bool {
        let is_mtr = line.starts_with("HOST: ") && line.contains("Loss%");
        let is_traceroute =
            line.starts_with("traceroute to ") || line.starts_with("Tracing route to ");
        self.tool = match (is_mtr, is_traceroute) {
            (true, _) => Some(Tool::Mtr),
            (_, true) => Some(Tool::Traceroute),
            _ => return false,
        };

        true
    }

    fn hop(&mut self, snapshot: &mut Snapshot, line: &str, tool: Tool) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (number, hop) = match tool {
            Tool::Mtr => mtr(&words)?,
            Tool::Traceroute => traceroute(&words)?,
            Tool::Tracepath => tracepath(snapshot, &words)?,
        };
        self.record(snapshot, number, hop, tool.source());

        Some(())
    }

    fn record(&mut self, snapshot: &mut Snapshot, number: usize, hop: Hop, src: &str) {
        if number == 0 || number > HOPS_MAX {
            return;
        }

        self.hops = self.hops.max(number);
        let key = |fact: &str| format!("path.hop.{number}.{fact}");
        snapshot.set_known(key("address"), hop.address, src);
        snapshot.set_known(key("loss_share"), hop.loss_share, src);
        snapshot.set_known(key("sent"), hop.sent, src);
        snapshot.set_known_in(key("rtt_us"), hop.mean_ms.map(|ms| ms * 1e3), "µs", src);
        snapshot.set("path.hops", self.hops, src);
    }
}

impl LineReader for Reader {
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if self.beginning(line) {
            return true;
        }

        let Some(tool) = self.tool else { return false };

        const OF_NO_USE: [&str; 4] = [
            "Start: ",
            "over a maximum of",
            "Trace complete",
            "Too many hops",
        ];

        self.hop(snapshot, line, tool).is_some()
            || OF_NO_USE
                .iter()
                .any(|text| line.trim_start().starts_with(text))
    }
}

/// `1.|-- 192.0.2.1 0.0% 10 0.4 0.5 0.4 0.7 0.1`
fn mtr(words: &[&str]) -> Option<(usize, Hop)> {
    let [number, address, loss, sent, _, mean, ..] = words else {
        return None;
    };
    let number = number.strip_suffix(".|--")?.parse().ok()?;
    // mtr(8) prints `???` for a hop that answers no probe.
    let answers = *address != "???";

    Some((
        number,
        Hop {
            address: answers.then(|| (*address).to_owned()),
            loss_share: leading_number(loss).map(|percent| percent / 100.0),
            sent: sent.parse().ok(),
            mean_ms: mean.parse().ok().filter(|_| answers),
        },
    ))
}

/// `1 192.0.2.1 0.412 ms 0.398 ms 0.377 ms`; Windows has the address last, and `<1 ms`. A probe
/// without an answer is `*`.
fn traceroute(words: &[&str]) -> Option<(usize, Hop)> {
    let (number, rest) = words.split_first()?;
    let number = number.parse().ok()?;
    let is_address = |word: &&&str| word.parse::<std::net::IpAddr>().is_ok();

    let times: Vec<f64> = rest
        .windows(2)
        .filter(|pair| pair.get(1) == Some(&"ms"))
        .filter_map(|pair| leading_number(pair.first()?.trim_start_matches('<')))
        .collect();
    let mean = (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64);
    let is_answer = mean.is_some() || rest.contains(&"*");
    let address = rest.iter().find(is_address).map(|word| (*word).to_owned());

    is_answer.then_some((
        number,
        Hop {
            address,
            mean_ms: mean,
            ..Hop::default()
        },
    ))
}

/// `2: 192.0.2.1 0.9ms pmtu 1400`, `1?: [LOCALHOST] pmtu 1500`, `Resume: pmtu 1400 hops 3 back 3`
fn tracepath(snapshot: &mut Snapshot, words: &[&str]) -> Option<(usize, Hop)> {
    let (number, rest) = words.split_first()?;
    let at = rest.iter().position(|word| *word == "pmtu");
    if let Some(mtu) = at
        .and_then(|at| rest.get(at + 1))
        .and_then(|word| word.parse::<f64>().ok())
    {
        snapshot.set_in("path.forward_mtu", mtu, "bytes", Tool::Tracepath.source());
    }

    let number = number.trim_end_matches(':').trim_end_matches('?');
    if number == "Resume" || number == "Too" {
        // `record` skips hop 0: the line is understood, and is no hop.
        return Some((0, Hop::default()));
    }

    let address = rest
        .first()
        .filter(|word| word.parse::<std::net::IpAddr>().is_ok());
    let time = rest
        .iter()
        .find_map(|word| leading_number(word.strip_suffix("ms")?));
    Some((
        number.parse().ok()?,
        Hop {
            address: address.map(|word| (*word).to_owned()),
            mean_ms: time,
            ..Hop::default()
        },
    ))
}

/// A report of `mtr --json`; returns whether it is one.
pub(super) fn json(snapshot: &mut Snapshot, document: &Value) -> bool {
    let Some(hubs) = document["report"]["hubs"].as_array() else {
        return false;
    };
    let mut reader = Reader {
        tool: Some(Tool::Mtr),
        hops: 0,
    };

    for (index, hub) in hubs.iter().enumerate() {
        let address = hub["host"].as_str().filter(|host| *host != "???");
        let hop = Hop {
            address: address.map(str::to_owned),
            loss_share: hub["Loss%"].as_f64().map(|percent| percent / 100.0),
            sent: hub["Snt"].as_f64(),
            mean_ms: hub["Avg"].as_f64().filter(|_| address.is_some()),
        };
        reader.record(snapshot, index + 1, hop, Tool::Mtr.source());
    }

    true
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::super::tests::facts_of;
    use super::*;

    fn facts(command: &str, output: &str) -> Snapshot {
        facts_of(Reader::new, command, output)
    }

    #[test]
    fn hops_of_each_program() {
        let mtr = "Start: 2024-06-01T12:00:00+0000\nHOST: laptop   Loss%   Snt   Last   Avg  Best  \
                   Wrst StDev\n\
                   \x20 1.|-- 192.0.2.1    0.0%    10    0.4   0.5   0.4   0.7   0.1\n\
                   \x20 2.|-- ???         100.0    10    0.0   0.0   0.0   0.0   0.0\n\
                   \x20 3.|-- 192.0.2.9   10.0%    10    9.0   9.5   8.0  12.0   0.3\n";
        let linux = "traceroute to 192.0.2.9 (192.0.2.9), 30 hops max, 60 byte packets\n 1  \
                     192.0.2.1  0.4 ms  0.5 ms  0.6 ms\n 2  * * *\n 3  192.0.2.9  9.0 ms  9.5 ms  \
                     10.0 ms\n";
        let windows = "Tracing route to 192.0.2.9 over a maximum of 30 hops\n  1    0.5 ms    0.5 \
                       ms    0.5 ms  192.0.2.1\n  2     *        *        *     Request timed \
                       out.\n  3    9.5 ms    9.5 ms    9.5 ms  192.0.2.9\nTrace complete.\n";
        let tracepath = " 1?: [LOCALHOST]                      pmtu 1500\n 1:  192.0.2.1      \
                         0.5ms\n 2:  no reply\n 3:  192.0.2.9   9.5ms pmtu 1400\n     Resume: pmtu \
                         1400 hops 3 back 3\n";

        for (command, output) in [
            ("mtr -rw h", mtr),
            ("traceroute -n h", linux),
            ("tracert h", windows),
            ("tracepath h", tracepath),
        ] {
            let snapshot = facts(command, output);
            assert_eq!(snapshot.number("path.hops"), Some(3.0), "{command}");

            let hop = |number: u32| {
                let key = |fact: &str| format!("path.hop.{number}.{fact}");
                (
                    snapshot.text(&key("address")),
                    snapshot.number(&key("rtt_us")),
                )
            };
            assert_eq!(
                [hop(1), hop(2), hop(3)],
                [
                    (Some("192.0.2.1"), Some(500.0)),
                    (None, None),
                    (Some("192.0.2.9"), Some(9500.0))
                ],
                "{command}"
            );
            let loss = snapshot.number("path.hop.3.loss_share");
            assert_eq!(loss, command.starts_with("mtr").then_some(0.1), "{command}");
            assert_eq!(
                snapshot.number("path.forward_mtu"),
                (command == "tracepath h").then_some(1400.0),
                "{command}"
            );
        }
    }

    #[test]
    fn report_of_mtr_in_json() {
        let text = r#"{"report":{"mtr":{"dst":"h"},"hubs":[{"count":1,"host":"192.0.2.1","Loss%":0.0,"Snt":10,"Avg":0.5},{"count":2,"host":"192.0.2.9","Loss%":10.0,"Snt":10,"Avg":9.5}]}}"#;
        let mut snapshot = Snapshot::new("a", Source::Import);
        assert!(json(
            &mut snapshot,
            &serde_json::from_str(text).expect("JSON")
        ));
        assert_eq!(
            (
                snapshot.number("path.hops"),
                snapshot.number("path.hop.2.loss_share")
            ),
            (Some(2.0), Some(0.1))
        );
        assert!(!json(&mut snapshot, &serde_json::json!({"start": {}})));
    }

    #[test]
    fn other_lines_are_no_hops() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        let mut reader = Reader::new(&Block {
            host: None,
            command: "traceroute h",
            lines: Vec::new(),
        });

        for line in ["", "1 2 3", "Speed: 5", "connect: Network is unreachable"] {
            assert!(!reader.line(&mut snapshot, line), "{line}");
        }

        assert!(snapshot.facts.is_empty());
    }
}
