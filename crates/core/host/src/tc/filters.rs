//! Filters and what they do to packets (RTM_GETTFILTER, `linux/pkt_cls.h`).

use std::collections::BTreeSet;

use crate::prelude::*;
use crate::tc::shapers;

const SRC: &str = "rtnetlink:GETTFILTER";

/// Summary of the filters of one interface.
#[derive(Default)]
pub(crate) struct Filters {
    count: usize,
    kinds: BTreeSet<String>,
    priorities: BTreeSet<u32>,
    queue_mappings: usize,
    policers: usize,
    /// The lowest rate of a policer, bit/s.
    policed_bps: Option<f64>,
}

impl Filters {
    /// Takes one response.
    pub(crate) fn add(&mut self, payload: &[u8]) -> Option<()> {
        const KIND: u16 = 1;
        const OPTIONS: u16 = 2;

        let handle = u32_at(payload, 8)?;
        let body = payload.get(20..)?;
        let kind = text(attribute(body, KIND)?);

        // The kernel lists the classifier itself, and the tables of u32, as if they were filters.
        let is_table = kind == "u32" && handle & 0xfff == 0;
        if handle == 0 || is_table {
            return None;
        }

        self.count += 1;
        self.priorities.insert(u32_at(payload, 16)? >> 16);
        let options = attribute(body, OPTIONS).unwrap_or_default();

        if let Some(actions) =
            actions_of(&kind).and_then(|attribute_kind| attribute(options, attribute_kind))
        {
            attributes(actions).for_each(|(_, action)| self.action(action));
        }

        if let Some(policer) =
            policer_of(&kind).and_then(|attribute_kind| attribute(options, attribute_kind))
        {
            self.policer(policer);
        }

        self.kinds.insert(kind);
        Some(())
    }

    fn action(&mut self, action: &[u8]) {
        const KIND: u16 = 1;
        const OPTIONS: u16 = 2;
        const QUEUE_MAPPING: u16 = 4;

        let options = attribute(action, OPTIONS).unwrap_or_default();
        match attribute(action, KIND).map(text).as_deref() {
            Some("skbedit") if attribute(options, QUEUE_MAPPING).is_some() => {
                self.queue_mappings += 1;
            }
            Some("police") => self.policer(options),
            _ => {}
        }
    }

    fn policer(&mut self, options: &[u8]) {
        self.policers += 1;
        let rate = policed_bps(options).filter(|rate| *rate > 0.0);
        self.policed_bps = self.policed_bps.into_iter().chain(rate).reduce(f64::min);
    }

    /// Records them for an interface.
    pub(crate) fn record(self, snapshot: &mut Snapshot, nic: &str) {
        let key = |fact: &str| format!("{nic}.qdisc.filter.{fact}");
        snapshot.set(key("count"), self.count, SRC);
        snapshot.set(key("skbedit_count"), self.queue_mappings, SRC);

        if self.count > 0 {
            snapshot.set(key("priorities"), self.priorities.len(), SRC);
            let kinds: Vec<String> = self.kinds.into_iter().collect();
            snapshot.set(key("kinds"), kinds.join(" "), SRC);
        }

        if self.policers > 0 {
            snapshot.set(key("police_count"), self.policers, SRC);
        }

        if let Some(rate) = self.policed_bps {
            snapshot.set(format!("{nic}.qdisc.policer.kind"), "police", SRC);
            snapshot.set_in(format!("{nic}.qdisc.policer.rate_bps"), rate, "bit/s", SRC);
        }
    }
}

/// Attribute in which a classifier keeps its actions.
fn actions_of(kind: &str) -> Option<u16> {
    match kind {
        "u32" => Some(7),
        "flower" | "basic" | "flow" => Some(if kind == "flow" { 9 } else { 3 }),
        "matchall" => Some(2),
        "bpf" => Some(1),
        "fw" => Some(4),
        _ => None,
    }
}

/// Attribute in which older classifiers keep a policer that is no action.
fn policer_of(kind: &str) -> Option<u16> {
    match kind {
        "u32" => Some(6),
        "basic" => Some(4),
        "bpf" | "fw" => Some(2),
        "flow" => Some(10),
        _ => None,
    }
}

/// Rate of a policer, bit/s (`struct tc_police`).
fn policed_bps(options: &[u8]) -> Option<f64> {
    const PARAMETERS: u16 = 1;
    const RATE64: u16 = 8;
    // Five numbers come before the rate, whose last four bytes are the number.
    const RATE_AT: usize = 28;

    let parameters = attribute(options, PARAMETERS)?;
    Some(8.0 * shapers::rate(options, RATE64, parameters, RATE_AT)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{encoded, push};
    use linerate_model::snapshot::Source;

    fn filter(kind: &str, handle: u32, priority: u32, options: &[u8]) -> Vec<u8> {
        let mut payload = vec![0; 8];
        payload.extend(handle.to_ne_bytes());
        payload.extend(0_u32.to_ne_bytes());
        payload.extend((priority << 16).to_ne_bytes());
        push(&mut payload, 1, kind.as_bytes());
        push(&mut payload, 2, options);
        payload
    }

    fn policer(bytes_per_second: u32) -> Vec<u8> {
        let mut parameters = vec![0; 56];
        parameters[28..32].copy_from_slice(&bytes_per_second.to_ne_bytes());
        encoded(1, &parameters)
    }

    /// A filter whose only action is a policer.
    fn policing(kind: &str, handle: u32, priority: u32, bytes_per_second: u32) -> Vec<u8> {
        let action = [
            encoded(1, b"police"),
            encoded(2, &policer(bytes_per_second)),
        ]
        .concat();
        let options = encoded(actions_of(kind).unwrap_or(99), &encoded(1, &action));
        filter(kind, handle, priority, &options)
    }

    #[test]
    fn policer_beside_other_actions_is_found() {
        let mut filters = Filters::default();
        filters.add(&filter(
            "u32",
            0x8000_0800,
            7,
            &encoded(6, &policer(2_500_000)),
        ));
        assert_eq!((filters.policers, filters.policed_bps), (1, Some(2e7)));
    }

    #[test]
    fn policers_are_found_behind_their_filters() {
        let mut filters = Filters::default();
        for payload in [
            filter("u32", 0x8000_0000, 7, &[]),
            policing("u32", 0x8000_0800, 7, 12_500_000),
            policing("matchall", 1, 9, 1_250_000),
            policing("strange", 1, 9, 1),
        ] {
            filters.add(&payload);
        }

        let mut snapshot = Snapshot::new("h", Source::Live);
        filters.record(&mut snapshot, "nic.e");
        let number = |fact: &str| snapshot.number(&format!("nic.e.qdisc.{fact}"));
        assert_eq!(number("filter.count"), Some(3.0), "a table is no filter");
        assert_eq!(number("filter.priorities"), Some(2.0));
        assert_eq!(
            (number("filter.police_count"), number("policer.rate_bps")),
            (Some(2.0), Some(1e7))
        );
        assert_eq!(
            snapshot.text("nic.e.qdisc.filter.kinds"),
            Some("matchall strange u32")
        );
    }
}
