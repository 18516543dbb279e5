//! Counts the packets that the kernel drops (`skb:kfree_skb`) while a test runs.
//!
//! Cost: 56 bytes and some 300 ns for each drop, nothing for packets that are not dropped. Above
//! [`RECORDS_PER_SECOND_MAX`] the kernel records a sample.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use linerate_sys::error::OsError;
use linerate_sys::perf_event::{PerfEvent, Record, Ring, Source};
use linerate_sys::tracefs;

use super::drop_counts::{DropCounter, DropCounts, Layout};
use super::symbols::Symbols;
use super::{online_cpus, permit};
use crate::error::ReadError;
use crate::permits::Permit;
use crate::watch::{Reader, Watch};

/// A watch of the drops of this host.
#[derive(Debug)]
pub struct DropWatch(Watch<Collector>);

/// Pages of the ring of a CPU: 256 KiB, or 4,600 records.
const RING_PAGES: usize = 64;
/// Time between two readings: a ring takes 90,000 records a second.
const STEP: Duration = Duration::from_millis(50);
/// Time over which the rate is taken.
const RATE_TIME: Duration = Duration::from_millis(200);
/// Drops that are recorded one by one.
const RECORDS_PER_SECOND_MAX: u64 = 20_000;
/// Drops for each record: no multiples of each other, so that a regular order of packets does not
/// select one kind.
const PERIODS: [u64; 6] = [1, 7, 31, 127, 509, 2039];

impl DropWatch {
    /// Starts to count on every CPU.
    ///
    /// # Errors
    /// Why the drops of this host cannot be counted: the right that is missing, a kernel without
    /// the tracepoint, or too many watches.
    pub fn start() -> Result<Self, ReadError> {
        let permit = permit()?;
        let layout = layout()?;
        let cpus = online_cpus()
            .into_iter()
            .map(|cpu| Cpu::open(cpu, layout.ids()));
        let collector = Collector {
            cpus: cpus.collect::<Result<_, _>>()?,
            counter: DropCounter::new(layout),
            due: Instant::now() + STEP,
            rate: (Instant::now(), 0),
            period: 1,
            period_max: 1,
            symbols: None,
            _permit: permit,
        };

        Watch::start("linerate-drops", collector)
            .map(Self)
            .map_err(|error| ReadError::from(OsError::new("create thread", "", error)))
    }

    /// Ends the watch; `None` if its thread panicked.
    pub fn stop(self) -> Option<DropCounts> {
        self.0.finish().map(Collector::finish)
    }
}

/// The text of the `format` files, which do not change while a kernel runs.
fn layout() -> Result<Layout, ReadError> {
    static TEXTS: OnceLock<(String, Option<String>)> = OnceLock::new();

    let texts = match TEXTS.get() {
        Some(texts) => texts,
        None => {
            let drops = tracefs::read("events/skb/kfree_skb/format").map_err(refused)?;
            let full = tracefs::read("events/udp/udp_fail_queue_rcv_skb/format").ok();
            TEXTS.get_or_init(|| (drops, full))
        }
    };
    Layout::of(&texts.0, texts.1.as_deref())
        .ok_or_else(|| ReadError::missing("the layout of skb:kfree_skb is not known"))
}

/// A right that is missing in words: the error of a file or a mount does not name it.
fn refused(error: OsError) -> ReadError {
    use linerate_sys::errno::{EACCES, EPERM};

    match error.errno() {
        Some(EPERM | EACCES) => ReadError::missing("needs root, or CAP_PERFMON and tracefs"),
        _ => error.into(),
    }
}

/// The events of one CPU.
#[derive(Debug)]
struct Cpu {
    ring: Ring,
    /// Port of the full socket that the last record named.
    full_port: Option<u16>,
}

impl Cpu {
    fn open(cpu: u32, (drop, full_socket): (u16, Option<u16>)) -> Result<Self, ReadError> {
        let event = |id: u16| PerfEvent::open(Source::Tracepoint(id.into()), cpu);
        let mut ring = Ring::new(event(drop)?, RING_PAGES)?;
        if let Some(id) = full_socket {
            ring.add(event(id)?)?;
        }

        Ok(Self {
            ring,
            full_port: None,
        })
    }

    fn set_period(&self, period: u64) {
        let events = self.ring.others().iter().chain([self.ring.event()]);
        for event in events {
            // Refused only for a period of 0. The counter of all events is the check of the rows.
            let _ = event.set_period(period);
        }
    }
}

#[derive(Debug)]
struct Collector {
    cpus: Vec<Cpu>,
    counter: DropCounter,
    /// Time of the next reading.
    due: Instant,
    /// Begin of the time over which the rate is taken, with the drops until then.
    rate: (Instant, u64),
    /// Drops for each record now, and at most so far.
    period: u64,
    period_max: u64,
    /// Names of the functions; read by the thread of the watch.
    symbols: Option<Arc<Symbols>>,
    _permit: Permit,
}

impl Reader for Collector {
    fn due(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn read(&mut self) {
        self.drain();
        self.adjust();
        self.symbols.get_or_insert_with(Symbols::shared);
        self.due = Instant::now() + STEP;
    }
}

impl Collector {
    fn drain(&mut self) {
        for Cpu { ring, full_port } in &mut self.cpus {
            ring.drain(|record| {
                // What is lost is the difference to the counters of the events.
                if let Record::Tracepoint(data) = record {
                    self.counter.add(data, self.period, full_port);
                }
            });
        }
    }

    /// Samples at high rates.
    fn adjust(&mut self) {
        let (since, before) = self.rate;
        let elapsed = since.elapsed();
        if elapsed < RATE_TIME {
            return;
        }

        let total = self.total();
        self.rate = (Instant::now(), total);
        let period = period_at(total.saturating_sub(before), elapsed);
        if period != self.period {
            self.cpus.iter().for_each(|cpu| cpu.set_period(period));
            self.period = period;
            self.period_max = self.period_max.max(period);
        }
    }

    /// Drops so far, those without a record included.
    fn total(&self) -> u64 {
        let counts = self
            .cpus
            .iter()
            .filter_map(|cpu| cpu.ring.event().count().ok());
        counts.sum()
    }

    fn finish(mut self) -> DropCounts {
        for cpu in &self.cpus {
            // An event that cannot be stopped only counts a little more.
            let _ = cpu.ring.event().disable();
        }
        self.drain();
        let total = self.total();

        // A kernel waits for all CPUs before it ends a tracepoint; the caller may have other tests.
        let cpus = std::mem::take(&mut self.cpus);
        drop(thread::Builder::new().spawn(move || drop(cpus)));
        let symbols = self.symbols.unwrap_or_else(Symbols::shared);
        self.counter.counts(&symbols, total, self.period_max)
    }
}

/// Drops for each record at a rate.
fn period_at(drops: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let rate = drops.saturating_mul(1000) / millis;
    let is_enough = |period: &u64| rate / period <= RECORDS_PER_SECOND_MAX;
    PERIODS
        .into_iter()
        .find(is_enough)
        .unwrap_or(PERIODS[PERIODS.len() - 1])
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn periods_keep_records_below_the_limit() {
        let at = |drops| period_at(drops, Duration::from_secs(1));
        assert_eq!(
            [
                0,
                20_000,
                20_001,
                140_000,
                150_000,
                700_000,
                40_000_000,
                u64::MAX
            ]
            .map(at),
            [1, 1, 7, 7, 31, 127, 2039, 2039]
        );
        assert_eq!(period_at(5000, Duration::from_millis(200)), 7);
    }

    /// Datagrams to a closed port and to a full socket, both of this test.
    #[test]
    fn lost_datagrams_are_counted_by_reason_function_and_port() {
        const DATAGRAMS: u64 = 300;

        let watch = match DropWatch::start() {
            Ok(watch) => watch,
            Err(error) => return assert!(error.to_string().contains("root"), "{error}"),
        };
        let full = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        linerate_sys::sockopt::SO_RCVBUF
            .set(&full, 2048)
            .expect("a small buffer");
        let full = full.local_addr().expect("an address");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for _ in 0..DATAGRAMS {
            sender.send_to(&[0; 1000], full).expect("sent");
        }
        drop(sender);

        let counts = watch.stop().expect("it counted");
        let row = counts.rows.iter().find(|row| row.port == Some(full.port()));
        let row = row.unwrap_or_else(|| panic!("no drop of the socket: {counts:?}"));
        assert_eq!(row.reason.as_deref(), Some("SOCKET_RCVBUFF"));
        assert_eq!(row.function.as_deref(), Some("udp_queue_rcv_one_skb"));
        assert_eq!((row.protocol, row.port), (0x0800, Some(full.port())));
        assert!(
            (DATAGRAMS - 20..DATAGRAMS).contains(&row.packets),
            "{row:?}"
        );
        assert_eq!((counts.lost, counts.period), (0, 1));
    }
}
