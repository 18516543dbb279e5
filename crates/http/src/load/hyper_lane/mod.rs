//! One thread of the generator where hyper speaks: the same phases, paces and figures as the lane of the event loop, on
//! an executor of its own. A connection is a task, and each of its streams another one.

mod connection;
mod desk;

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

use super::course::{Orders, Turn};
use super::failure;
use super::message::Message;
use super::opener::Opener;
use super::pace::Pace;
use super::spec::LoadSpec;
use crate::client::Client;
use desk::Desk;

/// What a lane is given.
pub(crate) struct Job {
    pub(crate) spec: Arc<LoadSpec>,
    pub(crate) client: Arc<Client>,
    pub(crate) place: (u32, u32),
    pub(crate) orders: Arc<Orders>,
    pub(crate) reports: Sender<Message>,
}

/// What the tasks of a lane have in common.
struct Shared {
    spec: Arc<LoadSpec>,
    client: Arc<Client>,
    desk: RefCell<Desk>,
    /// Something happened that the lane has to look at.
    changed: Notify,
}

struct Lane {
    shared: Rc<Shared>,
    place: (u32, u32),
    orders: Arc<Orders>,
    reports: Sender<Message>,
    opener: Opener,
    next_check_ns: u64,
}

/// Runs a lane to its end and reports what was counted.
///
/// # Errors
/// The operating system's, for instance `EMFILE`.
pub(crate) fn run(job: Job) -> io::Result<()> {
    // Without it the kernel may wake this thread 50 µs late.
    let _ = clock::set_timer_slack_ns(1);
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let lane = Lane::new(job);
    executor.block_on(tasks.run_until(lane.run()))
}

impl Lane {
    fn new(job: Job) -> Self {
        let now_ns = clock::monotonic_ns();
        Self {
            opener: Opener::new(&job.spec, job.place),
            shared: Rc::new(Shared {
                desk: RefCell::new(Desk::new(&job.spec, job.place, Arc::clone(&job.orders), now_ns)),
                spec: job.spec,
                client: job.client,
                changed: Notify::new(),
            }),
            place: job.place,
            orders: job.orders,
            reports: job.reports,
            next_check_ns: now_ns,
        }
    }

    async fn run(mut self) -> io::Result<()> {
        let (timer, orders) = (TimerFd::new().map_err(|error| error.source)?, Arc::clone(&self.orders));
        let rung = watch(timer.as_fd())?;
        let ordered = watch(orders.bell().as_fd())?;
        while !self.shared.desk.borrow().course.is_over() {
            let now_ns = clock::monotonic_ns();
            self.obey(now_ns);
            self.open_connections(now_ns);
            self.shared.desk.borrow_mut().send_due(&self.shared.spec, now_ns);
            if now_ns >= self.next_check_ns {
                self.check(now_ns);
            }
            timer.set(self.wakes_ns())?;
            self.wait((&timer, &rung), &ordered).await?;
        }
        self.finish();
        Ok(())
    }

    /// Waits for the timer, an order, or something that happened on a connection.
    async fn wait(
        &self,
        (timer, rung): (&TimerFd, &AsyncFd<BorrowedFd<'_>>),
        ordered: &AsyncFd<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let bell = || match self.orders.bell().drain() {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        };
        let mut rung = pin!(rung.async_io(Interest::READABLE, |_| timer.drain()));
        let mut ordered = pin!(ordered.async_io(Interest::READABLE, |_| bell()));
        let mut changed = pin!(self.shared.changed.notified());
        poll_fn(|cx| {
            if let Poll::Ready(result) = rung.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            if let Poll::Ready(result) = ordered.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            changed.as_mut().poll(cx).map(Ok)
        })
        .await
    }

    /// Carries out what was ordered, and what its time has come for.
    fn obey(&self, now_ns: u64) {
        let desk = &mut *self.shared.desk.borrow_mut();
        match desk.step(&self.shared.spec, now_ns) {
            Some(Turn::Ramped) => {
                let opened = desk.open_count();
                desk.recorder.tally.connections.opened = opened;
                let _ = self.reports.send(Message::Ramped { opened });
            }
            Some(Turn::Begin(window)) => {
                desk.recorder.set_window(window);
                desk.pace = Pace::new(&self.shared.spec, window.begin_ns, self.place);
            }
            Some(Turn::End { is_stopped }) => desk.end_load(&self.shared.spec, now_ns, is_stopped),
            None => {}
        }
    }

    fn open_connections(&mut self, now_ns: u64) {
        loop {
            let desk = &mut *self.shared.desk.borrow_mut();
            let Some(number) = desk.ramp.take(now_ns) else {
                return;
            };
            desk.recorder.connecting();
            match self.opener.open() {
                Ok(opened) => drop(spawn_local(connection::run(
                    Rc::clone(&self.shared),
                    number,
                    opened.socket,
                    now_ns,
                ))),
                Err(error) => {
                    let text = linerate_sys::error::io_text(&error);
                    desk.refuse(failure::of_connect(&error), &text);
                }
            }
        }
    }

    /// Hands in the second that is over. Deadlines are kept by the tasks themselves.
    fn check(&mut self, now_ns: u64) {
        let recorder = &mut self.shared.desk.borrow_mut().recorder;
        if let Some(second) = recorder.finished_second(now_ns) {
            let _ = self.reports.send(Message::Second(second));
        }
        self.next_check_ns = (now_ns + CHECK_NS).min(recorder.second_ends_ns());
    }

    /// Until when there is nothing to do unless something happens.
    fn wakes_ns(&self) -> u64 {
        self.next_check_ns.min(self.shared.desk.borrow().wakes_ns())
    }

    /// Counts what has no answer, and reports.
    fn finish(self) {
        let desk = &mut *self.shared.desk.borrow_mut();
        desk.close(clock::monotonic_ns());
        if let Some(second) = desk.recorder.last_second() {
            let _ = self.reports.send(Message::Second(second));
        }
        let tally = std::mem::take(&mut desk.recorder.tally);
        let _ = self.reports.send(Message::Finished(Box::new(tally)));
    }
}

/// Has the executor look after a descriptor.
#[allow(
    deprecated,
    reason = "for descriptors that change under way; a borrowed one stays what it is, and the replacement is unsafe"
)]
fn watch(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

const CHECK_NS: u64 = 100_000_000;
