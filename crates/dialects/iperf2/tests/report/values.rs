//! Recorded comma-separated values: what is not compared.
//!
//! The time stamp of totals, which the originals take from the wrong moment, and the counts in the
//! total of a UDP sender, which are −1 or no number there.

use linerate_model::event::Endpoint;

/// The columns of a line that decide what is masked.
struct Row {
    id: i64,
    start_s: f64,
    end_s: f64,
    bytes: u64,
    has_losses: bool,
}

impl Row {
    fn parse(fields: &[&str], names: Option<&str>) -> Self {
        // With names, start and end are columns of their own.
        let (start, end, bytes, has_losses) = match names {
            Some(names) => (fields[6], fields[7], fields[8], names.contains(",jitter,")),
            None => {
                let (start, end) = fields[6].split_once('-').expect("an interval");
                (start, end, fields[7], fields.len() > 9)
            }
        };
        Self {
            id: fields[5].parse().expect("a number"),
            start_s: start.parse().expect("a time"),
            end_s: end.parse().expect("a time"),
            bytes: bytes.parse().expect("bytes"),
            has_losses,
        }
    }
}

/// Replaces what the originals get wrong. `names` is the line of the column names, if there is one.
pub(crate) fn mask(
    line: &str,
    names: Option<&str>,
    endpoint: Endpoint,
    has_intervals: bool,
) -> String {
    if line.starts_with("time,") {
        return line.to_owned();
    }

    let mut fields: Vec<&str> = line.split(',').collect();
    let row = Row::parse(&fields, names);
    if row.start_s == 0.0 && (!has_intervals || row.end_s > 1.0) {
        fields[0] = "#";
        // Counts of a sender, and what the sum ends with.
        let is_sender = endpoint == Endpoint::Client;
        let losses = if names.is_some() { 10 } else { 9 };

        if row.has_losses && (is_sender || row.id < 0) {
            fields
                .iter_mut()
                .skip(losses)
                .take(5)
                .for_each(|field| *field = "#");
        }

        if row.id < 0 {
            fields[3] = "#";
            fields[8] = "#";
        }
    }

    // A server of requests repeats its first stamp, and a header knows no microseconds.
    if endpoint == Endpoint::Server && row.start_s > 0.0 && row.bytes <= 2000 {
        fields[0] = "#";
    }

    if fields[0].starts_with("+0000:") {
        fields[0] = &fields[0][..fields[0].len() - 3];
    }

    // Replies per second come from digits that were rounded away.
    if names.is_some_and(|names| names.ends_with("rps")) {
        *fields.last_mut().expect("a field") = "#";
    }

    fields.join(",")
}
