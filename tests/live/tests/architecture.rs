//! Rules about the repository itself: who may depend on whom, where `unsafe` may live, what no file
//! may mention, and which tests a page names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Every crate of ours and the ones of ours it may use. ARCHITECTURE.md explains the directions.
const ALLOWED: [(&str, &[&str]); 26] = [
    ("linerate-macros", &[]),
    ("linerate-model", &["linerate-macros"]),
    ("linerate-sys", &[]),
    // Files of keys are read there, and only where their owner and mode keep others out.
    ("linerate-trust", &["linerate-model", "linerate-sys"]),
    ("linerate-iperf3", DIALECT),
    ("linerate-iperf2", DIALECT),
    ("linerate-native", &["linerate-model"]),
    ("linerate-stamp", &[]),
    // The test page has the frame of all pages.
    ("linerate-web", &["linerate-document"]),
    (
        "linerate-fleet",
        &[
            "linerate-model",
            "linerate-sys",
            "linerate-engine",
            "linerate-host",
            "linerate-store",
            "linerate-document",
            "linerate-doctor",
            "linerate-history",
        ],
    ),
    ("linerate-sweep", &["linerate-model", "linerate-document"]),
    (
        "linerate-path",
        &[
            "linerate-model",
            "linerate-sys",
            "linerate-iperf3",
            // The client of ndt7 moves the data of one connection.
            "linerate-web",
            "linerate-trust",
            "linerate-document",
            "linerate-engine",
            "linerate-host",
            "linerate-store",
            "linerate-doctor",
        ],
    ),
    (
        "linerate-history",
        &[
            "linerate-model",
            "linerate-sys",
            "linerate-host",
            "linerate-store",
            "linerate-document",
            "linerate-doctor",
            "linerate-iperf2",
            "linerate-iperf3",
        ],
    ),
    ("linerate-store", &["linerate-model", "linerate-sys"]),
    (
        "linerate-http",
        &[
            "linerate-model",
            "linerate-sys",
            "linerate-document",
            "linerate-engine",
            "linerate-host",
            "linerate-store",
            "linerate-doctor",
            "linerate-history",
            // The identity of a control channel is that of any server of the native dialect.
            "linerate-path",
            // What verifies certificates is that of the client of ndt7.
            "linerate-trust",
        ],
    ),
    ("linerate-document", &["linerate-model", "linerate-sys"]),
    ("linerate-tui", &["linerate-model", "linerate-document"]),
    (
        "linerate-doctor",
        &[
            "linerate-model",
            "linerate-sys",
            "linerate-iperf3",
            "linerate-document",
            "linerate-engine",
            "linerate-host",
        ],
    ),
    ("linerate-host", &["linerate-model", "linerate-sys"]),
    (
        "linerate-engine",
        &[
            "linerate-model",
            "linerate-sys",
            "linerate-iperf3",
            "linerate-iperf2",
            "linerate-native",
            "linerate-stamp",
            "linerate-trust",
            "linerate-web",
        ],
    ),
    (
        "linerate",
        &[
            "linerate-model",
            "linerate-sys",
            "linerate-iperf3",
            "linerate-iperf2",
            "linerate-document",
            "linerate-engine",
            "linerate-doctor",
            "linerate-fleet",
            "linerate-host",
            "linerate-sweep",
            "linerate-http",
            "linerate-history",
            "linerate-path",
            "linerate-store",
            "linerate-trust",
            "linerate-tui",
            // The endpoint of the metrics has heads of HTTP/1.1.
            "linerate-web",
        ],
    ),
    (
        "linerate-cli",
        &[
            "linerate",
            "linerate-model",
            "linerate-sys",
            "linerate-iperf2",
            "linerate-iperf3",
            "linerate-document",
            "linerate-history",
            "linerate-sweep",
            "linerate-http",
        ],
    ),
    ("linerate-boundary", &["linerate-sys"]),
    ("linerate-capi", C_LIBRARY),
    ("linerate-libiperf", C_LIBRARY),
    // Its raw clients need TLS with raw public keys, and connections from several addresses of this
    // host.
    // Thousands of agents of a fleet in one process need their machine.
    (
        "linerate-interop",
        &["linerate-sys", "linerate-trust", "linerate-fleet"],
    ),
];

/// A dialect has writers, and options that read files and the terminal.
const DIALECT: &[&str] = &["linerate-model", "linerate-document", "linerate-sys"];

/// Crates that a library for programs in C may use.
const C_LIBRARY: &[&str] = &[
    "linerate",
    "linerate-boundary",
    "linerate-model",
    "linerate-sys",
    "linerate-iperf3",
    "linerate-document",
];

/// Crates with blocks of unsafe code.
const UNSAFE_CRATES: [&str; 2] = ["linerate-sys", "linerate-boundary"];

/// Crates that export symbols, whose attributes are unsafe.
const EXPORTING_CRATES: [&str; 2] = ["linerate-capi", "linerate-libiperf"];

/// Their unsafe code: attributes of functions, and the names of functions in C that a
/// jump leads to.
const EXPORTS: [&str; 4] = [
    "#[unsafe(no_mangle)]",
    "#[unsafe(naked)]",
    "unsafe extern \"C\" {",
    "#![allow(unsafe_code)]",
];

/// Words that name nothing outside this project: metaphors, and verbs of speech for programs. They
/// occur in no name, comment, message or page. Terms that are ours on purpose are in
/// docs/glossary.md.
const PRIVATE_WORDS: &str = "adapter asker believed bell course crew crowd dealer deed desk \
                             figures firing flushing gathering hall heard house ledger leg lending \
                             makings newcomer nobody outbox patience processor rulebook seat \
                             somebody soundness speaker spell spoken talk teller told voice \
                             whoever wish wishes";

/// Terms of the field among them, and the files that they belong to: ITU-T G.107 rates calls over a
/// path by this word.
const FIELD_TERMS: [(&str, &str); 1] = [("path", "voice")];

/// Texts of interfaces with such a word: keys of facts and of records, a user
/// (passwd(5)), a kind of interrupt.
const INTERFACES: [&str; 7] = [
    "told_mtu",
    "rename = \"adapter\"",
    "part(\"adapter\")",
    "--user nobody",
    "USER: &str = \"nobody\"",
    "inter-processor",
    "\"voice\":",
];

/// Phrases in place of a term of the field, in comments, and in the texts and pages that users
/// read: "anew" is "again" or "re-", "is over" is "has ended", "so many" is a number, "in front of"
/// is "before", "goes on" is "continues", "is through" is "has finished", "looks at" is "reads" or
/// "checks", "brought" is "returned".
const PRIVATE_PHRASES: [&str; 25] = [
    "anew",
    "are over",
    "are through",
    "bring",
    "brings",
    "brought",
    "go on",
    "goes on",
    "going on",
    "in front of",
    "is over",
    "is through",
    "look at",
    "looked at",
    "looks at",
    "of no use",
    "so many",
    "stand for",
    "stands for",
    "stands in for",
    "tells",
    "told",
    "was over",
    "went on",
    "were over",
];

/// Foreign crates and the ones of ours that alone may use them.
const RESERVED: [(&str, &[&str]); 17] = [
    ("libc", &["linerate-sys"]),
    ("socket2", &["linerate-sys"]),
    ("rustix", &["linerate-sys"]),
    ("io-uring", &["linerate-sys"]),
    ("clap", &["linerate-cli"]),
    ("tracing-subscriber", &["linerate-cli"]),
    ("tokio", &["linerate-http", "linerate-fleet"]),
    ("async-nats", &["linerate-fleet"]),
    ("hyper", &["linerate-http"]),
    ("rustls", &["linerate-http", "linerate-trust"]),
    ("httparse", &["linerate-http", "linerate-web"]),
    ("rusqlite", &["linerate-store"]),
    ("ratatui", &["linerate-tui"]),
    ("ratatui-core", &["linerate-tui"]),
    ("crossterm", &["linerate-tui"]),
    ("postgres", &["linerate-store"]),
    ("tokio-postgres-rustls", &["linerate-store"]),
];

#[test]
fn crates_depend_in_the_allowed_directions_only() {
    let metadata = metadata();
    let packages = metadata["packages"]
        .as_array()
        .expect("cargo metadata lists packages");
    let ours: BTreeSet<&str> = packages.iter().map(name).collect();
    let mut wrong = Vec::new();

    for package in packages {
        let from = name(package);
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == from) else {
            wrong.push(format!("{from} is not in the table of allowed directions"));
            continue;
        };

        for dependency in package["dependencies"]
            .as_array()
            .expect("cargo metadata lists dependencies")
        {
            let to = name(dependency);
            // Tests of sweeps apply the rules of the doctor, which its callers pass in.
            let is_tested_with =
                dependency["kind"] == "dev" && (from, to) == ("linerate-sweep", "linerate-doctor");
            if ours.contains(to) && !allowed.contains(&to) && !is_tested_with {
                wrong.push(format!("{from} depends on {to}"));
            }

            if RESERVED
                .iter()
                .any(|(reserved, owners)| *reserved == to && !owners.contains(&from))
            {
                wrong.push(format!("{from} depends on {to}, which is reserved"));
            }
        }
    }

    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Folders of crates, the lowest storey first.
const STOREYS: [&str; 4] = ["core", "dialects", "products", "faces"];

/// The one arrow upward: the engine drives the protocol machines of the dialects.
const UPWARD: &str = "linerate-engine";

#[test]
fn arrows_point_down_the_storeys() {
    let metadata = metadata();
    let packages = metadata["packages"]
        .as_array()
        .expect("cargo metadata lists packages");
    let storey_of = |wanted: &str| {
        let package = packages.iter().find(|package| name(package) == wanted)?;
        let path = package["manifest_path"].as_str()?;
        STOREYS
            .iter()
            .position(|storey| path.contains(&format!("/crates/{storey}/")))
    };
    let mut wrong = Vec::new();
    let mut arrows = 0;

    for package in packages {
        let from = name(package);
        let Some(floor) = storey_of(from) else {
            continue;
        };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();

        for dependency in dependencies.filter(|dependency| dependency["kind"].is_null()) {
            let to = name(dependency);
            let Some(below) = storey_of(to) else { continue };
            arrows += 1;
            if below > floor && from != UPWARD {
                wrong.push(format!("{from} -> {to}"));
            }
        }
    }

    assert!(
        wrong.is_empty() && arrows > 50,
        "{arrows} arrows: {wrong:#?}"
    );
}

/// Products whose modules but `run` compute only.
const PURE_PRODUCTS: [&str; 3] = ["doctor", "path", "sweep"];

/// Products with sockets elsewhere too: server, generator, readers of files.
const OTHER_PRODUCTS: [&str; 2] = ["history", "http"];
/// Their modules that compute only.
const PURE_MODULES: [&str; 4] = ["spec", "plan", "conclude", "report"];

/// Names of files, sockets, threads and clocks. An address is a value.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::thread",
    "TcpListener",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
    "Instant::now",
    "SystemTime",
    "linerate_sys",
];

#[test]
fn only_the_runner_of_a_product_has_files_sockets_threads_and_clocks() {
    let root = root();
    let mut found = Vec::new();
    let mut read = 0;

    for file in tracked_files(&root) {
        if !is_pure(&file) {
            continue;
        }

        read += 1;
        let text = text_of(&root, &file);
        for name in IMPURE.iter().filter(|name| text.contains(**name)) {
            found.push(format!("{}: {name}", file.display()));
        }
    }

    assert!(found.is_empty() && read > 50, "{read} files: {found:#?}");
}

/// True if a file belongs to a module of a product that computes only.
fn is_pure(file: &Path) -> bool {
    let inside = |product: &&str| {
        let source = Path::new("crates/products").join(product).join("src");
        file.strip_prefix(source).ok()
    };
    let is_of = |file: &Path, module: &str| {
        file.starts_with(module) || file == Path::new(module).with_extension("rs")
    };

    let mut whole = PURE_PRODUCTS.iter().filter_map(inside);
    let mut parts = OTHER_PRODUCTS.iter().filter_map(inside);
    whole.any(|file| !is_of(file, "run"))
        || parts.any(|file| PURE_MODULES.iter().any(|module| is_of(file, module)))
}

#[test]
fn only_the_system_crate_and_the_boundary_may_contain_unsafe_code() {
    let metadata = metadata();
    let mut lacking = Vec::new();

    for package in metadata["packages"]
        .as_array()
        .expect("cargo metadata lists packages")
    {
        for target in package["targets"]
            .as_array()
            .expect("cargo metadata lists targets")
        {
            let path = target["src_path"]
                .as_str()
                .expect("a target has a root file");
            let is_shipped = target["kind"].as_array().is_some_and(|kinds| {
                kinds
                    .iter()
                    .any(|k| k == "lib" || k == "bin" || k == "cdylib")
            });

            let text = fs::read_to_string(path).expect("the root file can be read");
            let is_excepted =
                UNSAFE_CRATES.contains(&name(package)) || EXPORTING_CRATES.contains(&name(package));
            if is_shipped && !is_excepted && !text.contains("#![forbid(unsafe_code)]") {
                lacking.push(path.to_owned());
            }
        }
    }

    assert!(
        lacking.is_empty(),
        "without #![forbid(unsafe_code)]: {lacking:#?}"
    );
}

#[test]
fn libraries_for_c_export_functions_and_contain_no_other_unsafe_code() {
    let root = root();
    let mut found = Vec::new();
    let mut exports = 0;

    for file in tracked_files(&root) {
        let is_exporting = EXPORTING_CRATES.iter().any(|name| {
            let folder = name
                .strip_prefix("linerate-")
                .expect("names begin with that of the program");
            file.starts_with(Path::new("crates/faces").join(folder).join("src"))
        });
        if !is_exporting || file.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }

        for (index, line) in text_of(&root, &file).lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let is_export = EXPORTS.contains(&line.trim());
            exports += usize::from(is_export);

            if line.contains("unsafe") && !is_comment && !is_export {
                found.push(format!("{}:{}: {line}", file.display(), index + 1));
            }
        }
    }

    assert!(
        found.is_empty() && exports > 20,
        "{exports} exports; belongs to linerate-boundary: {found:#?}"
    );
}

#[test]
fn no_file_names_a_place_that_exists_on_one_machine_only() {
    let root = root();
    let unwanted = unwanted();
    let mut found = Vec::new();

    for file in tracked_files(&root) {
        let name = file.display().to_string();
        // A lock file names the registry; a symbolic link or a deleted file has no text.
        let Ok(text) = fs::read_to_string(root.join(&file)) else {
            continue;
        };
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|_| !name.ends_with("Cargo.lock"))
        {
            if let Some(word) = unwanted.iter().find(|word| line.contains(word.as_str())) {
                found.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }

    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn names_comments_messages_and_pages_use_no_private_words() {
    let root = root();
    let mut found = Vec::new();

    for file in tracked_files(&root).iter().filter(|file| is_plain(file)) {
        let name = file.to_string_lossy();
        let is_private = |word: &String| {
            PRIVATE_WORDS.split(' ').any(|private| private == word)
                && !FIELD_TERMS
                    .iter()
                    .any(|(files, term)| name.contains(files) && term == word)
        };
        let mut check = |text: &str, number: usize| {
            for word in words(text).filter(is_private) {
                found.push(format!("{name}:{number}: {word}"));
            }
        };
        check(&name, 0);

        let text = INTERFACES
            .iter()
            .fold(text_of(&root, file), |text, own| text.replace(own, ""));
        for (index, line) in text.lines().enumerate() {
            // Most lines contain none of the words, not even as a part of another one.
            let lower = line.to_ascii_lowercase();
            if PRIVATE_WORDS.split(' ').any(|word| lower.contains(word)) {
                check(line, index + 1);
            }
        }
    }

    assert!(
        found.is_empty(),
        "use the terms of the field, see docs/glossary.md: {found:#?}"
    );
}

#[test]
fn comments_messages_and_pages_use_no_private_phrases() {
    let root = root();
    let mut found = Vec::new();

    for file in tracked_files(&root).iter().filter(|file| is_plain(file)) {
        let (words, lines) = joined_words(&text_of(&root, file));
        for phrase in PRIVATE_PHRASES {
            for (at, _) in words.match_indices(&format!(" {phrase} ")) {
                let line = lines.partition_point(|begin| *begin <= at + 1);
                found.push(format!("{}:{line}: {phrase}", file.display()));
            }
        }
    }

    assert!(found.is_empty(), "write the term instead: {found:#?}");
}

/// True if the words of a file are ours: sources, with the messages and help texts in them, pages,
/// settings and scripts of this repository. This file has the lists.
fn is_plain(file: &Path) -> bool {
    let kind = file.extension().and_then(|kind| kind.to_str());
    let is_text = matches!(kind, Some("rs" | "md" | "toml" | "mk" | "yml"))
        || file.ends_with("Makefile")
        || file.starts_with(".ci");
    is_text && !file.ends_with("tests/live/tests/architecture.rs")
}

/// Words of a text in lower case with a space around each, so that a phrase is found where a line
/// breaks it, and where the words of each line begin. A name with underscores is one word:
/// `is_over` is no phrase.
fn joined_words(text: &str) -> (String, Vec<usize>) {
    let mut joined = " ".to_owned();
    let mut lines = Vec::new();

    for line in text.lines() {
        lines.push(joined.len());
        for word in line
            .split(|c: char| !c.is_ascii_alphabetic() && c != '_')
            .filter(|word| !word.is_empty())
        {
            joined.push_str(&word.to_ascii_lowercase());
            joined.push(' ');
        }
    }

    (joined, lines)
}

/// The words of names and sentences, in lower case: `PlanTests`, `plan_tests` and `plan tests` are
/// the same.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphabetic())
        .flat_map(|name| {
            let mut words = vec![String::new()];
            let mut was_lower = false;

            for c in name.chars() {
                if c.is_ascii_uppercase() && was_lower {
                    words.push(String::new());
                }

                was_lower = c.is_ascii_lowercase();
                words
                    .last_mut()
                    .expect("it begins with one")
                    .push(c.to_ascii_lowercase());
            }

            words
        })
}

#[test]
fn every_test_that_the_page_about_security_names_exists() {
    let root = root();
    let page = fs::read_to_string(root.join("docs/security-tests.md")).expect("the page is there");
    let files = tracked_files(&root);
    let shown_by = page
        .lines()
        .filter_map(|line| line.strip_suffix(" |")?.rsplit_once("| "));
    let mut named = 0;
    let mut wrong = Vec::new();

    for (_, cell) in shown_by {
        let mut texts = Vec::new();
        for word in cell.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                let is_it = |file: &&PathBuf| file.ends_with(word);
                texts = files
                    .iter()
                    .filter(is_it)
                    .map(|file| text_of(&root, file))
                    .collect();
                named += 1;
            }

            let is_fuzzed = || {
                root.join(format!("tests/fuzz/fuzz_targets/{word}.rs"))
                    .exists()
            };
            let is_test = || {
                texts
                    .iter()
                    .any(|text| text.contains(&format!("fn {word}(")))
            };
            if texts.is_empty() && !is_fuzzed() || is_name(word) && !is_test() && !is_fuzzed() {
                wrong.push(word.to_owned());
            }
        }
    }

    assert!(
        wrong.is_empty(),
        "docs/security-tests.md names what does not exist: {wrong:#?}"
    );
    assert!(named > 50, "the page is read: {named} files");
}

/// The fuzz targets are a workspace of their own, which nothing else builds.
#[test]
fn every_fuzz_target_is_in_the_manifest() {
    let folder = root().join("tests/fuzz");
    let packages = metadata_in(&folder)["packages"].clone();
    let targets = packages[0]["targets"].as_array().expect("targets");
    let built: BTreeSet<&str> = targets
        .iter()
        .filter(|target| target["kind"][0] == "bin")
        .map(name)
        .collect();

    let files = fs::read_dir(folder.join("fuzz_targets")).expect("a folder");
    let names: Vec<String> = files
        .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    assert_eq!(built, names.iter().map(String::as_str).collect());
}

#[test]
fn every_path_of_the_glossary_exists() {
    let root = root();
    let page = text_of(&root, Path::new("docs/glossary.md"));
    let paths: Vec<&str> = page
        .split('`')
        .filter(|text| text.starts_with("crates/"))
        .collect();
    let missing: Vec<&&str> = paths
        .iter()
        .filter(|path| !root.join(path).exists())
        .collect();
    assert!(missing.is_empty() && paths.len() >= 20, "{missing:?}");
}

fn text_of(root: &Path, file: &Path) -> String {
    fs::read_to_string(root.join(file)).unwrap_or_default()
}

/// A function, not a file or an option.
fn is_name(word: &str) -> bool {
    word.contains('_')
        && word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Written in halves, so that this file passes its own test.
fn unwanted() -> Vec<String> {
    [
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        ("index.crates", ".io"),
        ("static.crates", ".io"),
    ]
    .iter()
    .map(|(left, right)| format!("{left}{right}"))
    .collect()
}

fn tracked_files(root: &Path) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git ls-files failed");
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let files: Vec<_> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect();
    assert!(
        files.iter().any(|file| file.ends_with("Cargo.toml")),
        "git lists no files of this workspace"
    );

    files
}

fn metadata() -> Value {
    metadata_in(&root())
}

/// Of the workspace in this folder.
fn metadata_in(folder: &Path) -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--no-deps",
            "--locked",
            "--offline",
        ])
        .current_dir(folder)
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn name(entry: &Value) -> &str {
    entry["name"].as_str().unwrap_or_default()
}
