//! Goal: no file that a user names costs more memory than the longest valid one. Method: a device
//! without an end and a sparse file of 2 GiB in the place of every file that is read whole, in a
//! process with 1 GiB of address space.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use linerate_interop::{Finished, Process, each_case, limited};

/// More than any file may need, less than a device without an end fills in a second. In KiB.
const ADDRESS_SPACE_KIB: u32 = 1 << 20;

/// `FILE` in these words is the file.
fn run(words: &str, file: &str, state: &Path) -> Finished {
    let mut command = limited(&format!("ulimit -v {ADDRESS_SPACE_KIB}"));
    command.args(
        words
            .split(' ')
            .map(|word| if word == "FILE" { file } else { word }),
    );

    // Cargo turns the history off for tests.
    command
        .env("XDG_STATE_HOME", state)
        .env_remove("LINERATE_STORE");
    Process::start(command).finish()
}

#[test]
fn files_without_an_end_are_refused_with_their_bound() {
    let rows: [(&str, i32, &str); 12] = [
        ("report FILE", 1, "longer than 64 MiB"),
        ("compare FILE ./other", 1, "longer than 64 MiB"),
        ("history show FILE", 1, "longer than 64 MiB"),
        ("history import FILE", 1, "longer than 64 MiB"),
        ("fleet hosts -i FILE", 2, "longer than 4 MiB"),
        (
            "fleet hosts --ssh-hosts h* --ssh-config FILE",
            2,
            "longer than 4 MiB",
        ),
        ("http lab --plan-only FILE", 2, "longer than 64 KiB"),
        (
            "http load http://127.0.0.1:9/ --method POST --allow-unsafe-methods --body FILE",
            2,
            "longer than 64 MiB",
        ),
        (
            "http load https://127.0.0.1:9/ --cacert FILE",
            2,
            "longer than 16 MiB",
        ),
        ("serve --web --token-file FILE", 2, "longer than 4 KiB"),
        (
            "serve --private-key FILE --users ./none",
            2,
            "longer than 64 KiB",
        ),
        (
            "iperf3 -s --rsa-private-key-path FILE --authorized-users-path FILE",
            1,
            "longer than 16 MiB",
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let sparse = folder.path().join("sparse");
    File::create(&sparse)
        .and_then(|file| file.set_len(2 << 30))
        .expect("a sparse file");

    // Otherwise that others may read it is the error of a file of tokens.
    fs::set_permissions(&sparse, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    let sparse = sparse.to_str().expect("a plain path");
    each_case(&rows, |(words, code, text)| {
        for file in ["/dev/zero", sparse] {
            let finished = run(words, file, folder.path());
            finished
                .expect_code(*code)
                .expect_stderr(file)
                .expect_stderr(text);
        }
    });
}
