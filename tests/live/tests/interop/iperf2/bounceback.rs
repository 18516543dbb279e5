//! Reports about requests and replies have the lines of the original: no more, no fewer.

use linerate_interop::each_case;
use linerate_interop::iperf2::{Iperf2, lines, run_iperf2};

/// A client measures one-way delays only with the option that the clocks agree, and shows the
/// distribution of round trips once, at the end.
#[test]
fn a_client_shows_delays_with_trip_times_and_the_distribution_at_the_end() {
    let cases = ["2.1", "2.2"].map(|layout| ["", " --trip-times"].map(|option| (layout, option)));
    each_case(cases.as_flattened(), |(layout, option)| {
        let words = format!(
            "--bounceback=5 --bounceback-period 0.2 -t 1 -i 0.5 --lr-format {layout}{option}"
        );
        for server in [Iperf2::Original, Iperf2::Ours] {
            let (client, _) = run_iperf2((Iperf2::Ours, server), &words, "");
            let has_delays = client.stdout.contains(" OWD ");
            assert_eq!(has_delays, !option.is_empty(), "{client:?}");
            assert_eq!(
                client
                    .stdout
                    .matches("BB8(f)-PDF: bin(w=100us):cnt(")
                    .count(),
                1,
                "{client:?}"
            );
            assert!(!client.stdout.contains("BB8-PDF"), "{client:?}");
        }
    });
}

/// A server knows no round trips: with `-e` 2.1.8 shows what it moved, 2.2.1 its reads as well.
#[test]
fn a_server_has_one_kind_of_columns() {
    for (layout, header) in [
        ("2.1", "Interval       Transfer     Bandwidth"),
        ("2.2", "Bandwidth       Reads=Dist"),
    ] {
        let pairing = (Iperf2::Original, Iperf2::Ours);
        let (_, server) = run_iperf2(
            pairing,
            "--bounceback -t 2",
            &format!("-e -i 1 --lr-format {layout}"),
        );
        assert_eq!(server.stdout.matches("[ ID]").count(), 1, "{server:?}");
        server.expect_stdout(header);
        assert!(
            !server.stdout.contains("0.000/0.000"),
            "columns of a client: {server:?}"
        );

        let lines = lines(&server.stdout);
        assert!(lines.len() >= 2, "{server:?}");
        let reads = lines
            .iter()
            .all(|line| line.rest.is_empty() || line.rest.ends_with(":0:0:0:0:0:0:0"));
        assert!(reads, "{server:?}");
    }
}

/// A burst that is due when an interval ends belongs to the next one, at both ends: the sampler
/// wakes up later than the burst takes.
#[test]
fn timed_a_burst_belongs_to_the_interval_in_which_it_is_due() {
    let words = "--bounceback=3 --bounceback-period 0.25 -t 1 -i 0.5 -f B";
    for (client_of, server_of) in [
        (Iperf2::Ours, Iperf2::Ours),
        (Iperf2::Original, Iperf2::Ours),
    ] {
        let (client, server) = run_iperf2((client_of, server_of), words, "-i 0.5 -f B");
        // Three requests of 100 bytes and their replies, twice.
        for report in [&client, &server] {
            let rows = lines(&report.stdout);
            assert_eq!(rows[0].amount, 1200.0, "{report:?}");
        }
    }
}

/// 2.2.1 has distributions of one-way delays; 2.1.8 has none.
#[test]
fn a_client_shows_distributions_of_one_way_delays_on_request() {
    let words = "--bounceback=5 --bounceback-period 0.2 -t 1 --trip-times --histograms";
    for (layout, count) in [("2.1", 0), ("2.2", 1)] {
        let words = format!("{words} --lr-format {layout}");
        let (client, _) = run_iperf2((Iperf2::Ours, Iperf2::Ours), &words, "");

        for kind in [
            "  OWD-TX(f)-PDF: bin(w=100us):cnt(25)=",
            "  OWD-RX(f)-PDF: bin(w=100us):cnt(25)=",
        ] {
            assert_eq!(
                client.stdout.matches(kind).count(),
                count,
                "{kind}: {client:?}"
            );
        }
    }
}
