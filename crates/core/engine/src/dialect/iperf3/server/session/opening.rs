//! Opens the resources of a session's test, and its streams.

use std::os::fd::OwnedFd;

use linerate_iperf3::wire::server::{AcceptedTest, ServerInput};
use linerate_model::event::Endpoint;
use linerate_model::{Event, StreamId, Transport};
use linerate_sys::errno;
use linerate_sys::poll::{Epoll, Interest};

use super::{Session, udp_reply};
use crate::data::run::{RunSettings, TestRun};
use crate::data::socket as data_socket;
use crate::dialect::iperf3::server::NAME;
use crate::dialect::iperf3::server::context::Context;
use crate::dialect::iperf3::server::tokens::{FLOWS, NOTICE};
use crate::dialect::iperf3::{keepalive, role_of, udp_headers};
use crate::error::{EngineError, Operation};
use crate::reporter::test_header;
use crate::server::liveness;
use crate::server::{ServerContext, token};

impl Session {
    /// Opens what the test needs before the client connects its streams.
    pub(super) fn prepare(
        &mut self,
        mut test: AcceptedTest,
        context: &Context,
        first_position: u32,
        epoll: &Epoll,
        server: &mut ServerContext<'_>,
    ) -> Result<(), EngineError> {
        let fail = Operation::Init.failed();
        let local = &context.spec.local;
        test.spec.want_peer_facts &= server.gives_facts(test.user.is_some());

        if context.spec.local.control_keepalive.is_some() {
            keepalive::report(self.control.fd(), &mut self.reporter);
        }

        self.reporter
            .add_collectors(&test.spec, &context.peer_requests);
        let peer_host = self.peer.ip().to_string();
        let peer_port = self.peer.port();
        let mut header = test_header(Endpoint::Server, peer_host, peer_port, &test.spec, local);
        // Both ends print the cookie, by which reports of one test are joined.
        header.cookie = self.cookie.to_string();
        header.first_stream_position = first_position;
        self.reporter.emit(&Event::TestAccepted(Box::new(header)));

        match test.spec.transport {
            // Only while a UDP test needs it: an open port would take datagrams that no test reads.
            Transport::Udp => server.udp.open(NAME, local, server.listeners.address())?,
            Transport::Sctp => server.listeners.open_sctp(local)?,
            Transport::Tcp => {}
        }

        let settings = RunSettings {
            spec: test.spec.clone(),
            local: local.clone(),
            cpu: checked_cpu(test.params.server_affinity)?,
            measures_cpu: test.spec.want_peer_facts,
            datagrams: Some(udp_headers::FORMAT),
            ..RunSettings::default()
        };
        let mut run = TestRun::new(settings).map_err(&fail)?;
        // Before the first stream is added, since the pacing rate of a socket is set there.
        run.limit(server.admission.quotas().quota(self.id));
        epoll
            .add(run.notice_fd(), token(self.id, NOTICE), Interest::READ)
            .map_err(&fail)?;
        self.run = Some(run);
        self.test = Some(test);

        Ok(())
    }

    /// Takes a connected stream that belongs to this session.
    pub(crate) fn add_stream(&mut self, fd: OwnedFd, context: &Context, epoll: &Epoll) {
        if let Err(error) = self.try_add_stream(fd, context, epoll) {
            self.fail(&error);
        }
    }

    fn try_add_stream(
        &mut self,
        fd: OwnedFd,
        context: &Context,
        epoll: &Epoll,
    ) -> Result<(), EngineError> {
        let (Some(test), Some(run)) = (&self.test, &mut self.run) else {
            return Ok(());
        };
        let index = u32::try_from(run.stream_count()).unwrap_or(u32::MAX);
        let (role, flow) = role_of(&test.spec, index, false);
        let snd_timeout = context.spec.local.snd_timeout;
        data_socket::tune(&fd, &test.spec, snd_timeout, &mut self.reporter)?;

        if snd_timeout.is_none() && test.spec.transport == Transport::Tcp {
            // Multipath TCP knows no such limit.
            let limits = liveness::limits_of(&test.spec, context.spec.policy.liveness);
            let _ = data_socket::limit_idle_time(&fd, limits.otherwise);
        }

        if data_socket::set_congestion(&fd, &test.spec).is_err() {
            // The client's choice may be unknown here; its own direction still uses it.
            self.reporter.emit(&Event::Warning(
                "TCP congestion control algorithm not supported".into(),
            ));
        }

        let stream = data_socket::describe(&fd, StreamId(index), &test.spec, role, flow)
            .map_err(Operation::InitStream.failed())?;
        self.reporter.emit(&Event::StreamOpened(stream.clone()));

        if test.spec.transport == Transport::Udp {
            let reply = udp_reply(test);
            let client = self.peer.ip();
            self.flows
                .add(&stream, &fd, reply, client, epoll, token(self.id, FLOWS));
        }

        run.add(stream, fd, test.params.peer_is_linerate());
        self.inputs.push(ServerInput::StreamOpened);
        Ok(())
    }
}

/// The client may request a CPU this host does not have.
fn checked_cpu(cpu: Option<u32>) -> Result<Option<u32>, EngineError> {
    match cpu {
        Some(n) if !linerate_sys::cpu::allows(n as usize) => {
            let source = std::io::Error::from_raw_os_error(errno::EINVAL);
            let cause =
                linerate_sys::OsError::new("sched_setaffinity", format_args!("cpu {n}"), source);
            Err(Operation::PinCpu.failed()(cause))
        }
        known => Ok(known),
    }
}
