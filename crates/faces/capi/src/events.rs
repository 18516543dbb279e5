//! Events for a function of the caller.

use std::io::{self, Write};
use std::net::SocketAddr;

use linerate_boundary::Callback;
use linerate_document::Output;
use serde_json::json;

/// Events for a function of the caller, if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Events(Option<Callback>);

impl Events {
    pub(crate) fn new(callback: Option<Callback>) -> Self {
        Self(callback)
    }

    /// Takes lines of JSON; lines for people become warnings.
    pub(crate) fn output(&self) -> Output {
        Output::new(
            Box::new(Lines(*self, Self::call)),
            Box::new(Lines(*self, Self::warning)),
        )
    }

    pub(crate) fn listening(&self, address: SocketAddr) {
        self.call(
            &json!({ "event": "listening", "data": { "host": address.ip(), "port": address.port() } }).to_string(),
        );
    }

    pub(crate) fn warning(&self, text: &str) {
        self.call(&json!({ "event": "warning", "data": text }).to_string());
    }

    fn call(&self, line: &str) {
        if let Some(callback) = &self.0 {
            callback.call(line);
        }
    }
}

/// Passes each line on. A piece that is written is one or several whole lines.
struct Lines(Events, fn(&Events, &str));

impl Write for Lines {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        String::from_utf8_lossy(data)
            .lines()
            // The length is that of the bytes, so a lossy conversion does not look like a short
            // write.
            .for_each(|line| self.1(&self.0, line));
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
