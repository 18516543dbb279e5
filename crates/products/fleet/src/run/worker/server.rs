//! The server of one address: admits the partners of a round and reports the tests that are
//! expected.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use std::{fs, io};

use crate::TaskId;
use crate::protocol::message::ArmTask;
use linerate_engine::dialect::iperf3::server;
use linerate_model::event::TestHeader;
use linerate_model::policy::{AccessRules, AccessSource, FactsAccess, Liveness};
use linerate_model::record::RunId;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_model::{
    Event, EventSink, Failure, ServerEvent, ServerReporter, SinkError, Transport,
};
use linerate_sys::sendfile_source::SourceFile;

use super::client::INTERVAL_MIN;
use super::lines::{FromWorker, ServerTask, ToWorker, WorkerInput, emit};
use super::task_events::TaskEvents;
use linerate_model::outcome::failure;

/// Longest time a test may make no progress: its client may have lost its host.
const LIVENESS: Duration = Duration::from_secs(3);

/// Tests that are expected, and those that run.
#[derive(Default)]
struct Expected {
    waiting: RefCell<Vec<ArmTask>>,
    running: RefCell<Vec<Running>>,
}

/// A test that runs. A later one may have the same task.
#[derive(Clone)]
struct Running {
    task: TaskId,
    is_forgotten: Rc<Cell<bool>>,
}

impl Expected {
    /// A test that waits is not accepted any more; one that runs ends with its next event and is
    /// not reported.
    fn forget(&self, task: TaskId) {
        self.waiting.borrow_mut().retain(|known| known.task != task);
        for running in self.running.borrow().iter() {
            if running.task == task {
                running.is_forgotten.set(true);
            }
        }
        self.running.borrow_mut().retain(|known| known.task != task);
    }

    /// The task of a client, by its address and what it requests.
    fn accept(
        &self,
        peer: IpAddr,
        is_this: impl Fn(&ArmTask) -> bool,
    ) -> Option<(ArmTask, Running)> {
        let mut waiting = self.waiting.borrow_mut();
        let at = waiting
            .iter()
            .position(|task| task.peer.to_canonical() == peer.to_canonical() && is_this(task))?;
        let task = waiting.remove(at);
        let running = Running {
            task: task.task,
            is_forgotten: Rc::default(),
        };
        self.running.borrow_mut().push(running.clone());

        Some((task, running))
    }

    fn end(&self, ended: &Running) {
        let mut running = self.running.borrow_mut();
        running.retain(|running| !Rc::ptr_eq(&running.is_forgotten, &ended.is_forgotten));
    }
}

/// Serves until the end of the input.
///
/// # Errors
/// Why it does not listen, or what ended it.
pub(super) fn run(run: RunId, task: &ServerTask, input: &WorkerInput) -> Result<(), Failure> {
    // The list of admitted addresses, none so far: a file without a name, which the server reads
    // through its descriptor.
    let file = SourceFile::filled("admitted", b"").map_err(|error| failure(&error))?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()));
    let expected: Rc<Expected> = Rc::default();
    let mut reporter = Tests {
        run,
        expected: Rc::clone(&expected),
        is_listening: false,
    };

    let admitted = path.clone();
    input.set_follow(Box::new(move |line| follow(line, &expected, &admitted)));
    let mut outcome = Err(failure(&"no free port"));

    for port in task.ports.first..=task.ports.last {
        // TCP and UDP tests share the port.
        if UdpSocket::bind((task.address, port)).is_err() {
            continue;
        }

        let spec = spec(task.address, port, path.clone());
        outcome = server::run(&spec, PeerRequests::default(), &mut reporter, input);
        if reporter.is_listening || input.is_over() {
            break;
        }
    }

    if input.is_over() { Ok(()) } else { outcome }
}

fn spec(address: IpAddr, port: u16, admitted: PathBuf) -> ServerSpec {
    let access = AccessRules::new(vec![AccessSource::File(admitted)], Vec::new());
    let mut spec = ServerSpec::default();
    spec.local.port = port;
    spec.local.bind.host = Some(address.to_string());
    spec.policy.access = access;
    spec.policy.facts = FactsAccess::None;
    spec.policy.liveness = Liveness::always(LIVENESS);

    // The period that tests have in common begins and ends within intervals. Of long tests
    // neighbours are merged.
    spec.local.interval = Some(INTERVAL_MIN);
    spec
}

/// Executes a line of the agent; true when the admitted addresses have changed.
fn follow(line: ToWorker, expected: &Rc<Expected>, admitted: &Path) -> bool {
    match line {
        ToWorker::Admit(addresses) => {
            let mut lines = String::new();
            for address in addresses {
                lines += &format!("{address}\n");
            }
            if fs::write(admitted, lines).is_err() {
                return false;
            }
            emit(&FromWorker::Admitted);
            return true;
        }
        ToWorker::Expect(task) => {
            let id = task.task;
            expected.waiting.borrow_mut().push(*task);
            emit(&FromWorker::Ready { task: id });
        }
        ToWorker::Forget(task) => expected.forget(task),
        ToWorker::Client(_) | ToWorker::Begin { .. } | ToWorker::Server(_) => {}
    }

    false
}

/// Makes a receiver of events for each test.
struct Tests {
    run: RunId,
    expected: Rc<Expected>,
    is_listening: bool,
}

impl ServerReporter for Tests {
    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(Test {
            run: self.run,
            expected: Rc::clone(&self.expected),
            accepted: None,
        }))
    }

    fn warning(&mut self, _: &str) {}

    fn server_event(&mut self, event: &ServerEvent) {
        if let ServerEvent::Listening { address } = event
            && !self.is_listening
        {
            self.is_listening = true;
            emit(&FromWorker::Listening {
                port: address.port(),
            });
        }
    }
}

/// One test; that of a task once its client is known.
struct Test {
    run: RunId,
    expected: Rc<Expected>,
    accepted: Option<(TaskEvents, Running)>,
}

impl Test {
    fn accept(&mut self, header: &TestHeader) -> Result<(), SinkError> {
        let spec = &header.spec;
        let peer = header.peer_host.parse().map_err(|_| refused())?;
        let accepted = self.expected.accept(peer, |task| {
            spec.transport == Transport::Tcp
                && spec.direction == task.direction()
                && spec.streams == task.streams
        });
        let (task, running) = accepted.ok_or_else(refused)?;
        self.accepted = Some((TaskEvents::new(self.run, &task), running));
        Ok(())
    }
}

impl EventSink for Test {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::TestAccepted(header) = event {
            self.accept(header)?;
        }

        let Some((events, running)) = &mut self.accepted else {
            return Ok(());
        };
        if running.is_forgotten.get() {
            return Err(refused());
        }

        events.event(event)?;
        let outcome = match event {
            Event::Finished => Ok(()),
            Event::Failed(failure) => Err(failure.clone()),
            _ => return Ok(()),
        };

        if let Some((events, running)) = self.accepted.take() {
            self.expected.end(&running);
            events.finish(outcome);
        }

        Ok(())
    }
}

/// A test that no task expects ends with this.
fn refused() -> SinkError {
    io::Error::from(io::ErrorKind::PermissionDenied).into()
}

#[cfg(test)]
mod tests {
    use crate::protocol::message::Role;

    use super::*;

    fn task(id: u128, streams: u32) -> ArmTask {
        ArmTask {
            task: TaskId(id),
            role: Role::Server,
            peer: [192, 0, 2, 1].into(),
            port: 5201,
            path: "phys".to_owned(),
            is_reversed: false,
            streams,
            time_ms: 1000,
            omit_ms: 0,
            delay_ms: 0,
            rate_bps: None,
            congestion: None,
        }
    }

    #[test]
    fn client_gets_the_task_of_its_address_and_request_once() {
        let expected = Expected::default();
        expected
            .waiting
            .borrow_mut()
            .extend([task(1, 1), task(2, 4)]);
        let four = |task: &ArmTask| task.streams == 4;
        assert!(
            expected.accept([192, 0, 2, 2].into(), four).is_none(),
            "another address"
        );

        let mapped = "::ffff:192.0.2.1".parse().expect("an address");
        assert_eq!(
            expected.accept(mapped, four).map(|(task, _)| task.task),
            Some(TaskId(2))
        );
        assert!(
            expected.accept(mapped, four).is_none(),
            "each task has one test"
        );
    }

    #[test]
    fn forgotten_test_is_not_the_one_that_follows_with_its_task() {
        let expected = Expected::default();
        let client = IpAddr::from([192, 0, 2, 1]);
        expected.waiting.borrow_mut().push(task(1, 1));

        let (_, first) = expected.accept(client, |_| true).expect("it waits");
        expected.forget(TaskId(1));
        expected.waiting.borrow_mut().push(task(1, 1));

        let (_, second) = expected.accept(client, |_| true).expect("it waits again");
        assert!(first.is_forgotten.get() && !second.is_forgotten.get());
        expected.end(&first);
        assert_eq!(expected.running.borrow().len(), 1);
    }
}
