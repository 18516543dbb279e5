//! Many connections: past the kernel's range of ports, past the limit of descriptors, and what each
//! of them costs.

use std::fs;
use std::time::Duration;

use linerate_interop::namespaces::{Net, SERVER, inside};
use linerate_interop::{
    HttpLab, HttpLoad, HttpServer, Process, Status, TIMEOUT, free_port_run, limited, linerate,
    unsupported, wait_for, words,
};

const LONG: Duration = Duration::from_secs(120);
/// Every connection is opened as fast as it can be, and held for a moment.
const HELD: [&str; 9] = [
    "--idle",
    "-d",
    "1s",
    "--warmup",
    "0",
    "--ramp",
    "max",
    "--allow-large",
    "--quiet",
];

#[test]
fn the_kernels_ports_end_where_its_range_ends_and_ours_do_not() {
    let Some(net) = Net::new() else { return };
    for namespace in [&net.a, &net.b] {
        set(namespace, "net.ipv4.ip_local_port_range=40000 40099");
    }

    let server = HttpServer::in_net(&net, &format!("{SERVER}:8080"), &[]);
    let load = |words: &[&str]| {
        let arguments = [&["-c", "300"], &HELD[..], words].concat();
        HttpLoad::of(HttpLoad::in_net(&net, &server.url("/0"), &arguments).finish())
    };

    for threads in ["1", "3"] {
        let kernel = load(&["--ports", "kernel", "--close", "rst", "--threads", threads]);
        kernel.expect_only("addr_not_avail");
        // First contacts, of the run before as well, may still hold one each.
        let opened = kernel.number("connections/opened");
        assert!(
            (98..=100).contains(&opened),
            "{threads} threads: {kernel:?}"
        );
        assert_eq!(
            kernel.errors()[0].1,
            300 - opened,
            "each that is missing: {threads} threads: {kernel:?}"
        );
    }

    for ports in ["explicit", "auto"] {
        let explicit = load(&["--ports", ports, "--threads", "1"]);
        explicit.expect_all_open(300);
    }
}

#[test]
fn a_host_without_a_port_of_the_kernels_can_still_be_a_generator() {
    let Some(net) = Net::new() else { return };
    // Every port of the range is kept for others, so the kernel has none for a connection, the
    // first one included.
    for setting in [
        "net.ipv4.ip_local_reserved_ports=1024-1030,40000-40001",
        "net.ipv4.ip_local_port_range=40000 40001",
    ] {
        set(&net.a, setting);
    }

    let lab = HttpLab::in_net(&net, &[]);
    let url = format!("{}/0", lab.url);
    let load = |ports: &str| {
        lab.run(
            &[
                &["load", &url, "--json", "-c", "30", "--ports", ports],
                &HELD[..],
            ]
            .concat(),
        )
    };
    let kernel = load("kernel");
    kernel
        .expect_code(4)
        .expect_stderr("Cannot assign requested address");

    for ports in ["explicit", "auto"] {
        let found = HttpLoad::of(load(ports));
        found.expect_all_open(30);
        let server_side = &found.finished.json()["trials"][0]["detail"]["cell"]["server"];
        assert!(
            server_side.is_object(),
            "the control channel was not reached: {found:?}"
        );
    }
}

#[test]
fn fifty_thousand_connections_leave_from_one_address_without_a_setting() {
    const CONNECTIONS: u64 = 50_000;

    if descriptors_allowed() < 19_000 {
        return unsupported("three servers need 17,000 descriptors each");
    }

    let first = free_port_run(3);
    let servers: Vec<Process> = (first..first + 3).map(quiet_server).collect();
    let url = format!("http://127.0.0.1:{first}-{}/0", first + 2);
    let count = CONNECTIONS.to_string();
    let arguments = [&["-c", &count, "--ports", "explicit"], &HELD[..]].concat();
    let load = HttpLoad::of(HttpLoad::start(&url, &arguments).finish_within(LONG));
    load.expect_all_open(CONNECTIONS);
    drop(servers);
}

/// Sets a kernel variable of a namespace; its value may have blanks.
fn set(namespace: &str, setting: &str) {
    let set = inside(namespace, "sysctl".as_ref(), &["-qw", setting]).status();
    assert!(set.is_ok_and(|status| status.success()), "{setting}");
}

/// A server of one thread on a port of 127.0.0.1.
fn quiet_server(port: u16) -> Process {
    let server = linerate(&format!(
        "http serve --bind 127.0.0.1:{port} --threads 1 --no-control --tcp=0 --max-conns 19000"
    ));
    server.wait_for_stdout("Listening on", 1);
    server
}

#[test]
fn worker_processes_get_past_a_limit_of_descriptors() {
    let server = HttpServer::start(&[]);
    let arguments = words("-c 600 --idle -d 2s --warmup 0 --ramp max --procs auto");
    let load = HttpLoad::start_by(limited("ulimit -n 256"), &server.url("/0"), &arguments);
    let workers = wait_for(TIMEOUT, || {
        let is_open = Status::of(server.process.id()).descriptors >= 600;
        is_open.then(|| child_ids(load.id()).len())
    });
    let load = HttpLoad::of(load.finish());
    load.expect_all_open(600);
    assert!(
        workers.is_some_and(|workers| workers >= 3),
        "{workers:?} workers: {load:?}"
    );
}

#[test]
fn an_interrupted_load_leaves_no_worker_behind() {
    let server = HttpServer::start(&[]);
    let before = Status::of(server.process.id());
    let arguments = words("-c 100 -d 60s --warmup 0 --ramp max --procs 3");
    let load = HttpLoad::start(&server.url("/1k"), &arguments);
    let is_open =
        || (Status::of(server.process.id()).descriptors >= before.descriptors + 100).then_some(());
    assert!(wait_for(TIMEOUT, is_open).is_some(), "{load:?}");

    let workers = child_ids(load.id());
    assert_eq!(workers.len(), 3, "{load:?}");
    load.signal(linerate_interop::Signal::Interrupt);

    let load = HttpLoad::of(load.finish());
    load.finished.expect_code(130);

    let are_gone = || {
        workers
            .iter()
            .all(|id| fs::metadata(format!("/proc/{id}")).is_err())
            .then_some(())
    };
    assert!(
        wait_for(TIMEOUT, are_gone).is_some(),
        "workers {workers:?} of {load:?}"
    );
    server.process.wait_for_idle(before);
}

#[test]
fn ten_thousand_idle_connections_are_held_for_a_few_bytes_each() {
    const CONNECTIONS: u64 = 10_000;

    if descriptors_allowed() < 12_000 {
        return unsupported("10,000 connections need more descriptors than are allowed");
    }

    let server = HttpServer::start(&["--threads", "1"]);
    let few = hold(&server, 100);
    let many = hold(&server, CONNECTIONS);
    let per_connection =
        |few: usize, many: usize| many.saturating_sub(few) as u64 * 1024 / (CONNECTIONS - 100);
    let at_server = per_connection(few.0, many.0);
    assert!(
        at_server <= 256,
        "{at_server} bytes per connection at the server"
    );

    let at_generator = per_connection(few.1, many.1);
    assert!(
        at_generator <= 512,
        "{at_generator} bytes per connection at the generator"
    );
}

/// Holds connections, and returns the resident memory of the server and of the generator in KiB
/// while all are open.
fn hold(server: &HttpServer, connections: u64) -> (usize, usize) {
    let before = Status::of(server.process.id()).descriptors;
    let line =
        format!("-c {connections} --idle -d 1s --warmup 0 --allow-large --threads 1 --ramp max");
    let load = HttpLoad::start(&server.url("/0"), &words(&line));
    let resident = wait_for(LONG, || {
        let status = Status::of(server.process.id());
        let are_open = status.descriptors as u64 >= before as u64 + connections;
        are_open.then(|| (status.resident_kib, Status::of(load.id()).resident_kib))
    });

    let load = HttpLoad::of(load.finish_within(LONG));
    load.expect_all_open(connections);
    server.process.wait_for_idle(Status {
        descriptors: before,
        ..Status::of(server.process.id())
    });

    resident.unwrap_or_else(|| panic!("never {connections} at once: {load:?}"))
}

#[test]
fn heartbeats_get_a_response_on_every_connection() {
    let server = HttpServer::start(&[]);
    let arguments = words("-c 1000 --idle --heartbeat 1s -d 3s --warmup 0 --ramp max");
    let load = HttpLoad::run(&server.url("/0"), &arguments);
    load.expect_all_well();
    load.expect_all_open(1000);
    assert_eq!(load.number("requests"), 3000, "{load:?}");
}

/// The limit that the processes this test starts can raise theirs to.
fn descriptors_allowed() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1));
    hard.map_or(0, |hard| hard.parse().unwrap_or(u64::MAX))
}

fn child_ids(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let lists: Vec<String> = threads.flatten().filter_map(of_thread).collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|id| id.parse().ok())
        .collect()
}
