//! Goal: this parser and the C library agree on every command line. Method: a table of known
//! answers, and generated argument lists that a small C program around `getopt_long` reads as well.

use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

/// ShortOption options `ab:c::`, long ones as in the C program below. The id of `b` and its long forms is
/// the same.
fn grammar() -> Grammar<u8> {
    let short = |letter, argument| ShortOption {
        letter,
        argument,
        id: letter,
    };
    let long = |name, argument, id| LongOption { name, argument, id };
    Grammar {
        shorts: vec![
            short(b'a', Argument::None),
            short(b'b', Argument::Required),
            short(b'c', Argument::Optional),
        ],
        longs: vec![
            long("version", Argument::None, b'V'),
            long("version4", Argument::None, b'4'),
            long("verbose", Argument::None, b'W'),
            long("bitrate", Argument::Required, b'b'),
            long("bitrate-old", Argument::Required, b'b'),
            long("debug", Argument::Optional, b'd'),
            long("time", Argument::Required, b't'),
            long("times", Argument::Optional, b's'),
        ],
    }
}

const C_PROGRAM: &str = r#"
#include <getopt.h>
#include <stdio.h>
static struct option longs[] = {
    {"version", no_argument, 0, 'V'}, {"version4", no_argument, 0, '4'}, {"verbose", no_argument, 0, 'W'},
    {"bitrate", required_argument, 0, 'b'}, {"bitrate-old", required_argument, 0, 'b'},
    {"debug", optional_argument, 0, 'd'}, {"time", required_argument, 0, 't'}, {"times", optional_argument, 0, 's'},
    {0, 0, 0, 0}};
int main(int argc, char **argv) {
    int id;
    setvbuf(stdout, 0, _IONBF, 0);
    dup2(1, 2);
    while ((id = getopt_long(argc, argv, "ab:c::", longs, 0)) != -1)
        if (id != '?') printf("%c=%s\n", id, optarg ? optarg : "(none)");
    return 0;
}
"#;

/// Expected output of the C program.
fn transcript(program: &str, args: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for found in Getopt::new(&grammar(), args) {
        match found {
            Ok(found) => {
                text.extend([found.id, b'=']);
                text.extend(found.value.map_or(b"(none)".as_slice(), OsStr::as_bytes));
            }
            Err(error) => text.extend(error.message(OsStr::new(program), GLIBC)),
        }

        text.push(b'\n');
    }

    text
}

#[test]
fn known_command_lines() {
    let rows: &[(&[&str], &str)] = &[
        (&["-a", "x", "-b", "1", "y"], "a=(none)\nb=1\n"),
        (&["-ab1", "-b=4"], "a=(none)\nb=1\nb==4\n"),
        (&["-c2", "-c", "2"], "c=2\nc=(none)\n"),
        (&["-b", "--", "-a"], "b=--\na=(none)\n"),
        (&["-a", "--", "-a"], "a=(none)\n"),
        (&["-"], ""),
        (&["--bitr", "5", "--bitrate-old=6"], "b=5\nb=6\n"),
        (&["--version", "--version4"], "V=(none)\n4=(none)\n"),
        (
            &["--time=", "--debug", "2", "--deb=2"],
            "t=\nd=(none)\nd=2\n",
        ),
        (&["-aq"], "a=(none)\np: invalid option -- 'q'\n"),
        (&["-b"], "p: option requires an argument -- 'b'\n"),
        (&["--time"], "p: option '--time' requires an argument\n"),
        (
            &["--verb=1"],
            "p: option '--verbose' doesn't allow an argument\n",
        ),
        (&["--bogus=1"], "p: unrecognized option '--bogus=1'\n"),
        (
            &["--ver"],
            "p: option '--ver' is ambiguous; possibilities: '--version' '--version4' '--verbose'\n",
        ),
        (
            &["--tim=1"],
            "p: option '--tim=1' is ambiguous; possibilities: '--time' '--times'\n",
        ),
    ];
    for (args, expected) in rows {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let text = transcript("p", &args);
        assert_eq!(String::from_utf8_lossy(&text), *expected, "{args:?}");
    }
}

#[test]
fn the_older_wording_is_a_matter_of_quotes() {
    let old = OLD_GNU;
    let bogus = GetoptError::Unrecognized(b"bogus".to_vec());
    assert_eq!(
        bogus.message(OsStr::new("iperf"), old),
        b"iperf: unrecognized option `--bogus'"
    );

    let letter = GetoptError::InvalidLetter(b'q');
    assert_eq!(
        letter.message(OsStr::new("iperf"), old),
        b"iperf: invalid option -- q"
    );
}

#[test]
fn generated_command_lines_are_read_as_the_c_library_reads_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(reference) = compile(directory.path()) else {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no C compiler, or a C library other than glibc"
        );
        return;
    };

    // A fixed seed: the same lists in every run.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(400), rng);
    runner
        .run(&prop::collection::vec(word(), 0..6), |args| {
            let output = Command::new(&reference)
                .arg0("prog")
                .args(&args)
                .env_remove("POSIXLY_CORRECT")
                .output();
            let expected = output.expect("the program was just compiled").stdout;
            let ours = transcript("prog", &args);
            prop_assert_eq!(
                String::from_utf8_lossy(&ours),
                String::from_utf8_lossy(&expected),
                "{:?}",
                args
            );

            Ok(())
        })
        .expect("both agree");
}

/// Words made of parts that matter to the parser, and now and then of anything.
fn word() -> impl Strategy<Value = OsString> {
    const PARTS: [&str; 22] = [
        "-", "--", "=", "a", "b", "c", "q", "5", ":", ";", "ver", "version", "version4", "verbose",
        "bit", "bitrate", "-old", "debug", "tim", "time", "s", "x y",
    ];

    let parts = prop::collection::vec(prop::sample::select(PARTS.as_slice()), 0..4)
        .prop_map(|parts| parts.concat());
    let option = parts.clone().prop_map(|rest| format!("-{rest}"));
    let long = parts.clone().prop_map(|rest| format!("--{rest}"));
    let bytes = prop::collection::vec(1_u8..=255, 0..6).prop_map(OsString::from_vec);

    prop_oneof![
        4 => long.prop_map(OsString::from),
        4 => option.prop_map(OsString::from),
        2 => parts.prop_map(OsString::from),
        1 => bytes,
    ]
}

fn compile(directory: &Path) -> Option<PathBuf> {
    let source = directory.join("reference.c");
    let program = directory.join("reference");
    std::fs::write(&source, format!("#include <unistd.h>\n{C_PROGRAM}")).ok()?;

    let compiled = Command::new("cc")
        .arg("-o")
        .args([&program, &source])
        .status()
        .ok()?
        .success();
    (compiled && cfg!(target_env = "gnu")).then_some(program)
}
