//! A worker over hyper: the same phases, paces and statistics as the event loop, on its own executor. A connection is a task,
//! and each of its streams another one.

mod connection;
mod state;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::Poll;

use linerate_sys::clock;
use linerate_sys::timer::TimerFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};

use super::failure;
use super::message::Message;
use super::opener::Opener;
use super::pace::Pace;
use super::run_state::{CommandSlot, Transition};
use super::schedule::WorkerIndex;
use super::spec::LoadSpec;
use crate::client::Client;
use state::{Shared, WorkerState};

/// Inputs of a worker.
pub(crate) struct Job {
    pub(crate) spec: Arc<LoadSpec>,
    pub(crate) client: Arc<Client>,
    pub(crate) index: WorkerIndex,
    pub(crate) commands: Arc<CommandSlot>,
    pub(crate) reports: Sender<Message>,
}

struct LoadWorker {
    shared: Rc<Shared>,
    index: WorkerIndex,
    commands: Arc<CommandSlot>,
    reports: Sender<Message>,
    opener: Opener,
    next_check_ns: u64,
}

/// Runs a worker to its end and reports its statistics.
///
/// # Errors
/// The operating system's, for instance `EMFILE`.
pub(crate) fn run(job: Job) -> io::Result<()> {
    // The default timer slack of the kernel is 50 µs.
    let _ = clock::set_timer_slack_ns(1);
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let worker = LoadWorker::new(job);
    executor.block_on(tasks.run_until(worker.run()))
}

impl LoadWorker {
    fn new(job: Job) -> Self {
        let now_ns = clock::monotonic_ns();
        Self {
            opener: Opener::new(&job.spec, job.index),
            shared: Rc::new(Shared {
                state: RefCell::new(WorkerState::new(
                    &job.spec,
                    job.index,
                    Arc::clone(&job.commands),
                    now_ns,
                )),
                spec: job.spec,
                client: job.client,
                changed: Notify::new(),
            }),
            index: job.index,
            commands: job.commands,
            reports: job.reports,
            next_check_ns: now_ns,
        }
    }

    async fn run(mut self) -> io::Result<()> {
        let (timer, commands) = (
            TimerFd::new().map_err(|error| error.source)?,
            Arc::clone(&self.commands),
        );
        let expired = watch(timer.as_fd())?;
        let commanded = watch(commands.waker().as_fd())?;
        while !self.shared.state.borrow().run_state.is_over() {
            let now_ns = clock::monotonic_ns();
            self.advance_run(now_ns);
            self.open_connections(now_ns);
            self.shared.state.borrow_mut().send_due(&self.shared.spec, now_ns);
            if now_ns >= self.next_check_ns {
                self.check(now_ns);
            }
            timer.set(self.wakes_ns())?;
            self.wait((&timer, &expired), &commanded).await?;
        }
        self.finish();
        Ok(())
    }

    /// Waits for the timer, a command, or a task.
    async fn wait(
        &self,
        (timer, expired): (&TimerFd, &AsyncFd<BorrowedFd<'_>>),
        commanded: &AsyncFd<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let waker = || match self.commands.waker().drain() {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        };
        let mut expired = pin!(expired.async_io(Interest::READABLE, |_| timer.drain()));
        let mut commanded = pin!(commanded.async_io(Interest::READABLE, |_| waker()));
        let mut changed = pin!(self.shared.changed.notified());
        poll_fn(|cx| {
            if let Poll::Ready(result) = expired.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            if let Poll::Ready(result) = commanded.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            changed.as_mut().poll(cx).map(Ok)
        })
        .await
    }

    /// Enters the next phase on a command or when its time has come.
    fn advance_run(&self, now_ns: u64) {
        let state = &mut *self.shared.state.borrow_mut();
        match state.step(&self.shared.spec, now_ns) {
            Some(Transition::Ramped) => {
                let opened = state.open_count();
                state.recorder.stats.connections.opened = opened;
                let _ = self.reports.send(Message::Ramped { opened });
            }
            Some(Transition::Begin(window)) => {
                state.recorder.set_window(window);
                state.pace = Pace::new(&self.shared.spec, window.begin_ns, self.index);
            }
            Some(Transition::End { is_stopped }) => state.end_load(&self.shared.spec, now_ns, is_stopped),
            None => {}
        }
    }

    fn open_connections(&mut self, now_ns: u64) {
        loop {
            let state = &mut *self.shared.state.borrow_mut();
            let Some(number) = state.ramp.take(now_ns) else {
                return;
            };
            state.recorder.connecting();
            match self.opener.open() {
                Ok(opened) => drop(spawn_local(connection::run(
                    Rc::clone(&self.shared),
                    number,
                    opened.socket,
                    now_ns,
                ))),
                Err(error) => {
                    let text = linerate_sys::error::io_text(&error);
                    state.refuse(failure::of_connect(&error), &text);
                }
            }
        }
    }

    /// Reports the second that is complete. Tasks observe their timeouts themselves.
    fn check(&mut self, now_ns: u64) {
        let recorder = &mut self.shared.state.borrow_mut().recorder;
        if let Some(second) = recorder.finished_second(now_ns) {
            let _ = self.reports.send(Message::Second(second));
        }
        self.next_check_ns = (now_ns + CHECK_NS).min(recorder.second_ends_ns());
    }

    /// The next deadline.
    fn wakes_ns(&self) -> u64 {
        self.next_check_ns.min(self.shared.state.borrow().wakes_ns())
    }

    /// Counts requests without a response, and reports.
    fn finish(self) {
        let state = &mut *self.shared.state.borrow_mut();
        state.close(clock::monotonic_ns());
        if let Some(second) = state.recorder.last_second() {
            let _ = self.reports.send(Message::Second(second));
        }
        let stats = std::mem::take(&mut state.recorder.stats);
        let _ = self.reports.send(Message::Finished(Box::new(stats)));
    }
}

/// Registers a descriptor with the executor.
#[allow(
    deprecated,
    reason = "for descriptors that change under way; a borrowed one stays what it is, and the replacement is unsafe"
)]
fn watch(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

const CHECK_NS: u64 = 100_000_000;
