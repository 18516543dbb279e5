//! The task of one connection, and those of its slots.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::net;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use linerate_model::http::{ErrorClass, Mode};
use linerate_sys::clock;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, timeout, timeout_at};

use super::Shared;
use super::desk::Next;
use crate::client::{Failure, Greeted, Head, Session, Unanswered, read_body};
use crate::load::answer::Answer;
use crate::load::failure;
use crate::load::ramp::Loss;

/// What the slots of a connection found out about it.
#[derive(Debug, Default)]
struct Fate {
    /// The last request that ended, ended in failure.
    has_failed: Cell<bool>,
    /// Some request was answered.
    has_answered: Cell<bool>,
    /// The server said that it would close.
    is_announced: Cell<bool>,
}

/// Opens a connection, has its slots work, and has it opened again when it is lost.
pub(super) async fn run(shared: Rc<Shared>, number: u32, socket: OwnedFd, since_ns: u64) {
    let greeted = match open(&shared, socket).await {
        Ok(greeted) => greeted,
        Err(failure) => {
            shared.desk.borrow_mut().refuse(failure.class, &failure.text);
            shared.changed.notify_one();
            return;
        }
    };
    let is_first = {
        let desk = &mut *shared.desk.borrow_mut();
        desk.recorder.tally.spoken.get_or_insert(greeted.spoken);
        desk.arrived(number, clock::monotonic_ns().saturating_sub(since_ns))
    };
    let is_touched = is_first && shared.spec.touches;
    if is_touched {
        shared.desk.borrow_mut().begin_touch();
    }
    shared.changed.notify_one();
    let fate = Rc::new(Fate::default());
    let slots = shared.desk.borrow().slots_of(number);
    let sessions = greeted.session.split(shared.spec.streams);
    let tasks: Vec<JoinHandle<()>> = slots
        .zip(sessions)
        .enumerate()
        .map(|(index, (slot, session))| {
            let is_touch = is_touched && index == 0;
            spawn_local(serve(Rc::clone(&shared), Rc::clone(&fate), slot, session, is_touch))
        })
        .collect();
    let ended = drive(&shared, number, greeted.driver, tasks).await;
    lose(&shared, number, &fate, &ended);
    shared.changed.notify_one();
}

/// A connection that can be asked, within the time allowed for it.
async fn open(shared: &Shared, socket: OwnedFd) -> Result<Greeted, Failure> {
    let deadline = Instant::now() + Duration::from_nanos(shared.spec.connect_timeout_ns);
    let failed = |error: &io::Error| Failure {
        class: failure::of_connect(error),
        text: linerate_sys::error::io_text(error),
    };
    let stream = match timeout_at(deadline, connected(socket)).await {
        Ok(stream) => stream.map_err(|error| failed(&error))?,
        Err(_) => return Err(failed(&io::Error::from_raw_os_error(linerate_sys::errno::ETIMEDOUT))),
    };
    match timeout_at(deadline, shared.client.greet(stream)).await {
        Ok(greeted) => greeted.map_err(|refusal| Failure {
            class: refusal.class(),
            text: refusal.to_string(),
        }),
        Err(_) => Err(Failure {
            class: ErrorClass::Tls,
            text: "no end of the handshake in time".to_owned(),
        }),
    }
}

/// Waits until a socket that is on its way has arrived.
async fn connected(socket: OwnedFd) -> io::Result<TcpStream> {
    let stream = TcpStream::from_std(net::TcpStream::from(socket))?;
    stream.writable().await?;
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

/// Moves the bytes of a connection until it ends, or until none of its slots wants it any more.
async fn drive(
    shared: &Shared,
    number: u32,
    mut driver: Pin<Box<dyn Future<Output = Result<(), hyper::Error>>>>,
    tasks: Vec<JoinHandle<()>>,
) -> Result<(), hyper::Error> {
    let mut left = pin!(async {
        for task in tasks {
            // One that panicked has nothing more to say.
            let _ = task.await;
        }
    });
    let ended = poll_fn(|cx| match driver.as_mut().poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => left.as_mut().poll(cx).map(|()| None),
    })
    .await;
    // Requests it has not taken yet learn from this that it never will.
    drop(driver);
    shared.desk.borrow_mut().gone(number);
    match ended {
        Some(ended) => {
            left.await;
            ended
        }
        None => Ok(()),
    }
}

/// Accounts for a connection that is gone.
fn lose(shared: &Shared, number: u32, fate: &Fate, ended: &Result<(), hyper::Error>) {
    let desk = &mut *shared.desk.borrow_mut();
    // HTTP/2 says that it closes in a frame (GOAWAY) that hyper keeps to itself; what fails is told by its requests.
    let is_orderly = shared.client.is_http2()
        && fate.has_answered.get()
        && !fate.has_failed.get()
        && !matches!(shared.spec.mode, Mode::Idle { .. });
    if fate.is_announced.get() || is_orderly {
        return desk.lose(number, Loss::Announced);
    }
    if !fate.has_failed.get() && !desk.course.is_over() {
        desk.recorder.tally.connections.dropped += 1;
        if ended.is_err() {
            let text = || "lost while nothing was asked".to_owned();
            desk.recorder.connection_failed(ErrorClass::ResetIdle, text);
        }
    }
    desk.lose(number, Loss::Unannounced);
}

/// One slot: a request, its answer, and the next request, until the connection is through.
async fn serve(shared: Rc<Shared>, fate: Rc<Fate>, slot: u32, mut session: Session, is_touch: bool) {
    if is_touch {
        let goes_on = exchange(&shared, &fate, slot, &mut session, clock::monotonic_ns()).await;
        shared.desk.borrow_mut().end_touch();
        shared.changed.notify_one();
        if !goes_on {
            return;
        }
    }
    let mut has_answered = false;
    while let Ok(true) = timeout(shared.patience(), session.is_ready()).await {
        let next = shared.desk.borrow_mut().next(slot, has_answered);
        if shared.desk.borrow().wants_a_look() {
            shared.changed.notify_one();
        }
        let due_ns = match next {
            Next::Now(due_ns) => due_ns,
            Next::Later(due) => match due.await {
                Ok(due_ns) => due_ns,
                Err(_) => return,
            },
        };
        if !exchange(&shared, &fate, slot, &mut session, due_ns).await {
            return;
        }
        has_answered = true;
    }
}

/// Asks once and records what comes of it. Returns whether the connection goes on.
async fn exchange(shared: &Shared, fate: &Fate, slot: u32, session: &mut Session, due_ns: u64) -> bool {
    if !shared.desk.borrow_mut().sending(slot, due_ns) {
        return true;
    }
    let answered = match timeout(shared.patience(), ask(shared, session)).await {
        Ok(answered) => answered,
        Err(_) => Err(Unanswered::Failed(Failure {
            class: ErrorClass::Timeout,
            text: "no complete answer in time".to_owned(),
        })),
    };
    let desk = &mut *shared.desk.borrow_mut();
    match answered {
        Ok(answer) => {
            desk.answered(slot, &answer);
            fate.has_answered.set(true);
            fate.has_failed.set(false);
            fate.is_announced.set(!answer.keeps_alive);
            answer.keeps_alive
        }
        Err(Unanswered::NotSent) => {
            desk.give_back(slot);
            false
        }
        Err(Unanswered::Failed(failure)) => {
            desk.failed(slot, &failure);
            fate.has_failed.set(true);
            // In HTTP/2 a stream that failed leaves the others alone.
            shared.client.is_http2()
        }
    }
}

async fn ask(shared: &Shared, session: &mut Session) -> Result<Answer, Unanswered> {
    let response = session.ask(shared.client.request()).await?;
    let head = Head::of(&response);
    let body = read_body(head, response.into_body(), shared.spec.verifies, u64::MAX);
    body.await.map_err(Unanswered::Failed)
}

impl Shared {
    fn patience(&self) -> Duration {
        Duration::from_nanos(self.spec.timeout_ns)
    }
}
