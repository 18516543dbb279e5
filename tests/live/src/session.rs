//! A server and its clients.

use std::time::Duration;

use crate::net::{free_port, listens};
use crate::process::{Finished, Process};
use crate::program::Program;
use crate::status::Status;

/// A running server on a port of its own.
#[derive(Debug)]
pub struct Server {
    /// Its port.
    pub port: u16,
    /// Its process.
    pub process: Process,
}

impl Server {
    /// Starts a server and waits until it listens.
    #[track_caller]
    pub fn start(program: &Program, arguments: &[&str]) -> Self {
        Self::start_at(program, free_port(), arguments)
    }

    /// The same on a given port.
    #[track_caller]
    pub fn start_at(program: &Program, port: u16, arguments: &[&str]) -> Self {
        let port_text = port.to_string();
        let all = ["-s", "-p", &port_text]
            .into_iter()
            .chain(arguments.iter().copied());
        let mut process = Process::start(program.command(all));
        process.wait_until_up(|| listens(port));
        Self { port, process }
    }

    /// Starts a client of this server.
    pub fn client(&self, program: &Program, host: &str, arguments: &[&str]) -> Process {
        let port = self.port.to_string();
        Process::start(program.command(["-c", host, "-p", &port].iter().chain(arguments)))
    }

    /// Runs a client over IPv4 to its end.
    pub fn run(&self, program: &Program, arguments: &[&str]) -> Finished {
        self.client(program, "127.0.0.1", arguments).finish()
    }

    /// Starts a server and reads what it holds before its first client.
    #[track_caller]
    pub fn start_idle(program: &Program) -> (Self, Status) {
        let server = Self::start(program, &[]);
        // Listening is not the last thing a server prepares, announcing it is. The original keeps
        // its announcement in a buffer, but has nothing left to open.
        if !program.is_original() {
            server.process.wait_for_stdout("Server listening", 1);
        }

        let status = Status::of(server.process.id());
        (server, status)
    }

    /// Waits for the end of a server that ends by itself.
    #[track_caller]
    pub fn finish(self) -> Finished {
        self.process.finish_within(Duration::from_secs(20))
    }
}

/// Both ends of one test.
#[derive(Debug)]
pub struct Pair {
    /// The client.
    pub client: Finished,
    /// The server, which served this one test.
    pub server: Finished,
}

/// Runs one test over IPv4: `(server program, its options)`, `(client program, its options)`.
#[track_caller]
pub fn run_pair(server: (&Program, &[&str]), client: (&Program, &[&str])) -> Pair {
    run_pair_at("127.0.0.1", server, client)
}

/// The same at another address of this host.
#[track_caller]
pub fn run_pair_at(host: &str, server: (&Program, &[&str]), client: (&Program, &[&str])) -> Pair {
    let server_options: Vec<&str> = ["-1"].iter().chain(server.1).copied().collect();
    let running = Server::start(server.0, &server_options);
    let client = running.client(client.0, host, client.1).finish();
    Pair {
        client,
        server: running.finish(),
    }
}
