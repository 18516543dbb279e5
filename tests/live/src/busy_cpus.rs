//! Load of the CPUs of this machine, by the kernel's own counters: what a verdict about them is
//! held against.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two samples.
const STEP: Duration = Duration::from_millis(500);
/// All CPUs are full from this share on.
const FULL: f64 = 0.9;

/// Samples `/proc/stat` in a thread until it is finished.
pub struct BusyCpus {
    is_ended: Arc<AtomicBool>,
    thread: JoinHandle<bool>,
}

impl BusyCpus {
    /// Begins to sample.
    pub fn start() -> Self {
        let is_ended = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&is_ended);
        let thread = thread::spawn(move || {
            let mut was_full = false;
            let mut before = counters();

            while !theirs.load(Ordering::Relaxed) {
                thread::sleep(STEP);
                let now = counters();
                was_full |= busy_share(before, now) >= FULL;
                before = now;
            }

            was_full
        });

        Self { is_ended, thread }
    }

    /// True if all CPUs were full in one of the samples.
    pub fn were_full(self) -> bool {
        self.is_ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("the sampler does not panic")
    }
}

/// Time of all CPUs since boot in ticks: idle or waiting for a disk, and in all (proc_stat(5)).
fn counters() -> [u64; 2] {
    let text = fs::read_to_string("/proc/stat").expect("the kernel's counters");
    let line = text.lines().next().expect("the line of all CPUs");
    // The last two columns are parts of the first two.
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .skip(1)
        .take(8)
        .map(|ticks| ticks.parse().expect("a number"))
        .collect();
    let idle = ticks.iter().skip(3).take(2).sum();

    [idle, ticks.iter().sum()]
}

fn busy_share([idle_before, all_before]: [u64; 2], [idle, all]: [u64; 2]) -> f64 {
    let (idle, all) = (idle.saturating_sub(idle_before), all - all_before);
    1.0 - idle as f64 / all.max(1) as f64
}
