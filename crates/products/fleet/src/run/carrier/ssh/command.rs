//! Commands for the login shell of a host: one line with one pair of single quotes, and none of
//! `!`, `\` and `"`, so that csh(1) and fish(1) pass it on as sh(1) does.

use std::env::consts::ARCH;
use std::fs::{self, File};
use std::io;

use crate::protocol::message::PREAMBLE;
use aws_lc_rs::digest::{SHA256, digest};

/// First line of a shell.
const SHELL_READY: &str = "LRF ready";

/// Exit code of a host without a usable agent.
const NEED_CODE: i32 = 93;
/// Exit code of a host where the copy does not run, for instance because its file system forbids
/// it.
pub(super) const NOT_EXECUTABLE_CODE: i32 = 94;
/// Copies that are kept.
const COPIES_MAX: u32 = 3;

/// Starts a program with these arguments: a `linerate` in the path of the login shell that has
/// agents, else the copy with this hash; prints `LRFLEET need` with system and machine where there
/// is none.
pub(super) fn start(sha256: &str, arguments: &str) -> String {
    format!(
        "exec sh -c 'IFS=; set -f; \
         if linerate fleet agent --help >/dev/null 2>&1; then exec linerate {arguments}; fi; \
         f={CACHE}/{sha256}/linerate; \
         if [ -x $f ]; then touch {CACHE}/{sha256}; exec $f {arguments}; fi; \
         echo LRFLEET need $(uname -sm); exit {NEED_CODE}'"
    )
}

/// Starts a shell that reads commands from standard input.
pub(super) fn shell() -> String {
    format!("exec sh -c 'echo {PREAMBLE}; echo {SHELL_READY}; exec sh'")
}

/// Copies a program from standard input, and removes all but the newest copies.
pub(super) fn copy(sha256: &str) -> String {
    let first_old = COPIES_MAX + 1;
    format!(
        "exec sh -c 'IFS=; set -f; umask 077; d={CACHE}; f=$d/{sha256}/linerate; t=$f.$$; mkdir -p \
         $d/{sha256} && cat >$t && chmod 700 $t || exit 1; if $t --version >/dev/null; then mv $t \
         $f; else rm -f $t; exit {NOT_EXECUTABLE_CODE}; fi; touch $d/{sha256}; cd $d && ls -t | \
         tail -n +{first_old} | while read -r old; do rm -rf ./$old; done; exit 0'"
    )
}

/// Folder of the copies, one folder for each hash.
const CACHE: &str = "${XDG_CACHE_HOME:-$HOME/.cache}/linerate/agent";

/// The file that runs, also when it was replaced.
const OWN: &str = "/proc/self/exe";

/// SHA-256 of the file that runs, hexadecimal.
///
/// # Errors
/// The file is not readable.
pub(super) fn sha256() -> io::Result<String> {
    let file = fs::read(OWN)?;
    let mut text = String::new();
    for byte in digest(&SHA256, &file).as_ref() {
        text += &format!("{byte:02x}");
    }

    Ok(text)
}

/// The file that runs, if a host with this system and machine can run it.
///
/// # Errors
/// Why not, with what to do.
pub(super) fn open_for(system_and_machine: &str) -> Result<File, String> {
    let why = match obstacle(cfg!(target_feature = "crt-static"), system_and_machine) {
        Some(why) => why,
        None => match File::open(OWN) {
            Ok(file) => return Ok(file),
            Err(error) => format!("{OWN} is not readable: {error}"),
        },
    };
    Err(format!(
        "no linerate on the host ({system_and_machine}), and {why}"
    ))
}

/// Why a program of this machine, static or with libraries, does not run on that host.
fn obstacle(is_static: bool, system_and_machine: &str) -> Option<String> {
    if !is_static {
        let text = "this one needs libraries; use the static one of `make dist`";
        return Some(text.to_owned());
    }

    let is_same = system_and_machine == format!("Linux {ARCH}");
    (!is_same).then(|| format!("this one is for {ARCH}; install it there"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};
    use std::time::{Duration, SystemTime};

    use super::*;

    const HASH: &str = "00ff";
    const ARGUMENTS: &str = "fleet agent --stdio";

    /// Runs a line as the login shell of a host with this folder for its cache does.
    fn at_host(cache: &Path, line: &str, input: &str) -> Output {
        let file = cache.join("input");
        fs::write(&file, input).expect("written");
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", line])
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_CACHE_HOME", cache);

        shell
            .stdin(Stdio::from(fs::File::open(file).expect("a file")))
            .output()
            .expect("a shell")
    }

    #[test]
    fn commands_are_one_line_that_every_login_shell_passes_on() {
        for line in [start(HASH, ARGUMENTS), copy(HASH), shell()] {
            assert_eq!(line.matches('\'').count(), 2, "{line}");
            assert!(
                line.starts_with("exec sh -c '") && line.ends_with('\''),
                "{line}"
            );
            assert!(!line.contains(['!', '\n', '"', '\\', '`']), "{line}");
        }
    }

    #[test]
    fn host_without_an_agent_names_its_machine_and_starts_the_copy_afterwards() {
        let cache = tempfile::tempdir().expect("a folder");
        let cache = cache.path().join("with spaces");
        fs::create_dir(&cache).expect("a folder");

        let without = at_host(&cache, &start(HASH, ARGUMENTS), "");
        assert_eq!(without.status.code(), Some(NEED_CODE));
        assert!(
            String::from_utf8_lossy(&without.stdout).starts_with("LRFLEET need Linux "),
            "{without:?}"
        );

        let copied = at_host(&cache, &copy(HASH), "#!/bin/sh\necho $*\n");
        assert_eq!(copied.status.code(), Some(0), "{copied:?}");
        let started = at_host(&cache, &start(HASH, ARGUMENTS), "");
        assert_eq!(
            String::from_utf8_lossy(&started.stdout),
            "fleet agent --stdio\n",
            "{started:?}"
        );
    }

    #[test]
    fn copy_that_does_not_run_is_removed_and_old_copies_too() {
        let cache = tempfile::tempdir().expect("a folder");
        let agents = cache.path().join("linerate/agent");

        for (age, name) in [(4, "d"), (3, "c"), (2, "b"), (1, "a")] {
            let folder = agents.join(name);
            fs::create_dir_all(&folder).expect("a folder");
            let time = SystemTime::now() - Duration::from_secs(age * 3600);
            fs::File::open(&folder)
                .and_then(|folder| folder.set_modified(time))
                .expect("a time");
        }

        let broken = at_host(cache.path(), &copy(HASH), "no program\0");
        assert_eq!(
            broken.status.code(),
            Some(NOT_EXECUTABLE_CODE),
            "{broken:?}"
        );
        assert_eq!(
            fs::read_dir(agents.join(HASH)).expect("a folder").count(),
            0
        );
        at_host(cache.path(), &copy(HASH), "#!/bin/sh\n");

        let mode = fs::metadata(agents.join(HASH).join("linerate"))
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);

        let mut left: Vec<_> = fs::read_dir(&agents)
            .expect("a folder")
            .flatten()
            .map(|one| one.file_name())
            .collect();
        left.sort_unstable();
        assert_eq!(left, [HASH, "a", "b"]);
    }
}

#[cfg(test)]
mod program_tests {
    use super::*;

    #[test]
    fn only_a_static_program_of_the_machine_is_sent() {
        let own = format!("Linux {ARCH}");
        assert_eq!(obstacle(true, &own), None);
        assert!(obstacle(true, "Linux m68k").is_some());
        assert!(obstacle(true, &format!("FreeBSD {ARCH}")).is_some());
        let refused = obstacle(false, &own);
        assert!(refused.is_some_and(|text| text.contains("make dist")));
    }
}
