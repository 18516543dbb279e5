//! Many tests on one server: nothing may pile up. `SOAK_TESTS` sets their number.

use std::env;

use linerate_interop::{Program, Server, original, ours, ours_only};

/// Short tests of every kind; one after the other, so that a leak of any of them shows. Datagrams
/// are paced: a flood may fill a receive buffer, which is reported.
const MIXTURE: [&str; 8] = [
    "-n 64K",
    "-n 64K -R",
    "-n 64K --bidir",
    "-n 64K -P 4",
    "-u -l 1000 -n 20K -b 20M",
    "-u -l 1000 -n 20K -b 20M -R",
    "-n 64K -J --get-server-output -w 32K -N",
    "-k 2 -T title -S 16",
];

/// Tests after which every pool and cache of the server has its size.
const WARM_UP: usize = 20;

/// Memory that an allocator may keep without a leak: fragments, and one stack more or less. 250
/// leaked results of a test (some KiB each) would be more.
const RESIDENT_TOLERANCE_KIB: usize = 1024;

#[test]
fn a_server_after_many_tests_is_as_it_was_after_a_few() {
    let tests: usize = env::var("SOAK_TESTS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(250);
    ours_only!("what the original keeps is its own affair");
    let (server, idle) = Server::start_idle(ours());
    run(&server, WARM_UP);

    let before = server.process.wait_for_idle(idle);
    run(&server, tests);
    let after = server.process.wait_for_idle(idle);
    let grown = after.resident_kib.saturating_sub(before.resident_kib);
    assert!(
        grown <= RESIDENT_TOLERANCE_KIB,
        "{before:?} became {after:?}"
    );
}

fn run(server: &Server, tests: usize) {
    let clients: [&Program; 2] = [ours(), original()];
    for number in 0..tests {
        let options: Vec<_> = MIXTURE[number % MIXTURE.len()].split_whitespace().collect();
        server
            .run(clients[number / MIXTURE.len() % clients.len()], &options)
            .expect_clean();
    }
}
