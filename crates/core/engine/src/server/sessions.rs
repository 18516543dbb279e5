//! Sessions of one dialect: by number, by the descriptors that are ready, and by time. The cost of
//! an event does not grow with their number.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use linerate_model::service::RefusalReason;
use linerate_sys::poll::{Epoll, Interest};

use super::server_stats::ByteTotals;
use super::timers::Timers;
use super::tokens::{parts, token};

/// A map of sessions, the event loop of their descriptors, and what is to be done next.
pub(crate) struct Sessions<S> {
    epoll: Epoll,
    entries: BTreeMap<u64, S>,
    timers: Timers,
    /// Numbers with something to do.
    ready: BTreeSet<u64>,
    is_closed: bool,
}

/// The test of one client.
pub(crate) trait Session {
    /// Payload bytes moved so far, the warm-up included.
    fn totals(&mut self) -> ByteTotals;

    /// Ends the test: it exceeds a limit.
    fn stop(&mut self, reason: RefusalReason);

    /// Ends a test that has been silent for too long, which is shorter while another client wants
    /// its place; true if it did.
    fn check_liveness(&mut self, _is_place_wanted: bool) -> bool {
        false
    }
}

/// Sessions of any dialect, as the event loop of the server sees them.
pub(crate) trait SessionTable {
    /// Readable while a descriptor of a session is.
    fn fd(&self) -> BorrowedFd<'_>;

    /// When a session is due at the latest.
    fn deadline(&self) -> Option<Instant>;

    fn is_empty(&self) -> bool;

    /// No client is added any more.
    fn is_closed(&self) -> bool;

    /// A session, which has something to do then.
    fn session(&mut self, id: u64) -> Option<&mut dyn Session>;

    /// Ends a test without a sign of life whose place another client wants; true if there was one.
    fn end_silent(&mut self) -> bool;
}

impl<S> Sessions<S> {
    pub(crate) fn new() -> linerate_sys::Result<Self> {
        Ok(Self {
            epoll: Epoll::new()?,
            entries: BTreeMap::new(),
            timers: Timers::default(),
            ready: BTreeSet::new(),
            is_closed: false,
        })
    }

    pub(crate) fn epoll(&self) -> &Epoll {
        &self.epoll
    }

    /// A session, and the event loop for its descriptors.
    pub(crate) fn with_epoll(&mut self, id: u64) -> Option<(&mut S, &Epoll)> {
        Some((self.entries.get_mut(&id)?, &self.epoll))
    }

    /// Waits until a descriptor of the number `id` is readable.
    pub(crate) fn watch(&self, fd: impl AsFd, id: u64, kind: u64) -> linerate_sys::Result<()> {
        self.epoll.add(fd, token(id, kind), Interest::READ)
    }

    /// Adds a session, which has something to do.
    pub(crate) fn insert(&mut self, id: u64, session: S) {
        self.entries.insert(id, session);
        self.wake(id);
    }

    /// Takes a session out; its number has nothing to do any more.
    pub(crate) fn remove(&mut self, id: u64) -> Option<S> {
        self.set_due(id, None);
        self.ready.remove(&id);
        self.entries.remove(&id)
    }

    /// The number has something to do.
    pub(crate) fn wake(&mut self, id: u64) {
        self.ready.insert(id);
    }

    /// All sessions, which have something to do then.
    pub(crate) fn wake_all(&mut self) -> impl Iterator<Item = &mut S> {
        self.ready.extend(self.entries.keys());
        self.entries.values_mut()
    }

    /// The number has something to do at this time, and not before; `None` for no time.
    pub(crate) fn set_due(&mut self, id: u64, due: Option<Instant>) {
        self.timers.set(id, due);
    }

    /// Numbers and kinds of the descriptors that are ready; the numbers have something to do.
    pub(crate) fn events(&mut self) -> Vec<(u64, u64)> {
        let events = self.epoll.ready().into_iter();
        let events: Vec<_> = events.map(|event| parts(event.token)).collect();
        self.ready.extend(events.iter().map(|(id, _)| id));
        events
    }

    /// No client is to be added any more.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Takes the numbers that have something to do, or are due.
    pub(crate) fn take_ready(&mut self) -> BTreeSet<u64> {
        self.ready.extend(self.timers.take_due(Instant::now()));
        std::mem::take(&mut self.ready)
    }
}

impl<S> Deref for Sessions<S> {
    type Target = BTreeMap<u64, S>;

    fn deref(&self) -> &Self::Target {
        &self.entries
    }
}

impl<S> DerefMut for Sessions<S> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.entries
    }
}

impl<S: Session> SessionTable for Sessions<S> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        let ready = (!self.ready.is_empty()).then(Instant::now);
        ready.into_iter().chain(self.timers.next()).min()
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn session(&mut self, id: u64) -> Option<&mut dyn Session> {
        let session = self.entries.get_mut(&id)?;
        self.ready.insert(id);
        Some(session)
    }

    fn end_silent(&mut self) -> bool {
        let mut entries = self.entries.iter_mut();
        let silent = entries.find_map(|(id, session)| session.check_liveness(true).then_some(*id));
        self.ready.extend(silent);
        silent.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_sys::poll::EventFd;

    use super::*;

    struct Test {
        is_silent: bool,
    }

    impl Session for Test {
        fn totals(&mut self) -> ByteTotals {
            ByteTotals::default()
        }

        fn stop(&mut self, _reason: RefusalReason) {}

        fn check_liveness(&mut self, _is_place_wanted: bool) -> bool {
            std::mem::take(&mut self.is_silent)
        }
    }

    fn with(numbers: &[u64]) -> Sessions<Test> {
        let mut sessions = Sessions::new().expect("an event loop");
        for id in numbers {
            sessions.insert(*id, Test { is_silent: false });
        }

        sessions.take_ready();
        sessions
    }

    fn ready(sessions: &mut Sessions<Test>) -> Vec<u64> {
        sessions.take_ready().into_iter().collect()
    }

    #[test]
    fn session_has_something_to_do_when_it_is_added_woken_lent_or_due() {
        let mut sessions = with(&[1, 2, 3, 4]);
        assert_eq!(sessions.deadline(), None);

        sessions.insert(5, Test { is_silent: false });
        sessions.wake(2);
        assert!(sessions.session(4).is_some());
        sessions.set_due(3, Some(Instant::now()));
        sessions.set_due(1, Some(Instant::now() + Duration::from_secs(60)));
        assert!(sessions.deadline().is_some_and(|due| due <= Instant::now()));

        assert_eq!(ready(&mut sessions), [2, 3, 4, 5]);
        assert!(ready(&mut sessions).is_empty());
        assert!(sessions.deadline().is_some_and(|due| due > Instant::now()));
    }

    #[test]
    fn readable_descriptor_is_an_event_of_its_session_alone() {
        let (mut sessions, event) = (with(&[1, 2]), EventFd::new().expect("a descriptor"));
        sessions.watch(&event, 2, 1).expect("it is watched");
        assert!(sessions.events().is_empty());

        event.signal();
        assert_eq!(sessions.events(), [(2, 1)]);
        assert_eq!(ready(&mut sessions), [2]);
    }

    #[test]
    fn removed_session_is_neither_ready_nor_due() {
        let mut sessions = with(&[1]);
        sessions.wake(1);
        sessions.set_due(1, Some(Instant::now()));
        assert!(sessions.remove(1).is_some());

        assert_eq!(sessions.deadline(), None);
        assert!(ready(&mut sessions).is_empty());
    }

    #[test]
    fn one_silent_test_ends_for_a_client_that_wants_its_place() {
        let mut sessions = with(&[1, 2, 3]);
        for id in [2, 3] {
            sessions.get_mut(&id).expect("it was added").is_silent = true;
        }

        assert!(sessions.end_silent());
        assert_eq!(ready(&mut sessions), [2]);
        assert!(sessions.end_silent());
        assert!(!sessions.end_silent());
    }
}
