//! Hosts as tables of tests describe them: `key=value` is a fact, `+key=growth` a counter over a
//! window of 10 s, `#key=value` a total, `@cpuN:state=percent` a load.

use linerate_doctor::{Delta, Observed, Period};
use linerate_model::snapshot::{Snapshot, Source, Value};

/// The host the words describe.
pub(crate) fn host(words: &[&str]) -> Observed {
    let mut snapshot = Snapshot::new("h", Source::Live);
    let mut period = Period::default();
    (period.seconds, period.intervals) = (10.0, 10);

    let mut any_growth = false;
    for word in words {
        let (key, value) = word.split_once('=').expect("key=value");
        if let Some(key) = key.strip_prefix('#') {
            snapshot.count(key, value.parse().expect("a number"));
        } else if let Some(key) = key.strip_prefix('+') {
            any_growth = true;
            grow(
                &mut snapshot,
                &mut period,
                key,
                value.parse().expect("a number"),
            );
        } else if let Some(load) = key.strip_prefix("@cpu") {
            any_growth = true;
            let (cpu, state) = load.split_once(':').expect("a state");
            let share: u64 = value.parse().expect("per cent");

            for name in [
                "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
            ] {
                let ticks = match name {
                    name if name == state => share * 10,
                    "idle" => (100 - share) * 10,
                    _ => 0,
                };
                grow(
                    &mut snapshot,
                    &mut period,
                    &format!("cpu.{cpu}.{name}"),
                    ticks,
                );
            }
        } else {
            snapshot.set(key, typed(key, value), "test");
        }
    }

    Observed {
        snapshot,
        period: any_growth.then_some(period),
    }
}

fn grow(snapshot: &mut Snapshot, period: &mut Period, key: &str, value: u64) {
    snapshot.count(key, value);
    period.set(
        key,
        Delta {
            value,
            ..Delta::default()
        },
    );
}

fn typed(key: &str, text: &str) -> Value {
    if key.contains(".modes.") || key == "kernel.qdiscs" {
        return Value::List(text.split(',').map(Value::from).collect());
    }

    // Words that look like numbers and are lists of CPUs, masks or versions.
    let is_text = key.ends_with("cpus")
        || key.ends_with("cpulist")
        || key.ends_with("version")
        || key.ends_with("numa_nodes");
    match text {
        "true" => true.into(),
        "false" => false.into(),
        text if is_text => words(text),
        text => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(whole), _) => whole.into(),
            (_, Ok(number)) => number.into(),
            _ => words(text),
        },
    }
}

/// Blanks are written as `_`.
fn words(text: &str) -> Value {
    text.replace('_', " ")
        .replace("pfifo fast", "pfifo_fast")
        .into()
}
