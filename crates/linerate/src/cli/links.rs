//! Links through which linerate is called by the name of a program it stands in for.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::exit_code::ExitCode;

/// Names of the dialects of this build.
const NAMES: [&str; 1] = ["iperf3"];

/// Creates the links and says what was done.
pub(crate) fn main(directory: &Path) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            let _ = writeln!(io::stderr(), "linerate: cannot find out where this program is: {error}");
            return ExitCode::NotCompleted;
        }
    };
    for name in NAMES {
        let path = directory.join(name);
        match link(&program, &path) {
            Ok(outcome) => {
                let done = match outcome {
                    Linked::Created => "created",
                    Linked::AlreadyThere => "already there:",
                };
                let _ = writeln!(io::stdout(), "{done} {} -> {}", path.display(), program.display());
            }
            Err(error) => {
                let _ = writeln!(io::stderr(), "linerate: {error}");
                return ExitCode::NotCompleted;
            }
        }
    }
    ExitCode::Done
}

/// What happened to a link.
#[derive(Debug, PartialEq, Eq)]
enum Linked {
    Created,
    AlreadyThere,
}

/// Why there is no link.
#[derive(Debug, Error)]
enum LinkError {
    #[error("cannot create {}: something else is already there\nhint: move it away, or choose another directory", .0.display())]
    Occupied(PathBuf),
    #[error("cannot create {}: {source}\nhint: the directory must exist and be writable", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Creates `path` as a link to `program`. Relies on the kernel to refuse an existing name, so that nothing that appears
/// in between can be lost.
fn link(program: &Path, path: &Path) -> Result<Linked, LinkError> {
    match symlink(program, path) {
        Ok(()) => Ok(Linked::Created),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if leads_to(path, program) {
                Ok(Linked::AlreadyThere)
            } else {
                Err(LinkError::Occupied(path.to_owned()))
            }
        }
        Err(source) => Err(LinkError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Is `path` a link, and does it end at `program`?
fn leads_to(path: &Path, program: &Path) -> bool {
    let target = |path: &Path| fs::canonicalize(path).ok();
    fs::read_link(path).is_ok() && target(path).is_some() && target(path) == target(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_created_once_and_never_replaces_anything() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = directory.path().join("linerate");
        fs::write(&program, "program").expect("a writable directory");

        let path = directory.path().join("iperf3");
        assert_eq!(link(&program, &path).expect("nothing in the way"), Linked::Created);
        assert_eq!(fs::read_link(&path).expect("a link"), program);
        assert_eq!(link(&program, &path).expect("our own link"), Linked::AlreadyThere);

        let occupied = directory.path().join("occupied");
        fs::write(&occupied, "precious").expect("a writable directory");
        assert!(matches!(link(&program, &occupied), Err(LinkError::Occupied(_))));
        assert_eq!(fs::read_to_string(&occupied).expect("still there"), "precious");

        let dangling = directory.path().join("dangling");
        symlink("nowhere", &dangling).expect("a writable directory");
        assert!(matches!(link(&program, &dangling), Err(LinkError::Occupied(_))));

        let missing = directory.path().join("no/such/directory");
        assert!(matches!(link(&program, &missing), Err(LinkError::Io { .. })));
    }
}
