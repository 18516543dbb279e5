//! A server's reports: the banner between tests and one writer per test.

use std::sync::Arc;
use std::time::Instant;

use linerate_document::Output;
use linerate_document::log_rate_limit::LogRateLimit;
use linerate_model::service::{ClientProgress, Progress, RefusalReason};
use linerate_model::units::{format_amount, rate_bps};
use linerate_model::{EventSink, ServerEvent, ServerReporter, SinkError};

use super::document::RowBudget;
use super::numbered::Numbered;
use super::text::Page;
use super::{Options, Style, sink};

/// A reporter for a server and all its tests.
pub fn server_reporter(options: Options, output: Output) -> Box<dyn ServerReporter> {
    let options = Arc::new(options);
    Box::new(Reporter {
        options,
        output,
        flood: LogRateLimit::default(),
        intervals: RowBudget::new(),
    })
}

struct Reporter {
    options: Arc<Options>,
    output: Output,
    flood: LogRateLimit,
    /// Budget of rows for the documents of running tests.
    intervals: RowBudget,
}

impl ServerReporter for Reporter {
    fn listening(&mut self, port: u16, test_number: u32) -> Result<(), SinkError> {
        // Between two tests, so that a rotated log begins with a banner.
        self.output.reopen()?;
        if self.options.style != Style::Text {
            return Ok(());
        }

        let mut page = self.page();
        if self.options.verbose {
            page.identify();
        }

        page.line(BANNER);
        page.line(&format!("Server listening on {port} (test #{test_number})"));
        page.line(BANNER);
        page.send()
    }

    fn reopened(&mut self) -> Result<(), SinkError> {
        if self.options.style != Style::Text || !self.options.verbose {
            return Ok(());
        }

        let mut page = self.page();
        page.identify();
        page.send()
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        let sink = sink(
            Arc::clone(&self.options),
            self.output.clone(),
            Some(self.intervals.clone()),
        );
        // A document is separate; lines of concurrent tests must be distinguishable.
        Ok(match self.options.style {
            Style::Json => sink,
            Style::Text | Style::JsonStream { .. } => Box::new(Numbered::new(sink)),
        })
    }

    fn warning(&mut self, text: &str) {
        self.page().warning(text);
    }

    fn server_event(&mut self, event: &ServerEvent) {
        match event {
            ServerEvent::Progress(progress) => self.progress(progress),
            ServerEvent::LoginFailed {
                peer, explanation, ..
            } => {
                self.remark(&format!("login from {} refused: {explanation}", peer.ip()));
            }
            // The original is silent here, too.
            ServerEvent::Refused {
                reason: RefusalReason::Busy | RefusalReason::Crowded,
                ..
            } => {}
            ServerEvent::Refused { peer, reason } => {
                self.remark(&format!("{} refused: {reason}", peer.ip()));
            }
            _ => {}
        }
    }
}

impl Reporter {
    fn page(&self) -> Page {
        Page::new(Arc::clone(&self.options), self.output.clone())
    }

    /// The sum over all clients, once there is more than one. Each has its own rows.
    fn progress(&self, progress: &Progress) {
        if self.options.style != Style::Text || progress.tests < 2 {
            return;
        }

        let rate = |bytes: fn(&ClientProgress) -> u64| {
            let bytes: u64 = progress.clients.iter().map(bytes).sum();
            let bytes_per_second = rate_bps(bytes, progress.elapsed.as_secs_f64()) / 8.0;
            format_amount(bytes_per_second, self.options.format)
        };
        let mut page = self.page();
        page.line(&format!(
            "[ALL] {} tests, {} streams  {}s/sec received  {}s/sec sent",
            progress.tests,
            progress.streams,
            rate(|c| c.received_bytes),
            rate(|c| c.sent_bytes)
        ));

        // If the sum cannot be written, the next row cannot either, and that ends the test.
        let _ = page.send();
    }

    fn remark(&mut self, text: &str) {
        let now = Instant::now();
        // Remote peers cause these lines, so their rate is bounded.
        if let Some(number) = self.flood.take_held_back(now) {
            self.warning(&format!("{number} more clients were refused"));
        }

        if self.flood.passes(now) {
            self.warning(text);
        }
    }
}

const BANNER: &str = "-----------------------------------------------------------";
