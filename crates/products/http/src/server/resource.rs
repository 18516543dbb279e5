//! Resources of the server: paths and queries.

use std::num::NonZeroU64;

use linerate_model::http::units::payload_bytes;

use super::content::BodyPattern;
use crate::message::request::Target;

/// Status and body selected by a request target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Status code.
    pub status: u16,
    /// `Content-Length`; `None` for a response without content.
    pub body_bytes: Option<u64>,
    /// `HEAD`: the response ends with its header.
    pub head_only: bool,
    /// Content of the body.
    pub pattern: BodyPattern,
    /// Chunk size with `Transfer-Encoding: chunked`.
    pub chunk_bytes: Option<NonZeroU64>,
    /// The body instead of a pattern: why the request is refused.
    pub explanation: Option<&'static str>,
}

/// Smallest chunk in bytes, unless the server allows tiny ones: framing is less than a tenth of
/// what is sent.
pub const CHUNK_BYTES_MIN: u64 = 64;
const TINY_CHUNK: &str =
    "chunks have at least 64 bytes, unless the server is started with --allow-tiny-chunks\n";

impl Resource {
    /// An empty body.
    pub(crate) const fn status(status: u16) -> Self {
        Self {
            status,
            body_bytes: Some(0),
            head_only: false,
            pattern: BodyPattern::Text,
            chunk_bytes: None,
            explanation: None,
        }
    }

    const NO_CONTENT: Self = Self {
        body_bytes: None,
        ..Self::status(204)
    };

    /// Selects by method and target. Unknown query parameters are ignored, because load generators
    /// add their own; known ones must be valid.
    pub(crate) fn read(method: &str, target: Target<'_>, chunk_bytes_min: u64) -> Self {
        let Target::Path { path, query } = target else {
            return Self::NO_CONTENT;
        };
        let plain = match method {
            "GET" | "HEAD" => size_of_path(path).map(Self::body),
            "POST" | "PUT" if path == "/sink" => Some(Self::NO_CONTENT),
            _ => None,
        };
        let plain = plain.unwrap_or(Self::status(404));
        let resource = if query.is_empty() {
            Ok(plain)
        } else {
            plain.with_query(query, chunk_bytes_min)
        };
        // An invalid query has a response of its own.
        let (Ok(resource) | Err(resource)) = resource;

        Self {
            // An error response to `HEAD` has no content either (RFC 9110, section 9.3.2).
            head_only: method == "HEAD",
            ..resource
        }
    }

    const fn body(bytes: u64) -> Self {
        Self {
            body_bytes: Some(bytes),
            ..Self::status(200)
        }
    }

    const fn refused(explanation: &'static str) -> Self {
        let body_bytes = Some(explanation.len() as u64);
        Self {
            body_bytes,
            explanation: Some(explanation),
            ..Self::status(BAD_REQUEST)
        }
    }

    /// Applies the query; the response to an invalid one otherwise.
    fn with_query(mut self, query: &str, chunk_bytes_min: u64) -> Result<Self, Self> {
        for setting in query.split('&') {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match key {
                "chunked" => self.chunk_bytes = Some(chunk(value, chunk_bytes_min)?),
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
    let short = || {
        path.strip_prefix('/')
            .filter(|name| SHORT_NAMES.contains(name))
    };
    size(path.strip_prefix("/b/").or_else(short)?)
}

/// Parses a size such as `0`, `1500`, `10k` or `64m`, whose unit is lower-case.
fn size(text: &str) -> Option<u64> {
    let is_lower = !text.contains(['K', 'M']);
    payload_bytes(text).ok().filter(|_| is_lower)
}

fn chunk(value: &str, bytes_min: u64) -> Result<NonZeroU64, Resource> {
    let bytes = size(value)
        .and_then(NonZeroU64::new)
        .ok_or(Resource::status(BAD_REQUEST))?;
    if bytes.get() < bytes_min {
        Err(Resource::refused(TINY_CHUNK))
    } else {
        Ok(bytes)
    }
}

fn flag(value: &str) -> Result<bool, Resource> {
    match value {
        "0" => Ok(false),
        "1" | "" => Ok(true),
        _ => Err(Resource::status(BAD_REQUEST)),
    }
}

const BAD_REQUEST: u16 = 400;

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str, query: &str) -> Resource {
        Resource::read("GET", Target::Path { path, query }, CHUNK_BYTES_MIN)
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
            ("/b/64m", Some(64 << 20)),
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
        let read = |method, path| Resource::read(method, Target::Path { path, query: "" }, 1);
        let head = read("HEAD", "/1k");
        assert_eq!(
            (head.status, head.body_bytes, head.head_only),
            (200, Some(1024), true)
        );

        for method in ["POST", "PUT"] {
            assert_eq!(read(method, "/sink"), Resource::NO_CONTENT);
            assert_eq!(read(method, "/1k"), Resource::status(404));
        }

        assert_eq!(read("DELETE", "/1k"), Resource::status(404));
        assert_eq!(
            Resource::read("OPTIONS", Target::Server, 1),
            Resource::NO_CONTENT
        );
    }

    #[test]
    fn known_query_parameters_change_the_body() {
        let plain = Resource::body(1024);
        for (query, expected) in [
            ("cachebuster=77&x", plain),
            ("random=0", plain),
            (
                "random=1",
                Resource {
                    pattern: BodyPattern::Random,
                    ..plain
                },
            ),
            (
                "x=1&chunked=4k",
                Resource {
                    chunk_bytes: NonZeroU64::new(4096),
                    ..plain
                },
            ),
            ("chunked=0", Resource::status(400)),
            ("chunked=x", Resource::status(400)),
            ("random=2", Resource::status(400)),
        ] {
            assert_eq!(get("/1k", query), expected, "{query}");
        }
    }

    #[test]
    fn tiny_chunks_are_refused_with_the_bound_unless_they_are_allowed() {
        for (query, is_tiny) in [
            ("chunked=1", true),
            ("chunked=63", true),
            ("chunked=64", false),
            ("chunked=1k", false),
        ] {
            let resource = get("/1m", query);
            assert_eq!(resource.status, if is_tiny { 400 } else { 200 }, "{query}");
            let text = resource.explanation.unwrap_or_default();
            assert_eq!(
                text.contains(&format!("at least {CHUNK_BYTES_MIN} bytes")),
                is_tiny,
                "{query}"
            );
            assert_eq!(
                resource.body_bytes,
                Some(if is_tiny { text.len() as u64 } else { 1 << 20 })
            );
        }

        let allowed = Resource::read(
            "GET",
            Target::Path {
                path: "/1m",
                query: "chunked=1",
            },
            1,
        );
        assert_eq!(
            (allowed.status, allowed.chunk_bytes),
            (200, NonZeroU64::new(1))
        );
    }
}
