//! The request of a load as bytes.

use crate::message::chunked;
use crate::target::Target;

/// Parts of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSpec {
    /// Method, a token such as `GET`.
    pub method: String,
    /// Fields that are added, or replace the default ones (`Host`, `User-Agent`,
    /// `Accept-Encoding`).
    pub fields: Vec<(String, String)>,
    /// The body, sent with `Content-Length`.
    pub body: Vec<u8>,
}

/// An invalid request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is no token.
    #[error("'{0}' is no method: letters, such as GET")]
    Method(String),
    /// A field that would break the header, or the framing of the body.
    #[error(
        "'{0}' is no header field that can be sent: NAME: VALUE, without control characters, and \
         neither Content-Length nor Transfer-Encoding"
    )]
    Field(String),
}

impl RequestSpec {
    /// A plain `GET`.
    pub fn get() -> Self {
        Self {
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: Vec::new(),
        }
    }

    /// The request for `target` as sent. `User-Agent` is always sent; a field replaces it, none
    /// removes it.
    ///
    /// # Errors
    /// Why it is invalid.
    pub fn bytes(&self, target: &Target) -> Result<Vec<u8>, RequestError> {
        if !is_token(&self.method) {
            return Err(RequestError::Method(self.method.clone()));
        }

        let agent = concat!("linerate/", env!("CARGO_PKG_VERSION"), " (load test)");
        let own = [
            ("Host", target.authority()),
            ("User-Agent", agent.to_owned()),
            ("Accept-Encoding", "identity".to_owned()),
        ];

        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, target.path);
        for (name, value) in &own {
            let replaced = self
                .fields
                .iter()
                .find(|(other, _)| other.eq_ignore_ascii_case(name));
            push(&mut head, name, replaced.map_or(value, |(_, value)| value))?;
        }

        for (name, value) in &self.fields {
            if !own
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
            {
                push(&mut head, name, value)?;
            }
        }

        if !self.body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }

        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        Ok(bytes)
    }
}

fn push(head: &mut String, name: &str, value: &str) -> Result<(), RequestError> {
    let is_framing = ["content-length", "transfer-encoding"]
        .iter()
        .any(|framing| name.eq_ignore_ascii_case(framing));
    let is_clean = value
        .bytes()
        .all(|byte| byte == b'\t' || !byte.is_ascii_control());
    if !is_token(name) || is_framing || !is_clean || value.trim().is_empty() {
        let shown = format!("{name}: {value}");
        return Err(RequestError::Field(shown.escape_debug().to_string()));
    }

    head.push_str(&format!("{name}: {}\r\n", value.trim()));
    Ok(())
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(chunked::is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(spec: &RequestSpec) -> Result<String, RequestError> {
        let target = "http://h:8080/b/1k".parse().expect("a URL");
        spec.bytes(&target)
            .map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    fn with(fields: &[(&str, &str)]) -> RequestSpec {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        RequestSpec {
            fields: fields.iter().map(owned).collect(),
            ..RequestSpec::get()
        }
    }

    #[test]
    fn get_names_host_and_user_agent() {
        let text = bytes(&RequestSpec::get()).expect("a request");
        assert!(
            text.starts_with("GET /b/1k HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: linerate/"),
            "{text}"
        );
        assert!(
            text.ends_with("\r\nAccept-Encoding: identity\r\n\r\n"),
            "{text}"
        );
    }

    #[test]
    fn fields_replace_defaults_and_cannot_remove_them() {
        let text = bytes(&with(&[("user-agent", "x"), ("X-A", "b")])).expect("a request");
        assert!(
            text.contains("\r\nUser-Agent: x\r\n") && text.contains("\r\nX-A: b\r\n"),
            "{text}"
        );
        assert_eq!(text.to_ascii_lowercase().matches("user-agent").count(), 1);
        assert!(bytes(&with(&[("User-Agent", "")])).is_err());
    }

    #[test]
    fn fields_cannot_break_the_header() {
        for field in [
            ("A b", "c"),
            ("A", "b\r\nC: d"),
            ("Content-Length", "3"),
            ("transfer-encoding", "chunked"),
            ("", "x"),
        ] {
            assert!(
                matches!(bytes(&with(&[field])), Err(RequestError::Field(_))),
                "{field:?}"
            );
        }

        let method = RequestSpec {
            method: "GET /x HTTP/1.1\r\n".to_owned(),
            ..RequestSpec::get()
        };
        assert!(matches!(bytes(&method), Err(RequestError::Method(_))));
    }

    #[test]
    fn body_has_a_content_length() {
        let spec = RequestSpec {
            method: "POST".to_owned(),
            body: b"abc".to_vec(),
            ..RequestSpec::get()
        };
        let text = bytes(&spec).expect("a request");
        assert!(text.ends_with("\r\nContent-Length: 3\r\n\r\nabc"), "{text}");
    }
}
