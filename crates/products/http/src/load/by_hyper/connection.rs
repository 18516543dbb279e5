//! Tasks of a connection and of its slots.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use std::{io, net};

use linerate_model::http::{ErrorClass, Mode};
use linerate_sys::clock;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, timeout, timeout_at};

use super::slots::{Next, Shared};
use crate::client::{Established, Failure, NoResponse, Session, read_response};
use crate::load::failure;
use crate::load::ramp::Loss;
use crate::load::response::ReceivedResponse;
use crate::load::worker::NO_RESPONSE_IN_TIME;

/// How the last request of a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Outcome {
    /// There was none yet.
    #[default]
    None,
    /// By a response, which may announce the close.
    Response { is_last: bool },
    /// Without one. The first request may have had none in time.
    Failed { is_unanswered: bool },
}

/// Opens a connection, runs its slots, and reopens it when it is lost.
pub(super) async fn run(shared: Rc<Shared>, number: u32, socket: OwnedFd, since_ns: u64) {
    let established = match open(&shared, socket).await {
        Ok(established) => established,
        Err(failure) => {
            shared
                .state
                .borrow_mut()
                .worker
                .refuse(failure.class, &failure.text);
            shared.changed.notify_one();
            return;
        }
    };
    // The borrow ends before the next await, because other tasks of the thread borrow the state.
    let sends_first_request = {
        let worker = &mut shared.state.borrow_mut().worker;
        worker
            .recorder
            .stats
            .protocol
            .get_or_insert(established.protocol);
        let sends_first_request =
            worker.arrived(number, clock::monotonic_ns().saturating_sub(since_ns));
        worker.begin(usize::from(sends_first_request));

        sends_first_request
    };

    shared.changed.notify_one();
    let outcome = Rc::new(Cell::new(Outcome::None));
    let slots = shared.state.borrow().slots_of(number);
    let sessions = established.session.split(shared.spec.streams);
    let tasks: Vec<JoinHandle<()>> = slots
        .zip(sessions)
        .enumerate()
        .map(|(index, (slot, session))| {
            let is_first_request = sends_first_request && index == 0;
            spawn_local(serve(
                Rc::clone(&shared),
                Rc::clone(&outcome),
                slot,
                session,
                is_first_request,
            ))
        })
        .collect();
    let ended = drive(&shared, number, established.driver, tasks).await;
    lose(&shared, number, outcome.get(), &ended);
    shared.changed.notify_one();
}

/// Connects and completes the handshake within the connect timeout.
async fn open(shared: &Shared, socket: OwnedFd) -> Result<Established, Failure> {
    let deadline = Instant::now() + Duration::from_nanos(shared.spec.connect_timeout_ns);
    let failed = |error: &io::Error| Failure {
        class: failure::of_connect(error),
        text: linerate_sys::error::io_text(error),
    };
    let stream = match timeout_at(deadline, connected(socket)).await {
        Ok(stream) => stream.map_err(|error| failed(&error))?,
        Err(_) => {
            return Err(failed(&io::Error::from_raw_os_error(
                linerate_sys::errno::ETIMEDOUT,
            )));
        }
    };
    // The time to connect includes the handshake, and so does its timeout.
    match timeout_at(deadline, shared.client.handshake(stream)).await {
        Ok(established) => established.map_err(|refusal| Failure {
            class: refusal.class(),
            text: refusal.to_string(),
        }),
        Err(_) => Err(Failure {
            class: ErrorClass::Tls,
            text: "TLS handshake timed out".to_owned(),
        }),
    }
}

/// Waits for the connection.
async fn connected(socket: OwnedFd) -> io::Result<TcpStream> {
    let stream = TcpStream::from_std(net::TcpStream::from(socket))?;
    // Writability ends the attempt; `SO_ERROR` has its result (connect(2)).
    stream.writable().await?;

    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

/// Drives the connection until it ends, or until none of its slots needs it.
async fn drive(
    shared: &Shared,
    number: u32,
    mut driver: Pin<Box<dyn Future<Output = Result<(), hyper::Error>>>>,
    tasks: Vec<JoinHandle<()>>,
) -> Result<(), hyper::Error> {
    let mut left = pin!(async {
        for task in tasks {
            // One that panicked has no result.
            let _ = task.await;
        }
    });
    let ended = poll_fn(|cx| match driver.as_mut().poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => left.as_mut().poll(cx).map(|()| None),
    })
    .await;

    // Fails the requests it has not sent yet.
    drop(driver);
    shared.state.borrow_mut().gone(number);

    match ended {
        Some(ended) => {
            // Without the driver no request can complete, so the tasks end.
            left.await;
            ended
        }
        None => Ok(()),
    }
}

/// Accounts for a lost connection.
fn lose(shared: &Shared, number: u32, outcome: Outcome, ended: &Result<(), hyper::Error>) {
    let worker = &mut shared.state.borrow_mut().worker;
    let is_idle = matches!(shared.spec.mode, Mode::Idle { .. });
    let loss = match outcome {
        Outcome::Response { is_last: true } => Loss::Announced,
        // hyper does not expose GOAWAY of HTTP/2; failures are reported by the requests.
        Outcome::Response { .. } if shared.client.is_http2 && !is_idle => Loss::Announced,
        Outcome::Failed {
            is_unanswered: true,
        } => Loss::Unanswered,
        Outcome::None | Outcome::Response { .. } | Outcome::Failed { .. } => Loss::Unannounced,
    };

    let is_reported = matches!(outcome, Outcome::Failed { .. });
    if loss == Loss::Unannounced && !is_reported && !worker.run_state.is_over() {
        worker.recorder.stats.connections.dropped += 1;
        if ended.is_err() {
            let text = || "lost while nothing was asked".to_owned();
            worker
                .recorder
                .connection_failed(ErrorClass::ResetIdle, text);
        }
    }

    worker.lose(number, loss);
}

/// A slot: one request after the other, until the connection ends.
async fn serve(
    shared: Rc<Shared>,
    outcome: Rc<Cell<Outcome>>,
    slot: u32,
    mut session: Session,
    is_first_request: bool,
) {
    if is_first_request {
        let stays_open =
            exchange(&shared, &outcome, slot, &mut session, clock::monotonic_ns()).await;
        shared.changed.notify_one();
        if !stays_open {
            return;
        }
    }

    let mut has_response = false;
    while let Ok(true) = timeout(shared.timeout(), session.is_ready()).await {
        let next = shared.state.borrow_mut().next(slot, has_response);
        if shared.state.borrow().worker.needs_wakeup() {
            shared.changed.notify_one();
        }

        let due_ns = match next {
            Next::Now(due_ns) => due_ns,
            Next::Later(due) => match due.await {
                Ok(due_ns) => due_ns,
                // `gone` dropped the sender: the connection has ended.
                Err(_) => return,
            },
        };
        if !exchange(&shared, &outcome, slot, &mut session, due_ns).await {
            return;
        }

        has_response = true;
    }
}

/// Sends one request and records its outcome. Returns whether the connection stays open.
async fn exchange(
    shared: &Shared,
    outcome: &Cell<Outcome>,
    slot: u32,
    session: &mut Session,
    due_ns: u64,
) -> bool {
    if !shared.state.borrow_mut().sending(slot, due_ns) {
        return true;
    }

    let completed = match timeout(shared.timeout(), send(shared, session)).await {
        Ok(completed) => completed,
        Err(_) => Err(NoResponse::Failed(Failure {
            class: ErrorClass::Timeout,
            text: NO_RESPONSE_IN_TIME.to_owned(),
        })),
    };
    let state = &mut *shared.state.borrow_mut();
    let Some((number, sent)) = state.settle(slot) else {
        return false;
    };

    match completed {
        Ok(response) => {
            state.worker.response_complete(number, sent, &response);
            outcome.set(Outcome::Response {
                is_last: !response.keeps_alive,
            });
            response.keeps_alive
        }
        Err(NoResponse::NotSent) => {
            state.worker.return_request(number, sent);
            false
        }
        Err(NoResponse::Failed(failure)) => {
            let is_unanswered =
                failure.class == ErrorClass::Timeout && state.worker.awaits_first(number);
            outcome.set(Outcome::Failed { is_unanswered });
            state
                .worker
                .failed(number, [sent], failure.class, &failure.text);

            // In HTTP/2 a failed stream leaves the others intact.
            shared.client.is_http2 && !is_unanswered
        }
    }
}

async fn send(shared: &Shared, session: &mut Session) -> Result<ReceivedResponse, NoResponse> {
    let response = session.send(shared.client.request()).await?;
    read_response(response, shared.spec.verifies, u64::MAX)
        .await
        .map_err(NoResponse::Failed)
}
