//! Ceilings of the network between and beside the payloads that were run.

use std::collections::BTreeSet;

use linerate_model::http::{CeilingPoint, Cell, LoadResult, NegotiatedProtocol};

use super::cells::{JudgedCells, ceiling, response_bytes};
use super::input::StudyInput;
use crate::conclude::medians::counted;
use crate::plan::estimate::usual_header_bytes;

/// Points of the curve between a payload and the double of it.
const STEPS_OF_OCTAVE: f64 = 4.0;
/// More points than from one byte to the largest payload.
const POINTS_MAX: usize = 128;

/// Most answers per second from the smallest payload to the largest; none with one payload, and
/// where no link is known.
pub(super) fn ceiling_curve(
    input: &StudyInput<'_>,
    judged: &JudgedCells,
) -> Option<Vec<CeilingPoint>> {
    let cells = &judged.cells;
    let payloads: BTreeSet<u64> = cells
        .iter()
        // The curve has a logarithmic axis of payloads, which has no zero.
        .map(|cell| cell.key.payload_bytes.max(1))
        .collect();
    let first = payloads.first()?;
    let last = payloads.last()?;
    let (cell, load) = measured(cells).filter(|_| first < last)?;
    let link = input.link(&cell.runs, judged.is_refuted)?;
    let ceiling = ceiling(input, link, load, judged.is_refuted)?;

    // A head differs from the usual one by the same lines whatever the payload, and its length has
    // digits of its own.
    let (header_bytes, payload_bytes) = response_bytes(&cell.key, load);
    let usual_bytes = usual_header_bytes(payload_bytes);
    let head_of = |payload_bytes| {
        header_bytes
            .saturating_add(usual_header_bytes(payload_bytes))
            .saturating_sub(usual_bytes)
    };

    let between = (0..POINTS_MAX)
        .map(|step| (*first as f64 * 2_f64.powf(step as f64 / STEPS_OF_OCTAVE)) as u64);
    let mut all = payloads.clone();
    all.extend(between.filter(|payload_bytes| (*first..*last).contains(payload_bytes)));

    let point = |payload_bytes| CeilingPoint {
        payload_bytes,
        responses_per_s: ceiling.responses_per_s(head_of(payload_bytes), payload_bytes),
    };
    Some(all.into_iter().map(point).collect())
}

/// Why no cell has a ceiling; `None` where one has, or there is none.
pub(super) fn ceiling_missing(input: &StudyInput<'_>, judged: &JudgedCells) -> Option<String> {
    let cells = &judged.cells;
    if cells.is_empty() || cells.iter().any(|cell| cell.ceiling_per_s.is_some()) {
        return None;
    }

    let mut loads = input.kept.runs.iter().filter_map(|run| run.load.as_ref());
    let is_plain = |load: &LoadResult| {
        load.protocol
            .as_ref()
            .is_none_or(NegotiatedProtocol::is_plain_http1)
    };
    let why = if !loads.all(is_plain) {
        "what TLS and HTTP/2 add to an answer on the wire, and take from it, is not known"
    } else if input.setup.client.is_loopback {
        "both ends are one host, so no link lies between them"
    } else if input.link(&[], judged.is_refuted).is_none() {
        "the speed of the link is not known (a virtual device names none), and TCP alone was not \
         measured; --line-rate names it"
    } else {
        "no answer was measured"
    };

    Some(why.to_owned())
}

/// A cell and a run of it that measured the head of an answer.
fn measured(cells: &[Cell]) -> Option<(&Cell, &LoadResult)> {
    cells.iter().find_map(|cell| {
        let mut loads = counted(&cell.runs)
            .into_iter()
            .filter_map(|run| run.load.as_ref());
        let load = loads.rfind(|load| load.response_head_bytes.is_some())?;
        Some((cell, load))
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::http::HttpVersion;

    use super::super::tests::fixtures::{KIB, OwnedInput, seed_input, study_of};

    #[test]
    fn the_curve_goes_through_the_ceilings_of_the_payloads_that_were_run() {
        let study = study_of(&seed_input());
        let curve = &study.ceiling;
        let of = |payload_bytes| {
            curve
                .iter()
                .find(|point| point.payload_bytes == payload_bytes)
        };

        for cell in study
            .cells
            .iter()
            .filter(|cell| cell.ceiling_per_s.is_some())
        {
            let point = of(cell.key.payload_bytes).map(|point| point.responses_per_s);
            assert_eq!(point, cell.ceiling_per_s, "{:?}", cell.key);
        }

        assert!((25..40).contains(&curve.len()), "{}", curve.len());
        assert!(curve.is_sorted_by(|a, b| a.payload_bytes < b.payload_bytes));
        assert!(curve.is_sorted_by(|a, b| a.responses_per_s > b.responses_per_s));
        assert_eq!(
            curve.last().map(|point| point.payload_bytes),
            Some(100 * KIB)
        );
    }

    #[test]
    fn missing_ceiling_has_a_reason() {
        type Row = (fn(&mut OwnedInput), Option<&'static str>);

        let rows: [Row; 5] = [
            (|_| (), None),
            (
                |owned| {
                    for load in owned
                        .kept
                        .runs
                        .iter_mut()
                        .filter_map(|run| run.load.as_mut())
                    {
                        load.protocol.get_or_insert_default().http = HttpVersion::Http2;
                    }
                },
                Some("HTTP/2"),
            ),
            (
                |owned| owned.setup.client.is_loopback = true,
                Some("one host"),
            ),
            (
                |owned| {
                    (owned.setup.client.link_bps, owned.setup.server) = (None, None);
                    owned.kept.baseline.clear();
                },
                Some("speed of the link"),
            ),
            (
                |owned| owned.kept.runs.iter_mut().for_each(|run| run.load = None),
                Some("no answer"),
            ),
        ];
        for (spoil, expected) in rows {
            let mut input = seed_input();
            spoil(&mut input);
            let study = study_of(&input);
            let found = study.ceiling_missing.as_deref();
            assert_eq!(
                found.is_some(),
                study
                    .cells
                    .iter()
                    .all(|cell| cell.median.of_ceiling.is_none())
            );
            assert!(
                found
                    .zip(expected)
                    .map_or(found == expected, |(why, part)| why.contains(part)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn one_payload_makes_no_curve() {
        let mut input = seed_input();
        input.kept.runs.retain(|run| run.key.payload_bytes == KIB);
        assert!(study_of(&input).ceiling.is_empty());
    }
}
