//! The page of a server for its operator: rendered every second by a thread while it is viewed, once
//! for all viewers.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use linerate_document::live as report;
use linerate_model::sink::StatusPage;
use linerate_sys::random;

use crate::live::Live;

/// Who may see the page.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WebSpec {
    /// The token that gives access; `None` for a random one.
    pub token: Option<String>,
}

/// Time between two frames.
const FRAME: Duration = Duration::from_secs(1);
/// Time without a viewer after which no frame is rendered.
const UNSEEN_MAX: Duration = Duration::from_secs(10);
/// Bytes of a token.
const SECRET_BYTES: usize = 32;
/// Fewest and most characters of a token of the user.
const TOKEN_CHARS: std::ops::RangeInclusive<usize> = 22..=256;

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

    let least = TOKEN_CHARS.start();
    let most = TOKEN_CHARS.end();
    Err(format!(
        "a token is {least} to {most} letters, digits and -._~; make one with `openssl rand -hex \
         16`"
    ))
}

/// The page; clients that have the token see it.
///
/// # Errors
/// When there can be no thread.
pub(super) fn page(spec: &WebSpec, live: Live) -> io::Result<StatusPage> {
    let frame = Arc::new(Frame::default());
    let shown = Arc::clone(&frame);
    let viewed = Arc::clone(&frame);
    let rendered = frame;
    thread::Builder::new()
        .name("linerate-frames".to_owned())
        .spawn(move || {
            loop {
                rendered.render(&live);
                thread::sleep(FRAME);
            }
        })?;

    Ok(StatusPage {
        token: spec
            .token
            .clone()
            .unwrap_or_else(random::hexadecimal::<SECRET_BYTES>),
        policy: report::policy(),
        page: Box::new(move || report::page(&shown.seen())),
        content: Box::new(move || viewed.seen()),
    })
}

/// The newest frame, and when it was last seen.
#[derive(Default)]
struct Frame(Mutex<(String, Option<Instant>)>);

impl Frame {
    fn seen(&self) -> String {
        let mut newest = self.lock();
        newest.1 = Some(Instant::now());
        newest.0.clone()
    }

    fn render(&self, live: &Live) {
        let seen = self.lock().1;
        let is_first = seen.is_none() && self.lock().0.is_empty();
        if is_first || seen.is_some_and(|at| at.elapsed() < UNSEEN_MAX) {
            let content = report::content(&live.read(), live.now_ns());
            self.lock().0 = content;
        }
    }

    /// A frame is whole after each step.
    fn lock(&self) -> MutexGuard<'_, (String, Option<Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef012345";

    #[test]
    fn tokens_are_long_and_plain() {
        assert_eq!(token(" 0123456789abcdef012345\n").as_deref(), Ok(TOKEN));
        for text in ["", &TOKEN[1..], "0123456789abcdef01234;", &"x".repeat(257)] {
            assert!(token(text).is_err(), "{text}");
        }
    }
}
