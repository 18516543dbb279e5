//! The dialect of browsers: a test page, its tests over WebSocket, and ndt7.
//!
//! A connection begins with an HTTP request ([`http`]). The page opens a [`control`] connection
//! first, which carries its echoes and names a session; each of its data connections speaks ndt7 and
//! joins the load of that session. An ndt7 client of others is a session with one data connection.

mod certificate;
mod control;
mod http;
mod load;
mod pump;
mod results;
mod server;
mod session;
mod status;

use linerate_model::Failure;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;

use server::WebServer;

/// The dialect beside others on the shared listener; `None` where the policy leaves it out.
pub(crate) fn beside_others(
    spec: &ServerSpec,
    requests: &PeerRequests,
) -> Result<Option<WebServer>, Failure> {
    let Some(policy) = &spec.policy.browsers else {
        return Ok(None);
    };
    WebServer::new(spec, policy.clone(), requests.status.clone()).map(Some)
}
