//! The CPUs of a test as text: one line for each end.

use linerate_model::placement::{CpuShares, Placement, SharedCpus};

use super::areas::reason_words;

/// CPUs of each kind of work that a line shows.
const CPUS_SHOWN: usize = 4;

/// `sender: worker CPU 0 (96 %), CPU 1 (4 %); interrupts of eth0 CPU 1; softirq CPU 0; CPUs 0 and 1 share a core`
pub(super) fn line(placement: &Placement) -> String {
    let end = placement.end.as_ref().unwrap_or(&placement.host);
    let device = placement
        .device
        .as_ref()
        .map_or_else(String::new, |device| format!(" of {device}"));
    let mut parts = vec![format!("worker {}", cpus(&placement.worker))];
    parts.extend(
        placement
            .interrupts
            .iter()
            .map(|shares| format!("interrupts{device} {}", cpus(shares))),
    );
    parts.push(format!("softirq {}", cpus(&placement.softirq)));
    parts.extend(placement.shared.iter().map(neighbours));

    format!("{end}: {}", parts.join("; "))
}

fn cpus(shares: &CpuShares) -> String {
    if let Some(reason) = &shares.absent {
        return format!("not known ({})", reason_words(reason));
    }

    let shown = shares.cpus.iter().take(CPUS_SHOWN);
    let mut words: Vec<String> = shown
        .map(|share| format!("CPU {} ({} %)", share.cpu, share.percent))
        .collect();

    if shares.cpus.len() > CPUS_SHOWN {
        words.push(format!("{} more", shares.cpus.len() - CPUS_SHOWN));
    }

    words.join(", ")
}

/// `CPUs 0, 1 and 2 share an L3 cache`
fn neighbours(shared: &SharedCpus) -> String {
    let numbers: Vec<String> = shared.cpus.iter().map(ToString::to_string).collect();
    let listed = numbers
        .split_last()
        .map_or_else(String::new, |(last, rest)| {
            format!("{} and {last}", rest.join(", "))
        });

    let words = match shared.resource.as_str() {
        "core" => "share a core",
        "l2" => "share an L2 cache",
        "l3" => "share an L3 cache",
        _ => "are on one NUMA node",
    };
    format!("CPUs {listed} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_work_has_its_cpus_or_the_reason_why_they_are_not_known() {
        let share = |cpu: u32, percent: u32| json!({"cpu": cpu, "percent": percent});
        let placement = json!({
            "host": "client",
            "end": "sender",
            "device": "eth0",
            "worker": {"cpus": [share(0, 96), share(1, 4)]},
            "interrupts": {"cpus": [share(1, 30), share(2, 20), share(3, 20), share(4, 20), share(5, 10)]},
            "softirq": {"absent": "permission"},
            "shared": [{"resource": "core", "cpus": [0, 1]}, {"resource": "l3", "cpus": [0, 1, 2]}],
        });
        let placement: Placement = serde_json::from_value(placement).expect("a placement");
        let expected = "sender: worker CPU 0 (96 %), CPU 1 (4 %); interrupts of eth0 CPU 1 (30 %), \
                        CPU 2 (20 %), CPU 3 (20 %), CPU 4 (20 %), 1 more; softirq not known (needs \
                        root); CPUs 0 and 1 share a core; CPUs 0, 1 and 2 share an L3 cache";
        assert_eq!(line(&placement), expected);
    }
}
