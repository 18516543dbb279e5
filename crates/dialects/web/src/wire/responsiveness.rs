//! Resources of a test of responsiveness (draft-ietf-ippm-responsiveness), `networkQuality` of macOS
//! for example.

use serde::Serialize;

use super::request::Request;
use super::response;

/// A body that a load is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A response without end.
    Download,
    /// A request of any length.
    Upload,
}

const CONFIGURATION: &str = "/.well-known/nq";
const SMALL: &str = "/nq/small";
const LARGE: &str = "/nq/large";
const SLURP: &str = "/nq/slurp";

/// Octets of a response without end; a client ends it.
pub const LARGE_BYTES: i64 = 1 << 50;

/// The configuration of clients. Former drafts have other names of the same resources.
#[derive(Serialize)]
struct Configuration {
    version: u32,
    urls: Urls,
}

#[derive(Serialize)]
struct Urls {
    large_download_url: String,
    large_https_download_url: String,
    small_download_url: String,
    small_https_download_url: String,
    upload_url: String,
    https_upload_url: String,
}

/// The load that a request begins.
pub fn load(request: &Request) -> Option<Load> {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", LARGE) => Some(Load::Download),
        ("POST" | "PUT", SLURP) => Some(Load::Upload),
        _ => None,
    }
}

/// The response to a short request.
pub fn document(request: &Request) -> Option<Vec<u8>> {
    let (content_type, body) = match request.path.as_str() {
        SMALL => ("application/octet-stream", b"x".to_vec()),
        CONFIGURATION => ("application/json", configuration(&request.host)),
        _ => return None,
    };
    Some(response::with_body("200 OK", content_type, &body))
}

fn configuration(authority: &str) -> Vec<u8> {
    let [small, large, slurp] =
        [SMALL, LARGE, SLURP].map(|path| format!("https://{authority}{path}"));
    let configuration = Configuration {
        version: 1,
        urls: Urls {
            large_download_url: large.clone(),
            large_https_download_url: large,
            small_download_url: small.clone(),
            small_https_download_url: small,
            upload_url: slurp.clone(),
            https_upload_url: slurp,
        },
    };
    // Plain data with string keys cannot fail.
    serde_json::to_vec(&configuration).unwrap_or_default()
}

/// The head of a response without end.
pub fn large_head() -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: \
         {LARGE_BYTES}\r\nCache-Control: no-store\r\n\r\n"
    )
}

/// The response to a request that the connection of a load has no place for.
pub fn misdirected() -> Vec<u8> {
    response::line("421 Misdirected Request", "This connection carries a load.")
}
