//! Resources that the server counts when it admits tests, compared with those that they have:
//! descriptors and memory, for every kind of connection of every dialect.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::iperf2::Iperf2;
use linerate_interop::{
    NativeHost, Process, Service, Status, TIMEOUT, each_case, free_port, original,
};

/// Where a client of a test runs, and the server's ports.
struct Bench {
    client: NativeHost,
    service: Service,
    iperf2_port: u16,
    metrics: String,
}

/// A kind of test, and how a client begins it.
type Kind = (&'static str, fn(&Bench) -> Process);

/// Resources that the server has counted for the present tests, and those that it has.
#[derive(Debug, Clone, Copy)]
struct Sample {
    counted_descriptors: u64,
    counted_kib: u64,
    descriptors: u64,
    anonymous_kib: u64,
}

/// Connections that are pending, and the one of the metrics.
const UNCOUNTED_DESCRIPTORS: u64 = 4;
/// Freed memory that an allocator keeps.
const UNCOUNTED_KIB: u64 = 2 << 10;
const PAUSE: Duration = Duration::from_millis(20);

const KINDS: [Kind; 12] = [
    ("iperf3 TCP", |bench| bench.stock(&["-P", "8"])),
    ("iperf3 TCP, both directions", |bench| {
        bench.stock(&["-P", "4", "--bidir"])
    }),
    ("iperf3 UDP", |bench| {
        bench.stock(&["-P", "4", "-u", "-b", "10M"])
    }),
    ("iperf 2 TCP", |bench| {
        Iperf2::Original.client(bench.iperf2_port, "-P 8 -t 2")
    }),
    ("iperf 2 UDP", |bench| {
        Iperf2::Original.client(bench.iperf2_port, "-u -P 4 -b 10M -t 2")
    }),
    ("loads and probes", |bench| {
        bench.native(&["--profile", "quick", "--time", "2"])
    }),
    ("both directions", |bench| {
        bench.native(&["--only", "both", "--time", "2", "--streams", "8"])
    }),
    ("loads in TLS", |bench| {
        bench.native(&["--only", "down,up", "--time", "2", "--transport", "tls"])
    }),
    ("datagrams", |bench| {
        bench.native(&["--only", "idle,datagrams", "--time", "2"])
    }),
    ("requests", |bench| {
        bench.native(&["--only", "rr", "--time", "2", "--streams", "50"])
    }),
    ("requests over new connections", |bench| {
        bench.native(&["--only", "crr", "--time", "2", "--streams", "20"])
    }),
    ("connections on a schedule", |bench| {
        bench.native(&["--only", "cps", "--time", "2"])
    }),
];

impl Bench {
    fn start() -> Self {
        let (client, iperf2_port) = (NativeHost::here(), free_port());
        let metrics = format!("127.0.0.1:{}", free_port());
        let iperf2 = iperf2_port.to_string();
        let words = ["--metrics", &metrics, "--iperf2", "--iperf2-port", &iperf2];
        let service = client.serve(&words);
        service.wait_for_events("listening", 1, TIMEOUT);

        Self {
            client,
            service,
            iperf2_port,
            metrics,
        }
    }

    fn stock(&self, words: &[&str]) -> Process {
        self.service
            .client(original(), &[words, &["-t", "2"]].concat())
    }

    fn native(&self, words: &[&str]) -> Process {
        self.client
            .test(&format!("127.0.0.1:{}", self.service.port), words)
    }

    /// `None` while the counts change.
    fn sample(&self) -> Option<Sample> {
        let before = self.counted();
        let status = Status::of(self.service.process.id());
        let (counted_descriptors, counted_bytes) = self.counted();
        let is_same = before == (counted_descriptors, counted_bytes);

        is_same.then_some(Sample {
            counted_descriptors,
            counted_kib: counted_bytes >> 10,
            descriptors: status.descriptors as u64,
            anonymous_kib: status.anonymous_kib as u64,
        })
    }

    /// Descriptors and bytes.
    fn counted(&self) -> (u64, u64) {
        let mut stream = TcpStream::connect(&self.metrics).expect("the endpoint listens");
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", self.metrics);
        stream.write_all(request.as_bytes()).expect("room");

        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");

        let gauge = |name: &str| {
            let value = page
                .lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            value.unwrap_or_else(|| panic!("no {name}: {page}"))
        };
        (
            gauge("linerate_reserved_descriptors "),
            gauge("linerate_reserved_memory_bytes "),
        )
    }
}

#[test]
fn tests_have_no_more_than_admission_counted() {
    each_case(&KINDS, |(name, begin)| {
        let bench = Bench::start();
        let idle = bench.sample().expect("nothing runs");
        let mut client = begin(&bench);

        let (mut samples, began) = (0, Instant::now());
        while !client.has_ended() && began.elapsed() < TIMEOUT {
            if let Some(sample) = bench
                .sample()
                .filter(|sample| sample.counted_descriptors > 0)
            {
                samples += 1;
                let opened = sample.descriptors.saturating_sub(idle.descriptors);
                assert!(
                    opened <= sample.counted_descriptors + UNCOUNTED_DESCRIPTORS,
                    "{name}: {idle:?} {sample:?}"
                );

                let grown_kib = sample.anonymous_kib.saturating_sub(idle.anonymous_kib);
                assert!(
                    grown_kib <= sample.counted_kib + UNCOUNTED_KIB,
                    "{name}: {idle:?} {sample:?}"
                );
            }

            thread::sleep(PAUSE);
        }

        client.finish().expect_code(0);
        assert!(samples > 0, "{name}: nothing was counted");
    });
}
