//! Lines that the broker keeps: results and ends of a run, in their order, each once.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::Stream;
use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use super::connection::{Connection, REPLY_TIMEOUT};
use super::events::Hosts;

/// Time between two attempts to read.
const RETRY: Duration = Duration::from_millis(200);

/// Reads the lines of a run.
pub(super) struct Results {
    stream: Stream,
    subject: String,
    /// Number in the stream of the line that is read next, or a lower one.
    next: u64,
}

impl Results {
    /// All lines with this subject.
    pub(super) fn new(stream: Stream, subject: String) -> Self {
        Self {
            stream,
            subject,
            next: 1,
        }
    }

    /// The lines that are there now.
    pub(super) async fn present(&mut self) -> Vec<(String, Vec<u8>)> {
        let Some((count, mut lines)) = self.begin().await else {
            return Vec::new();
        };
        let mut present = Vec::new();
        while (present.len() as u64) < count {
            // The number of lines is that of the begin; a silent broker ends the wait.
            let Ok(Some(Ok(line))) = timeout(REPLY_TIMEOUT, lines.next()).await else {
                break;
            };
            self.note(&line);
            present.push((line.subject.to_string(), line.payload.to_vec()));
        }

        present
    }

    /// Passes the lines on that come, for ever. Reading resumes where it ended when the broker was
    /// away.
    pub(super) async fn follow(mut self, mut connection: Connection, hosts: Hosts) {
        loop {
            // Connections before the begin are covered by the read that follows.
            connection.connects.mark_unchanged();
            if let Some((_, mut lines)) = self.begin().await {
                loop {
                    let next = tokio::select! {
                        next = lines.next() => next,
                        _ = connection.connects.changed() => None,
                    };
                    let Some(Ok(line)) = next else { break };
                    self.note(&line);
                    hosts.send(&line.subject, &line.payload).await;
                }
            }

            sleep(RETRY).await;
        }
    }

    /// Begins to read at the next line, with the number of lines that wait.
    async fn begin(&self) -> Option<(u64, Ordered)> {
        let deliver_policy = DeliverPolicy::ByStartSequence {
            start_sequence: self.next,
        };
        let config = OrderedConfig {
            filter_subject: self.subject.clone(),
            deliver_policy,
            ..OrderedConfig::default()
        };
        let consumer = self.stream.create_consumer(config).await.ok()?;
        let count = consumer.cached_info().num_pending;

        Some((count, consumer.messages().await.ok()?))
    }

    fn note(&mut self, line: &async_nats::jetstream::Message) {
        if let Ok(info) = line.info() {
            self.next = info.stream_sequence.saturating_add(1);
        }
    }
}
