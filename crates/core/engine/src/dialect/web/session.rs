//! The test of one browser or ndt7 client: an optional control connection and one load at a time.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_model::service::RefusalReason;
use linerate_model::spec::LocalOptions;
use linerate_model::{Direction, EndCondition, Failure, TestSpec, policy};
use linerate_sys::clock::{self, as_ns};
use linerate_sys::{random, socket};
use linerate_web::wire::frame::NORMAL;
use linerate_web::wire::measurement::ConnectionInfo;
use linerate_web::wire::page::{Stopped, Welcome};
use linerate_web::wire::{self};

use super::control::Control;
use super::load::Load;
use super::pump::{DataPlan, Opening};
use crate::data::quota::Quota;
use crate::error::failure;
use crate::layer::Layer;
use crate::server::{self, ByteTotals, Liveness, ServerContext, Session as _};

/// Bounds of a session by the limits of the server.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Longest load.
    pub duration: Duration,
    /// Most connections of a load at once.
    pub streams: u32,
    /// A test of responsiveness, whose load may have both directions.
    pub is_responsiveness: bool,
}

/// An admitted client.
pub(super) struct Session {
    id: u64,
    pub peer: SocketAddr,
    /// By which data connections join it.
    pub name: String,
    /// Who has logged in.
    user: Option<String>,
    pub label: Option<String>,
    /// Of a page.
    pub control: Option<Control>,
    pub load: Option<Load>,
    bounds: Bounds,
    quota: Quota,
    until: Instant,
    liveness: Liveness,
    stopped: Option<String>,
    pub is_over: bool,
}

/// Longest session of a page.
const PAGE_MAX: Duration = Duration::from_secs(120);
/// Time after the end of a load in which its client closes the connection.
const GRACE: Duration = Duration::from_secs(5);
/// Connections of one load, those that have ended included.
const CONNECTIONS_MAX: usize = 32;
/// Payload that a living client acknowledges in the time it may be silent; an echo counts as much.
const PROGRESS_BYTES: u64 = 1000;

impl Session {
    pub(super) fn new(
        id: u64,
        peer: SocketAddr,
        user: Option<String>,
        bounds: Bounds,
        quota: Quota,
        liveness: policy::Liveness,
    ) -> Self {
        Self {
            id,
            peer,
            name: hexadecimal(),
            user,
            label: None,
            control: None,
            load: None,
            bounds,
            quota,
            until: Instant::now() + bounds.duration + GRACE,
            liveness: Liveness::new(liveness, clock::monotonic_ns()).demanding(PROGRESS_BYTES),
            stopped: None,
            is_over: false,
        }
    }

    /// The session of a page.
    pub(super) fn with_control(
        mut self,
        (fd, layer): (OwnedFd, Layer),
        early: Vec<u8>,
        label: Option<String>,
    ) -> Self {
        let mut control = Control::new(fd, layer, early);
        control.send(&wire::json(&Welcome {
            session: &self.name,
            seconds: self.bounds.duration.as_secs(),
            streams: self.bounds.streams,
            server: concat!("linerate ", env!("CARGO_PKG_VERSION")),
        }));
        self.control = Some(control);
        self.label = label;
        self.until = Instant::now() + PAGE_MAX;
        self
    }

    /// The load of a connection of HTTP/2 belongs to it: nothing but its client names its test.
    pub(super) fn is_of(&self, peer: SocketAddr, user: Option<&String>) -> bool {
        self.bounds.is_responsiveness && self.peer.ip() == peer.ip() && self.user.as_ref() == user
    }

    /// Adds a data connection; true if a load begins with it. A load of the other direction ends.
    pub(super) fn add(
        &mut self,
        (fd, layer): (OwnedFd, Layer),
        opening: Opening,
        local: &LocalOptions,
        server: &mut ServerContext<'_>,
    ) -> Result<bool, Failure> {
        let direction = if self.bounds.is_responsiveness {
            Direction::Bidirectional
        } else if opening.is_download {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        if self
            .load
            .as_ref()
            .is_some_and(|load| load.direction() != direction)
        {
            self.end_load(server);
        }
        let most = if self.bounds.is_responsiveness {
            self.bounds.streams as usize
        } else {
            CONNECTIONS_MAX
        };
        let full = self.load.as_ref().is_some_and(|load| load.len() >= most);
        if full {
            return Err(failure("its load has as many connections as it may have"));
        }

        let begins = self.load.is_none();
        if begins {
            let spec = TestSpec {
                direction,
                streams: if self.control.is_some() || self.bounds.is_responsiveness {
                    self.bounds.streams
                } else {
                    1
                },
                end: EndCondition::Duration(self.bounds.duration),
                title: self.label.clone(),
                ..TestSpec::default()
            };
            let sink = server.out.open_test().map_err(failure)?;
            let load = Load::new(spec.clone(), local, self.quota.clone(), self.peer, sink)
                .map_err(failure)?;
            server.start_test(self.id, self.peer, self.user.clone(), &spec, spec.streams);
            self.load = Some(load);
        }

        let ends = ConnectionInfo {
            client: self.peer.to_string(),
            server: socket::local_addr(&fd)
                .map(socket::unmap)
                .map(|local| local.to_string())
                .unwrap_or_default(),
            uuid: self.name.clone(),
        };
        let plan = DataPlan {
            opening,
            ends,
            duration_ns: as_ns(self.bounds.duration),
            layer,
        };
        self.load
            .as_mut()
            .map_or(Ok(()), |load| load.add(fd, plan))
            .map_err(failure)?;
        Ok(begins)
    }

    /// Does what is to be done now; returns text of the page.
    pub(super) fn advance(
        &mut self,
        is_place_wanted: bool,
        server: &mut ServerContext<'_>,
    ) -> Vec<Vec<u8>> {
        let texts = self
            .control
            .as_mut()
            .map(|control| control.advance())
            .unwrap_or_default();
        if let Some(load) = &mut self.load {
            load.advance();
        }

        self.check_liveness(is_place_wanted);
        if Instant::now() >= self.until {
            self.end_early("the test takes longer than it may");
        }
        if self.stopped.is_some() || self.load.as_ref().is_some_and(Load::is_over) {
            self.end_load(server);
        }

        let has_left = self
            .control
            .as_ref()
            .is_some_and(|control| control.is_closed);
        if self.stopped.is_some() || has_left || (self.control.is_none() && self.load.is_none()) {
            self.end_load(server);
            self.is_over = true;
        }
        texts
    }

    fn end_load(&mut self, server: &mut ServerContext<'_>) {
        let Some(load) = self.load.take() else {
            return;
        };
        let left = (!load.is_over()).then_some("the client left");
        let (summary, totals, outcome) = load.finish(self.stopped.as_deref().or(left));
        server.end_test(self.id, self.name.clone(), totals, Some(&summary), &outcome);
    }

    /// Ends the test before its time.
    pub(super) fn end_early(&mut self, why: &str) {
        if self.stopped.is_none() {
            self.stopped = Some(why.to_owned());
            if let Some(control) = &mut self.control {
                control.send(&wire::json(&Stopped { stopped: why }));
                control.close(NORMAL, "");
            }
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        let load = self.load.as_ref().and_then(Load::deadline);
        let next = Liveness::next_check().min(self.until);
        load.map_or(next, |load| load.min(next))
    }
}

impl server::Session for Session {
    fn totals(&mut self) -> ByteTotals {
        self.load.as_ref().map(Load::totals).unwrap_or_default()
    }

    fn stop(&mut self, reason: RefusalReason) {
        self.end_early(&reason.to_string());
    }

    fn check_liveness(&mut self, is_place_wanted: bool) -> bool {
        let echoes = self.control.as_ref().map_or(0, Control::messages) * PROGRESS_BYTES;
        let progress = self
            .load
            .as_ref()
            .map_or(0, Load::progress_bytes)
            .saturating_add(echoes);
        let exceeded = self
            .liveness
            .exceeded(clock::monotonic_ns(), progress, is_place_wanted);
        let Some(limit) = exceeded.filter(|_| self.stopped.is_none()) else {
            return false;
        };
        self.end_early(&format!("no sign of life for {} s", limit.as_secs()));
        true
    }
}

/// A name that cannot be guessed.
pub(super) fn hexadecimal() -> String {
    random::hexadecimal::<16>()
}
