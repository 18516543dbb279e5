//! The page of the operator, for who has its token or has logged in.

use std::rc::Rc;

use linerate_model::sink::StatusPage;
use linerate_web::wire::request::{Request, is_same};
use linerate_web::wire::response;

use super::session::hexadecimal;

/// The page, and the cookie that the token is exchanged for: so the token is in no address.
pub(super) struct Status {
    page: Rc<StatusPage>,
    cookie: String,
    cookie_name: String,
}

const PATH: &str = "/status";
const LIVE: &str = "/status/live";

impl Status {
    /// Cookies are shared by the ports of a host (RFC 6265, section 8.5), hence the port.
    pub(super) fn new(page: Rc<StatusPage>, port: u16) -> Self {
        Self {
            page,
            cookie: hexadecimal(),
            cookie_name: format!("linerate_{port}"),
        }
    }

    pub(super) fn is_at(path: &str) -> bool {
        path == PATH || path == LIVE
    }

    /// The client has the token, or the cookie for it.
    pub(super) fn admits(&self, request: &Request) -> bool {
        let token = &self.page.token;
        let given = [request.parameter("token"), request.bearer.as_deref()];
        given
            .into_iter()
            .flatten()
            .any(|given| is_same(given, token))
            || request.has_cookie(&self.cookie_name, &self.cookie)
    }

    /// Answers a client with access.
    pub(super) fn answer(&self, request: &Request) -> Vec<u8> {
        let policy = &self.page.policy;
        if request.parameter("token").is_some() {
            // A script cannot read the cookie, and requests from other sites do not carry it.
            let fields = format!(
                "Set-Cookie: {}={}; HttpOnly; SameSite=Strict; Path={PATH}\r\nLocation: {PATH}\r\n",
                self.cookie_name, self.cookie
            );
            return response::with_fields("303 See Other", "text/plain", policy, &fields, b"");
        }
        let body = if request.path == LIVE {
            (self.page.content)()
        } else {
            (self.page.page)()
        };
        response::with_fields("200 OK", "text/html", policy, "", body.as_bytes())
    }

    pub(super) fn refusal() -> Vec<u8> {
        let text = "Open the link that the server printed, or send the token of its file.";
        response::line("401 Unauthorized", text)
    }
}
