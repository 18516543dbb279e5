//! Packets that the kernel dropped.

use linerate_model::finding::KernelDrop;

use crate::drops::{COUNTED, SAMPLE_PERIOD, UNWATCHED, of_host};
use crate::rules::prelude::*;

rules! {
    Host drop_01,
}

/// Reasons that are quoted.
const QUOTED_MAX: usize = 4;
/// Packets per second from which on drops matter: every network has stray packets.
const FREQUENT: f64 = 10.0;

fn drop_01(host: &Host<'_>) -> Ruling {
    let period = host.period()?;
    if let Ok(reason) = host.text(UNWATCHED) {
        return unknown(SAMPLE_PERIOD, reason.value);
    }
    host.number(SAMPLE_PERIOD)?;

    let drops = of_host(host.name(), host.snapshot, period);
    let lost: Vec<_> = drops.iter().filter(|drop| drop.place.is_some()).collect();
    require(!lost.is_empty(), "the kernel dropped no packet")?;

    let quoted = lost
        .iter()
        .take(QUOTED_MAX)
        .fold(matched(), |matched, drop| {
            let place = drop.place.as_deref().unwrap_or_default();
            let meaning = format!("{place}: {}", drop.meaning);
            matched.because(drop.key(), drop.packets, meaning)
        });
    let next = lost.first().and_then(|drop| drop.next.clone());
    let has_rule = |drop: &&KernelDrop| {
        drop.place
            .as_deref()
            .is_some_and(|place| COUNTED.contains(&place))
    };
    let others = lost
        .iter()
        .copied()
        .filter(|drop| !has_rule(drop))
        .map(|drop| drop.packets);
    let others = to_f64(others.fold(0, u64::saturating_add));
    let severity = if others >= FREQUENT * period.seconds && others > 0.0 {
        Severity::Medium
    } else {
        Severity::Low
    };
    let quoted = quoted.severity(severity);

    Ok(match next {
        Some(next) => quoted.advice(next),
        None => quoted,
    })
}
