//! Heads of HTTP/1.1 requests (RFC 9112), with what WebSocket needs of them.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Longest head that is read.
pub const HEAD_BYTES_MAX: usize = 8 << 10;
/// Most fields of a head.
const FIELDS_MAX: usize = 64;

/// A request. It is never printed: it may have a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, as sent.
    pub method: String,
    /// Target without its query.
    pub path: String,
    /// What follows `?` in the target; empty without.
    pub query: String,
    /// Authority that the client connected to.
    pub host: String,
    /// Origin of the page that made the request; `None` for a client that is no browser.
    pub origin: Option<String>,
    /// A browser makes it for a page of others; it sends no origin with some of these.
    is_cross_site: bool,
    /// User and password (Basic, RFC 7617).
    pub credentials: Option<(String, String)>,
    /// Token of the client (RFC 6750).
    pub bearer: Option<String>,
    /// Cookies, as sent.
    pub cookies: String,
    /// Upgrade to WebSocket that it requests.
    pub upgrade: Option<Upgrade>,
}

/// The opening handshake of a WebSocket client (RFC 6455, section 4.2.1).
#[derive(Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// `Sec-WebSocket-Key`.
    pub key: String,
    protocols: String,
}

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Longer than [`HEAD_BYTES_MAX`], or with too many fields.
    #[error("the request head is too long")]
    TooLong,
    /// No HTTP/1.1 request.
    #[error("this is no HTTP/1.1 request")]
    Syntax,
    /// A WebSocket handshake with a wrong field.
    #[error("the WebSocket handshake is wrong: {0}")]
    Handshake(&'static str),
}

impl Request {
    /// Reads a head and returns it with its length; `None` if it is not complete.
    ///
    /// # Errors
    /// When it is none, or beyond a bound.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Request::new(&mut fields);
        let len = match head.parse(bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes)) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(HeadError::TooLong);
            }
            Err(_) => return Err(HeadError::Syntax),
        };

        let (Some(method), Some(target), Some(1)) = (head.method, head.path, head.version) else {
            return Err(HeadError::Syntax);
        };
        let fields = Fields(head.headers);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let authorization = fields.only("Authorization")?;
        // Names of schemes are not case-sensitive (RFC 9110, section 11.1).
        let of_scheme = |wanted: &str| {
            let (scheme, value) = authorization?.split_once(' ')?;
            scheme.eq_ignore_ascii_case(wanted).then(|| value.trim())
        };
        let request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            // RFC 9112, section 3.2: a request without Host, or with two, is refused.
            host: fields.only("Host")?.ok_or(HeadError::Syntax)?.to_owned(),
            origin: fields.only("Origin")?.map(str::to_owned),
            is_cross_site: fields
                .all("Sec-Fetch-Site")
                .any(|site| !["same-origin", "none"].contains(&site)),
            credentials: of_scheme("basic").and_then(credentials),
            bearer: of_scheme("bearer").map(str::to_owned),
            cookies: fields.all("Cookie").collect::<Vec<_>>().join(";"),
            upgrade: fields.upgrade()?,
        };
        Ok(Some((request, len)))
    }

    /// It comes from a page of this server, or from no page. A browser names the origin of the page
    /// in every WebSocket handshake (RFC 6455, section 10.2); a page of others must not test
    /// through its visitors.
    pub fn is_same_origin(&self) -> bool {
        let Some(origin) = &self.origin else {
            return !self.is_cross_site;
        };
        let authority = origin.strip_prefix("http://");
        authority.or_else(|| origin.strip_prefix("https://")) == Some(&self.host)
    }

    /// A cookie has this value.
    pub fn has_cookie(&self, name: &str, expected: &str) -> bool {
        let pairs = self.cookies.split(';');
        // A browser may send several cookies of one name (RFC 6265, section 5.4).
        pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(given, value)| given == name && is_same(value, expected))
    }

    /// Value of a key of the query, as sent; the first one of several.
    pub fn parameter(&self, key: &str) -> Option<&str> {
        let mut pairs = self.query.split('&');
        pairs.find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }
}

impl Upgrade {
    /// The client offers this subprotocol.
    pub fn offers(&self, protocol: &str) -> bool {
        has_token(&self.protocols, protocol)
    }
}

/// Compares secrets in a time that depends on their lengths alone.
pub fn is_same(given: &str, expected: &str) -> bool {
    verify_slices_are_equal(given.as_bytes(), expected.as_bytes()).is_ok()
}

pub(super) struct Fields<'a>(pub(super) &'a [httparse::Header<'a>]);

impl<'a> Fields<'a> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let is_named = move |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
        let named = self.0.iter().filter(is_named);
        named.filter_map(|field| str::from_utf8(field.value).ok().map(str::trim))
    }

    /// A field that must not be repeated.
    pub(super) fn only(&self, name: &str) -> Result<Option<&'a str>, HeadError> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (first, None) => Ok(first),
            _ => Err(HeadError::Syntax),
        }
    }

    fn upgrade(&self) -> Result<Option<Upgrade>, HeadError> {
        let has = |name, token| self.all(name).any(|list| has_token(list, token));
        if !has("Upgrade", "websocket") {
            return Ok(None);
        }
        if !has("Connection", "upgrade") {
            return Err(HeadError::Handshake("Connection"));
        }
        if self.only("Sec-WebSocket-Version")? != Some("13") {
            return Err(HeadError::Handshake("Sec-WebSocket-Version"));
        }

        let key = self.only("Sec-WebSocket-Key")?.unwrap_or_default();
        if STANDARD.decode(key).map_or(0, |nonce| nonce.len()) != 16 {
            return Err(HeadError::Handshake("Sec-WebSocket-Key"));
        }

        let protocols: Vec<&str> = self.all("Sec-WebSocket-Protocol").collect();
        Ok(Some(Upgrade {
            key: key.to_owned(),
            protocols: protocols.join(","),
        }))
    }
}

/// Credentials in Base64: `user:password`.
fn credentials(text: &str) -> Option<(String, String)> {
    let plain = STANDARD.decode(text).ok()?;
    let (user, password) = str::from_utf8(&plain).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// True if a list of tokens has this one.
fn has_token(list: &str, token: &str) -> bool {
    list.split(',')
        .any(|one| one.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn upgrade(fields: &str) -> String {
        format!(
            "GET /ndt/v7/download?a=1&session=x HTTP/1.1\r\nHost: lab:5201\r\nUpgrade: \
             WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: \
             13\r\nSec-WebSocket-Key: {KEY}\r\n{fields}\r\n"
        )
    }

    fn parsed(text: &str) -> Result<Option<Request>, HeadError> {
        Request::parse(text.as_bytes()).map(|found| found.map(|(request, _)| request))
    }

    #[test]
    fn a_handshake_has_key_protocols_and_parameters() {
        let text = upgrade("Sec-WebSocket-Protocol: chat, net.measurementlab.ndt.v7\r\n") + "rest";
        let (request, len) = Request::parse(text.as_bytes())
            .expect("valid")
            .expect("complete");
        assert_eq!(&text[len..], "rest");
        assert_eq!(
            (request.path.as_str(), request.parameter("session")),
            ("/ndt/v7/download", Some("x"))
        );
        let upgrade = request.upgrade.expect("an upgrade");
        assert!(upgrade.key == KEY && upgrade.offers(super::super::NDT7) && !upgrade.offers("ndt"));
    }

    #[test]
    fn heads_beyond_a_bound_and_near_misses_are_refused() {
        let long = format!(
            "GET / HTTP/1.1\r\nHost: x\r\nA: {}",
            "a".repeat(HEAD_BYTES_MAX)
        );
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "A: b\r\n".repeat(FIELDS_MAX + 1)
        );
        let rows = [
            (long, HeadError::TooLong),
            (many, HeadError::TooLong),
            (
                "GET / HTTP/1.0\r\nHost: x\r\n\r\n".to_owned(),
                HeadError::Syntax,
            ),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), HeadError::Syntax),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n".to_owned(),
                HeadError::Syntax,
            ),
            (
                "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
                HeadError::Syntax,
            ),
            (upgrade("Sec-WebSocket-Key: x\r\n"), HeadError::Syntax),
            (
                upgrade("").replace(KEY, "c2hvcnQ="),
                HeadError::Handshake("Sec-WebSocket-Key"),
            ),
            (
                upgrade("").replace(": 13", ": 8"),
                HeadError::Handshake("Sec-WebSocket-Version"),
            ),
            (
                upgrade("").replace(", Upgrade", ""),
                HeadError::Handshake("Connection"),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(parsed(&text).err(), Some(expected), "{text:.200}");
        }
        assert!(parsed("GET / HTTP/1.1\r\nHost: x\r\n") == Ok(None));
    }

    #[test]
    fn credentials_are_user_and_password_in_base64() {
        for (field, expected) in [
            ("Basic bWFyaW86cm9zc2k6MQ==", Some(("mario", "rossi:1"))),
            ("basic OnNlY3JldA==", Some(("", "secret"))),
            ("Bearer bWFyaW86cm9zc2k=", None),
            ("Basic bWFyaW8=", None),
            ("Basic ?", None),
            ("Basic", None),
        ] {
            let head = upgrade(&format!("Authorization: {field}\r\n"));
            let request = parsed(&head).expect("valid").expect("complete");
            let found = request.credentials.as_ref();
            let found = found.map(|(user, password)| (user.as_str(), password.as_str()));
            assert_eq!(found, expected, "{field}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_recognised() {
        for (origin, expected) in [
            ("", true),
            ("Origin: http://lab:5201\r\n", true),
            ("Origin: https://lab:5201\r\n", true),
            ("Origin: http://lab\r\n", false),
            ("Origin: http://evil.example\r\n", false),
            ("Origin: null\r\n", false),
            ("Sec-Fetch-Site: none\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\n", false),
        ] {
            let request = parsed(&upgrade(origin)).expect("valid").expect("complete");
            assert_eq!(request.is_same_origin(), expected, "{origin}");
        }
    }
}
