//! Facts of one run, and the arithmetic that several of them share.

use std::collections::BTreeMap;

use linerate_model::interval::TcpLimits;
use linerate_model::snapshot::Value;
use linerate_model::units::ns_to_s;

/// Facts of one run under their names without `run.N.`.
pub type RunFacts = BTreeMap<String, Value>;

/// Adds a fact that is known.
pub(crate) fn insert(facts: &mut RunFacts, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        facts.insert(name.to_owned(), value.into());
    }
}

/// The sum of what several senders waited for.
pub(crate) fn added_up(rows: impl IntoIterator<Item = TcpLimits>) -> TcpLimits {
    rows.into_iter()
        .fold(TcpLimits::default(), TcpLimits::saturating_add)
}

/// Shares of the time with something to send in which senders waited; and the share of that time in
/// `seconds`.
pub(crate) fn shares(facts: &mut RunFacts, limits: Option<TcpLimits>, seconds: f64) {
    let Some(limits) = limits.filter(|limits| limits.busy_us > 0) else {
        return;
    };
    let in_s = |us: u64| ns_to_s(us.saturating_mul(1000));
    let busy = in_s(limits.busy_us);
    let share = |us: u64| in_s(us) / busy;
    for (name, us) in [
        ("rwnd_limited_share", limits.rwnd_limited_us),
        ("sndbuf_limited_share", limits.sndbuf_limited_us),
    ] {
        insert(facts, name, Some(share(us)));
    }

    if seconds > 0.0 {
        insert(facts, "busy_share", Some((busy / seconds).min(1.0)));
        insert(facts, "idle_share", Some((1.0 - busy / seconds).max(0.0)));
    }
}

/// The middle value, of an even number the higher one.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Largest distance from the middle value as a part of it; `None` where that is 0.
pub(crate) fn spread(values: &[f64], middle: f64) -> Option<f64> {
    (middle > 0.0).then(|| {
        let distances = values.iter().map(|value| (value - middle).abs());
        distances.fold(0.0, f64::max) / middle
    })
}
