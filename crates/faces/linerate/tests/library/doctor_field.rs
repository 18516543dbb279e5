//! Goal: what people paste when a link is slow gets the answer that a reader of it knows. Method:
//! `fixtures/field`, each input with what the first lines of the report must contain, and what no
//! line may contain.

use std::path::{Path, PathBuf};

use linerate::diagnose::{Query, Source, diagnose};
use linerate_doctor::report as doctor;
use linerate_document::Style;
use linerate_model::finding::Diagnosis;

struct Case {
    input: &'static str,
    /// Rule that the verdict names, or the first finding where there was no load.
    rule: &'static str,
    /// Parts of the answer: the lines before `Also` and `Checked`.
    answer: &'static [&'static str],
    /// Texts that the report must not contain.
    never: &'static [&'static str],
}

const fn case(
    input: &'static str,
    rule: &'static str,
    answer: &'static [&'static str],
    never: &'static [&'static str],
) -> Case {
    Case {
        input,
        rule,
        answer,
        never,
    }
}

/// Lines of a report that is seen at once.
const LINES_MAX: usize = 12;

const CASES: [Case; 18] = [
    case(
        "p01-ena-allowance",
        "NIC-06",
        &[
            "the provider's allowance for this machine is exceeded",
            "bw_in_allowance_exceeded 3241329",
        ],
        &["Also"],
    ),
    case(
        "p02b-virt-faster",
        "META-03",
        &[
            "the reading of the link speed is contradicted",
            "18.5 Gbit/s received",
            "link speed 10 Gbit/s",
        ],
        &["the link is full", "timestamps"],
    ),
    case(
        "p06-pi-pause",
        "PAU-06",
        &[
            "the NIC drops frames that flow control would hold back",
            "RX Dropped Frames 66120",
            "flow control negotiated: none",
        ],
        &["no limit found"],
    ),
    case(
        "p07-sqm-htb",
        "QD-01",
        &[
            "a shaper on an end host sets the rate",
            "shaper rate 7.98 Mbit/s",
        ],
        &["UNREAD", "no limit found"],
    ),
    case(
        "p09-fq-flows-plimit",
        "QD-07",
        &[
            "7506 packets beyond the limit of a flow",
            "6113 packets beyond the limit of a flow",
            "limit of 100 per flow",
        ],
        &["13619", "longer queue"],
    ),
    case(
        "p10-netstat-tw",
        "SYS-05",
        &[
            "Connection tracking is full",
            "and the accept queue overflows",
            "2 messages that the table is full",
        ],
        &["2782", "UNREAD"],
    ),
    case(
        "p12-vm-offloads-off",
        "OFF-01",
        &[
            "segmentation offload is off",
            "(a guess)",
            "ethtool -K eth0 tx on sg on tso on gso on",
        ],
        &["no limit found"],
    ),
    case(
        "p16-wg-stall",
        "MTU-04",
        &[
            "the path drops large packets",
            "ping -M do -s 1472 192.0.2.2",
            "wg0 has a larger MTU",
        ],
        &["no limit found"],
    ),
    case(
        "p16b-stall-zero-jumbo",
        "MTU-02",
        &[
            "the path drops large packets",
            "packets of 1500 bytes pass",
            "packets of 9000 bytes vanish",
        ],
        &["not valid", "UNREAD", "Interrupted"],
    ),
    case(
        "p17-bond-l2",
        "PATH-12",
        &[
            "all streams share one member of the bond",
            "hash policy layer2",
            "layer3+4",
        ],
        &["UNREAD", "no limit found"],
    ),
    case(
        "p20-cgroup",
        "CPU-04",
        &[
            "a CPU quota throttles the test",
            "throttled by the CPU quota in 2984 periods",
            "97 %",
        ],
        &["UNREAD", "no limit found"],
    ),
    case(
        "p21-lshw-10mbit",
        "LNK-01",
        &[
            "lower speed than its ends can do",
            "link speed 100 Mbit/s",
            "both ends advertise 1 Gbit/s",
            "ethtool -r enp0s31f6",
        ],
        &["the link is full"],
    ),
    case(
        "p22-flap-dmesg",
        "LNK-05",
        &[
            "The link flaps",
            "3 times down in the log",
            "speeds: 2500, 1000, 2500",
            "Energy Efficient Ethernet",
        ],
        &["UNREAD", "no problem found"],
    ),
    case(
        "p24-top-si",
        "IRQ-01",
        &[
            "interrupt work is the limit",
            "100 % of a CPU in soft interrupts",
        ],
        &["the link is full", "UNREAD", "reading application"],
    ),
    case(
        "p25-steal",
        "CPU-09",
        &[
            "the hypervisor gives the CPUs of the test to other guests",
            "58 % of the CPU time stolen",
        ],
        &["UNREAD", "no limit found"],
    ),
    case(
        "p27-governor",
        "CPU-03",
        &[
            "Power saving holds the clock down",
            "CPU governor powersave",
            "CPU clock 800 MHz",
        ],
        &["UNREAD"],
    ),
    case(
        "p41-crc",
        "LNK-04",
        &[
            "the link itself is impaired",
            "rx_crc_errors 24105",
            "cable and optic",
        ],
        &["neither overflow nor damage"],
    ),
    case(
        "p46-gvnic-mtu",
        "MTU-03",
        &[
            "A larger MTU than that of the NIC below on vm-a docker0 and vm-a wg0",
            "MTU 1500 bytes (docker0); MTU 1460 bytes (ens4)",
        ],
        &["no problem found"],
    ),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/field")
}

fn judged(input: &str) -> Diagnosis {
    let path = directory().join(format!("{input}.txt"));
    diagnose(&Query::of(Source::Files(vec![path])))
        .unwrap_or_else(|error| panic!("{input}: {error}"))
}

/// The report on lines as long as they need, and the part of it before what else was found and
/// checked.
fn report(diagnosis: &Diagnosis) -> (String, String) {
    let text = doctor::text(
        diagnosis,
        false,
        Style {
            columns: 10_000,
            ..Style::PLAIN
        },
    );
    let is_answer = |line: &&str| {
        !["Also", "Checked", "Unread"]
            .iter()
            .any(|label| line.starts_with(label))
    };
    let answer = text
        .lines()
        .take_while(is_answer)
        .collect::<Vec<_>>()
        .join("\n");

    (text, answer)
}

#[test]
fn reports_from_the_field_get_their_answer() {
    let mut wrong = Vec::new();
    for Case {
        input,
        rule,
        answer: parts,
        never,
    } in CASES
    {
        let diagnosis = judged(input);
        let (text, answer) = report(&diagnosis);
        let verdict = &diagnosis.verdict;
        let named = match verdict.verdict.as_str() {
            "no-load" => diagnosis
                .findings
                .first()
                .is_some_and(|finding| finding.id == rule),
            _ => verdict.sentence.contains(&format!("({rule} on ")),
        };
        if !named {
            wrong.push(format!(
                "{input}: the verdict is not about {rule}: {verdict:?}"
            ));
        }

        for part in parts.iter().filter(|part| !answer.contains(**part)) {
            wrong.push(format!("{input}: the answer lacks {part:?}:\n{text}"));
        }

        for word in never.iter().filter(|word| text.contains(**word)) {
            wrong.push(format!("{input}: the report has {word:?}:\n{text}"));
        }

        // At a terminal of 80 columns; a pasted command has the length that it has.
        let lines = doctor::text(&diagnosis, false, Style::PLAIN)
            .lines()
            .count();
        if lines > LINES_MAX {
            wrong.push(format!("{input}: {lines} lines:\n{text}"));
        }

        if verdict.confidence == linerate_model::finding::Confidence::High {
            wrong.push(format!(
                "{input}: certain, although not every rival was measured"
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_fine_of_which_lines_were_not_understood() {
    let text = "$ tc -s qdisc show dev eth0\nqdisc fq_codel 0: root refcnt 2 limit 10240p flows \
                1024\n Sent 9 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)\n\
                $ tc -s class show dev eth0\nclass strange of a later release\n";
    let file = tempfile::NamedTempFile::new().expect("a file");

    for (text, is_fine) in [
        (text, false),
        (text.split("$ tc -s class").next().unwrap_or_default(), true),
    ] {
        std::fs::write(file.path(), text).expect("written");
        let diagnosis =
            diagnose(&Query::of(Source::Files(vec![file.path().to_owned()]))).expect("a diagnosis");
        let (text, _) = report(&diagnosis);
        let line = |label: &str| {
            text.lines()
                .find(|line| line.starts_with(label))
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(
            line("Checked").contains("queues and shapers (lines not understood)"),
            !is_fine,
            "{text}"
        );
        assert_eq!(
            line("Unread").contains("lines not understood: 1"),
            !is_fine,
            "{text}"
        );
    }
}

#[test]
fn every_unknown_line_is_counted() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = format!(
        "$ uname -r\n6.1.0\n$ mystery\n{}",
        "no output of any tool\n".repeat(10_500)
    );
    std::fs::write(file.path(), text).expect("written");

    let diagnosis =
        diagnose(&Query::of(Source::Files(vec![file.path().to_owned()]))).expect("a diagnosis");
    // The command is unknown as well.
    assert_eq!(diagnosis.unread_count, 10_500);
    assert!(report(&diagnosis).0.contains("lines not understood: 10500"));
}
