//! What a request wants of us: paths and queries.

use std::num::NonZeroU64;

use super::content::Filling;
use crate::message::request::{Method, Target};

/// An answer somebody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Status code.
    pub(crate) status: u16,
    /// Bytes of the body that the head announces; `None` where there can be none.
    pub(crate) body_bytes: Option<u64>,
    /// The body itself is left out: the answer to `HEAD`.
    pub(crate) head_only: bool,
    /// What the body is made of.
    pub(crate) filling: Filling,
    /// The body comes in chunks of this size.
    pub(crate) chunk_bytes: Option<NonZeroU64>,
}

/// Largest body in bytes that may be asked for.
pub const BODY_BYTES_MAX: u64 = 64 << 20;

impl Asked {
    /// An answer without a body.
    pub(crate) const fn status(status: u16) -> Self {
        Self {
            status,
            body_bytes: Some(0),
            head_only: false,
            filling: Filling::Pattern,
            chunk_bytes: None,
        }
    }

    const NO_CONTENT: Self = Self {
        body_bytes: None,
        ..Self::status(204)
    };

    /// What method and target ask for. A query that is not understood is left alone, because load generators add their
    /// own; one that is understood has to be right.
    pub(crate) fn read(method: Method<'_>, target: Target<'_>) -> Self {
        let Target::Path { path, query } = target else {
            return Self::NO_CONTENT;
        };
        let plain = match method {
            Method::Get | Method::Head => size_of_path(path).map(Self::body),
            Method::Post | Method::Put if path == "/sink" => Some(Self::NO_CONTENT),
            _ => None,
        };
        let plain = plain.unwrap_or(Self::status(404));
        let answer = if query.is_empty() {
            plain
        } else {
            plain.with_query(query).unwrap_or_else(Self::status)
        };
        Self {
            head_only: method == Method::Head,
            ..answer
        }
    }

    const fn body(bytes: u64) -> Self {
        Self {
            body_bytes: Some(bytes),
            ..Self::status(200)
        }
    }

    /// The answer with what the query changes of it, or the status of a refusal.
    fn with_query(mut self, query: &str) -> Result<Self, u16> {
        for setting in query.split('&') {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match key {
                "chunked" => self.chunk_bytes = Some(chunk(value)?),
                "random" if flag(value)? => self.filling = Filling::Random,
                _ => {}
            }
        }
        Ok(self)
    }
}

/// The size a path asks for: `/b/SIZE`, and a few names for the usual ones.
fn size_of_path(path: &str) -> Option<u64> {
    match path.strip_prefix("/b/") {
        Some(text) => size(text),
        None => match path {
            "/0" => Some(0),
            "/1k" => Some(1 << 10),
            "/10k" => Some(10 << 10),
            "/100k" => Some(100 << 10),
            "/1m" => Some(1 << 20),
            _ => None,
        },
    }
}

/// Reads a size such as `0`, `1500`, `10k` or `64m`; `k` and `m` are powers of 1024.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' => (text.strip_suffix('k')?, 10),
        b'm' => (text.strip_suffix('m')?, 20),
        _ => (text, 0),
    };
    // `parse` would take a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    let bytes = number.checked_mul(1 << shift)?;
    (bytes <= BODY_BYTES_MAX).then_some(bytes)
}

fn chunk(value: &str) -> Result<NonZeroU64, u16> {
    size(value).and_then(NonZeroU64::new).ok_or(BAD_REQUEST)
}

fn flag(value: &str) -> Result<bool, u16> {
    match value {
        "0" => Ok(false),
        "1" | "" => Ok(true),
        _ => Err(BAD_REQUEST),
    }
}

const BAD_REQUEST: u16 = 400;

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str, query: &str) -> Asked {
        Asked::read(Method::Get, Target::Path { path, query })
    }

    #[test]
    fn paths_name_sizes() {
        for (path, expected) in [
            ("/0", Some(0)),
            ("/1k", Some(1024)),
            ("/10k", Some(10_240)),
            ("/100k", Some(102_400)),
            ("/1m", Some(1_048_576)),
            ("/b/0", Some(0)),
            ("/b/1500", Some(1500)),
            ("/b/3k", Some(3072)),
            ("/b/64m", Some(BODY_BYTES_MAX)),
            ("/b/65m", None),
            ("/b/67108865", None),
            ("/b/99999999999999999999m", None),
            ("/b/", None),
            ("/b/k", None),
            ("/b/+1", None),
            ("/b/1K", None),
            ("/b/1k/", None),
            ("/2k", None),
            ("/", None),
            ("/sink", None),
        ] {
            let expected = expected.map_or(Asked::status(404), Asked::body);
            assert_eq!(get(path, ""), expected, "{path}");
        }
    }

    #[test]
    fn methods_decide_what_there_is() {
        let path = |path| Target::Path { path, query: "" };
        let head = Asked::read(Method::Head, path("/1k"));
        assert_eq!((head.status, head.body_bytes, head.head_only), (200, Some(1024), true));
        for method in [Method::Post, Method::Put] {
            assert_eq!(Asked::read(method, path("/sink")), Asked::NO_CONTENT);
            assert_eq!(Asked::read(method, path("/1k")), Asked::status(404));
        }
        assert_eq!(Asked::read(Method::Delete, path("/1k")), Asked::status(404));
        assert_eq!(Asked::read(Method::Options, Target::Server), Asked::NO_CONTENT);
    }

    #[test]
    fn queries_change_the_body_and_unknown_ones_nothing() {
        let plain = Asked::body(1024);
        for (query, expected) in [
            ("cachebuster=77&x", plain),
            ("random=0", plain),
            (
                "random=1",
                Asked {
                    filling: Filling::Random,
                    ..plain
                },
            ),
            (
                "x=1&chunked=4k",
                Asked {
                    chunk_bytes: NonZeroU64::new(4096),
                    ..plain
                },
            ),
            ("chunked=0", Asked::status(400)),
            ("chunked=x", Asked::status(400)),
            ("random=2", Asked::status(400)),
        ] {
            assert_eq!(get("/1k", query), expected, "{query}");
        }
    }
}
