//! Two hosts joined by a link whose delay, order, duplicates and losses are known exactly:
//! `link.py` carries packets between their tun devices.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::namespaces::{DEVICE, Net};
use crate::{Process, Signal, unsupported};

/// The link. It ends when this goes, before its namespaces do.
pub struct TunLink {
    process: Process,
    /// The hosts. Their interfaces are tun devices.
    pub net: Net,
}

/// Counts of the link.
#[derive(Debug)]
pub struct LinkReport {
    /// To packets of the client.
    pub up: Value,
    /// To packets of the server.
    pub down: Value,
}

/// By so much half of all packets may arrive later than planned.
const ERROR_MAX_NS: u64 = 200_000;

impl TunLink {
    /// A link that treats packets of the client as `up` and those of the server as `down` describe:
    /// objects with the members that `link.py` documents. `None`, with the reason said, where it
    /// cannot be made.
    pub fn new(up: &Value, down: &Value) -> Option<Self> {
        if !Path::new("/dev/net/tun").exists() {
            unsupported("this host has no /dev/net/tun");
            return None;
        }

        let net = Net::empty(false)?;
        let mut command = Command::new("python3");
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/link.py"))
            .args([DEVICE, &net.a, &net.b]);

        let process = Process::start({
            command.args([up.to_string(), down.to_string()]);
            command
        });
        process.wait_for_stdout("ready", 1);
        net.configure();

        Some(Self { process, net })
    }

    /// Ends the link and returns what it did.
    #[track_caller]
    pub fn finish(self) -> LinkReport {
        self.process.signal(Signal::Terminate);
        let finished = self.process.finish();
        let last = finished
            .expect_clean()
            .stdout
            .lines()
            .last()
            .unwrap_or_default();
        let report: Value =
            serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {finished:?}"));

        for direction in ["up", "down"] {
            let error_ns = report[direction]["error_p50_ns"].as_u64();
            assert!(
                error_ns.is_some_and(|ns| ns < ERROR_MAX_NS),
                "the link itself is late: {report:#}"
            );
        }

        LinkReport {
            up: report["up"].clone(),
            down: report["down"].clone(),
        }
    }
}
