//! The end of a coordinator.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc as sync;
use std::time::Duration;

use async_nats::jetstream::kv::{self, Store};
use async_nats::jetstream::stream::{self, Stream};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt;
use linerate_model::outcome::Error;
use linerate_sys::random;
use tokio::sync::mpsc;

use super::connection::{Connection, REPLY_TIMEOUT};
use super::events::{EventQueue, Hosts, events, run};
use super::lease::{self, Lease};
use super::names::{ANY, Names, tokens};
use super::refused;
use super::results::Results;
use crate::run::carrier::{Carrier, HostEvent};
use crate::spec::BusOptions;

/// Time for which the broker keeps results.
const RESULTS_MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Time for which the broker knows the ids of results: an agent repeats one after the reply and the
/// connection that it waits for. Each id takes memory there; later copies are dropped by the
/// coordinator.
const DUPLICATES_MAX_AGE: Duration = Duration::from_secs(10);
/// Fewest events that wait for the owner; the answers of all hosts have room.
const EVENTS_MIN: usize = 4_096;
/// Name of the run that is in progress, in the bucket of the site.
const RUN_KEY: &str = "run";
/// Prefix of the inboxes of a coordinator. No agent may subscribe to it.
const INBOX: &str = "_INBOX";

/// Setup of a coordinator on a bus.
#[derive(Debug, Clone)]
pub struct BusSetup {
    /// The broker.
    pub options: BusOptions,
    /// Name of the site.
    pub site: String,
    /// Names of the hosts; their places are those of the carrier.
    pub hosts: Vec<String>,
    /// Id of a new run.
    pub run: String,
    /// Hash of its plan. A run with the same one that has not ended is continued. `None`: nothing
    /// is continued, and a lease of another coordinator is an error.
    pub plan: Option<String>,
}

/// State of the lease: this coordinator is in charge or not.
#[derive(Debug)]
pub enum LeaseState {
    /// Another one has the lease, which is awaited.
    Standby,
    /// The lease is held.
    Held(LeaseTerm),
    /// It cannot be.
    Failed(Error),
}

/// The time in which a coordinator holds the lease.
#[derive(Debug)]
pub struct LeaseTerm {
    /// Number of the term, ascending.
    pub epoch: u64,
    /// Id of the run: the new one, or that of the run that is continued.
    pub run: String,
    /// Lines of results that the run has so far, with their hosts.
    pub history: Vec<(usize, Vec<u8>)>,
}

/// Agents on a bus.
#[derive(Debug)]
pub struct BusCarrier {
    names: Names,
    /// Tokens of the hosts; `None` once a host is closed.
    hosts: Vec<Option<String>>,
    /// Subjects and lines. Without it the executor ends.
    commands: Option<mpsc::UnboundedSender<(String, String)>>,
    state: sync::Receiver<LeaseState>,
    queue: EventQueue,
}

impl BusCarrier {
    /// Connects to the broker and takes the lease: [`Self::lease_state`].
    ///
    /// # Errors
    /// Names that cannot be on a bus; the operating system's.
    pub fn start(setup: &BusSetup) -> Result<Self, Error> {
        setup.options.check()?;
        let names = Names::new(&setup.site)?;
        let tokens = tokens(&setup.hosts)?;
        let failed = |error: io::Error| setup.options.unreachable(error);
        let (events, queue) = events(EVENTS_MIN.max(4 * tokens.len())).map_err(failed)?;
        let (commands, to_send) = mpsc::unbounded_channel();
        let (state, of_owner) = sync::channel();

        let task = BusTask {
            setup: setup.clone(),
            names: names.clone(),
            hosts: Hosts::new(&tokens, events),
            state,
        };
        run(task.serve(to_send)).map_err(failed)?;
        let hosts = tokens.into_iter().map(Some).collect();

        Ok(Self {
            names,
            hosts,
            commands: Some(commands),
            state: of_owner,
            queue,
        })
    }

    /// Takes the state of the lease, when that has changed: [`Carrier::fd`] is readable then.
    /// Events are left to [`Carrier::poll`].
    pub fn lease_state(&mut self) -> Option<LeaseState> {
        // Before the look: what is announced after it makes the descriptor readable again.
        self.queue.clear();
        self.state.try_recv().ok()
    }

    fn publish(&self, subject: String, line: &str) {
        if let Some(commands) = &self.commands {
            // Fails only when the executor has ended.
            let _ = commands.send((subject, line.to_owned()));
        }
    }
}

impl Carrier for BusCarrier {
    fn send(&mut self, host: usize, line: &str) {
        if let Some(token) = self.hosts.get(host).and_then(Option::as_ref) {
            self.publish(self.names.commands_to(token), line);
        }
    }

    /// One message for all hosts of the run. A host that is closed receives nothing that would
    /// renew its lease.
    fn send_all(&mut self, hosts: &[usize], line: &str) {
        // Agents of hosts that were closed subscribe to the subject of all as well.
        if hosts.len() == self.hosts.len() && self.hosts.iter().all(Option::is_some) {
            self.publish(self.names.commands_to_all(), line);
        } else {
            hosts.iter().for_each(|host| self.send(*host, line));
        }
    }

    fn close(&mut self, host: usize) {
        if let Some(host) = self.hosts.get_mut(host) {
            *host = None;
        }

        if self.hosts.iter().all(Option::is_none) {
            // The executor ends with the channel of its commands.
            self.commands = None;
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn poll(&mut self, _: u64) -> Vec<(usize, HostEvent)> {
        let mut events = self.queue.take();
        events.retain(|(host, _)| self.hosts.get(*host).is_some_and(Option::is_some));
        events
    }

    fn has_open(&self) -> bool {
        !self.queue.has_ended()
    }
}

/// Work of the executor.
struct BusTask {
    setup: BusSetup,
    names: Names,
    hosts: Hosts,
    state: sync::Sender<LeaseState>,
}

/// Stream and buckets of a site.
struct Stores {
    results: Stream,
    runs: Store,
    leases: Store,
}

impl BusTask {
    async fn serve(self, commands: mpsc::UnboundedReceiver<(String, String)>) {
        if let Err(error) = self.coordinate(commands).await {
            self.announce(LeaseState::Failed(error));
        }
    }

    async fn coordinate(
        &self,
        mut commands: mpsc::UnboundedReceiver<(String, String)>,
    ) -> Result<(), Error> {
        let connection = Connection::open(&self.setup.options, INBOX).await?;
        let stores = self.stores(&connection).await?;
        // The lease precedes every read of the run: another coordinator may still write before it.
        let lease = self.take_lease(&stores.leases).await?;
        let epoch = lease.epoch;
        let renewal = tokio::spawn(lose(self.hosts.clone(), lease.clone(), connection.clone()));
        let (run, results, history) = self.take_run(&stores).await?;
        // Before the announcement: a bus does not keep answers that arrive without a subscriber.
        let subject = self.names.live(ANY);
        let live = connection.client.subscribe(subject.clone()).await;
        let mut live = live.map_err(|error| refused(&subject, &error))?;

        tokio::spawn(results.follow(connection.clone(), self.hosts.clone()));
        let hosts = self.hosts.clone();
        tokio::spawn(async move {
            while let Some(message) = live.next().await {
                hosts.offer(&message.subject, &message.payload);
            }
        });
        self.announce(LeaseState::Held(LeaseTerm {
            epoch,
            run,
            history,
        }));

        while let Some((subject, line)) = commands.recv().await {
            // Fails only when the client has ended; a broker that is away is waited for.
            let _ = connection.client.publish(subject, line.into()).await;
        }

        let _ = connection.client.flush().await;
        // A lost lease belongs to another coordinator, which owns the run now.
        if !renewal.is_finished() {
            renewal.abort();
            if self.setup.plan.is_some() {
                // A run that stays there is continued by the next coordinator with the same plan,
                // which finds it complete.
                let _ = stores.runs.delete(RUN_KEY).await;
            }

            lease.release().await;
        }

        Ok(())
    }

    fn announce(&self, state: LeaseState) {
        // Without an owner nothing is left to do.
        let _ = self.state.send(state);
        self.hosts.signal();
    }

    async fn stores(&self, connection: &Connection) -> Result<Stores, Error> {
        let mut context = jetstream::new(connection.client.clone());
        context.set_timeout(REPLY_TIMEOUT);
        let name = self.names.stream();
        let config = stream::Config {
            name: name.clone(),
            subjects: vec![self.names.results(ANY, ANY)],
            max_age: RESULTS_MAX_AGE,
            duplicate_window: DUPLICATES_MAX_AGE,
            ..stream::Config::default()
        };
        let results = context
            .get_or_create_stream(config)
            .await
            .map_err(|error| refused(&name, &error))?;
        let runs = bucket(&context, self.names.run_bucket(), RESULTS_MAX_AGE).await?;
        let leases = bucket(&context, self.names.lease_bucket(), lease::TTL).await?;

        Ok(Stores {
            results,
            runs,
            leases,
        })
    }

    async fn take_lease(&self, store: &Store) -> Result<Lease, Error> {
        let holder = format!("{:032x}", u128::from_ne_bytes(random::bytes()));
        match Lease::take(store, &holder).await? {
            Some(lease) => Ok(lease),
            None if self.setup.plan.is_none() => Err(Error::failed(format!(
                "another coordinator has the lease of site {}",
                self.names.site
            ))),
            None => {
                self.announce(LeaseState::Standby);
                Ok(Lease::wait(store, &holder).await)
            }
        }
    }

    /// The run that this coordinator makes, and what is there of it.
    async fn take_run(
        &self,
        stores: &Stores,
    ) -> Result<(String, Results, Vec<(usize, Vec<u8>)>), Error> {
        let of_run = |run: &str| Results::new(stores.results.clone(), self.names.results(ANY, run));
        let new = self.setup.run.clone();
        let results = of_run(&new);
        let Some(plan) = &self.setup.plan else {
            return Ok((new, results, Vec::new()));
        };
        let bucket = self.names.run_bucket();

        let present = stores.runs.get(RUN_KEY).await;
        let present = present.map_err(|error| refused(&bucket, &error))?;
        let present = present.unwrap_or_default();
        let present = String::from_utf8_lossy(&present);
        if let Some((run, of)) = present.split_once(' ')
            && of == plan
        {
            let mut results = of_run(run);
            let mut history = Vec::new();
            for (subject, line) in results.present().await {
                history.extend(self.hosts.place(&subject).map(|host| (host, line)));
            }
            return Ok((run.to_owned(), results, history));
        }

        let value = format!("{new} {plan}");
        let put = stores.runs.put(RUN_KEY, value.into()).await;
        put.map_err(|error| refused(&bucket, &error))?;
        Ok((new, results, Vec::new()))
    }
}

/// Reports all hosts as lost once the lease is lost or the broker refuses a subject.
async fn lose(hosts: Hosts, lease: Lease, mut connection: Connection) {
    let reason = tokio::select! {
        () = lease.keep() => "the lease of the site is lost to another coordinator".to_owned(),
        text = connection.refusal() => text,
    };
    hosts.lose(reason).await;
}

/// A bucket of a site, which is made where it is not there yet.
async fn bucket(context: &Context, name: String, max_age: Duration) -> Result<Store, Error> {
    if let Ok(store) = context.get_key_value(&name).await {
        return Ok(store);
    }

    let config = kv::Config {
        bucket: name.clone(),
        max_age,
        history: 1,
        ..kv::Config::default()
    };
    context
        .create_key_value(config)
        .await
        .map_err(|error| refused(&name, &error))
}
