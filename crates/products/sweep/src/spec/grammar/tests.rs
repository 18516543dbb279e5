use proptest::prelude::*;

use super::*;

fn one(text: &str) -> Result<Vec<SweptFactor>, FactorError> {
    factors(&[text.to_owned()], false)
}

#[test]
fn factors_with_and_without_levels() {
    let got = one(
        "streams=1..8,congestion=cubic,bbr,window=64K..16M,rate=100M..10G,affinity=any,0,0/1,any/1",
    )
    .expect("all");
    let levels: Vec<_> = got
        .iter()
        .map(|swept| (swept.name, swept.levels.clone()))
        .collect();
    let pin = |client, server| CpuPinning { client, server };

    assert_eq!(
        levels,
        [
            ("streams", Levels::Range(1, 8)),
            (
                "congestion",
                Levels::Congestion(vec!["cubic".to_owned(), "bbr".to_owned()])
            ),
            ("window", Levels::Range(65_536, 16 << 20)),
            ("rate", Levels::Range(100_000_000, 10_000_000_000)),
            (
                "affinity",
                Levels::Affinity(vec![
                    pin(None, None),
                    pin(Some(0), None),
                    pin(Some(0), Some(1)),
                    pin(None, Some(1))
                ])
            ),
        ]
    );
    let repeated = factors(&["streams".to_owned(), "length=1..4K".to_owned()], false).expect("two");
    assert_eq!(repeated[0].levels, Levels::Range(1, 64));
    assert_eq!(repeated[1].levels, Levels::Range(1, 4096));

    let listed = one("streams=16,1,4,congestion,window=1M,64K").expect("lists");
    assert_eq!(listed[0].levels, Levels::List(vec![1, 4, 16]));
    assert_eq!(
        (listed[1].name, listed[2].to_string()),
        ("congestion", "window=64K,1M".to_owned())
    );
    assert_eq!(
        one("congestion").expect("all of the host")[0].levels,
        Levels::Congestion(vec![])
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = ";,;x;streams=;streams=4;streams=0..4;streams=1..129;streams=8..8;streams=1..2,3;streams=3,1..2;streams=4,4;streams=1,129;streams=1...4;\
                   streams=-1..4;streams=+1..4;streams,streams;length=1..2M;window=1..2K;rate=1..10G;\
                   rate=99999999999999999999..1;rate=1G..99999999T;congestion=cubic;congestion=cubic,cubic;congestion=a b,c;\
                   affinity=x,1;affinity=0,1024;affinity=0/,1;cubic,congestion;congestion,cubic;window=64K..é";
    for text in refused.split(';') {
        assert!(one(text).is_err(), "{text}");
    }
}

#[test]
fn choices_and_text_have_limits() {
    let list = |count: u32| {
        let cpus: Vec<String> = (0..count).map(|cpu| cpu.to_string()).collect();
        format!("affinity={}", cpus.join(","))
    };
    let most = u32::try_from(CHOICES_MAX).expect("a small number");
    assert!(one(&list(most)).is_ok());

    let error = one(&list(most + 1))
        .expect_err("one choice more")
        .to_string();
    assert!(error.contains("64 choices"), "{error}");

    let halves = vec!["x".repeat(TEXT_BYTES_MAX / 2); 3];
    let error = factors(&halves, false).expect_err("long");
    assert_eq!(error.to_string(), "more than 8192 bytes");
}

fn any_range(
    name: &'static str,
    limits: RangeInclusive<u64>,
) -> impl Strategy<Value = SweptFactor> {
    (limits.clone(), limits)
        .prop_filter("an empty range", |(a, b)| a != b)
        .prop_map(move |(a, b)| SweptFactor {
            name,
            levels: Levels::Range(a.min(b), a.max(b)),
        })
}

fn any_swept() -> impl Strategy<Value = SweptFactor> {
    let cpu = || proptest::option::of(0_u32..=1023);
    let pinnings = (cpu(), cpu()).prop_map(|(client, server)| CpuPinning { client, server });
    let names = proptest::collection::hash_set("[a-z0-9_-]{1,15}", 2..8);
    prop_oneof![
        any_range("streams", STREAMS),
        any_range("length", TCP_LENGTH),
        any_range("window", WINDOW),
        any_range("rate", RATE),
        names
            .prop_filter("a factor's name", |all| !all
                .iter()
                .any(|one| NAMES.contains(&one.as_str())))
            .prop_map(|all| SweptFactor {
                name: "congestion",
                levels: Levels::Congestion(all.into_iter().collect())
            }),
        proptest::collection::vec(pinnings, 2..8)
            .prop_filter("given twice", |all| (1..all.len())
                .all(|at| !all[..at].contains(&all[at])))
            .prop_map(|all| SweptFactor {
                name: "affinity",
                levels: Levels::Affinity(all)
            }),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(swept in any_swept()) {
        prop_assert_eq!(one(&swept.to_string()), Ok(vec![swept]));
    }

    #[test]
    fn whatever_is_typed_is_read_as_it_is_printed_or_refused(
        text in "((streams|length|window|rate|congestion|affinity)=?|[0-9]{1,4}[KMGT]?|\\.\\.|any|/|,|cubic|é){0,12}",
        is_udp: bool,
    ) {
        if let Ok(read) = factors(&[text], is_udp) {
            let printed: Vec<String> = read.iter().map(SweptFactor::to_string).collect();
            prop_assert_eq!(factors(&printed, is_udp), Ok(read.clone()));
            prop_assert_eq!(factors(&[printed.join(",")], is_udp), Ok(read));
        }
    }
}
