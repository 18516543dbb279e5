//! Resources of the server: paths and queries.

use std::num::NonZeroU64;

use super::content::BodyPattern;
use crate::message::request::Target;

/// Status and body selected by a request target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Status code.
    pub(crate) status: u16,
    /// `Content-Length`; `None` for a response without content.
    pub(crate) body_bytes: Option<u64>,
    /// `HEAD`: the response ends with its header.
    pub(crate) head_only: bool,
    /// Content of the body.
    pub(crate) pattern: BodyPattern,
    /// Chunk size with `Transfer-Encoding: chunked`.
    pub(crate) chunk_bytes: Option<NonZeroU64>,
}

/// Largest body in bytes.
pub const BODY_BYTES_MAX: u64 = 64 << 20;

impl Resource {
    /// An empty body.
    pub(crate) const fn status(status: u16) -> Self {
        Self { status, body_bytes: Some(0), head_only: false, pattern: BodyPattern::Text, chunk_bytes: None }
    }

    const NO_CONTENT: Self = Self { body_bytes: None, ..Self::status(204) };

    /// Selects by method and target. Unknown query parameters are ignored, because load generators add their own; known ones
    /// must be valid.
    pub(crate) fn read(method: &str, target: Target<'_>) -> Self {
        let Target::Path { path, query } = target else {
            return Self::NO_CONTENT;
        };
        let plain = match method {
            "GET" | "HEAD" => size_of_path(path).map(Self::body),
            "POST" | "PUT" if path == "/sink" => Some(Self::NO_CONTENT),
            _ => None,
        };
        let plain = plain.unwrap_or(Self::status(404));
        let resource = if query.is_empty() { plain } else { plain.with_query(query).unwrap_or_else(Self::status) };
        Self { head_only: method == "HEAD", ..resource }
    }

    const fn body(bytes: u64) -> Self {
        Self { body_bytes: Some(bytes), ..Self::status(200) }
    }

    /// Applies the query; the status code of an error if it is invalid.
    fn with_query(mut self, query: &str) -> Result<Self, u16> {
        for setting in query.split('&') {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match key {
                "chunked" => self.chunk_bytes = Some(chunk(value)?),
                "random" if flag(value)? => self.pattern = BodyPattern::Random,
                _ => {}
            }
        }
        Ok(self)
    }
}

/// Common sizes, which need no `/b`.
const SHORT_NAMES: [&str; 5] = ["0", "1k", "10k", "100k", "1m"];

/// Size in the path: `/b/SIZE`, and short names of common sizes.
fn size_of_path(path: &str) -> Option<u64> {
    match path.strip_prefix("/b/") {
        Some(text) => size(text),
        None => size(path.strip_prefix('/').filter(|name| SHORT_NAMES.contains(name))?),
    }
}

/// Parses a size such as `0`, `1500`, `10k` or `64m`; `k` and `m` are powers of 1024.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' => (text.strip_suffix('k')?, 10),
        b'm' => (text.strip_suffix('m')?, 20),
        _ => (text, 0),
    };
    // `parse` accepts a sign.
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

    fn get(path: &str, query: &str) -> Resource {
        Resource::read("GET", Target::Path { path, query })
    }

    #[test]
    fn paths_select_sizes() {
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
            let expected = expected.map_or(Resource::status(404), Resource::body);
            assert_eq!(get(path, ""), expected, "{path}");
        }
    }

    #[test]
    fn methods_select_resources() {
        let path = |path| Target::Path { path, query: "" };
        let head = Resource::read("HEAD", path("/1k"));
        assert_eq!((head.status, head.body_bytes, head.head_only), (200, Some(1024), true));
        for method in ["POST", "PUT"] {
            assert_eq!(Resource::read(method, path("/sink")), Resource::NO_CONTENT);
            assert_eq!(Resource::read(method, path("/1k")), Resource::status(404));
        }
        assert_eq!(Resource::read("DELETE", path("/1k")), Resource::status(404));
        assert_eq!(Resource::read("OPTIONS", Target::Server), Resource::NO_CONTENT);
    }

    #[test]
    fn known_query_parameters_change_the_body() {
        let plain = Resource::body(1024);
        for (query, expected) in [
            ("cachebuster=77&x", plain),
            ("random=0", plain),
            ("random=1", Resource { pattern: BodyPattern::Random, ..plain }),
            ("x=1&chunked=4k", Resource { chunk_bytes: NonZeroU64::new(4096), ..plain }),
            ("chunked=0", Resource::status(400)),
            ("chunked=x", Resource::status(400)),
            ("random=2", Resource::status(400)),
        ] {
            assert_eq!(get("/1k", query), expected, "{query}");
        }
    }
}
