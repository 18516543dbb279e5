//! Measurements of the server's host over the control channel.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use linerate_engine::dialect::native::client::Target;
use linerate_model::http::{EndpointStats, Reading};
use linerate_model::outcome::{Error, Outcome};
use linerate_path::run::identity;
use linerate_path::spec::{IdentityOptions, host_and_port};

use super::control_client::{CONNECT_TIMEOUT, ControlClient, ControlError, Request};
use super::host_text;
use super::idle_check::{REST_WINDOW, Rest, rest_of};
use super::requests::{
    BEGIN_CELL, CellMark, END_CELL, INFO, Info, LAST_READING, RESTART_CAPABILITY, RESTART_WORKERS,
};
use crate::safety_limits::TargetOwnership;

/// A way to a control channel.
#[derive(Debug, Clone, Default)]
pub struct ControlPath {
    /// The channel, `HOST` or `HOST:PORT`; absent for the default.
    pub server: Option<String>,
    /// File of a token that both ends prove.
    pub token_file: Option<PathBuf>,
}

/// A control channel that answered.
#[derive(Debug)]
pub(super) struct ServerSide {
    client: ControlClient,
    pub info: Info,
    /// Largest difference of the clocks.
    pub clock_error_ns: Option<u64>,
    /// Remarks for the user about the key of the server.
    pub remarks: Vec<String>,
    /// It did not answer once.
    pub is_lost: bool,
    /// The last sample, and the request for the next one.
    sample: Option<Reading>,
    next_sample: Option<Receiver<Result<Option<Reading>, ControlError>>>,
}

impl ServerSide {
    /// Identifies the server. Without a named channel, no response within `wait_max` means a
    /// foreign server.
    ///
    /// # Errors
    /// A channel that was named, or for which there is a token, and does not answer; one whose key
    /// has changed.
    pub(super) fn contact(
        server: SocketAddr,
        path: &ControlPath,
        wait_max: Duration,
    ) -> Result<Option<Self>, Error> {
        let is_wanted = path.server.is_some() || path.token_file.is_some();
        // `http serve` opens its control channel on the next port.
        // Beside the highest port it is the one before.
        let port = server.port().checked_add(1).unwrap_or(server.port() - 1);
        let named = path
            .server
            .as_deref()
            .map(|text| host_and_port(text, port))
            .transpose();
        let (host, port) = named
            .map_err(Error::usage)?
            .unwrap_or_else(|| (host_text(server), port));
        let target = Target::new(host, port, CONNECT_TIMEOUT);
        let demands = IdentityOptions {
            token_file: path.token_file.clone(),
            ..IdentityOptions::default()
        };

        // A token that cannot be used is an error of the command line.
        identity::demand(&demands, &target)?;
        match Self::identify(target, demands, (!is_wanted).then_some(wait_max)) {
            Ok(side) => Ok(Some(side)),
            // A server with another key than before gets no request.
            Err(error) if is_wanted || error.is_wrong_key => {
                Err(Error::new(Outcome::Unreachable, error))
            }
            Err(_) => Ok(None),
        }
    }

    /// With `wait_max` the channel may not exist, so one attempt is made.
    fn identify(
        target: Target,
        demands: IdentityOptions,
        wait_max: Option<Duration>,
    ) -> Result<Self, ControlError> {
        let client = ControlClient::start(target, demands)?;
        let request = Request::new(INFO, &());
        let request = match wait_max {
            Some(_) => request.once(),
            None => request,
        };
        let info = client.request(request, wait_max)?;
        let found =
            client.begin(|session| (session.round_trip(), std::mem::take(&mut session.remarks)));
        let (round_trip, remarks) = found.recv().unwrap_or_default();
        // A clock that is read within a round trip is uncertain by half of it.
        let clock_error_ns =
            round_trip.map(|round_trip| linerate_sys::clock::as_ns(round_trip) / 2);

        Ok(Self {
            client,
            info,
            clock_error_ns,
            remarks,
            is_lost: false,
            sample: None,
            next_sample: None,
        })
    }

    /// The user's statements about the server at `address`, which is theirs where this is its own
    /// channel.
    pub(super) fn ownership(
        side: Option<&Self>,
        address: SocketAddr,
        claims: TargetOwnership,
    ) -> TargetOwnership {
        // Who knows the token of the channel beside this very port is the user's own.
        TargetOwnership {
            is_ours: side.is_some_and(|side| side.info.port == Some(address.port())),
            ..claims
        }
    }

    /// A load begins; what it costs does not count yet.
    pub(super) fn prepare(&mut self, mark: &CellMark) {
        self.sample = None;
        let mark = CellMark {
            is_warm_up: true,
            ..mark.clone()
        };
        self.is_lost |= self.begin_cell(&mark).is_err();
    }

    /// Statistics count from here.
    pub(super) fn begin(&mut self, mark: &CellMark) {
        // A channel that was lost would only keep the load waiting once more.
        self.is_lost = self.is_lost || self.begin_cell(mark).is_err();
    }

    /// The statistics since [`Self::begin`]; absent when the channel was lost.
    pub(super) fn end(&mut self, id: &str) -> Option<EndpointStats> {
        let stats = self.end_cell(id);
        self.is_lost |= stats.is_err();
        stats.ok()
    }

    /// The last sample, and the request for the next one. A response that has not arrived is not
    /// awaited, because a channel that does not respond must not hold the load up; after one that
    /// failed there are no more.
    pub(super) fn last_reading(&mut self) -> Option<Reading> {
        match self.next_sample.as_ref()?.try_recv() {
            Ok(Ok(sample)) => {
                self.sample = sample;
                self.request_sample();
            }
            Err(TryRecvError::Empty) => {}
            Ok(Err(_)) | Err(TryRecvError::Disconnected) => {
                self.sample = None;
                self.next_sample = None;
            }
        }

        self.sample.clone()
    }

    pub(super) fn request_sample(&mut self) {
        let request = Request::new(LAST_READING, &()).once();
        self.next_sample = Some(self.client.begin(move |session| session.request(&request)));
    }

    /// The CPUs' busy share and the connections, over a moment.
    pub(super) fn rest(&mut self) -> Option<Rest> {
        let mark = CellMark::named("rest");
        self.begin_cell(&mark).ok()?;
        thread::sleep(REST_WINDOW);
        let stats = self.end_cell(&mark.id).ok()?;
        Some(rest_of(&stats))
    }

    /// Its threads as if newly started, so that memory is measured from the same beginning.
    pub(super) fn restart_workers(&mut self) {
        if self.info.can(RESTART_CAPABILITY) {
            // Without it, the memory of the last step is part of the next one's, which its
            // regression shows.
            let _ = self
                .client
                .request::<()>(Request::new(RESTART_WORKERS, &()), None);
        }
    }

    fn begin_cell(&self, mark: &CellMark) -> Result<(), ControlError> {
        self.client.request(Request::new(BEGIN_CELL, mark), None)
    }

    fn end_cell(&self, id: &str) -> Result<EndpointStats, ControlError> {
        self.client.request(Request::new(END_CELL, &id), None)
    }
}
