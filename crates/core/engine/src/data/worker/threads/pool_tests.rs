//! Tests of the number of threads, and that no byte is lost when streams change threads.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use linerate_model::StreamId;
use linerate_model::spec::{IoStrategy, ReceiveWait};
use linerate_sys::cpu;
use linerate_sys::poll::{self, Interest};

use super::*;
use crate::data::plan::{PlanFacts, plan};
use crate::data::worker::{Notice, Pump, Pumped, Scratch};

const DEADLINE: Duration = Duration::from_secs(20);

struct Idle;

impl Pump for Idle {
    fn pump(&mut self, _now_ns: u64, _scratch: &mut Scratch) -> Pumped {
        Pumped::Blocked
    }
}

/// Always has more to do; reports by which thread it is called.
struct Busy {
    index: usize,
    calls: Sender<(usize, ThreadId)>,
}

impl Pump for Busy {
    fn pump(&mut self, _now_ns: u64, _scratch: &mut Scratch) -> Pumped {
        let until = Instant::now() + Duration::from_micros(200);
        while Instant::now() < until {
            std::hint::spin_loop();
        }

        // The test may be over.
        let _ = self.calls.send((self.index, std::thread::current().id()));
        Pumped::Again
    }
}

/// Reads a byte per call and counts it, after a delay.
struct Counting {
    socket: UnixStream,
    bytes: Arc<AtomicUsize>,
    delay: Duration,
}

impl Pump for Counting {
    fn pump(&mut self, _now_ns: u64, _scratch: &mut Scratch) -> Pumped {
        std::thread::sleep(self.delay);
        match self.socket.read(&mut [0]) {
            Ok(1..) => {
                self.bytes.fetch_add(1, Ordering::Relaxed);
                Pumped::Again
            }
            _ => Pumped::Blocked,
        }
    }
}

/// Reads what there is; then its queue may fill for a while.
struct Draining {
    socket: UnixStream,
    bytes: Arc<AtomicUsize>,
}

impl Pump for Draining {
    fn pump(&mut self, _now_ns: u64, _scratch: &mut Scratch) -> Pumped {
        match self.socket.read(&mut [0; 16]) {
            Ok(n @ 1..) => {
                self.bytes.fetch_add(n, Ordering::Relaxed);
                Pumped::Drained
            }
            _ => Pumped::Blocked,
        }
    }
}

fn assignment(
    index: usize,
    socket: &UnixStream,
    role: StreamRole,
    pump: Box<dyn Pump>,
) -> StreamAssignment {
    let fd = Arc::new(OwnedFd::from(socket.try_clone().expect("a descriptor")));
    StreamAssignment {
        id: StreamId(u32::try_from(index).expect("a small number")),
        fd,
        role,
        pump,
    }
}

/// Starts the threads that are planned for these streams and changes to the facts.
fn start(
    control: &Arc<RunControl>,
    streams: Vec<StreamAssignment>,
    change: fn(&mut PlanFacts),
) -> WorkerPool {
    let usable = cpu::affinity().expect("an affinity");
    let cpus: Vec<u32> = usable.cpus().map(|cpu| cpu as u32).collect();
    let of_role = |role| streams.iter().filter(|stream| stream.role == role).count();
    let mut facts = PlanFacts {
        cpus: cpus.len(),
        sent: of_role(StreamRole::Sender),
        received: of_role(StreamRole::Receiver),
        ..PlanFacts::default()
    };
    change(&mut facts);
    let cpus = cpus[..facts.cpus].to_vec();
    let pin_to = (cpus.len() == 1).then(|| cpus[0]);
    WorkerPool::start(control, streams, plan(&facts), cpus, pin_to).expect("threads")
}

fn large_blocks(facts: &mut PlanFacts) {
    facts.receives_large_blocks = true;
}

fn large_blocks_on_one_cpu(facts: &mut PlanFacts) {
    (facts.receives_large_blocks, facts.cpus) = (true, 1);
}

/// A pool whose workers always have more to do, and their calls.
fn saturated(
    streams: usize,
    role: StreamRole,
    change: fn(&mut PlanFacts),
) -> (WorkerPool, Receiver<(usize, ThreadId)>) {
    let control = RunControl::new(IoStrategy::PLAIN).expect("a descriptor");
    let (socket, _peer) = UnixStream::pair().expect("two sockets");
    let (calls, received) = mpsc::channel();
    let streams = (0..streams).map(|index| {
        let pump = Busy {
            index,
            calls: calls.clone(),
        };
        assignment(index, &socket, role, Box::new(pump))
    });

    (start(&control, streams.collect(), change), received)
}

/// Waits until the last calls of all streams came from this number of threads.
fn wait_for_threads(
    threads: usize,
    streams: usize,
    calls: &Receiver<(usize, ThreadId)>,
    mut meanwhile: impl FnMut(),
) {
    let (deadline, mut last) = (Instant::now() + DEADLINE, vec![None; streams]);
    loop {
        meanwhile();
        let (index, thread) = calls.recv_timeout(DEADLINE).expect("workers run");
        last[index] = Some(thread);

        let mut distinct: Vec<ThreadId> = Vec::new();
        for id in last.iter().flatten() {
            if !distinct.contains(id) {
                distinct.push(*id);
            }
        }

        if last.iter().all(Option::is_some) && distinct.len() == threads {
            return;
        }

        assert!(
            Instant::now() < deadline,
            "{} threads instead of {threads}",
            distinct.len()
        );
    }
}

/// The first CPUs that this thread may use, then others.
fn cpus(count: usize) -> Vec<u32> {
    let usable = cpu::affinity().expect("an affinity");
    let others = usable
        .cpus()
        .max()
        .map_or(0..0, |last| last + 1..last + 1 + count);
    usable
        .cpus()
        .chain(others)
        .take(count)
        .map(|cpu| u32::try_from(cpu).expect("a small number"))
        .collect()
}

/// Several checks with segments on these CPUs.
fn follow(pool: &mut WorkerPool, incoming_cpus: &[u32]) {
    for _ in 0..20 {
        pool.follow_incoming_cpus(|_| incoming_cpus.to_vec());
    }
}

/// Relieves workers that were saturated since the last call, where a check is due.
fn relieve(pool: &mut WorkerPool) {
    pool.adjust(clock::monotonic_ns(), |_| Vec::new());
}

fn many(role: StreamRole, change: fn(&mut PlanFacts)) -> WorkerPool {
    let control = RunControl::new(IoStrategy::PLAIN).expect("a descriptor");
    let (socket, _peer) = UnixStream::pair().expect("two sockets");
    let streams =
        (0..20 * cpu::online_cpus()).map(|index| assignment(index, &socket, role, Box::new(Idle)));
    start(&control, streams.collect(), change)
}

#[test]
fn there_is_a_receiver_for_each_cpu_that_data_arrives_on() {
    let (mut pool, online) = (many(StreamRole::Receiver, |_| {}), cpu::online_cpus());
    for (arrives_on, receivers) in [
        (1, 1),
        (0, 1),
        (online, online),
        (1, 1),
        (4 * online, online),
    ] {
        follow(&mut pool, &cpus(arrives_on));
        assert_eq!(pool.receivers(), receivers, "{arrives_on} CPUs");
    }
}

#[test]
fn there_are_several_receivers_of_large_blocks_per_cpu_where_data_arrives_on_all() {
    let (mut pool, online) = (many(StreamRole::Receiver, large_blocks), cpu::online_cpus());
    let several = if online == 1 { 20 } else { 8 * online };
    assert_eq!(pool.receivers(), online);
    assert!(!pool.receivers_share_cpus());

    for (arrives_on, receivers) in [(online, several), (0, several)] {
        follow(&mut pool, &cpus(arrives_on));
        assert_eq!(pool.receivers(), receivers, "{arrives_on} CPUs");
    }

    assert!(pool.receivers_share_cpus());
    let elsewhere = &cpus(2 * online)[online..];
    follow(&mut pool, elsewhere);
    assert_eq!(pool.receivers(), online, "no sender has one of their CPUs");
}

#[test]
fn receivers_follow_data_from_and_to_the_only_cpu() {
    let mut pool = many(StreamRole::Receiver, large_blocks_on_one_cpu);
    let streams = 20 * cpu::online_cpus();
    let [only, other] = cpus(2)[..] else { return };
    for (arrives_on, receivers) in [(only, streams.min(64)), (other, 1)] {
        follow(&mut pool, &[arrives_on]);
        assert_eq!(pool.receivers(), receivers);
    }
}

#[test]
fn senders_of_many_streams_become_as_few_as_the_cpus_of_their_receiver() {
    let mut pool = many(StreamRole::Sender, |_| {});
    follow(&mut pool, &cpus(0));
    assert_eq!(pool.senders(), cpu::online_cpus());
    follow(&mut pool, &cpus(1));
    assert_eq!(pool.senders(), 1);
}

#[test]
fn senders_of_few_streams_or_with_a_rate_stay() {
    let mut paced = many(StreamRole::Sender, |facts| facts.has_rate = true);
    let (mut few, _calls) = saturated(4 * cpu::online_cpus(), StreamRole::Sender, |_| {});
    for pool in [&mut paced, &mut few] {
        follow(pool, &cpus(1));
        assert_eq!(pool.senders(), cpu::online_cpus());
    }
}

#[test]
fn a_stream_each_way_on_one_cpu_has_one_thread() {
    let control = RunControl::new(IoStrategy::PLAIN).expect("a descriptor");
    let (socket, _peer) = UnixStream::pair().expect("two sockets");
    let roles = [StreamRole::Sender, StreamRole::Receiver].into_iter();
    let streams = roles
        .enumerate()
        .map(|(index, role)| assignment(index, &socket, role, Box::new(Idle)));
    let pool = start(&control, streams.collect(), |facts| facts.cpus = 1);
    assert_eq!(pool.size(), 1);
}

#[test]
fn saturated_receivers_get_up_to_two_threads_per_cpu() {
    let most = 2 * cpu::online_cpus();
    let streams = 4 * most;
    let (mut pool, calls) = saturated(streams, StreamRole::Receiver, |_| {});
    wait_for_threads(most, streams, &calls, || {
        relieve(&mut pool);
    });
    assert_eq!(pool.size(), most);
}

/// Busy threads on this CPU until dropped.
struct Hogs(Arc<AtomicUsize>, Vec<std::thread::JoinHandle<()>>);

impl Hogs {
    fn on(cpu: usize, count: usize) -> Self {
        let running = Arc::new(AtomicUsize::new(1));
        let hog = |running: Arc<AtomicUsize>| {
            std::thread::spawn(move || {
                cpu::pin_thread(cpu).expect("a CPU");
                while running.load(Ordering::Relaxed) == 1 {}
            })
        };
        let threads = (0..count).map(|_| hog(Arc::clone(&running))).collect();

        Self(running, threads)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_receiver_is_relieved_that_has_a_tenth_of_its_cpu() {
    let first = cpus(1)[0];
    let streams = 4;
    let (mut pool, calls) = saturated(streams, StreamRole::Receiver, large_blocks_on_one_cpu);

    let _hogs = Hogs::on(first as usize, 9);
    wait_for_threads(streams, streams, &calls, || {
        relieve(&mut pool);
    });
}

#[test]
fn receivers_that_relieve_a_saturated_one_stay_until_data_arrives_on_more_cpus() {
    let (streams, online) = (8 * cpu::online_cpus(), cpu::online_cpus());
    let (mut pool, calls) = saturated(streams, StreamRole::Receiver, large_blocks);
    follow(&mut pool, &cpus(1));

    let deadline = Instant::now() + DEADLINE;
    while pool.receivers() < 2 {
        assert!(Instant::now() < deadline, "not relieved");
        calls.recv_timeout(DEADLINE).expect("workers run");
        relieve(&mut pool);
    }

    let relieved = pool.receivers();
    follow(&mut pool, &cpus(2 * online)[online..=online]);
    assert_eq!(pool.receivers(), relieved);
    follow(&mut pool, &cpus(online));
    assert_eq!(pool.receivers(), streams);
}

#[test]
fn saturated_senders_that_became_fewer_get_no_more_threads_while_no_cpu_is_idle() {
    let streams = 8 * cpu::online_cpus();
    let (mut pool, calls) = saturated(streams, StreamRole::Sender, |_| {});
    follow(&mut pool, &cpus(1));
    pool.checks = WorkerChecks::new(clock::monotonic_ns(), || Some(Duration::ZERO));

    // As long as several checks for saturated workers take at first.
    let end = Instant::now() + Duration::from_millis(100);
    while Instant::now() < end {
        calls.recv_timeout(DEADLINE).expect("workers run");
        relieve(&mut pool);
    }

    assert_eq!(pool.senders(), 1);
    pool.checks = WorkerChecks::new(clock::monotonic_ns(), || None);
    wait_for_threads(cpu::online_cpus(), streams, &calls, || relieve(&mut pool));
}

#[test]
fn threads_that_wait_get_no_help() {
    let control = RunControl::new(IoStrategy::PLAIN).expect("a descriptor");
    let (socket, _peer) = UnixStream::pair().expect("two sockets");
    let streams = (0..8)
        .map(|index| assignment(index, &socket, StreamRole::Receiver, Box::new(Idle)))
        .collect();
    let mut pool = start(&control, streams, |_| {});
    let size = pool.size();

    for _ in 0..60 {
        let due_ns = pool.next_check_ns().expect("it may grow");
        pool.adjust(due_ns, |_| Vec::new());
    }

    assert_eq!(pool.size(), size);
}

#[test]
fn streams_follow_the_number_of_receivers_up_and_down() {
    let most = 2 * cpu::online_cpus();
    let streams = 3 * most;
    let (mut pool, calls) = saturated(streams, StreamRole::Receiver, |_| {});

    for count in [most, 1, 2, most] {
        pool.receivers.set_active(count);
        assert_eq!(pool.receivers(), count);
        wait_for_threads(count, streams, &calls, || {});
    }
}

/// A stream that has received `sent` bytes, which are counted when they are read, and its peer.
fn with_data(
    index: usize,
    sent: usize,
    counted: &Arc<AtomicUsize>,
    delay: Duration,
) -> (StreamAssignment, UnixStream) {
    let (socket, mut peer) = UnixStream::pair().expect("two sockets");
    socket.set_nonblocking(true).expect("an option");
    peer.write_all(&vec![0; sent]).expect("room in the buffer");

    let pump = Counting {
        socket: socket.try_clone().expect("a descriptor"),
        bytes: Arc::clone(counted),
        delay,
    };
    (
        assignment(index, &socket, StreamRole::Receiver, Box::new(pump)),
        peer,
    )
}

fn wait_for_stop(control: &RunControl, mut missing: usize) {
    let deadline = Instant::now() + DEADLINE;
    while missing > 0 {
        assert!(Instant::now() < deadline, "{missing} workers do not stop");
        poll::wait_fd(control.notice_fd(), Interest::READ, Some(DEADLINE)).expect("a descriptor");
        missing -= control
            .take_notices()
            .iter()
            .filter(|notice| matches!(notice, Notice::Stopped))
            .count();
    }
}

#[test]
fn a_stop_while_streams_change_threads_still_reads_all_that_has_arrived() {
    const STREAMS: usize = 16;
    const BYTES: usize = 50;

    for _ in 0..100 {
        let control = RunControl::new(IoStrategy::PLAIN).expect("a descriptor");
        let bytes = Arc::new(AtomicUsize::new(0));
        let (streams, _peers): (Vec<_>, Vec<_>) = (0..STREAMS)
            .map(|index| with_data(index, BYTES, &bytes, Duration::ZERO))
            .unzip();
        let mut pool = start(&control, streams, |_| {});
        pool.receivers.set_active(2);
        pool.request_stop(true);
        wait_for_stop(&control, pool.size());
        assert_eq!(bytes.load(Ordering::Relaxed), STREAMS * BYTES);
    }
}

#[test]
fn a_stop_waits_for_announced_migrations() {
    let control = RunControl::new(IoStrategy::PLAIN).expect("a descriptor");
    let bytes = Arc::new(AtomicUsize::new(0));
    let (first, _peer) = with_data(0, 1, &bytes, Duration::ZERO);

    // A worker that acknowledges the stop before it reads is seen.
    let (announced, _other_peer) = with_data(1, 1, &bytes, Duration::from_millis(20));
    let pool = start(&control, vec![first], |_| {});
    let migration = pool.receivers.announce_to_first();

    pool.request_stop(true);
    let early = poll::wait_fd(
        control.notice_fd(),
        Interest::READ,
        Some(Duration::from_millis(50)),
    );
    assert!(
        !early.expect("a descriptor"),
        "it has not all of its streams"
    );
    migration.push(announced);
    drop(migration);
    wait_for_stop(&control, pool.size());
    assert_eq!(bytes.load(Ordering::Relaxed), 2);
}

#[test]
fn no_thread_starts_after_a_stop() {
    let (mut pool, _calls) = saturated(8, StreamRole::Receiver, |_| {});
    let size = pool.size();
    pool.request_stop(false);
    assert_eq!(pool.next_check_ns(), None);
    pool.adjust(u64::MAX, |_| cpus(2 * cpu::online_cpus()));
    assert_eq!(pool.size(), size);
}

#[test]
fn a_receiver_that_spins_sleeps_when_no_data_arrives_and_wakes_when_some_does() {
    let spin = IoStrategy {
        receive_wait: ReceiveWait::Spin,
        ..IoStrategy::PLAIN
    };
    let control = RunControl::new(spin).expect("a descriptor");
    let (socket, mut peer) = UnixStream::pair().expect("two sockets");
    socket.set_nonblocking(true).expect("an option");

    let bytes = Arc::new(AtomicUsize::new(0));
    let pump = Draining {
        socket: socket.try_clone().expect("a descriptor"),
        bytes: Arc::clone(&bytes),
    };
    let stream = assignment(0, &socket, StreamRole::Receiver, Box::new(pump));
    let pool = start(&control, vec![stream], |_| {});

    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let deadline = Instant::now() + DEADLINE;
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    };
    for sent in 1..=3 {
        let waits_before = pool.load().1;
        peer.write_all(&[0]).expect("room in the buffer");
        wait_until("what arrives is read", &|| {
            bytes.load(Ordering::Relaxed) == sent
        });
        wait_until("it polls, then it sleeps", &|| {
            pool.load().1 >= waits_before + 2
        });
    }
}
