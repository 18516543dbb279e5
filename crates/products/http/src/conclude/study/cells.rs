//! Cells with their verdicts, and rows of one payload each.

use std::collections::BTreeMap;

use linerate_model::http::units::{payload_name, percent, rounded};
use linerate_model::http::{
    Cell, CellFacts, CellKey, CellRun, CellVerdict, ErrorClass, LoadResult, Mode,
    NegotiatedProtocol, Network, Phase, Position, Row, VerdictClass,
};

use super::input::StudyInput;
use crate::conclude::ceiling::{Ceiling, Link, OPPOSITE_SHARE_WARNING, Segments, reached_share};
use crate::conclude::knee::{Point, Shape};
use crate::conclude::medians::{cell_facts, counted, medians};
use crate::plan::cells::by_product;
use crate::plan::estimate::usual_header_bytes;

/// Cells and rows of an experiment.
pub(super) struct JudgedCells {
    pub cells: Vec<Cell>,
    pub rows: Vec<Row>,
    pub notes: Vec<String>,
    /// TCP alone was slower than HTTP, and is no ceiling.
    pub is_refuted: bool,
}

/// A cell before it is compared with its neighbours.
struct Draft {
    /// With the verdict on its own facts.
    cell: Cell,
    facts: CellFacts,
    opposite_share: Option<f64>,
}

impl Draft {
    /// The runs are valid.
    fn is_valid(&self) -> bool {
        !has(&self.cell.verdict, &[VerdictClass::Invalid])
    }
}

impl JudgedCells {
    pub(super) fn of(input: &StudyInput<'_>) -> Self {
        let (drafts, refuted) = drafts(input);
        let shapes = shapes(input, &drafts);
        let opposite = drafts.iter().filter_map(opposite_note).take(1);
        let is_refuted = refuted.is_some();
        let notes = refuted.into_iter().chain(opposite).collect();
        let mut cells: Vec<Cell> = drafts
            .into_iter()
            .map(|draft| judged(input, &shapes, draft))
            .collect();
        cells.extend(by_products(input, &cells));
        cells.sort_by_key(|cell| cell.key);

        Self {
            cells,
            rows: shapes.into_values().map(|shape| shape.row).collect(),
            notes,
            is_refuted,
        }
    }

    /// The best stable cell of a row.
    pub(super) fn best_stable(&self, row: &Row) -> Option<&Cell> {
        let key = CellKey::new(
            Phase::Matrix,
            row.payload_bytes,
            row.best_stable_connections?,
        );
        self.cells.iter().find(|cell| cell.key == key)
    }
}

/// Cells a knee may add to a payload.
const REFINEMENTS_MAX: usize = 2;
/// HTTP may be faster than TCP alone allows by this much: the two are not measured at the same
/// time.
const REFUTED_FROM: f64 = 1.05;

/// Cells of HTTP. Where one of them was faster than TCP alone, the TCP tests are no ceiling: one
/// stream was limited by something else. Then the speed of the link is the ceiling, with a note.
fn drafts(input: &StudyInput<'_>) -> (Vec<Draft>, Option<String>) {
    let of_baseline = drafts_below(input, false);
    let of_ceiling = |draft: &Draft| draft.cell.median.of_ceiling.filter(|_| draft.is_valid());
    let most = of_baseline
        .iter()
        .filter_map(of_ceiling)
        .fold(0.0, f64::max);
    if input.kept.baseline.is_empty() || most < REFUTED_FROM {
        return (of_baseline, None);
    }

    let note = format!(
        "HTTP reached {} times what TCP alone says the path carries; something else limited TCP \
         (one stream, pacing, a CPU), so the ceiling is what the link carries, where that is known",
        rounded(most)
    );
    (drafts_below(input, true), Some(note))
}

/// The cells below their ceilings. Idle connections are judged elsewhere, because they answer
/// nothing.
fn drafts_below(input: &StudyInput<'_>, is_refuted: bool) -> Vec<Draft> {
    let mut groups: BTreeMap<CellKey, Vec<CellRun>> = BTreeMap::new();
    for run in &input.kept.runs {
        // Idle connections answer nothing, so no rate can be judged.
        if run.key.phase != Phase::Idle {
            groups.entry(run.key).or_default().push(run.clone());
        }
    }

    groups
        .into_iter()
        .map(|(key, runs)| draft(input, key, runs, is_refuted))
        .collect()
}

fn draft(input: &StudyInput<'_>, key: CellKey, runs: Vec<CellRun>, is_refuted: bool) -> Draft {
    let link = input.link(&runs, is_refuted);
    let load = counted(&runs)
        .into_iter()
        .rev()
        .find_map(|run| run.load.as_ref());
    let allowed = link.zip(load);
    let allowed = allowed.and_then(|(link, load)| ceiling(input, link, load, is_refuted));
    let (header, payload) = load.map_or((0, 0), |load| response_bytes(&key, load));
    let ceiling_per_s = allowed.map(|ceiling| ceiling.responses_per_s(header, payload));
    let bits_per_response = allowed.map(|ceiling| ceiling.bits_per_response(header, payload));
    let median = medians(&runs, link.as_ref(), ceiling_per_s);

    let setup = input.setup;
    let mut ends = std::iter::once(&setup.client).chain(&setup.server);
    let is_one_host = ends.any(|end| end.is_loopback);
    let network = match link {
        _ if is_one_host => Network::Loopback,
        None => Network::Unknown,
        Some(link) => Network::Link {
            bps: link.bps,
            bits_per_response,
        },
    };
    let mut facts = cell_facts(key, &runs, &median, network, setup.port);
    facts.is_lossy_without_load = super::sentences::is_lossy_without_load(&input.kept.baseline);
    // Namespaces of one host share CPUs as loopback does, although a link lies between them.
    facts.is_one_host = is_one_host || share_a_kernel(input);

    let opposite_share = load.and_then(|load| {
        let request_bytes = load.request_bytes? / load.requests.max(1);
        let response_bytes = header.saturating_add(payload);
        Some(allowed?.opposite_share(median.ok_per_s?, request_bytes, response_bytes))
    });
    let cell = Cell {
        runs,
        median,
        ceiling_per_s,
        ..Cell::new(key, (setup.judge)(&facts))
    };

    Draft {
        cell,
        facts,
        opposite_share,
    }
}

/// True if one of these classes fits.
fn has(verdict: &CellVerdict, classes: &[VerdictClass]) -> bool {
    let mut judgements = verdict.judgements();
    judgements.any(|judgement| classes.contains(&judgement.class))
}

/// True if both ends are namespaces of one host.
fn share_a_kernel(input: &StudyInput<'_>) -> bool {
    let server = input
        .setup
        .server
        .as_ref()
        .and_then(|server| server.boot_id.as_ref());
    server.is_some() && input.setup.client.boot_id.as_ref() == server
}

/// Ceiling of the link, from the goodput of TCP alone on it, unless that is refuted. What TLS and
/// HTTP/2 add to an answer and take from it is not known.
pub(super) fn ceiling(
    input: &StudyInput<'_>,
    link: Link,
    load: &LoadResult,
    is_refuted: bool,
) -> Option<Ceiling> {
    // Concurrent responses of a connection leave without gaps and share segments.
    let segments = if load.mode.streams() > 1 {
        Segments::Shared
    } else {
        Segments::Own
    };
    if !load
        .protocol
        .as_ref()
        .is_some_and(NegotiatedProtocol::is_plain_http1)
    {
        return None;
    }

    let reached = if is_refuted {
        1.0
    } else {
        reached_share(&input.kept.baseline, &link)
    };
    Ceiling::new(link, reached, segments)
}

/// Bytes of the head and the body of an answer: as measured, else as planned.
pub(super) fn response_bytes(key: &CellKey, load: &LoadResult) -> (u64, u64) {
    let payload_bytes = load
        .payload_bytes
        .checked_div(load.ok)
        .unwrap_or(key.payload_bytes);
    let header_bytes = load
        .response_head_bytes
        .unwrap_or_else(|| usual_header_bytes(payload_bytes));
    (header_bytes, payload_bytes)
}

/// One shape for each payload of phase 2.
fn shapes(input: &StudyInput<'_>, drafts: &[Draft]) -> BTreeMap<u64, Shape> {
    let mut points: BTreeMap<u64, Vec<Point>> = BTreeMap::new();
    for draft in drafts {
        let key = &draft.cell.key;
        if key.phase == Phase::Matrix {
            let row = points.entry(key.payload_bytes).or_default();
            row.push(point(draft));
        }
    }

    let objective = &input.setup.plan.objective;
    let points = points.into_iter();
    points
        .map(|(bytes, points)| (bytes, Shape::of(bytes, points, objective)))
        .collect()
}

fn point(draft: &Draft) -> Point {
    Point {
        connections: draft.cell.key.connections,
        streams: draft.facts.mode.map_or(1, Mode::streams),
        medians: draft.cell.median,
        timeout_share: (draft.facts.ended > 0)
            .then(|| draft.facts.error_share(&[ErrorClass::Timeout])),
        is_valid: draft.is_valid(),
        is_limited: has(
            &draft.cell.verdict,
            &[VerdictClass::ClientLimit, VerdictClass::ServerLimit],
        ),
    }
}

fn judged(input: &StudyInput<'_>, shapes: &BTreeMap<u64, Shape>, draft: Draft) -> Cell {
    // A low rate is not one of the points of a curve of throughput.
    let shape = shapes
        .get(&draft.cell.key.payload_bytes)
        .filter(|_| draft.cell.key.rate_per_s.is_none());
    let position = shape.map_or_else(Position::default, |shape| shape.position(&point(&draft)));

    let Draft {
        mut cell,
        mut facts,
        ..
    } = draft;
    facts.position = position;
    cell.verdict = (input.setup.judge)(&facts);

    cell
}

/// Cells of phase 1 that phase 2 made: with their results, and without runs of their own.
fn by_products(input: &StudyInput<'_>, cells: &[Cell]) -> Vec<Cell> {
    let plan = &input.setup.plan;
    let phases = input.setup.phases;
    let mut twins = Vec::new();
    if !phases.has(1) {
        return twins;
    }

    for payload_bytes in &plan.payloads.payloads_bytes {
        let key = by_product(plan, phases, *payload_bytes);
        if let Some(cell) = cells.iter().find(|cell| Some(cell.key) == key) {
            let mut twin = Cell::new(cell.key, cell.verdict.clone());
            twin.key.phase = Phase::Payload;
            twin.median = cell.median;
            twin.ceiling_per_s = cell.ceiling_per_s;
            twins.push(twin);
        }
    }

    twins
}

fn opposite_note(draft: &Draft) -> Option<String> {
    let share = draft
        .opposite_share
        .filter(|share| *share > OPPOSITE_SHARE_WARNING)?;
    Some(format!(
        "requests and acknowledgements take {} of the link at {}: a half-duplex or asymmetric link \
         holds the answers back",
        percent(share),
        payload_name(draft.cell.key.payload_bytes)
    ))
}

/// Cells that narrow the knees most, at most two more for each payload than the plan has; none
/// where the plan does not want them.
pub(crate) fn refinements(input: &StudyInput<'_>) -> Vec<CellKey> {
    let matrix = &input.setup.plan.matrix;
    let mut keys = Vec::new();
    if !matrix.refine_knee || !input.setup.phases.has(2) {
        return keys;
    }

    let drafts = drafts(input).0;
    for (payload_bytes, shape) in shapes(input, &drafts) {
        let is_added = |key: &CellKey| {
            (key.phase, key.payload_bytes) == (Phase::Matrix, payload_bytes)
                && !matrix.connections.contains(&key.connections)
        };
        let added = drafts.iter().filter(|draft| is_added(&draft.cell.key));
        if added.count() < REFINEMENTS_MAX {
            let connections = shape.refinement();
            keys.extend(connections.map(|c| CellKey::new(Phase::Matrix, payload_bytes, c)));
        }
    }

    keys
}
