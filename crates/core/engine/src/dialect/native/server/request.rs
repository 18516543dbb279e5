//! Requests of clients that a program beside the tests handles.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use linerate_native::wire::server::Input;
use linerate_sys::poll::EventFd;

/// Handles the requests of clients of the native dialect. Called from several threads.
pub trait RequestHandler: Send + Sync {
    /// Handles a request and returns the response, both JSON. `peer` is the client's address. May
    /// take a second.
    ///
    /// # Errors
    /// Why not.
    fn handle(&self, peer: IpAddr, name: &str, body: &str) -> Result<String, RequestRefusal>;
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} ({clause})")]
pub struct RequestRefusal {
    /// Short name of the reason.
    pub clause: String,
    /// Explanation.
    pub text: String,
}

impl RequestRefusal {
    /// A refusal for this reason.
    pub fn new(clause: &str, text: impl Into<String>) -> Self {
        Self {
            clause: clause.to_owned(),
            text: text.into(),
        }
    }
}

/// A handler, and the requests that it handles at the moment.
#[derive(Clone)]
pub(super) struct Requests {
    handler: Arc<dyn RequestHandler>,
    /// Each thread holds another reference.
    running: Arc<()>,
}

/// Requests handled at once. A session has one at most, but a client that leaves does not end its
/// thread.
const RUNNING_MAX: usize = 16;

impl Requests {
    pub(super) fn new(handler: Arc<dyn RequestHandler>) -> Self {
        Self {
            handler,
            running: Arc::new(()),
        }
    }

    /// Handles a request in a thread of its own: the control thread has other clients.
    pub(super) fn begin(
        &self,
        peer: IpAddr,
        name: String,
        body: String,
    ) -> Result<PendingRequest, RequestRefusal> {
        if Arc::strong_count(&self.running) > RUNNING_MAX {
            return Err(RequestRefusal::new(
                "busy",
                format!("{RUNNING_MAX} requests are pending; try again later"),
            ));
        }

        let started = PendingRequest::start(self.clone(), peer, name, body);
        started.map_err(|error| RequestRefusal::new("resources", error.to_string()))
    }
}

/// A request that a thread handles.
pub(super) struct PendingRequest {
    outcome: Receiver<Result<String, RequestRefusal>>,
    notice: Arc<EventFd>,
}

impl PendingRequest {
    fn start(requests: Requests, peer: IpAddr, name: String, body: String) -> io::Result<Self> {
        let (done, outcome) = channel();
        let notice = Arc::new(EventFd::new()?);
        let theirs = Arc::clone(&notice);

        thread::Builder::new()
            .name("native-request".into())
            .spawn(move || {
                // The session may be over.
                let _ = done.send(requests.handler.handle(peer, &name, &body));
                drop(requests);
                theirs.signal();
            })?;
        Ok(Self { outcome, notice })
    }

    /// Readable when [`Self::take`] has something.
    pub(super) fn notice_fd(&self) -> BorrowedFd<'_> {
        self.notice.as_fd()
    }

    /// Its result; `None` while it is handled.
    pub(super) fn take(&self) -> Option<Input> {
        match self.outcome.try_recv() {
            Ok(Ok(response)) => Some(Input::Response(response)),
            Ok(Err(refusal)) => Some(refusal.into()),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(RequestRefusal::new("failed", "the handler has failed").into())
            }
        }
    }
}

impl From<RequestRefusal> for Input {
    fn from(RequestRefusal { clause, text }: RequestRefusal) -> Self {
        Self::RequestRefused { clause, text }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use linerate_sys::poll::{Interest, wait_fd};

    use super::*;

    /// Handles a request when the test allows it.
    struct Gate(Mutex<Receiver<()>>);

    impl RequestHandler for Gate {
        fn handle(&self, peer: IpAddr, name: &str, body: &str) -> Result<String, RequestRefusal> {
            let opened = self.0.lock().expect("no test panics with it").recv();
            opened.map_err(|_| RequestRefusal::new("closed", name))?;
            Ok(format!("\"{peer} {name} {body}\""))
        }
    }

    #[test]
    fn the_outcome_of_a_request_wakes_the_event_loop() {
        let (open, gate) = channel();
        let requests = Requests::new(Arc::new(Gate(Mutex::new(gate))));
        let begin =
            |name: &str| requests.begin([127, 0, 0, 1].into(), name.to_owned(), "5".to_owned());
        let pending = begin("a").expect("a thread");
        assert_eq!(pending.take(), None);
        open.send(()).expect("it waits");

        let outcome = |pending: &PendingRequest| {
            let woken = wait_fd(
                pending.notice_fd(),
                Interest::READ,
                Some(Duration::from_secs(20)),
            );
            assert!(woken.is_ok_and(|woken| woken));
            pending.take()
        };
        assert_eq!(
            outcome(&pending),
            Some(Input::Response("\"127.0.0.1 a 5\"".to_owned()))
        );
        drop(open);

        let refused = Input::RequestRefused {
            clause: "closed".to_owned(),
            text: "b".to_owned(),
        };
        assert_eq!(outcome(&begin("b").expect("a thread")), Some(refused));
    }

    #[test]
    fn requests_of_clients_that_left_are_bounded() {
        let (open, gate) = channel();
        let requests = Requests::new(Arc::new(Gate(Mutex::new(gate))));
        let begin = || requests.begin([127, 0, 0, 1].into(), "a".to_owned(), "5".to_owned());

        for _ in 0..RUNNING_MAX {
            drop(begin().expect("a thread"));
        }

        assert_eq!(
            begin().map(drop).map_err(|refusal| refusal.clause),
            Err("busy".to_owned())
        );
        drop(open);
    }
}
