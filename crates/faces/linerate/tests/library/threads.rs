//! Nothing is left behind in a process that embeds the library: threads, descriptors, handlers of
//! signals, blocked signals. One test in a process of its own, so that nothing else starts threads.

use std::fs;
use std::time::{Duration, Instant};

use linerate::diagnose::{Query, Source};
use linerate::model::{Direction, EndCondition, Event, EventSink, SinkError, TestSpec, Transport};
use linerate::record::RecordOptions;
use linerate::sweep::SweepSpec;
use linerate::{Client, Progress, Server, StopHandle};

#[test]
fn nothing_is_left_in_the_process_after_any_use() {
    // The first use may allocate what all later ones share; signals are those of the process from
    // its start.
    let signals = Held::now().signals;
    use_everything();
    let before = Held::now();

    for _ in 0..2 {
        use_everything();
    }

    let after = before.wait_for();
    assert!(after.is_within(&before), "{after:?}, {before:?} before");
    assert_eq!(after.signals, signals);
}

fn use_everything() {
    let server = Server::loopback().expect("a server");
    for (transport, direction) in [
        (Transport::Tcp, Direction::Forward),
        (Transport::Tcp, Direction::Bidirectional),
        (Transport::Udp, Direction::Reverse),
    ] {
        let result =
            Client::to("127.0.0.1", server.port(), test(transport, direction)).run(&stop());
        result.outcome.expect("a test over loopback");
    }

    stopped_while_it_runs(&server);
    let refused = Client::to("127.0.0.1", 9, TestSpec::default()).run(&stop());
    assert!(refused.outcome.is_err());

    let host = Source::Host {
        interfaces: Vec::new(),
        peer: None,
        period: Some(Duration::from_millis(50)),
    };
    linerate::diagnose(&Query::of(host)).expect("this host can be read");
    let mut spec = SweepSpec::to("127.0.0.1", server.port())
        .over("streams=1..2")
        .expect("a factor");
    (spec.time_s, spec.omit_s, spec.repetitions, spec.budget) = (1, 0, 1, Duration::from_secs(1));
    linerate::sweep(
        &spec,
        RecordOptions::default(),
        &stop(),
        Progress::new(true),
        None,
    )
    .expect("a sweep");
    server.stop().expect("nothing ended it before");
}

/// Ended from the thread of another test's events, in the middle.
fn stopped_while_it_runs(server: &Server) {
    struct StopAtFirst(StopHandle);

    impl EventSink for StopAtFirst {
        fn event(&mut self, event: &Event) -> Result<(), SinkError> {
            if matches!(event, Event::TestStarted { .. }) {
                self.0.stop();
            }
            Ok(())
        }
    }

    let interrupts = stop();
    let unlimited = TestSpec {
        end: EndCondition::Unlimited,
        ..TestSpec::default()
    };

    let mut sink = StopAtFirst(interrupts.clone());
    let result = Client::to("127.0.0.1", server.port(), unlimited).observe(&mut sink, &interrupts);
    assert!(result.outcome.is_err() && result.summary.is_some());
}

fn test(transport: Transport, direction: Direction) -> TestSpec {
    TestSpec {
        transport,
        direction,
        streams: 2,
        end: EndCondition::Duration(Duration::from_millis(200)),
        block_len_bytes: 1400,
        ..TestSpec::default()
    }
}

fn stop() -> StopHandle {
    StopHandle::new().expect("a descriptor")
}

/// Threads, descriptors and signal masks of a process (proc_pid_task(5), proc_pid_fd(5),
/// proc_pid_status(5)).
#[derive(Debug)]
struct Held {
    threads: usize,
    descriptors: usize,
    /// Masks of signals: blocked, ignored, caught.
    signals: Vec<String>,
}

impl Held {
    fn now() -> Self {
        let count = |folder: &str| fs::read_dir(folder).expect("procfs").count();
        let status = fs::read_to_string("/proc/thread-self/status").expect("procfs");

        let is_mask = |line: &&str| {
            ["SigBlk:", "SigIgn:", "SigCgt:"]
                .iter()
                .any(|name| line.starts_with(name))
        };
        Self {
            threads: count("/proc/self/task"),
            descriptors: count("/proc/self/fd"),
            signals: status.lines().filter(is_mask).map(str::to_owned).collect(),
        }
    }

    /// No more than another time, when a thread that had been joined may still have been there.
    fn is_within(&self, other: &Self) -> bool {
        self.threads <= other.threads && self.descriptors <= other.descriptors
    }

    /// Waits until the process holds no more than this, for 5 s at most, and returns its use: the
    /// kernel removes a thread a moment after it was joined.
    fn wait_for(&self) -> Self {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let now = Self::now();
            if now.is_within(self) || Instant::now() > deadline {
                return now;
            }
            std::thread::yield_now();
        }
    }
}
