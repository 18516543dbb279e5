//! The seconds of a load: a line on a terminal, an event for a program, or a view.

use linerate_document::progress::Progress;
use linerate_model::http::Reading;

use super::planned::PlannedLoad;
use crate::load::SecondPart;
use crate::report::end_line;
use crate::run::LiveView;
use crate::run::lab::outputs;
use crate::run::sampled_load::LoadProgress;

/// Shows the seconds of a load.
pub(super) struct SecondsPrinter {
    progress: Progress,
    /// A view that takes the place of the lines.
    view: Option<Box<dyn LiveView>>,
    is_stream: bool,
    seconds_total: u64,
    /// Failures so far.
    errors: u64,
}

impl SecondsPrinter {
    /// Shows the load in the view, else on standard error; `is_stream` adds events on standard
    /// output.
    pub(super) fn new(
        progress: Progress,
        view: Option<Box<dyn LiveView>>,
        is_stream: bool,
        load: &PlannedLoad,
    ) -> Self {
        if let Some(view) = &view {
            let target = load.target.to_string();
            view.update(&mut |state| state.http_mut().target.clone_from(&target));
        }

        Self {
            progress: if view.is_some() {
                Progress::new(true)
            } else {
                progress
            },
            view,
            is_stream,
            seconds_total: (load.spec.duration_ns + load.spec.warmup_ns) / 1_000_000_000,
            errors: 0,
        }
    }

    /// Writes a line that stays.
    pub(super) fn line(&mut self, text: &str) {
        self.progress.line(text);
    }

    /// Erases the last second.
    pub(super) fn clear(&mut self) {
        self.progress.clear();
    }

    fn show(&self, second: &SecondPart, [client, server]: &[Option<Reading>; 2]) {
        let Some(view) = &self.view else { return };
        let (done, total) = (u64::from(second.index) + 1, self.seconds_total);

        view.update(&mut |state| {
            let http = state.http_mut();
            http.running = format!("second {done} of {total}");
            http.left_s = Some(total.saturating_sub(done) as f64);
            http.ok_per_s.push(second.ok as f64);
            (http.payload_bytes, http.p99_ns) = (second.payload_bytes, second.quantile_ns(0.99));
            (http.errors, http.client, http.server) = (self.errors, client.clone(), server.clone());
        });
    }
}

impl LoadProgress for SecondsPrinter {
    fn ramped(&mut self, opened: u64, wanted: u64) {
        self.progress
            .line(&format!("{opened} of {wanted} connections open"));
        if let Some(view) = &self.view {
            view.update(&mut |state| state.http_mut().open = opened);
        }
    }

    fn is_shown(&self) -> bool {
        self.view.is_some() || !self.progress.is_silent()
    }

    fn second(&mut self, second: &SecondPart, ends: [Option<Reading>; 2]) {
        // The drain follows the last second.
        if u64::from(second.index) >= self.seconds_total {
            return;
        }

        self.errors += second.errors;
        self.show(second, &ends);
        if self.is_stream {
            // A closed standard output is noticed when the report is written.
            let _ = outputs::print(&load_event(second));
        }

        let [_, server] = ends;
        let p99 = second
            .quantile_ns(0.99)
            .map_or_else(String::new, |ns| format!(", p99 {:.3} ms", ns as f64 / 1e6));
        let server = server.map_or_else(String::new, |server| {
            format!("; server: {}", end_line(&server))
        });
        self.progress.update(&format!(
            "{} of {} s: {} responses/s, {:.1} MB/s of payload{p99}, {} errors{server}",
            second.index + 1,
            self.seconds_total,
            second.ok,
            second.payload_bytes as f64 / 1e6,
            second.errors,
        ));
    }
}

/// One event of `--json-stream`.
fn load_event(second: &SecondPart) -> String {
    let object = serde_json::json!({
        "event": "second",
        "second": second.index + 1,
        "ok": second.ok,
        "payload_bytes": second.payload_bytes,
        "p99_ns": second.quantile_ns(0.99),
        "errors": second.errors,
    });
    format!("{object}\n")
}
