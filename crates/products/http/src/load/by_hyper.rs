//! The transport of TLS and HTTP/2: hyper on an executor per worker. A connection is a task, and
//! each of its streams another one.

mod connection;
mod slots;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use linerate_sys::clock;
use linerate_sys::timer::TimerFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};

use super::worker::LoadWorker;
use crate::client::Client;
use slots::{Shared, State};

/// Runs a worker to its end.
///
/// # Errors
/// The operating system's, for instance `EMFILE`.
pub(crate) fn run(worker: LoadWorker, client: Arc<Client>) -> io::Result<()> {
    // One thread per worker, as in the event loop, so connections share state without locks.
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let shared = Rc::new(Shared {
        spec: Arc::clone(&worker.spec),
        client,
        state: RefCell::new(State::new(worker)),
        changed: Notify::new(),
    });
    executor.block_on(LocalSet::new().run_until(run_phases(shared)))
}

async fn run_phases(shared: Rc<Shared>) -> io::Result<()> {
    let timer = TimerFd::new().map_err(|error| error.source)?;
    let commands = Arc::clone(&shared.state.borrow().worker.commands);
    let expired = watch(timer.as_fd())?;
    let commanded = watch(commands.waker.as_fd())?;
    // `AsyncFd::async_io` waits again after `WouldBlock`.
    let command = || {
        if commands.waker.drain() {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    };

    while !shared.state.borrow().worker.run_state.is_over() {
        timer.set(advance(&shared))?;
        // Until the timer expires, a command arrives, or a task has changed the state.
        let mut expired = pin!(expired.async_io(Interest::READABLE, |_| timer.drain()));
        let mut commanded = pin!(commanded.async_io(Interest::READABLE, |_| command()));
        let mut changed = pin!(shared.changed.notified());

        poll_fn(|cx| {
            if let Poll::Ready(result) = expired.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            if let Poll::Ready(result) = commanded.as_mut().poll(cx) {
                return Poll::Ready(result);
            }

            changed.as_mut().poll(cx).map(Ok)
        })
        .await?;
    }

    let State { worker, slots } = &mut *shared.state.borrow_mut();
    worker.finish(slots.iter_mut().filter_map(|slot| slot.outstanding.take()));
    Ok(())
}

/// Does what is due, and returns the next deadline. Timeouts belong to the tasks.
fn advance(shared: &Rc<Shared>) -> u64 {
    let now_ns = clock::monotonic_ns();
    let State { worker, slots } = &mut *shared.state.borrow_mut();
    worker.advance_run(now_ns, slots);

    while let Some((number, opened)) = worker.open_next(now_ns) {
        spawn_local(connection::run(
            Rc::clone(shared),
            number,
            opened.socket,
            now_ns,
        ));
    }

    worker.send_due(now_ns, slots);
    if worker.is_check_due(now_ns) {
        worker.report_second(now_ns);
    }

    worker.next_ns()
}

/// Registers a descriptor with the executor.
#[allow(
    deprecated,
    reason = "for descriptors that change under way; a borrowed one stays what it is, and the \
              replacement is unsafe"
)]
fn watch(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
