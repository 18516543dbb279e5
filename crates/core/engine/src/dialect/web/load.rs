//! The data connections of one direction, and their report.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_model::event::Endpoint;
use linerate_model::spec::{IoStrategy, LocalOptions};
use linerate_model::{
    Direction, Event, EventSink, Failure, Flow, StreamId, StreamRole, Summary, TestSpec,
};
use linerate_sys::error::io_text;
use linerate_sys::{clock, socket, sockopt};

use super::pump::{DataPlan, WebPump};
use crate::data::quota::Quota;
use crate::data::run::{PumpBuilder, RunEvent, RunSettings, TestRun};
use crate::data::socket::{describe, limit_idle_time};
use crate::error::{EngineError, Operation, failure};
use crate::measure::stream_stats::StreamStats;
use crate::reporter::{Reporter, test_header};
use crate::server::ByteTotals;
use crate::wait::time_until;

/// A load that runs.
pub(super) struct Load {
    run: TestRun,
    reporter: Reporter<'static>,
    spec: TestSpec,
    streams: Vec<Connection>,
    /// All connections have to end until then.
    until: Instant,
    failure: Option<String>,
}

struct Connection {
    id: StreamId,
    fd: Arc<OwnedFd>,
    is_over: bool,
}

/// Time after the end of a load in which its clients close their connections.
const GRACE: Duration = Duration::from_secs(3);
/// Unacknowledged data or a client that does not read ends a connection after this time.
const LIVENESS: Duration = Duration::from_secs(10);

impl Load {
    /// Without a connection.
    pub(super) fn new(
        spec: TestSpec,
        local: &LocalOptions,
        quota: Quota,
        peer: SocketAddr,
        sink: Box<dyn EventSink>,
    ) -> Result<Self, EngineError> {
        let mut reporter = Reporter::boxed(sink);
        // Pauses between reads would delay measurements.
        let local = LocalOptions {
            io_strategy: Some(IoStrategy::PLAIN),
            ..local.clone()
        };
        let header = test_header(
            Endpoint::Server,
            peer.ip().to_string(),
            peer.port(),
            &spec,
            &local,
        );
        reporter.emit(&Event::TestAccepted(Box::new(header)));

        let settings = RunSettings {
            spec: spec.clone(),
            local,
            independent: true,
            keeps_grid: true,
            ..RunSettings::default()
        };
        let mut run = TestRun::new(settings).map_err(Operation::Init.failed())?;
        run.limit(quota);
        Ok(Self {
            run,
            reporter,
            spec,
            streams: Vec::new(),
            until: Instant::now(),
            failure: None,
        })
    }

    pub(super) fn direction(&self) -> Direction {
        self.spec.direction
    }

    /// Connections so far.
    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Adds a connection, whose data begin at once.
    pub(super) fn add(&mut self, fd: OwnedFd, plan: DataPlan) -> Result<(), EngineError> {
        // A frame leaves when it is written.
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        let _ = limit_idle_time(&fd, LIVENESS);
        let (role, flow) = if plan.opening.is_download {
            (StreamRole::Sender, Flow::Reverse)
        } else {
            (StreamRole::Receiver, Flow::Forward)
        };

        let id = StreamId(u32::try_from(self.streams.len()).unwrap_or(u32::MAX));
        let stream =
            describe(&fd, id, &self.spec, role, flow).map_err(Operation::InitStream.failed())?;
        self.reporter.emit(&Event::StreamOpened(stream.clone()));
        let fd = Arc::new(fd);
        self.until = Instant::now() + Duration::from_nanos(plan.duration_ns) + GRACE;
        let build: PumpBuilder = Box::new(move |inputs| Ok(Box::new(WebPump::new(inputs, plan)?)));
        self.run.join(
            stream,
            Arc::clone(&fd),
            Arc::new(StreamStats::default()),
            build,
            0,
        );
        self.streams.push(Connection {
            id,
            fd,
            is_over: false,
        });

        if self.run.has_started() {
            return self.run.start_stream(id);
        }
        let now_ns = clock::monotonic_ns();
        self.run.start_clock(now_ns);
        self.reporter.emit(&Event::TestStarted {
            at_monotonic_ns: Some(now_ns),
        });
        self.run.start_data()
    }

    /// Readable when [`Self::advance`] has something to do before its deadline.
    pub(super) fn notice_fd(&self) -> BorrowedFd<'_> {
        self.run.notice_fd()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let wait = time_until(self.run.next_deadline_ns()?);
        Some((Instant::now() + wait).min(self.until))
    }

    /// Handles notices and deadlines.
    pub(super) fn advance(&mut self) {
        for event in self.run.poll(clock::monotonic_ns(), &mut self.reporter) {
            let RunEvent::StreamEnded { id, error } = event else {
                continue;
            };
            self.run.end_stream(id);
            for ended in self.streams.iter_mut().filter(|stream| stream.id == id) {
                ended.is_over = true;
                // The others of the load keep its sockets; this client waits for the end.
                let _ = socket::shutdown_write(&ended.fd);
            }
            if let Some(error) = error {
                self.failure.get_or_insert_with(|| io_text(&error));
            }
        }
    }

    /// All connections have ended, or have to.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended() || Instant::now() >= self.until
    }

    fn has_ended(&self) -> bool {
        self.streams.iter().all(|stream| stream.is_over)
    }

    pub(super) fn totals(&self) -> ByteTotals {
        ByteTotals::of(&self.run)
    }

    /// Bytes that only a living client can have moved.
    pub(super) fn progress_bytes(&self) -> u64 {
        self.run.progress_bytes().unwrap_or_default()
    }

    /// Ends the load, for this reason if it ends early.
    pub(super) fn finish(
        mut self,
        early: Option<&str>,
    ) -> (Summary, ByteTotals, Result<(), Failure>) {
        self.run.stop_now(&mut self.reporter);
        let summary = self.run.finish(clock::monotonic_ns(), &mut self.reporter);
        let totals = self.totals();
        self.run.quit();

        let late = (!self.has_ended()).then_some("a connection did not end in time");
        let reason = self.failure.or(early.or(late).map(str::to_owned));
        if let Some(reason) = &reason {
            self.reporter.emit(&Event::Warning(reason.clone()));
        }
        self.reporter
            .emit(&Event::Summary(Box::new(summary.clone())));
        self.reporter.emit(&Event::Finished);
        (
            summary,
            totals,
            reason.map_or(Ok(()), |reason| Err(failure(reason))),
        )
    }
}
