//! Queueing disciplines and their counters, their classes and filters (RTM_GETQDISC, RTM_GETTCLASS,
//! RTM_GETTFILTER).

pub(crate) mod filters;
pub(crate) mod shapers;

use linerate_sys::netlink::Family;

use filters::Filters;
use shapers::Classes;

use crate::prelude::*;

pub(crate) const GET_QDISC: u16 = 38;
const GET_CLASS: u16 = 42;
const GET_FILTER: u16 = 46;
/// `TCA_STATS2`, and `TCA_STATS_QUEUE` in it.
pub(crate) const STATISTICS: u16 = 7;
const QUEUE: u16 = 3;
const SRC: &str = "rtnetlink:GETQDISC";
pub(crate) const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
/// Parents of the filters of `ingress` and `clsact`: on receipt and on sending.
const FILTERS_IN: u32 = 0xffff_fff2;
const FILTERS_OUT: u32 = 0xffff_fff3;

/// Records the disciplines of the given interfaces: index and name.
pub(crate) fn record(snapshot: &mut Snapshot, links: &[(u32, &str)]) {
    let payloads = dump(Family::Route, GET_QDISC, &[0; 20]).0;
    for (index, name) in links {
        let own = payloads
            .iter()
            .filter(|payload| u32_at(payload, 4) == Some(*index));
        let own: Vec<Qdisc> = own
            .filter_map(|payload| qdisc(snapshot, name, payload))
            .collect();
        let has_filters = filters(snapshot, *index, name, &own);
        if !has_filters {
            snapshot.set_known(
                format!("nic.{name}.qdisc.root.command"),
                command(name, &own),
                SRC,
            );
        }

        for one in own.iter().filter(|one| one.default_class.is_some()) {
            hierarchy(snapshot, *index, one, has_filters);
        }
    }
}

/// A discipline, as requests about its classes and filters need it.
pub(crate) struct Qdisc {
    key: String,
    kind: String,
    /// Its parameters, where a command sets all of them.
    words: Option<String>,
    handle: u32,
    parent: u32,
    both_ways: bool,
    default_class: Option<u32>,
}

pub(crate) fn qdisc(snapshot: &mut Snapshot, name: &str, payload: &[u8]) -> Option<Qdisc> {
    let handle = u32_at(payload, 8)?;
    let parent = u32_at(payload, 12)?;
    let body = payload.get(20..)?;
    let kind = text(attribute(body, 1)?);

    let place = match parent {
        ROOT => "root".to_owned(),
        INGRESS => "ingress".to_owned(),
        parent => format!("{:x}_{:x}", parent >> 16, parent & 0xffff),
    };
    let key = format!("nic.{name}.qdisc.{place}");
    snapshot.set(format!("{key}.handle"), format!("{:x}:", handle >> 16), SRC);

    if let Some(shaper) = shapers::shaper(&kind, body) {
        snapshot.set_in(format!("{key}.rate_bps"), shaper.rate_bps, "bit/s", SRC);
    } else if kind == "cake" {
        snapshot.set_absent(
            format!("{key}.rate_bps"),
            Absence::NotApplicableToKind,
            None,
            SRC,
        );
    }

    if let Some((limit, unit)) = shapers::limit(&kind, body) {
        snapshot.set_in(format!("{key}.limit"), limit, unit, SRC);
    }

    counters(snapshot, &key, body);
    let default_class = shapers::default_class(&kind, handle, body);
    let both_ways = kind == "clsact";
    let words = shapers::words(&kind, body);

    snapshot.set(format!("{key}.kind"), kind.as_str(), SRC);
    Some(Qdisc {
        key,
        kind,
        words,
        handle,
        parent,
        both_ways,
        default_class,
    })
}

/// Parameters of a root discipline that has none below it.
fn command(name: &str, own: &[Qdisc]) -> Option<String> {
    let root = own.iter().find(|one| one.parent == ROOT)?;
    // Parents from `INGRESS` on are places; lower numbers are classes of another discipline.
    if own.iter().any(|one| one.parent < INGRESS) {
        return None;
    }

    if root.handle != 0 {
        let words = root.words.as_ref()?;
        let handle = root.handle >> 16;
        return Some(format!(
            "tc qdisc replace dev {name} root handle {handle:x}: {words}"
        ));
    }

    // Without a discipline the kernel attaches its default, which has handle 0.
    let is_default = root.kind == "noqueue"
        || read("/proc/sys/net/core/default_qdisc").as_ref() == Some(&root.kind);
    is_default.then(|| format!("tc qdisc del dev {name} root"))
}

fn counters(snapshot: &mut Snapshot, key: &str, body: &[u8]) {
    let Some(statistics) = attribute(body, STATISTICS) else {
        return;
    };
    let basic = attribute(statistics, 1).unwrap_or_default();
    let queue = attribute(statistics, QUEUE).unwrap_or_default();
    let counters = [
        ("bytes", u64_at(basic, 0)),
        ("drops", drops(statistics)),
        ("requeues", u32_at(queue, 12).map(u64::from)),
        ("overlimits", u32_at(queue, 16).map(u64::from)),
    ];
    for (counter, value) in counters {
        if let Some(value) = value {
            snapshot.count(format!("{key}.{counter}"), value);
        }
    }

    snapshot.set_known_in(format!("{key}.backlog"), u32_at(queue, 4), "bytes", SRC);
}

/// Packets that a discipline dropped, of its `TCA_STATS2`.
pub(crate) fn drops(statistics: &[u8]) -> Option<u64> {
    u32_at(attribute(statistics, QUEUE)?, 8).map(u64::from)
}

/// Classes or filters of one interface below `parent`.
fn attached(kind: u16, index: u32, parent: u32) -> Vec<Vec<u8>> {
    let mut body = vec![0; 20];
    for (at, value) in [(4, index), (12, parent)] {
        if let Some(slot) = body.get_mut(at..at + 4) {
            slot.copy_from_slice(&value.to_ne_bytes());
        }
    }

    let (mut responses, _) = dump(Family::Route, kind, &body);
    responses.retain(|payload| u32_at(payload, 4) == Some(index));
    responses
}

/// The rate of packets that no filter classifies. Where there are filters, it is inferred.
fn hierarchy(snapshot: &mut Snapshot, index: u32, qdisc: &Qdisc, has_filters: bool) {
    let classes = attached(GET_CLASS, index, 0);
    let classes: Classes = classes
        .iter()
        .filter_map(|payload| shapers::class(payload))
        .collect();
    let key = format!("{}.rate_bps", qdisc.key);
    let src = "rtnetlink:GETTCLASS";

    match qdisc
        .default_class
        .and_then(|class| shapers::ceiling(&classes, class))
    {
        Some(rate) => snapshot.set_in(&key, rate, "bit/s", src),
        // Without a default class packets go through unshaped, or are dropped.
        None => snapshot.set_absent(&key, Absence::NotReported, None, src),
    }

    if has_filters {
        snapshot.qualify(&key, Quality::Inferred);
    }
}

/// Records the filters of an interface; returns whether there are any on sending.
fn filters(snapshot: &mut Snapshot, index: u32, name: &str, qdiscs: &[Qdisc]) -> bool {
    let places = qdiscs.iter().flat_map(|qdisc| match qdisc.parent {
        // `ingress` lists the same filters for both parents.
        INGRESS if qdisc.both_ways => vec![FILTERS_IN, FILTERS_OUT],
        INGRESS => vec![FILTERS_IN],
        _ => vec![qdisc.handle],
    });
    let mut all = Filters::default();
    let mut classifies = false;

    // Handle 0 is the default discipline, which has no filters.
    for place in places.filter(|place| *place != 0) {
        let responses = attached(GET_FILTER, index, place);
        classifies |= !responses.is_empty() && place < INGRESS;
        for payload in responses {
            all.add(&payload);
        }
    }

    all.record(snapshot, &format!("nic.{name}"));
    classifies
}
