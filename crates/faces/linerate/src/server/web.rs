//! The live page of a server: `/` shows what runs, `/live` repeats it every second (server-sent
//! events, HTML Living Standard 9.2), rendered once for all viewers.
//!
//! On a loopback address a link with a random token gives access, elsewhere the token of a file.
//! The token is exchanged for a cookie, so it is in no address that a page sends.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use linerate_document::live as report;
use linerate_sys::error::io_text;
use linerate_sys::poll::{self, Interest};
use linerate_sys::{random, sockopt};
use thiserror::Error;

use super::in_use;
use super::site::{self, Answer, Request, Site};
use crate::live::Live;

/// Where the page is, and who may see it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebSpec {
    /// Listening address; port 0: chosen by the kernel.
    pub address: SocketAddr,
    /// The token that gives access; `None` for a random one, on loopback addresses only.
    pub token: Option<String>,
}

impl WebSpec {
    /// A page at `address` with a random token.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            token: None,
        }
    }
}

/// Pages that are open at a time.
const VIEWERS_MAX: usize = 16;
/// Time between two frames.
const FRAME: Duration = Duration::from_secs(1);
/// Time after which a stream without a frame sends a comment, so that proxies keep it open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A viewer with so much unsent is dropped.
const UNSENT_BYTES_MAX: u32 = 1 << 20;
/// Bytes of a token and of a cookie.
const SECRET_BYTES: usize = 32;
/// Fewest and most characters of a token of the user.
const TOKEN_CHARS: std::ops::RangeInclusive<usize> = 22..=256;

/// Fields of every response: nothing is kept, framed or guessed.
const FIELDS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: \
                      nosniff\r\nReferrer-Policy: no-referrer\r\n";

/// The page cannot be offered.
#[derive(Debug, Error)]
#[error("{}", in_use::explained(
    &format!("unable to listen on {} for the live page: {}", .address, io_text(.source)),
    .address.port(),
    "choose another address for --web",
))]
pub(super) struct WebError {
    address: SocketAddr,
    source: io::Error,
}

/// Longest token file that is read: a token and blank lines.
pub const TOKEN_FILE_BYTES_MAX: u64 = 4 << 10;

/// Checks the text of a token file.
///
/// # Errors
/// What a token is, in words.
pub fn token(text: &str) -> Result<String, String> {
    // Editors end files with a line end.
    let token = text.trim();
    let is_plain = token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    if is_plain && TOKEN_CHARS.contains(&token.len()) {
        return Ok(token.to_owned());
    }

    let (least, most) = (TOKEN_CHARS.start(), TOKEN_CHARS.end());
    Err(format!(
        "a token is {least} to {most} letters, digits and -._~; make one with `openssl rand -hex \
         16`"
    ))
}

/// A page that listens and is not served yet.
pub(super) struct Web {
    listener: TcpListener,
    token: String,
    /// The link for the user, where the token is a random one.
    pub(super) link: Option<String>,
}

impl Web {
    /// Binds the address. Starts no thread.
    pub(super) fn bind(spec: &WebSpec) -> Result<Self, WebError> {
        let named = |source| WebError {
            address: spec.address,
            source,
        };
        let listener = TcpListener::bind(spec.address).map_err(named)?;
        let address = listener.local_addr().map_err(named)?;
        let token = spec.token.clone().unwrap_or_else(secret);
        // A token of the user is known to the user, and is not repeated on a terminal.
        let link = spec
            .token
            .is_none()
            .then(|| format!("http://{address}/?token={token}"));

        Ok(Self {
            listener,
            token,
            link,
        })
    }

    /// Serves the page until the process ends.
    pub(super) fn start(self, live: Live) -> io::Result<()> {
        let frames = Arc::new(Frames::default());
        let port = self.listener.local_addr()?.port();
        let pages = Pages {
            token: self.token,
            cookie: secret(),
            // Cookies are shared by the ports of a host (RFC 6265, section 8.5).
            cookie_name: format!("linerate_{port}"),
            live,
            frames,
        };
        let (live, frames) = (pages.live.clone(), Arc::clone(&pages.frames));
        thread::Builder::new()
            .name("linerate-frames".into())
            .spawn(move || render(&live, &frames))?;

        site::start(self.listener, Arc::new(pages))
    }
}

/// Random bytes in hexadecimal digits.
fn secret() -> String {
    random::bytes::<SECRET_BYTES>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Renders a frame a second while there are viewers and something changes.
fn render(live: &Live, frames: &Frames) {
    let mut rendered = None;
    loop {
        thread::sleep(FRAME);
        if frames.viewers.load(Ordering::Relaxed) == 0 {
            // Without viewers nothing is rendered; the next one gets a frame in any case.
            rendered = None;
            continue;
        }

        let state = live.read();
        let is_running = state
            .server
            .as_ref()
            .is_some_and(|server| !server.sessions.is_empty());
        // The age of a running test changes without an event.
        if is_running || rendered != Some(state.version) {
            rendered = Some(state.version);
            frames.publish(report::event(&state, live.now_ns()));
        }
    }
}

/// The newest frame, for all viewers.
#[derive(Default)]
struct Frames {
    newest: Mutex<(u64, Arc<str>)>,
    changed: Condvar,
    viewers: AtomicUsize,
}

impl Frames {
    fn publish(&self, frame: String) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = (newest.0 + 1, frame.into());
        self.changed.notify_all();
    }

    /// The newest frame if there is one after this; `None` when the time is up.
    fn after(&self, number: u64, timeout: Duration) -> Option<(u64, Arc<str>)> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(newest, timeout, |newest| newest.0 <= number);
        let (newest, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| newest.clone())
    }

    /// Sends frames to a viewer until it leaves or no longer takes them.
    fn send(&self, mut stream: &TcpStream, first: &str) -> io::Result<()> {
        let mut number = self.newest.lock().unwrap_or_else(PoisonError::into_inner).0;
        stream.write_all(first.as_bytes())?;
        let mut last_sent = Instant::now();

        loop {
            let frame = self.after(number, FRAME);
            // Bytes that the kernel has not sent yet are those of a viewer that does not read.
            if has_left(stream) || sockopt::outq_bytes(stream)? > UNSENT_BYTES_MAX {
                return Err(io::ErrorKind::TimedOut.into());
            }

            match frame {
                Some((newest, frame)) => {
                    number = newest;
                    stream.write_all(frame.as_bytes())?;
                }
                // A comment keeps proxies from dropping a silent connection (HTML Living Standard
                // 9.2, authoring notes).
                None if last_sent.elapsed() >= HEARTBEAT => stream.write_all(b":\n\n")?,
                None => continue,
            }

            last_sent = Instant::now();
        }
    }
}

/// The viewer closed the connection.
fn has_left(stream: &TcpStream) -> bool {
    let is_readable = poll::wait_fd(stream, Interest::READ, Some(Duration::ZERO)).unwrap_or(false);
    // A readable socket without a byte has reached its end (recv(2)).
    is_readable && !matches!(stream.peek(&mut [0]), Ok(count) if count > 0)
}

/// A viewer's place, given back when it leaves.
struct Place(Arc<Frames>);

impl Place {
    fn take(frames: &Arc<Frames>) -> Option<Self> {
        let one_more = |viewers| (viewers < VIEWERS_MAX).then_some(viewers + 1);
        let taken = frames
            .viewers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.ok().map(|_| Self(Arc::clone(frames)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Pages {
    token: String,
    cookie: String,
    /// Cookies belong to a host and all its ports.
    cookie_name: String,
    live: Live,
    frames: Arc<Frames>,
}

impl Site for Pages {
    fn answer(&self, request: &Request<'_>) -> Answer {
        if let Some(token) = request.query.strip_prefix("token=")
            && is_same(token, &self.token)
        {
            return self.log_in();
        }

        if !self.is_known(request) {
            let challenge = "WWW-Authenticate: Bearer\r\n";
            let text = "Open the link that the server printed, or send the token of its file.";
            return with_fields(Answer::line("401 Unauthorized", text), challenge);
        }

        match request.path {
            "/" => {
                let body = report::page(&self.live.read(), self.live.now_ns());
                let fields = "Content-Type: text/html; charset=utf-8\r\n".to_owned();
                with_fields(
                    Answer::Whole {
                        status: "200 OK",
                        fields,
                        body,
                    },
                    "",
                )
            }
            "/live" => self.stream(),
            _ => with_fields(Answer::line("404 Not Found", "There is nothing here."), ""),
        }
    }
}

impl Pages {
    /// Exchanges the token for a cookie.
    fn log_in(&self) -> Answer {
        let (name, cookie) = (&self.cookie_name, &self.cookie);
        // A script cannot read the cookie, and requests from other sites do not carry it.
        let fields = format!(
            "Set-Cookie: {name}={cookie}; HttpOnly; SameSite=Strict; Path=/\r\nLocation: /\r\n"
        );
        // The redirect takes the token out of the address bar.
        with_fields(
            Answer::Whole {
                status: "303 See Other",
                fields,
                body: String::new(),
            },
            "",
        )
    }

    fn is_known(&self, request: &Request<'_>) -> bool {
        let cookies = request.cookie.unwrap_or_default().split(';');
        let mut ours = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        // A browser may send several cookies of one name (RFC 6265, section 5.4).
        let has_cookie =
            ours.any(|(name, value)| name == self.cookie_name && is_same(value, &self.cookie));
        let bearer = request
            .authorization
            .and_then(|given| given.split_once(' '));
        let has_token = bearer.is_some_and(|(scheme, token)| {
            // Names of schemes are not case-sensitive (RFC 9110, section 11.1).
            scheme.eq_ignore_ascii_case("bearer") && is_same(token, &self.token)
        });

        has_cookie || has_token
    }

    fn stream(&self) -> Answer {
        let Some(place) = Place::take(&self.frames) else {
            return with_fields(
                Answer::line(
                    "503 Service Unavailable",
                    "As many pages are open as are allowed.",
                ),
                "",
            );
        };
        let first = report::event(&self.live.read(), self.live.now_ns());
        let fields = format!("Content-Type: text/event-stream\r\n{FIELDS}");

        Answer::Stream {
            fields,
            write: Box::new(move |stream| place.0.send(stream, &first)),
        }
    }
}

/// Adds the fields of every response.
fn with_fields(answer: Answer, more: &str) -> Answer {
    match answer {
        Answer::Whole {
            status,
            fields,
            body,
        } => {
            let policy = report::policy();
            let fields = format!("{fields}{FIELDS}Content-Security-Policy: {policy}\r\n{more}");
            Answer::Whole {
                status,
                fields,
                body,
            }
        }
        stream @ Answer::Stream { .. } => stream,
    }
}

/// Compares in a time that depends on the lengths alone.
fn is_same(given: &str, expected: &str) -> bool {
    let pairs = given.bytes().zip(expected.bytes());
    // In constant time: an early end would reveal how many characters are right.
    let difference = pairs.fold(0, |difference, (a, b)| {
        std::hint::black_box(difference | (a ^ b))
    });
    given.len() == expected.len() && difference == 0
}

#[cfg(test)]
mod tests;
