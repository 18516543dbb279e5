//! Reports of loads and studies as parts of the reports of their records.

use linerate_document::blocks::Block;
use linerate_document::record::ProductReport;
use linerate_model::measure::MeasureName;
use linerate_model::record::{Body, Detail, HttpLoad, RunRecord};

use super::load::{load_blocks, load_page};
use super::{LoadReport, study};
use crate::conclude::trials::with_runs;

/// Records of loads, and of studies that have a result.
pub const RECORDS: ProductReport = ProductReport {
    blocks: |record| match &record.body {
        Body::HttpLab(Some(found)) => {
            let study = with_runs(found, &record.trials);
            // The record's page has a title of its own in place of the first block.
            Some(study::blocks(&study).into_iter().skip(1).collect())
        }
        Body::HttpLoad(found) => {
            let report = load_report(record, found);
            Some(report.map_or_else(Vec::new, |report| load_below(&report)))
        }
        _ => None,
    },
    page: |record| match &record.body {
        Body::HttpLab(Some(found)) => Some(study::page(&with_runs(found, &record.trials))),
        Body::HttpLoad(found) => Some(load_page(&load_report(record, found)?)),
        _ => None,
    },
    ..ProductReport::NONE
};

/// The load of a record; `None` of one that did not come as far as to have a result.
fn load_report<'a>(record: &'a RunRecord, found: &'a HttpLoad) -> Option<LoadReport<'a>> {
    let (trial, cell) = record.trials.iter().find_map(|trial| match &trial.detail {
        Some(Detail::Cell(cell)) => Some((trial, &**cell)),
        _ => None,
    })?;
    let wire = trial
        .measures
        .iter()
        .find(|measure| measure.name == MeasureName::WireBps);

    Some(LoadReport {
        target: &found.target,
        load: cell.load.as_ref()?,
        wire_bps: wire.map(|measure| measure.value),
        client: Some(&cell.client),
        server: cell.server.as_ref(),
        verdict: found.verdict.as_deref(),
        // They stand above.
        remarks: &[],
    })
}

/// The parts of a load below the title of its record.
fn load_below(report: &LoadReport<'_>) -> Vec<Block> {
    let below = |block| match block {
        Block::Title(title) => Block::Heading(title),
        block => block,
    };
    load_blocks(report).into_iter().map(below).collect()
}
