//! The commands of the reports this program answers, in full and at their own ports. `make live
//! SUITE=reports` runs them.

#![allow(clippy::print_stdout, reason = "what was reached is the result")]

use std::time::Duration;

use linerate_interop::iperf2::{Iperf2, Iperf2Server, PAIRINGS, amounts, lines, totals};
use linerate_interop::namespaces::Net;
use linerate_interop::{Finished, Process};

/// Time beyond that of the test itself, on a host that is busy with it.
const OVERTIME: Duration = Duration::from_secs(60);

#[test]
#[ignore = "three minutes at full load: make live SUITE=reports"]
fn the_commands_of_the_reports_run_in_full() {
    let Some(net) = Net::new() else { return };
    for (client, server) in PAIRINGS {
        println!("{client:?} client, {server:?} server");
        let ten = Iperf2Server::start_inside(&net.b, server, 10_001, "");
        let output = client_of(&net, client, "-t 30 -i 1 -P 10 -p 10001", 30);
        sums_follow_each_other(&output, client, 30);
        ten.stop().expect_code(0);

        let small = Iperf2Server::start_inside(&net.b, server, 5001, "-w 1M");
        let output = client_of(&net, client, "-i 1 -l 32 -P 100 -w 1M -t 5", 5);
        sums_follow_each_other(&output, client, 5);

        let output = small.stop();
        output.expect_code(0);
        assert_eq!(
            totals(&output.stdout)
                .iter()
                .filter(|line| line.label != "SUM")
                .count(),
            100,
            "{output:?}"
        );
    }
}

#[test]
#[ignore = "a quarter of a minute at full load: make live SUITE=reports"]
fn ten_clients_of_the_original_run_in_full_at_once() {
    let Some(net) = Net::new() else { return };
    let server = Iperf2Server::start_inside(&net.b, Iperf2::Ours, 5001, "-w 1M -f B");
    let start = || Process::start(Iperf2::Original.command_inside(&net.a, "-c 10.99.0.2 -f B"));
    let clients: Vec<Process> = (0..10).map(|_| start()).collect();
    let finish = |client: Process| client.finish_within(Duration::from_secs(10) + OVERTIME);
    let clients: Vec<Finished> = clients.into_iter().map(finish).collect();
    for client in &clients {
        client.expect_clean();
    }

    let mut sent: Vec<f64> = clients
        .iter()
        .flat_map(|client| amounts(&client.stdout))
        .collect();
    sent.sort_by(f64::total_cmp);
    println!("ten clients: {sent:?} bytes");

    let server = server.stop();
    assert_eq!(amounts(&server.stdout), sent, "{server:?}");
}

fn client_of(net: &Net, program: Iperf2, words: &str, time_s: u64) -> Finished {
    let command = program.command_inside(&net.a, &format!("-c 10.99.0.2 {words}"));
    let client = Process::start(command).finish_within(Duration::from_secs(time_s) + OVERTIME);
    client.expect_code(0);
    client
}

/// Ours has a sum for every second and one for the test; the original's lag behind when it is busy.
fn sums_follow_each_other(client: &Finished, program: Iperf2, seconds: usize) {
    let sums: Vec<_> = lines(&client.stdout)
        .into_iter()
        .filter(|line| line.label == "SUM")
        .collect();
    let Some((total, intervals)) = sums.split_last() else {
        panic!("{client:?}")
    };
    println!(
        "  {:.1}-{:.1} s: {} ({})",
        total.start_s, total.end_s, total.amount, total.rate
    );

    if program == Iperf2::Original {
        return;
    }

    assert!(intervals.len() >= seconds, "{sums:?}");
    for pair in intervals.windows(2) {
        // A hundred streams are read one after the other.
        assert!((pair[0].end_s - pair[1].start_s).abs() < 0.05, "{sums:?}");
    }

    assert!(sums.iter().all(|line| line.amount > 0.0), "{sums:?}");
}
