//! Network namespaces that a test makes for itself (network_namespaces(7)).
#![allow(dead_code)] // Every test binary takes what it needs.
#![allow(unsafe_code)] // Entering a namespace is a system call that only tests need.

use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A network namespace, which ends with this value and the sockets made in it.
pub(crate) struct Namespace {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    thread_id: libc::pid_t,
}

type Job = Box<dyn FnOnce() + Send>;

impl Namespace {
    /// A namespace in which only loopback is up; `None`, with the reason on stderr, where none can
    /// be made.
    pub(crate) fn new() -> Option<Self> {
        if Command::new("ip").arg("-V").output().is_err() {
            skip("ip(8) is not installed");
            return None;
        }

        let (jobs, queue) = channel::<Job>();
        let (send, receive) = channel();

        let thread = std::thread::spawn(move || {
            // SAFETY: no pointers are passed; the calls concern this thread alone.
            let (entered, thread_id) =
                unsafe { (libc::unshare(libc::CLONE_NEWNET), libc::gettid()) };
            send.send((entered == 0).then_some(thread_id))
                .expect("the constructor waits");

            // Jobs run here, because a namespace is that of a thread.
            queue.into_iter().for_each(|job| job());
        });
        let Some(thread_id) = receive.recv().expect("the thread sends it") else {
            skip("a network namespace needs CAP_SYS_ADMIN");
            return None;
        };
        let namespace = Self {
            jobs: Some(jobs),
            thread: Some(thread),
            thread_id,
        };
        namespace.ip("link set lo up");

        Some(namespace)
    }

    /// Runs a closure in the namespace: sockets it opens belong to it for good.
    pub(crate) fn run<T: Send + 'static>(&self, closure: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, receive) = channel();
        let job = Box::new(move || drop(send.send(closure())));
        self.jobs
            .as_ref()
            .expect("only drop takes them")
            .send(job)
            .expect("the thread runs");

        receive.recv().expect("the closure returned")
    }

    /// Runs `ip` with these arguments in the namespace (ip(8)).
    pub(crate) fn ip(&self, arguments: &str) -> String {
        let arguments: Vec<_> = arguments.split_whitespace().map(str::to_owned).collect();
        let (shown, output) = self.run(move || {
            (
                arguments.join(" "),
                Command::new("ip")
                    .args(&arguments)
                    .output()
                    .expect("ip is installed"),
            )
        });
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {shown}: {error}");

        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Writes a setting below `/proc/sys/net`.
    pub(crate) fn set(&self, name: &str, value: &'static str) {
        let path = format!("/proc/sys/net/{name}");
        self.run(move || std::fs::write(&path, value).expect("a setting of the namespace"));
    }

    /// Joins two namespaces by a pair of devices called `name`, with addresses that ip-address(8)
    /// accepts.
    pub(crate) fn join(
        &self,
        name: &str,
        addresses: &[&str],
        other: &Self,
        other_addresses: &[&str],
    ) {
        let peer = format!(
            "/proc/{}/task/{}/ns/net",
            std::process::id(),
            other.thread_id
        );
        self.ip(&format!(
            "link add {name} type veth peer name {name} netns {peer}"
        ));

        for (end, addresses) in [(self, addresses), (other, other_addresses)] {
            for address in addresses {
                end.ip(&format!("address add {address} dev {name}"));
            }
            end.ip(&format!("link set {name} up"));
        }

        self.await_up(name);
        other.await_up(name);
    }

    /// The kernel lets packets through a device a little after it was set up.
    pub(crate) fn await_up(&self, name: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        while !self
            .ip(&format!("-o link show dev {name}"))
            .contains("state UP")
        {
            assert!(Instant::now() < end, "{name} does not come up");
            std::thread::yield_now();
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        // A job that panicked has failed its test already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Names the reason why a test examines nothing here.
#[allow(clippy::print_stderr, reason = "the reason of a skipped test")]
pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
