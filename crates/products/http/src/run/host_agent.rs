//! Handles the lab's requests: what the tests cost this host.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_engine::dialect::native::server::{RequestHandler, RequestRefusal};
use linerate_host::{EnvironmentQuery, Tested, Watched, environment};
use linerate_model::http::EndpointStats;
use linerate_model::outcome::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::requests::{
    BEGIN_CELL, CellMark, END_CELL, INFO, Info, LAST_READING, RESTART_CAPABILITY, RESTART_WORKERS,
    TCP_CAPABILITY,
};
use super::restartable_server::RestartableServer;
use super::watch::{STEP, STEP_LONG, Watch, cannot_watch};
use crate::server::{ServerStats, ThreadStats};

/// Measurements of this host, by request.
pub struct HostAgent {
    watch: Watch,
    server: Option<Arc<RestartableServer>>,
    cells: Mutex<Cells>,
}

#[derive(Default)]
struct Cells {
    /// The running cell, and the connections of each thread at its beginning.
    running: Option<(String, ServerStats)>,
    /// The cell in its warm-up.
    warming: Option<String>,
    /// The last cell: a client that missed the response repeats its request.
    ended: Option<(String, EndpointStats)>,
}

/// Observation period of the load of other programs.
const LOOK_WINDOW: Duration = Duration::from_millis(300);
/// Longer cells are sampled less often.
const LONG_MS: u64 = 60_000;

impl RequestHandler for HostAgent {
    fn handle(&self, peer: IpAddr, name: &str, body: &str) -> Result<String, RequestRefusal> {
        match name {
            INFO => written(&self.info(peer)),
            BEGIN_CELL => written(&self.begin_cell(read(body)?, peer)),
            END_CELL => written(&self.end_cell(&read::<String>(body)?)?),
            LAST_READING => written(&self.watch.last_reading()),
            RESTART_WORKERS => written(&self.restart_workers()?),
            _ => Err(RequestRefusal::new(
                "request",
                format!("this server has no request {name}"),
            )),
        }
    }
}

fn read<T: DeserializeOwned>(body: &str) -> Result<T, RequestRefusal> {
    serde_json::from_str(body).map_err(|error| RequestRefusal::new("body", error.to_string()))
}

fn written(response: &impl Serialize) -> Result<String, RequestRefusal> {
    serde_json::to_string(response)
        .map_err(|error| RequestRefusal::new("response", error.to_string()))
}

impl HostAgent {
    /// Measures the watched processes; `server` is our own, with its threads.
    ///
    /// # Errors
    /// A host that cannot be observed.
    pub fn start(watched: &Watched, server: Option<Arc<RestartableServer>>) -> Result<Self, Error> {
        let watch = Watch::start(watched.clone()).map_err(cannot_watch)?;
        Ok(Self {
            watch,
            server,
            cells: Mutex::default(),
        })
    }

    /// May take a second.
    fn info(&self, peer: IpAddr) -> Info {
        let watched = self.watch.watched();
        let port = tested_port(&watched);
        let look = EnvironmentQuery {
            version: env!("CARGO_PKG_VERSION"),
            pids: &watched.pids,
            port,
            peer: Some(peer),
            period: LOOK_WINDOW,
        };

        let tcp_port = self.server.as_ref().and_then(|server| server.tcp_port);
        let restart = self.server.iter().map(|_| RESTART_CAPABILITY.to_owned());
        let capabilities = restart
            .chain(tcp_port.map(|port| format!("{TCP_CAPABILITY}{port}")))
            .collect();

        Info {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities,
            port,
            environment: environment(&look),
            pids: watched.pids,
        }
    }

    /// Begins a cell: peaks and counters start here. A running cell is dropped.
    fn begin_cell(&self, mark: CellMark, client: IpAddr) {
        let peer = Some(mark.peer.unwrap_or(client));
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let is_long = mark.expected_ms.is_some_and(|ms| ms > LONG_MS);
        let step = if is_long { STEP_LONG } else { STEP };

        if mark.is_warm_up {
            cells.running = None;
            cells.warming = Some(mark.id);
            self.watch.prepare(peer, step);
        } else {
            // Seconds from the warm-up of another cell are not part of this one.
            if cells.warming.take().as_ref() != Some(&mark.id) {
                self.watch.forget_seconds();
            }

            let server = self
                .server
                .as_ref()
                .map(|server| server.stats())
                .unwrap_or_default();
            cells.running = Some((mark.id, server));
            self.watch.begin(peer, step);
        }
    }

    /// Ends a cell and returns its statistics; repeated for the last one.
    fn end_cell(&self, id: &str) -> Result<EndpointStats, RequestRefusal> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        // A late repetition of an earlier request must not end the running cell.
        if let Some((_, before)) = cells.running.take_if(|(running, _)| running == id) {
            let mut stats = self
                .watch
                .end()
                .ok_or_else(|| RequestRefusal::new("cell", "no window was begun"))?;
            if let Some(server) = &self.server {
                let now = server.stats();
                stats.threads = u32::try_from(now.threads.len()).ok();
                stats.thread_imbalance = imbalance(&before.threads, &now.threads);
            }

            cells.ended = Some((id.to_owned(), stats));
        }

        match &cells.ended {
            Some((ended, stats)) if ended == id => Ok(stats.clone()),
            _ => Err(RequestRefusal::new(
                "cell",
                format!("no cell {id} runs here"),
            )),
        }
    }

    fn restart_workers(&self) -> Result<(), RequestRefusal> {
        let refused = |text: &str| RequestRefusal::new("workers", text);
        let server = self.server.as_ref();
        let server = server.ok_or_else(|| {
            refused("only a server of linerate has threads that can be restarted")
        })?;
        server.restart().map_err(|why| refused(&why))
    }
}

/// The port under test; `None` where only a process is measured.
pub fn tested_port(watched: &Watched) -> Option<u16> {
    if let Tested::Server { port } = watched.tested {
        Some(port)
    } else {
        None
    }
}

/// Connections of the fullest thread over the mean: those it had at the beginning and those it took
/// since. Absent without connections, and when the threads changed meanwhile.
fn imbalance(before: &[ThreadStats], now: &[ThreadStats]) -> Option<f64> {
    if before.len() != now.len() {
        return None;
    }

    let carried: Option<Vec<u64>> = before
        .iter()
        .zip(now)
        .map(|(before, now)| {
            // A counter that fell shows a restart of the threads, which ends the comparison.
            now.accepted
                .checked_sub(before.accepted)?
                .checked_add(before.open())
        })
        .collect();
    let carried = carried?;
    let total: u64 = carried.iter().sum();
    let most = carried.iter().max()?;

    (total > 0).then(|| *most as f64 * carried.len() as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(accepted: u64, open: u64) -> ThreadStats {
        let mut stats = ThreadStats::default();
        (stats.accepted, stats.closed) = (accepted, accepted - open);
        stats
    }

    #[test]
    fn threads_are_compared_by_what_they_carried() {
        let rows: [(&[ThreadStats], &[ThreadStats], Option<f64>); 5] = [
            (
                &[thread(5, 0), thread(0, 0)],
                &[thread(8, 3), thread(1, 1)],
                Some(1.5),
            ),
            (
                &[thread(5, 4), thread(4, 4)],
                &[thread(5, 4), thread(4, 0)],
                Some(1.0),
            ),
            (&[thread(5, 0)], &[thread(5, 0)], None),
            (&[thread(5, 0)], &[thread(1, 1)], None),
            (&[thread(5, 0)], &[thread(9, 4), thread(9, 4)], None),
        ];
        for (before, now, expected) in rows {
            assert_eq!(imbalance(before, now), expected, "{before:?} {now:?}");
        }
    }
}
