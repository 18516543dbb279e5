//! A connection to the broker, which the client reopens when it breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, Event};
use linerate_model::outcome::Error;
use tokio::sync::watch;

use crate::spec::BusOptions;

/// Time until a connection is reopened, in ms. A broker that returns is not reached by all at once.
const RECONNECT_MS: std::ops::RangeInclusive<u64> = 200..=4_000;
/// Period of the client's look whether the broker is there.
const PING_PERIOD: Duration = Duration::from_secs(5);
/// Longest wait for a reply of the broker.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// Oldest version whose buckets have what a lease needs.
const VERSION_MIN: (u32, u32) = (2, 10);

/// A connection and what is noticed about it.
#[derive(Clone)]
pub(super) struct Connection {
    pub client: Client,
    /// Changes whenever the connection was made.
    pub connects: watch::Receiver<u64>,
    /// The broker's text, once it has refused a subject or the credentials.
    refusal: watch::Receiver<Option<String>>,
}

impl Connection {
    /// Connects, with this prefix of inboxes. The first attempt decides.
    pub(super) async fn open(options: &BusOptions, inbox: &str) -> Result<Self, Error> {
        let (address, client_options) = options.client()?;
        let (connected, connects) = watch::channel(0);
        let (refused, refusal) = watch::channel(None);
        let notices = Arc::new((connected, refused));
        let was_connected = Arc::new(AtomicBool::new(false));
        let is_again = Arc::clone(&was_connected);

        let client = client_options
            .custom_inbox_prefix(inbox)
            .ping_interval(PING_PERIOD)
            .request_timeout(Some(REPLY_TIMEOUT))
            // A test continues while the broker is away; the lease ends it, not the client.
            .max_reconnects(None)
            .reconnect_delay_callback(move |_| {
                if is_again.load(Ordering::Relaxed) {
                    Duration::from_millis(fastrand::u64(RECONNECT_MS))
                } else {
                    Duration::ZERO
                }
            })
            .event_callback(move |event| {
                let notices = Arc::clone(&notices);
                async move {
                    let (connected, refused) = &*notices;
                    match event {
                        Event::Connected => connected.send_modify(|count| *count += 1),
                        Event::ServerError(error) if is_refusal(&error.to_string()) => {
                            refused.send_replace(Some(error.to_string()));
                        }
                        _ => {}
                    }
                }
            })
            .connect(address)
            .await
            .map_err(|error| options.unreachable(error))?;
        was_connected.store(true, Ordering::Relaxed);
        let version = client.server_info().version;
        if !is_new_enough(&version) {
            let broker = options.broker();
            return Err(Error::failed(format!(
                "{broker}: nats-server {version}, 2.10 or later is needed"
            )));
        }

        Ok(Self {
            client,
            connects,
            refusal,
        })
    }

    /// Waits until the broker refuses something, and returns its text; for ever where the
    /// connection ends before.
    pub(super) async fn refusal(&mut self) -> String {
        let text = self
            .refusal
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|text| text.clone());
        match text {
            Some(text) => text,
            None => std::future::pending().await,
        }
    }
}

/// Other errors of a broker pass with time.
fn is_refusal(error: &str) -> bool {
    let error = error.to_ascii_lowercase();
    error.contains("permissions violation") || error.contains("authorization violation")
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version
        .split('.')
        // A release such as 2.10 and one such as 2.10.0-beta compare by their first two numbers.
        .map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= VERSION_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_2_10_are_new_enough() {
        for (version, expected) in [
            ("2.9.10", false),
            ("2.10.0", true),
            ("2.15.2-beta", true),
            ("3.0.0", true),
            ("1.99", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }
}
