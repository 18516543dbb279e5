//! Messages between the test page and its server, over the connection that carries its echoes:
//! bytes are sent back, text is JSON.

use linerate_document::page;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The test page.
pub fn page() -> String {
    let body = include_str!("../page.html");
    // Without it a browser asks for one.
    let icon = "<link rel=\"icon\" href=\"data:,\">";
    let head = page::begin_with("linerate: test of this path", icon);
    [&head, body, page::END].concat()
}

/// Subprotocol of the connection.
pub const PROTOCOL: &str = "linerate.page.v1";
/// Longest message of the page: its result.
pub const MESSAGE_BYTES_MAX: usize = 32 << 10;

/// The first message of the server: the page has a place.
#[derive(Debug, Serialize)]
pub struct Welcome<'a> {
    /// Name of the session, by which data connections join it.
    pub session: &'a str,
    /// Longest load in seconds.
    pub seconds: u64,
    /// Most data connections at once.
    pub streams: u32,
    /// Program and version.
    pub server: &'a str,
}

/// The result is stored.
#[derive(Debug, Serialize)]
pub struct Stored<'a> {
    /// Name of the result.
    pub result: &'a str,
}

/// The server ends the test.
#[derive(Debug, Serialize)]
pub struct Stopped<'a> {
    /// Why, in words.
    pub stopped: &'a str,
}

/// A stored result.
#[derive(Debug, Serialize)]
pub struct StoredResult<'a> {
    /// When it was stored, ms since 1970.
    pub at_unix_ms: u64,
    /// Address of the client.
    pub client: &'a str,
    /// Label of the query of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
    /// What the page sent.
    pub result: &'a RawValue,
}

/// A stored result, as far as it is read here. A page may send anything: values beyond any test are
/// absent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Kept {
    /// See [`StoredResult`].
    pub at_unix_ms: u64,
    /// Address of the client.
    pub client: String,
    /// Label of the query of the page.
    pub label: Option<String>,
    /// What the page sent.
    #[serde(rename = "result")]
    pub measured: Measured,
}

/// Rates and round trip of a page.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Rate to the client.
    #[serde(deserialize_with = "figure")]
    pub down_bps: Option<f64>,
    /// Rate from the client.
    #[serde(deserialize_with = "figure")]
    pub up_bps: Option<f64>,
    /// Round trip under load.
    #[serde(deserialize_with = "figure")]
    pub loaded_ms: Option<f64>,
}

/// Largest figure: 10 Tbit/s.
const FIGURE_MAX: f64 = 1e13;

fn figure<'de, D: Deserializer<'de>>(value: D) -> Result<Option<f64>, D::Error> {
    let value = serde_json::Value::deserialize(value)?.as_f64();
    Ok(value.filter(|value| (0.0..=FIGURE_MAX).contains(value)))
}

/// Reads the text of a stored result.
pub fn kept(text: &str) -> Option<Kept> {
    serde_json::from_str(text).ok()
}

/// A result as the page sent it; `None` unless it is an object.
pub fn result(text: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(text)
        .ok()
        .filter(|value: &&RawValue| value.get().starts_with('{'))
}

/// Text of a stored result.
pub fn stored(result: &StoredResult<'_>) -> String {
    serde_json::to_string(result).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_is_a_result() {
        for (text, expected) in [
            (r#"{"down": 1}"#, true),
            ("[1]", false),
            (r#"{"down": 1"#, false),
            (r#"{"down": 1} {}"#, false),
            ("{\"a\": \"\u{1}\"}", false),
            ("", false),
        ] {
            assert_eq!(result(text.as_bytes()).is_some(), expected, "{text}");
        }
        assert!(result(b"{\"a\": \"\xff\"}").is_none());
    }

    #[test]
    fn values_beyond_any_test_are_absent() {
        let kept = kept(
            r#"{"at_unix_ms": 1, "client": "::1", "label": null, "result":
            {"down_bps": 5e8, "up_bps": -1, "loaded_ms": "<b>", "other": [1]}}"#,
        );
        let measured = kept.expect("a result").measured;
        assert_eq!(
            (measured.down_bps, measured.up_bps, measured.loaded_ms),
            (Some(5e8), None, None)
        );
        assert!(super::kept("{}").is_none());
    }

    #[test]
    fn the_page_is_small_and_makes_no_request_elsewhere() {
        let page = page();
        assert!(page.len() <= 60_000, "{} bytes", page.len());
        for elsewhere in [
            "http://",
            "https://",
            "src=",
            "@import",
            "cookie",
            "localStorage",
        ] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }
}
