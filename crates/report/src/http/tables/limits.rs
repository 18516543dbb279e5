//! T4: how close each end came to its limits.

use linerate_model::http::{CellKey, Peak, SideFigures, Study};

use crate::http::figures::{cell as cell_name, known, peak as peak_text, percent};
use crate::http::table::{Cell, Column, Table, figures};

type Figure = fn(&SideFigures) -> Option<Peak>;

const FIGURES: [(&str, Figure); 5] = [
    ("descriptors", |side| side.fds),
    ("local ports", |side| side.ports),
    ("TIME_WAIT", |side| side.time_wait),
    ("conntrack", |side| side.conntrack),
    ("accept queue", |side| side.accept_queue),
];
/// Share of a limit that is worth a mark.
const CLOSE: f64 = 0.9;

/// The largest of all runs, with the cell in which it was; none without any run.
pub(in crate::http) fn limits(study: &Study) -> Option<Table> {
    let client = sides(study, false);
    let server = sides(study, true);
    let heads = ["client peak of limit", "share"];
    (!client.is_empty()).then(|| Table {
        id: "T4",
        title: "limits: largest value of all runs, and what it may reach".to_owned(),
        columns: std::iter::once(Column::Words("figure"))
            .chain(figures(heads))
            .chain([Column::Words("in cell")])
            .chain(figures(["server peak of limit", "share"]))
            .chain([Column::Words("in cell")])
            .collect(),
        rows: FIGURES
            .iter()
            .map(|(name, figure)| row(name, top(&client, *figure), top(&server, *figure)))
            .collect(),
        notes: vec![format!("*: {:.0} % of the limit or more", CLOSE * 100.0)],
    })
}

type Found<'a> = (&'a CellKey, &'a SideFigures);

fn sides(study: &Study, is_server: bool) -> Vec<Found<'_>> {
    let runs = study.cells.iter().flat_map(|cell| &cell.runs);
    let loaded = runs.filter(|run| run.load.is_some());
    loaded
        .filter_map(|run| {
            let side = if is_server { run.server.as_ref()? } else { &run.client };
            Some((&run.key, side))
        })
        .collect()
}

fn top<'a>(sides: &[Found<'a>], figure: Figure) -> Option<(&'a CellKey, Peak)> {
    let peaks = sides.iter().filter_map(|(key, side)| Some((*key, figure(side)?)));
    peaks.max_by(|(_, a), (_, b)| share(*a).total_cmp(&share(*b)).then(a.peak.cmp(&b.peak)))
}

fn share(peak: Peak) -> f64 {
    let limit = peak.limit.filter(|limit| *limit > 0);
    limit.map_or(0.0, |limit| peak.peak as f64 / limit as f64)
}

fn row(name: &'static str, client: Option<(&CellKey, Peak)>, server: Option<(&CellKey, Peak)>) -> Vec<Cell> {
    let end = |top: Option<(&CellKey, Peak)>| {
        let part = top.filter(|(_, peak)| peak.limit.is_some_and(|limit| limit > 0));
        let is_close = part.is_some_and(|(_, peak)| share(peak) >= CLOSE);
        [
            known(top, |(_, peak)| peak_text(peak)).into(),
            Cell::marked(known(part, |(_, peak)| percent(share(peak))), is_close),
            known(top, |(key, _)| cell_name(key)).into(),
        ]
    };
    std::iter::once(name.into())
        .chain(end(client))
        .chain(end(server))
        .collect()
}
