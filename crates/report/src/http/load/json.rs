//! What one run of the load generator found, for programs.

use serde_json::json;

use super::LoadReport;

/// The run as one JSON object: rates with their units in the names, then everything that was counted.
#[must_use]
pub fn load_json(report: &LoadReport<'_>) -> String {
    let load = report.load;
    let object = json!({
        "schema": "linerate.http-load/1",
        "target": report.target,
        "remarks": report.remarks,
        "rates": {
            "ok_per_s": load.ok_per_s(),
            "payload_bytes_per_s": load.payload_bytes_per_s(),
            "http_bytes_per_s": load.http_bytes_per_s(),
            "wire_bps": report.wire_bps,
            "error_share": load.error_share(),
        },
        "load": load,
        "client": report.client,
        "server": report.server,
        "verdict": report.verdict,
    });
    crate::pretty_json(&object)
}
