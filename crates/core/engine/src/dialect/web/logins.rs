//! Logins of browsers: user and password in the head of a request (Basic, RFC 7617), over TLS alone.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use linerate_iperf3::wire::auth::Refusal;
use linerate_model::network::Network;
use linerate_model::spec::ServerAuth;
use linerate_sys::Result as OsResult;
use linerate_web::wire::request::Request;

use crate::server::blocking_pool::BlockingPool;
use crate::server::limits::address_queue::AddressQueue;
use crate::server::limits::login_guard::{LoginGuard, refusal_delay};
use crate::server::login_check::LoginCheck;

/// The logins of a server that demands them.
pub(super) struct Logins {
    pool: BlockingPool<LoginCheck, Result<(), Refusal>>,
    queue: AddressQueue<LoginCheck>,
    guard: LoginGuard,
}

/// A request whose login is checked, or refused later.
pub(super) struct Login {
    pub(super) request: Request,
    pub(super) user: String,
    since: Instant,
    /// When it is refused.
    pub(super) refused_at: Option<Instant>,
}

impl Logins {
    pub(super) fn new(auth: &ServerAuth) -> OsResult<Self> {
        let users_file = auth.users_file.clone();
        Ok(Self {
            pool: BlockingPool::new(move |check: LoginCheck| check.run(&users_file))?,
            queue: AddressQueue::default(),
            guard: LoginGuard::default(),
        })
    }

    /// Readable when [`Self::take_checked`] has something.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.pool.fd()
    }

    /// Begins to check the credentials of a request.
    pub(super) fn begin(
        &mut self,
        id: u64,
        peer: SocketAddr,
        request: Request,
        (user, password): (String, String),
    ) -> Login {
        let login = Login {
            request,
            user: user.clone(),
            since: Instant::now(),
            refused_at: None,
        };
        let check = LoginCheck { user, password };
        self.queue.enter(id, Network::of_client(peer.ip()), check);
        self.check_next();
        login
    }

    pub(super) fn leave(&mut self, id: u64, peer: SocketAddr) {
        self.queue.leave(id, Network::of_client(peer.ip()));
    }

    pub(super) fn take_checked(&mut self) -> Vec<(u64, Result<(), Refusal>)> {
        let checked = self.pool.take_outcomes();
        self.check_next();
        checked
    }

    /// The verdict on a login; a refusal is announced at the time that it sets.
    pub(super) fn conclude(
        &mut self,
        login: &mut Login,
        peer: SocketAddr,
        checked: Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let now = Instant::now();
        let is_locked_out = self.guard.is_locked_out(peer.ip(), now);
        let verdict = if is_locked_out {
            Err(Refusal::LockedOut)
        } else {
            checked.inspect_err(|_| self.guard.note_failure(peer.ip(), now))
        };
        if verdict.is_err() {
            let taken = now.saturating_duration_since(login.since);
            login.refused_at = Some(login.since + refusal_delay(taken));
        }
        verdict
    }

    fn check_next(&mut self) {
        while self.pool.has_room()
            && let Some((id, check)) = self.queue.next()
        {
            self.pool.begin(id, check);
        }
    }
}
