//! Agents as children of this process, over pipes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::time::Duration;

use crate::protocol::line::{Opening, OpeningReader};
use linerate_sys::poll::{Epoll, Ready};

use crate::run::carrier::pipe::Received;
use crate::run::carrier::piped_child::{PipedChild, StdinSource, TOKENS};
use crate::run::carrier::{Carrier, HostEvent};

/// Agents as local children.
#[derive(Debug)]
pub struct LocalCarrier {
    epoll: Epoll,
    hosts: Vec<Option<Local>>,
}

#[derive(Debug)]
struct Local {
    child: PipedChild,
    opening: Option<OpeningReader>,
    is_closed: bool,
}

impl LocalCarrier {
    /// Starts an agent with each of these commands.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(commands: impl IntoIterator<Item = Command>) -> io::Result<Self> {
        let epoll = Epoll::new().map_err(|error| error.source)?;
        let start = |(index, command): (u64, Command)| {
            let child = PipedChild::start(command, StdinSource::Lines, index * TOKENS, &epoll)?;
            Ok(Some(Local {
                child,
                opening: Some(OpeningReader::default()),
                is_closed: false,
            }))
        };
        let hosts = (0..).zip(commands).map(start).collect::<io::Result<_>>()?;

        Ok(Self { epoll, hosts })
    }

    fn local(&mut self, host: usize) -> Option<&mut Local> {
        self.hosts.get_mut(host)?.as_mut()
    }
}

impl Carrier for LocalCarrier {
    fn send(&mut self, host: usize, line: &str) {
        if let Some(local) = self.hosts.get_mut(host).and_then(Option::as_mut) {
            local.child.send(line, &self.epoll);
        }
    }

    fn close(&mut self, host: usize) {
        if let Some(local) = self.local(host) {
            local.is_closed = true;
            local.child.close(linerate_sys::clock::monotonic_ns());
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.hosts
            .iter()
            .flatten()
            .filter_map(|local| local.child.deadline_ns())
            .min()
    }

    fn poll(&mut self, now_ns: u64) -> Vec<(usize, HostEvent)> {
        let mut events = Vec::new();
        for (host, token) in ready(&self.epoll) {
            let Some(local) = self.hosts.get_mut(host).and_then(Option::as_mut) else {
                continue;
            };
            let mut received = Vec::new();
            local
                .child
                .handle_ready(token, now_ns, &self.epoll, &mut received);

            if !local.is_closed {
                events.extend(
                    received
                        .into_iter()
                        .filter_map(|one| local.event(one))
                        .map(|event| (host, event)),
                );
            }
        }

        for (host, slot) in self.hosts.iter_mut().enumerate() {
            let Some(code) = slot
                .as_mut()
                .and_then(|local| local.child.handle_timeout(now_ns))
            else {
                continue;
            };
            let Some(local) = slot.take() else { continue };
            if !local.is_closed {
                let reason = last_line(&local.child.error_text()).unwrap_or_else(|| ended(code));
                events.push((host, HostEvent::Lost { reason }));
            }
        }

        events
    }

    fn has_open(&self) -> bool {
        self.hosts.iter().any(Option::is_some)
    }
}

impl Local {
    /// Lines before the agent's first line are skipped.
    fn event(&mut self, received: Received) -> Option<HostEvent> {
        match (received, &mut self.opening) {
            (Received::Line(mut line), Some(opening)) => {
                line.push(b'\n');
                if let Ok(Some(Opening::Agent)) = opening.read(&mut line.as_slice()) {
                    self.opening = None;
                }
                None
            }
            (Received::Line(line), None) => Some(HostEvent::Line(line)),
            (Received::TooLong, _) => Some(HostEvent::TooLong),
            (Received::End, _) => None,
        }
    }
}

/// Tokens that are ready, with the places of their hosts.
pub(crate) fn ready(epoll: &Epoll) -> Vec<(usize, u64)> {
    let mut ready: Vec<Ready> = Vec::new();
    // Fails only when memory is short; the owner polls again.
    let _ = epoll.wait(&mut ready, Some(Duration::ZERO));
    let place = |event: &Ready| Some((usize::try_from(event.token / TOKENS).ok()?, event.token));
    ready.iter().filter_map(place).collect()
}

/// The last line with a text.
pub(crate) fn last_line(text: &str) -> Option<String> {
    text.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}

/// Why a process without a message ended.
pub(crate) fn ended(code: Option<i32>) -> String {
    match code {
        Some(code) => format!("ended with code {code}"),
        None => "ended by a signal".to_owned(),
    }
}
