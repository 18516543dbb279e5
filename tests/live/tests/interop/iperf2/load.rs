//! Streams that load the path while requests and replies measure it.

use linerate_interop::iperf2::{Iperf2, Line, run_iperf2, totals};
use linerate_interop::{Finished, each_case};

/// Options of a run, the note of the load's connect lines, and the labels of its lines of numbers.
#[derive(Debug)]
struct Case {
    client: &'static str,
    note: Option<&'static str>,
    labels: &'static [&'static str],
}

const CASES: [Case; 3] = [
    Case {
        client: "--bounceback=5 --bounceback-period 0.2 --working-load -t 1 -f B",
        note: Some("(full-duplex)"),
        labels: &["2", "*2"],
    },
    Case {
        client: "--bounceback --bounceback-congest=up,2 -t 1 -f B",
        note: None,
        labels: &["2", "3"],
    },
    Case {
        client: "--bounceback --working-load=down --lr-format 2.2 -t 1 -f B",
        note: Some("(reverse)"),
        labels: &["*2"],
    },
];

#[test]
fn a_load_runs_beside_requests_and_replies() {
    let all: Vec<_> = CASES
        .iter()
        .flat_map(|case| [Iperf2::Original, Iperf2::Ours].map(|server| (case, server)))
        .collect();
    each_case(&all, |(case, server)| {
        let (client, server) = run_iperf2((Iperf2::Ours, *server), case.client, "-f B");
        check(case, &client, &server);
    });
}

fn check(case: &Case, client: &Finished, server: &Finished) {
    assert!(client.stderr.is_empty(), "{client:?}");
    let lines = totals(&client.stdout);
    let trips = line(&lines, "1", client);
    assert!(
        trips.rest.contains("=0.") || trips.rest.contains("RPS") || trips.rest.contains("rps"),
        "{client:?}"
    );
    assert!(
        trips.amount < 100_000.0,
        "the load is not counted with the requests: {client:?}"
    );

    for label in case.labels {
        let moved = line(&lines, label, client).amount;
        assert!(moved > 1e6, "{label} moved {moved} bytes: {client:?}");
    }

    let numbered = lines
        .iter()
        .filter(|line| line.label.trim_start_matches('*').parse::<u32>().is_ok());
    assert_eq!(numbered.count(), case.labels.len() + 1, "{client:?}");

    if let Some(note) = case.note {
        assert!(
            client.stdout.contains(note) && server.stdout.contains(note),
            "{client:?} {server:?}"
        );
    }

    server.expect_stdout("(bb w/quickack len/hold=100/0)");
}

fn line<'a>(lines: &'a [Line], label: &str, report: &Finished) -> &'a Line {
    let found = lines.iter().find(|line| line.label == label);
    found.unwrap_or_else(|| panic!("no line of {label}: {report:?}"))
}
