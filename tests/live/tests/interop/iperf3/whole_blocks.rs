//! All that is sent arrives and is counted on both ends, to the block where a rate is kept.

use linerate_interop::{Program, Report, each_case, original, ours, ours_only, run_pair};

/// Receivers of iperf3 3.16 and later count whole blocks only, so a paced sender ends between two
/// of them. The amount is the one the original reaches: a block for each time at which the average
/// is below the rate.
const PACED: [(&str, u64); 6] = [
    ("-t 1 -b 300K", 131_072),
    ("-t 1 -b 300K -R", 131_072),
    ("-t 1 -b 10M", 1_310_720),
    ("-t 1 -b 10M -R", 1_310_720),
    ("-t 1 -b 2M -P 2", 524_288),
    ("-t 2 -b 1M -l 1M", 1_048_576),
];

#[test]
fn timed_a_paced_test_ends_between_two_blocks_and_both_ends_count_them() {
    ours_only!("up to 3.15 the original ends a rate inside a block");
    let pairs: [(&Program, &Program); 3] =
        [(ours(), ours()), (original(), ours()), (ours(), original())];
    each_case(&PACED, |(options, bytes)| {
        for (server, client) in pairs {
            let report = run(server, client, options);
            let counted = [sent(&report), received(&report)];
            assert_eq!(counted, [*bytes, *bytes], "{client:?} to {server:?}");
        }
    });
}

#[test]
fn both_ends_count_to_the_end_of_the_stream() {
    ours_only!("the original cuts off what is under way");
    each_case(
        &[
            "-t 1",
            "-t 1 -R",
            "-t 1 -P 3",
            "-n 100K -R",
            "-n 3M -R -P 2",
        ],
        |options| {
            let report = run(ours(), ours(), options);
            assert_eq!(sent(&report), received(&report));
        },
    );
}

/// A portion is small enough for a smooth rate and large enough to be cheap.
#[test]
fn timed_tenths_of_a_second_hold_what_the_rate_allows() {
    ours_only!("the original sends a whole block every tenth of a second");
    let report = run(ours(), ours(), "-t 2 -b 10M -i 0.1");
    // The last tenth completes the last block.
    let tenths = &report.array("/intervals")[1..18];
    for tenth in tenths {
        let bytes = tenth["sum"]["bytes"].as_f64().expect("a number");
        assert!((bytes - 125_000.0).abs() < 6_250.0, "{bytes}: {tenths:#?}");
    }
}

fn run(server: &Program, client: &Program, options: &str) -> Report {
    let options: Vec<_> = options.split(' ').chain(["-J"]).collect();
    Report::parse(
        &run_pair((server, &[]), (client, &options))
            .client
            .expect_clean()
            .stdout,
    )
}

fn sent(report: &Report) -> u64 {
    report.number("/end/sum_sent/bytes") as u64
}

fn received(report: &Report) -> u64 {
    report.number("/end/sum_received/bytes") as u64
}
