//! Goal: no text makes the importers or the rules fail, and the order of blocks does not matter.
//! Method: recorded outputs that are cut, mixed and spoiled at random.

use std::path::Path;

use linerate::diagnose::import_texts;
use linerate_doctor::{Observed, compare, diagnose};
use linerate_host::import::Imported;
use proptest::prelude::*;

fn import(name: &str, text: &str) -> Imported {
    import_texts(&[(name, text)])
}

fn fixtures() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/doctor");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("fixtures")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();

    let texts = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "txt"));
    texts
        .map(|path| std::fs::read_to_string(path).expect("text"))
        .collect()
}

fn judge(text: &str) {
    let observed: Vec<Observed> = import("x", text)
        .snapshots
        .into_iter()
        .map(Observed::once)
        .collect();
    let _ = diagnose(&observed, &[]);

    if let [a, b, ..] = observed.as_slice() {
        let _ = compare(a, b, &[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn corrupted_recordings_do_not_panic(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..20),
    ) {
        let fixtures = fixtures();
        let mut text = String::new();
        for (file, from, to) in picks {
            let lines: Vec<&str> = file.get(&fixtures).lines().collect();
            let (a, b) = (from.index(lines.len()), to.index(lines.len()));
            text.push_str(&lines[a.min(b)..a.max(b)].join("\n"));
        }
        let mut characters: Vec<char> = text.chars().collect();
        for (at, character) in noise {
            if !characters.is_empty() {
                let at = at.index(characters.len());
                characters[at] = character;
            }
        }
        judge(&characters.into_iter().collect::<String>());
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "(?s).{0,400}") {
        judge(&text);
    }

    #[test]
    fn the_order_of_blocks_does_not_matter(file in any::<prop::sample::Index>(), seed in any::<u64>()) {
        // Recordings of one NIC; in transcripts and notes the order has a meaning.
        let fixtures: Vec<String> = fixtures().into_iter().filter(|text| text.contains("host=lab") || text.contains("r8169")).collect();
        let text = file.get(&fixtures);
        let mut blocks: Vec<String> = text.split("### ").filter(|block| !block.is_empty()).map(|block| format!("### {block}\n")).collect();
        let straight = import("x", &blocks.concat());
        let count = blocks.len();
        let mut state = seed;
        for index in (1..count).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            blocks.swap(index, usize::try_from(state >> 33).unwrap_or(0) % (index + 1));
        }
        prop_assert_eq!(import("x", &blocks.concat()).snapshots, straight.snapshots);
    }
}
