use std::time::{Duration, Instant};

use linerate_sys::clock::monotonic_ns;
use linerate_sys::process::pid_is_alive;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(20);

/// The owner of children, as an agent is.
struct Owner {
    epoll: Epoll,
    children: Children,
    events: Vec<HostEvent>,
}

impl Owner {
    fn new() -> Self {
        Self {
            epoll: Epoll::new().expect("epoll"),
            children: Children::new(8),
            events: Vec::new(),
        }
    }

    fn start(&mut self, script: &str) -> ChildId {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        self.children.start(command, &self.epoll).expect("a shell")
    }

    fn pid_in_first_line(&self) -> i32 {
        let Some(HostEvent::Line(line)) = self.events.first() else {
            panic!("{:?}", self.events)
        };
        let text = String::from_utf8_lossy(line);
        text.trim().parse().expect("a process id")
    }

    /// Passes events on until one of them is expected.
    fn run_until(&mut self, is_expected: impl Fn(&HostEvent) -> bool) {
        let begin = Instant::now();
        let mut ready = Vec::new();

        while !self.events.iter().any(&is_expected) {
            assert!(begin.elapsed() < TIMEOUT, "{:?}", self.events);
            let wait_ns = self
                .children
                .deadline_ns()
                .map(|at_ns| at_ns.saturating_sub(monotonic_ns()));
            let wait = wait_ns.map_or(Duration::from_secs(1), Duration::from_nanos);
            self.epoll.wait(&mut ready, Some(wait)).expect("epoll");

            for event in &ready {
                // A child whose end was reported may have more events in the same batch.
                let handled = self
                    .children
                    .handle_ready(event.token, monotonic_ns(), &self.epoll);
                self.events
                    .extend(handled.into_iter().map(|(_, event)| event));
            }

            self.events.extend(
                self.children
                    .handle_timeout(monotonic_ns())
                    .into_iter()
                    .map(|(_, event)| event),
            );
        }
    }
}

#[test]
fn child_receives_and_sends_lines_and_its_end_is_reported() {
    let mut owner = Owner::new();
    let id = owner.start("read line; echo \"got $line\"; exit 3");
    owner.children.send(id, "one").expect("sent");
    owner.run_until(|event| matches!(event, HostEvent::Lost { .. }));
    assert_eq!(
        owner.events,
        [
            HostEvent::Line(b"got one".to_vec()),
            HostEvent::Lost {
                reason: "a worker ended without a result".to_owned()
            }
        ]
    );
    owner
        .children
        .send(id, "two")
        .expect("a child that ended takes everything");
}

#[test]
fn child_that_ignores_the_request_to_end_is_killed_with_its_children() {
    let mut owner = Owner::new();
    let id = owner.start("trap '' TERM; sleep 60 & echo $!; while :; do wait; done");
    owner.run_until(|event| matches!(event, HostEvent::Line(_)));

    let grandchild = owner.pid_in_first_line();
    owner.children.end(id, monotonic_ns());
    owner.run_until(
        |event| matches!(event, HostEvent::Lost { reason } if reason.ends_with("signal 9")),
    );

    let begin = Instant::now();
    while pid_is_alive(grandchild) {
        assert!(begin.elapsed() < TIMEOUT, "its child was not ended");
        std::thread::yield_now();
    }
}

#[test]
fn children_end_with_their_owner() {
    let mut owner = Owner::new();
    owner.start("echo $$; exec sleep 60");
    owner.run_until(|event| matches!(event, HostEvent::Line(_)));

    let pid = owner.pid_in_first_line();
    drop(owner);
    assert!(!pid_is_alive(pid));
}
