//! Reports of loads and studies as parts of the reports of their records.

use linerate_document::blocks::Block;
use linerate_document::record::ProductReport;
use linerate_model::measure::MeasureName;
use linerate_model::record::{Body, Detail, HttpLoad, RunRecord};

use super::load::load_blocks;
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
        Body::HttpLoad(found) => Some(load(record, found)),
        _ => None,
    },
    page: |record| match &record.body {
        Body::HttpLab(Some(found)) => Some(study::page(&with_runs(found, &record.trials))),
        _ => None,
    },
    ..ProductReport::NONE
};

/// The load of a record; nothing of one that did not come as far as to have a result.
fn load(record: &RunRecord, found: &HttpLoad) -> Vec<Block> {
    let cell = record.trials.iter().find_map(|trial| match &trial.detail {
        Some(Detail::Cell(cell)) => Some((trial, &**cell)),
        _ => None,
    });
    let Some((trial, cell)) = cell else {
        return Vec::new();
    };
    let Some(load) = &cell.load else {
        return Vec::new();
    };
    let wire = trial
        .measures
        .iter()
        .find(|measure| measure.name == MeasureName::WireBps);
    let report = LoadReport {
        target: &found.target,
        load,
        wire_bps: wire.map(|measure| measure.value),
        client: Some(&cell.client),
        server: cell.server.as_ref(),
        verdict: found.verdict.as_deref(),
        // They stand above.
        remarks: &[],
    };

    // The title of a page is that of its run.
    let below = |block| match block {
        Block::Title(title) => Block::Heading(title),
        block => block,
    };
    load_blocks(&report).into_iter().map(below).collect()
}
