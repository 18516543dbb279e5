//! The control channel of `linerate http serve` and `linerate http agent`, requested by hand.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::process::Process;
use crate::raw_native::RawNative;

/// A control channel.
#[derive(Debug, Clone, Copy)]
pub struct HttpControl {
    /// Where it listens.
    pub address: SocketAddr,
}

impl HttpControl {
    /// The channel of a process that prints its address.
    pub fn of(process: &Process) -> Self {
        let address = process.printed("control");
        Self {
            address: address
                .parse()
                .unwrap_or_else(|_| panic!("{address} is no address: {process:?}")),
        }
    }

    /// A session for requests alone.
    #[track_caller]
    pub fn session(&self) -> RawNative {
        let mut client = RawNative::connect(self.address);
        client.send(hello_without_phases());
        client.expect("welcome");
        client
    }

    /// The response to a request, or the message that refuses it; in a session of its own.
    #[track_caller]
    pub fn request(&self, name: &str, body: &Value) -> Result<Value, Value> {
        let mut client = self.session();
        client.send(json!({ "type": "request", "name": name, "body": body }));

        loop {
            let message = client.receive().expect("an outcome of the request");
            match message["type"].as_str() {
                Some("response") => return Ok(message["body"].clone()),
                Some("request_refused") => return Err(message),
                _ => {}
            }
        }
    }

    /// The response, where there has to be one.
    #[track_caller]
    pub fn response(&self, name: &str, body: &Value) -> Value {
        self.request(name, body)
            .unwrap_or_else(|refusal| panic!("{name}: {refusal}"))
    }
}

/// A first message of a client that runs no phases.
pub fn hello_without_phases() -> Value {
    json!({
        "type": "hello", "minor": 0, "program": "by hand", "streams_max": 0, "duration_max_ns": 60_000_000_000_u64,
        "wants": [],
    })
}
