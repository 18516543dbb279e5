//! Threads for work of a dialect that would block the control thread: checks of logins, long
//! results.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use linerate_sys::poll::EventFd;

use crate::lock::lock;

/// A few threads, started with the first work. As much is handed to them as there are threads; the
/// rest waits with the control thread, which decides on its order.
pub(crate) struct BlockingPool<W, O> {
    run: Arc<dyn Fn(W) -> O + Send + Sync>,
    work: Sender<(u64, W)>,
    inbox: Arc<Mutex<Receiver<(u64, W)>>>,
    done: Sender<(u64, O)>,
    outcomes: Receiver<(u64, O)>,
    notice: Arc<EventFd>,
    threads: usize,
    under_way: usize,
}

/// Few enough to leave the tests their CPUs.
const THREADS_MAX: usize = 2;

impl<W: Send + 'static, O: Send + 'static> BlockingPool<W, O> {
    /// `run` does a piece of work.
    ///
    /// # Errors
    /// When there is no descriptor for the notice.
    pub(crate) fn new(run: impl Fn(W) -> O + Send + Sync + 'static) -> linerate_sys::Result<Self> {
        let (work, inbox) = channel();
        let (done, outcomes) = channel();
        Ok(Self {
            run: Arc::new(run),
            work,
            inbox: Arc::new(Mutex::new(inbox)),
            done,
            outcomes,
            notice: Arc::new(EventFd::new()?),
            threads: 0,
            under_way: 0,
        })
    }

    /// Readable when [`BlockingPool::take_outcomes`] has something.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd as _;
        self.notice.as_fd()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.under_way < THREADS_MAX
    }

    /// Begins with a client's work. Where no thread can be created, the control thread does it.
    pub(crate) fn begin(&mut self, id: u64, work: W) {
        // Started on demand: most servers check no password and parse no large result.
        if self.threads == self.under_way && self.start_thread().is_ok() {
            self.threads += 1;
        }

        self.under_way += 1;
        if self.threads > 0 {
            // The pool holds the other end.
            let _ = self.work.send((id, work));
        } else {
            // The system has no thread left: done here, so that the client gets its answer, if
            // late.
            let _ = self.done.send((id, (self.run)(work)));
            self.notice.signal();
        }
    }

    /// Takes finished work: owner and result.
    pub(crate) fn take_outcomes(&mut self) -> Vec<(u64, O)> {
        self.notice.drain();
        let outcomes: Vec<_> = self.outcomes.try_iter().collect();
        self.under_way -= outcomes.len();
        outcomes
    }

    /// The thread ends when the pool is gone and its work is done. The server does not wait for
    /// that when it ends: a read of the file of users may block on a network file system.
    fn start_thread(&self) -> io::Result<()> {
        let run = Arc::clone(&self.run);
        let inbox = Arc::clone(&self.inbox);
        let done = self.done.clone();
        let notice = Arc::clone(&self.notice);
        let next = move || lock(&inbox).recv();
        let body = move || {
            while let Ok((id, work)) = next() {
                if done.send((id, run(work))).is_err() {
                    return;
                }
                notice.signal();
            }
        };

        thread::Builder::new()
            .name("checks".to_owned())
            .spawn(body)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_sys::poll::{self, Interest};

    use super::*;

    fn outcome(pool: &mut BlockingPool<u8, u8>) -> Vec<(u64, u8)> {
        assert!(
            poll::wait_fd(pool.fd(), Interest::READ, Some(Duration::from_secs(60)))
                .expect("the notice can be awaited")
        );
        pool.take_outcomes()
    }

    #[test]
    fn caller_continues_while_work_runs_and_gets_the_outcome() {
        let (release, acceptor) = channel::<()>();
        let acceptor = Mutex::new(acceptor);
        let mut pool = BlockingPool::new(move |number| {
            let _ = acceptor.lock().expect("no panic before").recv();
            number
        })
        .expect("an event descriptor");

        for id in 0..THREADS_MAX {
            assert!(pool.has_room());
            pool.begin(id as u64, 7);
        }

        assert!(
            !pool.has_room() && pool.take_outcomes().is_empty(),
            "the work waits and its caller does not"
        );
        release.send(()).expect("the pool lives");
        assert!(matches!(outcome(&mut pool)[..], [(0 | 1, 7)]));
        assert!(pool.has_room());
    }
}
