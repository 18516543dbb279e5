//! The end of agents: a connection for each.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::message::{Delivery, delivery};
use async_nats::Subscriber;
use async_nats::connection::State;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use futures_util::StreamExt;
use linerate_model::outcome::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::connection::{Connection, REPLY_TIMEOUT};
use super::events::{EventQueue, Events, events, line, run};
use super::names::{Names, inbox, tokens};
use crate::run::carrier::{Carrier, HostEvent};
use crate::spec::BusOptions;

/// Events of an agent that wait for its owner.
const EVENTS_PER_AGENT: usize = 64;
/// Kept lines of an agent that wait for the broker.
const KEPT_MAX: usize = 256;
/// Time between two attempts to have a line kept.
const RETRY: Duration = Duration::from_millis(200);

/// The coordinator of a site, seen by one or more agents. Their places are those of their names.
#[derive(Debug)]
pub struct BusAgents {
    /// Lines of each agent; `None` once it is closed.
    agents: Vec<Option<mpsc::UnboundedSender<String>>>,
    queue: EventQueue,
}

/// Where agents connect.
struct Site {
    options: BusOptions,
    names: Names,
}

impl BusAgents {
    /// Connects agents with these names. A connection that cannot be made is a lost coordinator.
    ///
    /// # Errors
    /// Names that cannot be on a bus; the operating system's.
    pub fn start(options: &BusOptions, site: &str, hosts: &[String]) -> Result<Self, Error> {
        options.check()?;
        let tokens = tokens(hosts)?;
        let failed = |error: io::Error| options.unreachable(error);
        let (events, queue) =
            // A channel of tokio without capacity panics.
            events(EVENTS_PER_AGENT.saturating_mul(tokens.len()).max(1)).map_err(failed)?;
        let (agents, lines): (Vec<_>, Vec<_>) =
            tokens.iter().map(|_| mpsc::unbounded_channel()).unzip();
        let site = Arc::new(Site {
            options: options.clone(),
            names: Names::new(site)?,
        });

        run(async move {
            let mut running = JoinSet::new();
            for ((index, token), lines) in tokens.into_iter().enumerate().zip(lines) {
                running.spawn(serve(
                    Arc::clone(&site),
                    (index, token),
                    events.clone(),
                    lines,
                ));
            }

            // The queue of the owner ends with its last sender.
            drop(events);
            running.join_all().await;
        })
        .map_err(failed)?;
        Ok(Self {
            agents: agents.into_iter().map(Some).collect(),
            queue,
        })
    }
}

impl Carrier for BusAgents {
    fn send(&mut self, agent: usize, line: &str) {
        if let Some(lines) = self.agents.get(agent).and_then(Option::as_ref) {
            // Fails only when the connection could not be made, which was reported.
            let _ = lines.send(line.to_owned());
        }
    }

    fn close(&mut self, agent: usize) {
        if let Some(lines) = self.agents.get_mut(agent) {
            *lines = None;
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn poll(&mut self, _: u64) -> Vec<(usize, HostEvent)> {
        self.queue.take()
    }

    fn has_open(&self) -> bool {
        !self.queue.has_ended()
    }
}

/// Carries lines of one agent until its owner closes it.
async fn serve(
    site: Arc<Site>,
    (index, token): (usize, String),
    events: Events,
    lines: mpsc::UnboundedReceiver<String>,
) {
    if let Err(error) = carry(&site, (index, &token), &events, lines).await {
        let reason = error.to_string();
        events.send(index, HostEvent::Lost { reason }).await;
    }
}

async fn carry(
    site: &Site,
    (index, token): (usize, &str),
    events: &Events,
    mut lines: mpsc::UnboundedReceiver<String>,
) -> Result<(), Error> {
    let connection = Connection::open(&site.options, &inbox(token)).await?;
    let client = &connection.client;
    // Both end with the agent.
    let mut receiving = JoinSet::new();

    for subject in [site.names.commands_to(token), site.names.commands_to_all()] {
        let commands = client.subscribe(subject).await;
        let commands = commands.map_err(|error| site.options.unreachable(error))?;
        receiving.spawn(receive(commands, index, events.clone()));
    }

    let mut noticed = connection.clone();
    let of_refusal = events.clone();
    receiving.spawn(async move {
        let reason = noticed.refusal().await;
        of_refusal.send(index, HostEvent::Lost { reason }).await;
    });
    let mut context = jetstream::new(client.clone());
    context.set_timeout(REPLY_TIMEOUT);

    let (to_keep, kept) = mpsc::channel(KEPT_MAX);
    let keeping = tokio::spawn(keep(context, kept));
    let live = site.names.live(token);

    while let Some(line) = lines.recv().await {
        match delivery(&line) {
            Delivery::Kept { run, id } => {
                // What exceeds the bound is lost; the coordinator repeats the task.
                // Both ends of a task have a result of it.
                let id = id.map(|id| format!("{token}/{id}"));
                let _ = to_keep.try_send(Kept {
                    subject: site.names.results(token, &run.to_string()),
                    id,
                    line,
                });
            }
            // An answer that waits for the broker is too late.
            Delivery::Live if client.connection_state() == State::Connected => {
                let _ = client.publish(live.clone(), line.into()).await;
            }
            Delivery::Live => {}
        }
    }

    drop(to_keep);
    let _ = keeping.await;
    let _ = client.flush().await;
    Ok(())
}

/// Passes commands on.
async fn receive(mut commands: Subscriber, index: usize, events: Events) {
    while let Some(message) = commands.next().await {
        events.send(index, line(&message.payload)).await;
    }
}

/// A line that the broker is to keep.
struct Kept {
    subject: String,
    id: Option<String>,
    line: String,
}

/// Has lines kept, in their order. The broker drops a copy of a line whose confirmation was lost.
async fn keep(context: Context, mut kept: mpsc::Receiver<Kept>) {
    while let Some(Kept { subject, id, line }) = kept.recv().await {
        let payload = Bytes::from(line);
        loop {
            let mut message = PublishMessage::build().payload(payload.clone());
            if let Some(id) = &id {
                message = message.message_id(id);
            }

            let sent = context.send_publish(subject.clone(), message).await;
            let is_kept = match sent {
                Ok(confirmation) => confirmation.await.is_ok(),
                Err(_) => false,
            };
            if is_kept {
                break;
            }

            sleep(RETRY).await;
        }
    }
}
