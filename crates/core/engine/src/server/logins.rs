//! Logins of clients, which another thread checks: reading the file of users may take long.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Instant;

use linerate_iperf3::wire::auth::{Refusal, check_password};
use linerate_model::network::Network;

use super::access::read_text;
use super::blocking_pool::BlockingPool;
use super::limits::address_queue::AddressQueue;
use super::limits::login_guard::{LoginGuard, refusal_delay};

/// Logins that wait or are checked, and the failures of their addresses.
pub(crate) struct Logins {
    pool: BlockingPool<Login, CheckedLogin>,
    queue: AddressQueue<Login>,
    pub guard: LoginGuard,
}

/// User and password of a client.
struct Login {
    user: String,
    password: String,
    address: IpAddr,
    since: Instant,
    is_locked_out: bool,
}

struct CheckedLogin {
    login: Login,
    outcome: Result<(), Refusal>,
}

/// The verdict on a login.
pub(crate) enum Verdict {
    /// The name of the user.
    Accepted(String),
    /// Why not, and when the client learns of it.
    Refused(Refusal, Instant),
}

impl Logins {
    /// # Errors
    /// When there is no descriptor for the notice.
    pub(crate) fn new(users_file: PathBuf) -> linerate_sys::Result<Self> {
        // The file is read for every login, so that a change needs no restart. One that cannot be
        // read has no users.
        let check = move |login: Login| CheckedLogin {
            outcome: if login.is_locked_out {
                Err(Refusal::LockedOut)
            } else {
                check_password(
                    &login.user,
                    &login.password,
                    &read_text(&users_file).unwrap_or_default(),
                )
            },
            login,
        };
        Ok(Self {
            pool: BlockingPool::new(check)?,
            queue: AddressQueue::default(),
            guard: LoginGuard::default(),
        })
    }

    /// Readable when [`Self::take_checked`] has something.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.pool.fd()
    }

    /// Has a password compared with the file of users.
    pub(crate) fn begin(&mut self, id: u64, address: IpAddr, user: String, password: String) {
        let login = Login {
            user,
            password,
            address,
            since: Instant::now(),
            is_locked_out: false,
        };
        self.queue.enter(id, Network::of_client(address), login);
        self.check_next();
    }

    /// A client is gone.
    pub(crate) fn leave(&mut self, id: u64, address: IpAddr) {
        self.queue.leave(id, Network::of_client(address));
    }

    /// Verdicts since the last call, by client.
    pub(crate) fn take_checked(&mut self) -> Vec<(u64, Verdict)> {
        let checked = self.pool.take_outcomes().into_iter();
        let verdicts = checked
            .map(|(id, checked)| (id, self.verdict(checked)))
            .collect();
        self.check_next();

        verdicts
    }

    fn verdict(&mut self, checked: CheckedLogin) -> Verdict {
        let CheckedLogin { login, outcome } = checked;
        let now = Instant::now();
        let Err(refusal) = outcome else {
            return Verdict::Accepted(login.user);
        };
        if refusal != Refusal::LockedOut {
            self.guard.note_failure(login.address, now);
        }

        let taken = now.saturating_duration_since(login.since);
        Verdict::Refused(refusal, login.since + refusal_delay(taken))
    }

    /// Has passwords compared while a thread is free for it. Whether an address may log in is
    /// decided now, so that many logins at once are no more guesses than many in succession.
    fn check_next(&mut self) {
        while self.pool.has_room()
            && let Some((id, mut login)) = self.queue.next()
        {
            login.is_locked_out = self.guard.is_locked_out(login.address, Instant::now());
            self.pool.begin(id, login);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use linerate_sys::poll::{self, Interest};

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Verdicts on this number of logins that have begun.
    fn refusals(logins: &mut Logins, count: usize) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        while refusals.len() < count {
            let is_ready =
                poll::wait_fd(logins.fd(), Interest::READ, Some(Duration::from_secs(60)));
            assert!(is_ready.expect("the notice can be awaited"));
            for (_, verdict) in logins.take_checked() {
                match verdict {
                    Verdict::Accepted(user) => panic!("{user} is in no file"),
                    Verdict::Refused(refusal, at) => {
                        assert!(at > Instant::now());
                        refusals.push(refusal);
                    }
                }
            }
        }

        refusals
    }

    #[test]
    fn address_of_many_wrong_passwords_is_refused_unseen() {
        let mut logins = Logins::new(PathBuf::from("/nonexistent/users")).expect("a descriptor");
        for id in 0..40 {
            logins.begin(id, CLIENT, "ann".to_owned(), "guess".to_owned());
        }

        let refusals = refusals(&mut logins, 40);
        let seen = refusals.iter().filter(|r| **r != Refusal::LockedOut);
        assert!((10..=12).contains(&seen.count()), "{refusals:?}");
    }

    #[test]
    fn login_of_a_client_that_left_has_no_verdict() {
        let mut logins = Logins::new(PathBuf::from("/nonexistent/users")).expect("a descriptor");
        for id in 0..4 {
            logins.begin(id, CLIENT, "ann".to_owned(), "guess".to_owned());
        }
        logins.leave(3, CLIENT);

        assert_eq!(refusals(&mut logins, 3).len(), 3);
        assert!(logins.take_checked().is_empty());
    }
}
