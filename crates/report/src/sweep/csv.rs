//! One line per run, comma-separated (RFC 4180).

use linerate_lab::sweep::Sweep;

/// A head line and one line per run, in the order of time.
#[must_use]
pub fn csv(sweep: &Sweep) -> String {
    let names = sweep.planned.iter().map(|planned| planned.name.to_owned());
    let fixed = [
        "value",
        "received_bps",
        "cpu_client_percent",
        "cpu_server_percent",
        "retransmits",
        "rtt_us",
        "lost_percent",
        "error",
    ];
    let value = sweep.objective.key();
    let fixed = fixed.map(|name| {
        if name == "value" {
            format!("value_{value}")
        } else {
            name.to_owned()
        }
    });
    let first = ["run", "started_s", "warm_up"].map(str::to_owned);
    let mut out = line(first.into_iter().chain(names).chain(fixed));
    for (number, run) in sweep.runs.iter().enumerate() {
        let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let metrics = match &run.outcome {
            Ok((value, metrics)) => [
                value.to_string(),
                metrics.received_bps.to_string(),
                optional(metrics.cpu_client_percent),
                optional(metrics.cpu_server_percent),
                optional(metrics.retransmits),
                optional(metrics.rtt_us),
                optional(metrics.lost_percent),
                String::new(),
            ],
            Err(text) => std::array::from_fn(|place| if place == 7 { text.clone() } else { String::new() }),
        };
        let first = [
            number.to_string(),
            format!("{:.3}", run.started_s),
            run.is_warm_up.to_string(),
        ];
        out.push_str(&line(
            first.into_iter().chain(run.levels.iter().cloned()).chain(metrics),
        ));
    }
    out
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    format!("{}\r\n", fields.join(","))
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
