//! New connections on a schedule that does not wait for answers.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::time::Duration;

use linerate_sys::clock;
use linerate_sys::poll::{Epoll, Interest, Ready};

use super::transactions::{BUFFER_BYTES, Connection, INTERRUPT, Step, Transacted, TransactionPlan};
use crate::data::pacing::Schedule;
use crate::interrupts::Interrupts;

/// Connections of one step.
struct Opening<'a> {
    plan: &'a TransactionPlan,
    epoll: Epoll,
    open: BTreeMap<u64, Connection>,
    done: Transacted,
    notes: Vec<String>,
    buffer: Vec<u8>,
}

/// Longest wait for the answers that are missing at the end.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Connections that are begun before answers are read again.
const BATCH_MAX: u64 = 64;

/// Opens connections at a fixed rate until the time ends: connect, request, response, close.
/// Each sample begins at the planned moment; one without an answer has failed. The notes are the
/// reasons that this host has.
///
/// # Errors
/// When this host has no event loop, or the user interrupts.
pub(super) fn run(
    plan: &TransactionPlan,
    per_s: u64,
    interrupts: &dyn Interrupts,
) -> io::Result<(Transacted, Vec<String>)> {
    let epoll = Epoll::new().map_err(io::Error::other)?;
    epoll
        .add(interrupts.fd(), INTERRUPT, Interest::READ)
        .map_err(io::Error::other)?;

    let (open, done, notes, buffer) = (
        BTreeMap::new(),
        Transacted::default(),
        Vec::new(),
        vec![0; BUFFER_BYTES],
    );
    let mut opening = Opening {
        plan,
        epoll,
        open,
        done,
        notes,
        buffer,
    };

    // A schedule of bytes at 8 bit each.
    let schedule = Schedule::new(clock::monotonic_ns(), per_s.saturating_mul(8));
    let end_ns = schedule
        .due_ns(0)
        .saturating_add(clock::as_ns(plan.duration));
    let last_ns = end_ns.saturating_add(clock::as_ns(ANSWER_MAX));
    let (mut begun, mut events) = (0, Vec::new());

    loop {
        let now_ns = clock::monotonic_ns();
        let next_ns = Some(schedule.due_ns(begun)).filter(|next_ns| *next_ns < end_ns);
        let until_ns = match next_ns {
            Some(next_ns) => next_ns,
            None if opening.open.is_empty() || now_ns >= last_ns => break,
            None => last_ns,
        };

        // An interrupted wait is repeated.
        let _ = opening.epoll.wait(
            &mut events,
            Some(Duration::from_nanos(until_ns.saturating_sub(now_ns))),
        );
        if events.iter().any(|event| event.token == INTERRUPT) && interrupts.take().is_some() {
            return Err(ErrorKind::Interrupted.into());
        }

        opening.advance(&events);
        let now_ns = clock::monotonic_ns().min(end_ns.saturating_sub(1));

        for _ in 0..schedule
            .allowed_bytes(now_ns)
            .saturating_sub(begun)
            .min(BATCH_MAX)
        {
            opening.begin(begun, schedule.due_ns(begun));
            begun += 1;
        }
    }

    Ok(opening.finish())
}

impl Opening<'_> {
    fn begin(&mut self, number: u64, planned_ns: u64) {
        if self.open.len() >= self.plan.connections_max {
            self.note(format!(
                "{} connections wait for an answer, as many as may be open",
                self.plan.connections_max
            ));
            return self.done.add(planned_ns, None);
        }

        match Connection::open(self.plan, &self.epoll, number) {
            Ok(connection) => drop(self.open.insert(number, connection.since(planned_ns))),
            Err(error) => {
                self.note(format!("this host opens no connection: {error}"));
                self.done.add(planned_ns, None);
            }
        }
    }

    fn advance(&mut self, events: &[Ready]) {
        for event in events {
            let Some(connection) = self.open.get_mut(&event.token) else {
                continue;
            };
            let received_ns =
                match connection.advance(self.plan, &self.epoll, event.token, &mut self.buffer) {
                    Ok(Step::Nothing) => continue,
                    Ok(Step::Complete) => Some(clock::monotonic_ns()),
                    Err(error) => {
                        self.done.refused += u64::from(connection.is_refused_by(self.plan, &error));
                        None
                    }
                };

            let planned_ns = connection.since_ns();
            self.open.remove(&event.token);
            self.done.add(planned_ns, received_ns);
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn finish(mut self) -> (Transacted, Vec<String>) {
        for connection in self.open.values() {
            self.done.add(connection.since_ns(), None);
        }
        (self.done, self.notes)
    }
}
