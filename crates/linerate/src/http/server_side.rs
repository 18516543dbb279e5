//! Measurements of the server's host over the control channel.

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linerate_http::control::{CellMark, ControlClient, ControlError, Info, Token};
use linerate_http::safety_limits::TargetOwnership;
use linerate_model::http::{EndpointStats, Reading};

use super::rest::{REST_WINDOW, Rest, rest_of};
use crate::{Error, Outcome};

/// A way to a control channel.
#[derive(Debug, Clone)]
pub struct ControlPath {
    /// The channel; absent for the default.
    pub url: Option<String>,
    /// What it asks for.
    pub token: Option<Token>,
}

/// A control channel that answered.
#[derive(Debug)]
pub(super) struct ServerSide {
    client: ControlClient,
    pub(super) info: Info,
    /// How far the clocks may be apart.
    pub(super) clock_error_ns: Option<u64>,
    /// It did not answer once.
    pub(super) is_lost: bool,
}

impl ServerSide {
    /// Identifies the server. Without a named channel, no response means a foreign server.
    ///
    /// # Errors
    /// A channel that was named, or for which there is a token, and does not answer.
    pub(super) fn contact(server: SocketAddr, path: &ControlPath) -> Result<Option<Self>, Error> {
        let is_wanted = path.url.is_some() || path.token.is_some();
        let client = match &path.url {
            Some(url) => ControlClient::new(url, path.token.clone()).map_err(Error::usage)?,
            None => {
                let port = server.port().checked_add(1).unwrap_or(server.port() - 1);
                ControlClient::at(SocketAddr::new(server.ip(), port), path.token.clone())
            }
        };
        match Self::ask(client, is_wanted) {
            Ok(side) => Ok(Some(side)),
            Err(error) if is_wanted => Err(Error::new(Outcome::Unreachable, error)),
            Err(_) => Ok(None),
        }
    }

    /// The user's statements about the server at `address`, which is theirs where this is its own channel.
    pub(super) fn ownership(side: Option<&Self>, address: SocketAddr, claims: TargetOwnership) -> TargetOwnership {
        // Who knows the token of the channel beside this very port is the user's own.
        TargetOwnership { is_ours: side.is_some_and(|side| side.info.port == Some(address.port())), ..claims }
    }

    fn ask(mut client: ControlClient, is_wanted: bool) -> Result<Self, ControlError> {
        let info = if is_wanted { client.info(None)? } else { client.info_if_there()? };
        let clock = client.clock_offset().ok();
        Ok(Self { client, info, clock_error_ns: clock.map(|clock| clock.rtt_ns / 2), is_lost: false })
    }

    /// A load begins; what it costs does not count yet.
    pub(super) fn prepare(&mut self, mark: &CellMark) {
        let mark = CellMark { is_warm_up: true, ..mark.clone() };
        self.is_lost |= self.client.begin_cell(&mark).is_err();
    }

    /// Statistics count from here.
    pub(super) fn begin(&mut self, mark: &CellMark) {
        // A channel that was lost would only keep the load waiting once more.
        self.is_lost = self.is_lost || self.client.begin_cell(mark).is_err();
    }

    /// The statistics since [`Self::begin`]; absent when the channel was lost.
    pub(super) fn end(&mut self, id: &str) -> Option<EndpointStats> {
        let stats = self.client.end_cell(id);
        self.is_lost |= stats.is_err();
        stats.ok()
    }

    /// Requests the server's samples while they are shown.
    pub(super) fn live(&self) -> LiveSamples {
        LiveSamples::start(self.client.another())
    }

    /// The CPUs' busy share and the connections, over a moment.
    pub(super) fn rest(&mut self) -> Option<Rest> {
        let mark = CellMark::named("rest");
        self.client.begin_cell(&mark).ok()?;
        thread::sleep(REST_WINDOW);
        let stats = self.client.end_cell(&mark.id).ok()?;
        Some(rest_of(&stats))
    }

    /// Its threads as if newly started, so that memory is measured from the same beginning.
    pub(super) fn restart_workers(&mut self) {
        if self.info.can("restart-workers") {
            // Without it, the memory of the last step is part of the next one's, which its regression shows.
            let _ = self.client.restart_workers();
        }
    }

    /// Forgets that it was lost once.
    pub(super) fn take_loss(&mut self) -> bool {
        std::mem::take(&mut self.is_lost)
    }
}

/// The server's last sample, requested every second over a connection and a thread of its own: a channel that does not respond
/// must not hold the load up. Dropping it ends the requests.
pub(super) struct LiveSamples {
    last: Arc<Mutex<Option<Reading>>>,
    _is_shown: Sender<()>,
}

impl LiveSamples {
    fn start(mut client: ControlClient) -> Self {
        let (is_shown, end) = channel::<()>();
        let last = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&last);
        let requests = move || {
            while end.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let sample = client.last_reading();
                let is_lost = sample.is_err();
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = sample.ok().flatten();
                if is_lost {
                    break;
                }
            }
        };
        // Without a thread nothing is shown of the server.
        let _ = thread::Builder::new().name("lr-live".into()).spawn(requests);
        Self { last, _is_shown: is_shown }
    }

    pub(super) fn last(&self) -> Option<Reading> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
