//! Changes of a host since an experiment began.

use linerate_model::http::{Environment, NegotiatedProtocol};
use serde::{Deserialize, Serialize};

/// Both hosts at the start of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    /// Start, wall clock of the client.
    pub started_unix_ms: u64,
    /// The negotiated protocol; absent in older directories.
    #[serde(default)]
    pub protocol: Option<NegotiatedProtocol>,
    /// The client's host.
    pub client: Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<Environment>,
}

impl StartRecord {
    /// Changes since an earlier start that make runs of both hard to compare, in words.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changed = changes(&before.client, &self.client);
        match (&before.server, &self.server) {
            (Some(before), Some(now)) => changed.extend(changes(before, now)),
            (None, None) => {}
            _ => changed.push("the server's control channel".to_owned()),
        }

        if let (Some(before), Some(now)) = (&before.protocol, &self.protocol)
            && before != now
        {
            changed.push(format!("protocol: {before}, now {now}"));
        }

        changed
    }
}

/// Changes that make results of a host incomparable with earlier ones: kernel, NIC, CPUs, limits.
/// One entry for each change, in words; empty for the same host. What either side could not read is
/// no change.
pub(crate) fn changes(before: &Environment, after: &Environment) -> Vec<String> {
    [
        change("linerate", &Some(&before.version), &Some(&after.version)),
        change("kernel", &before.kernel, &after.kernel),
        change("CPUs", &before.cpus, &after.cpus),
        change("device", &before.device, &after.device),
        change("link in bit/s", &before.link_bps, &after.link_bps),
        change(
            "largest packet in bytes",
            &before.mtu_bytes,
            &after.mtu_bytes,
        ),
        change(
            "limit of descriptors",
            &before.nofile_hard,
            &after.nofile_hard,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn change<T: PartialEq + std::fmt::Display>(
    what: &str,
    before: &Option<T>,
    after: &Option<T>,
) -> Option<String> {
    let (before, after) = (before.as_ref()?, after.as_ref()?);
    (before != after).then(|| format!("{what}: {before}, now {after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_named_and_what_was_not_read_is_none() {
        let before = Environment {
            kernel: Some("6.1".to_owned()),
            cpus: Some(4),
            link_bps: Some(1_000_000_000),
            ..Environment::default()
        };
        assert!(changes(&before, &before).is_empty());

        let mut after = before.clone();
        after.kernel = Some("6.12".to_owned());
        after.link_bps = None;
        after.mtu_bytes = Some(9000);
        assert_eq!(changes(&before, &after), ["kernel: 6.1, now 6.12"]);
    }
}
