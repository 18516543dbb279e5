//! Links through which linerate is called by the name of a program it stands in for.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use clap::Args;
use linerate_sys::error::io_text;
use thiserror::Error;

use crate::exit_code::ExitCode;

/// Names of the dialects of this build.
const NAMES: [&str; 3] = ["iperf3", "iperf", "iperf2"];

/// Where links are created or removed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LinksArgs {
    /// An existing directory, for example one on your PATH
    directory: PathBuf,
    /// Remove the links to this program from the directory, and nothing else
    #[arg(long)]
    remove: bool,
}

const EXAMPLES: &str = "\
Examples:
  linerate links ~/bin             call it as iperf3, iperf and iperf2, with ~/bin first on the PATH
  linerate links --remove ~/bin    undo that

Exit codes: 0 done, 1 a link could not be created or removed, 2 wrong command line.";

/// Creates or removes the links, and reports what each name starts afterwards.
pub(crate) fn main(args: &LinksArgs) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            let _ = writeln!(io::stderr(), "linerate: cannot find the path of this program: {error}");
            return ExitCode::NotCompleted;
        }
    };
    if !args.directory.is_dir() {
        let directory = args.directory.display();
        let _ = writeln!(io::stderr(), "linerate: {directory} is no directory; create it, or choose another one");
        return ExitCode::NotCompleted;
    }
    let mut code = ExitCode::Done;
    for name in NAMES {
        let path = args.directory.join(name);
        let outcome = if args.remove { remove(&program, &path) } else { link(&program, &path) };
        match outcome {
            Ok(outcome) => {
                let _ = writeln!(io::stdout(), "{}", outcome.line(&path, &program));
            }
            Err(error) => {
                let _ = writeln!(io::stderr(), "linerate: {error}");
                code = ExitCode::NotCompleted;
            }
        }
    }
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let _ = write!(io::stdout(), "{}", found_first(&search_path, &program, &args.directory, args.remove));
    code
}

/// What happened to a link.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Created,
    AlreadyThere,
    Removed,
    Absent,
    Foreign,
}

impl Outcome {
    fn line(&self, path: &Path, program: &Path) -> String {
        let path = path.display();
        match self {
            Self::Created => format!("created {path} -> {}", program.display()),
            Self::AlreadyThere => format!("already there: {path} -> {}", program.display()),
            Self::Removed => format!("removed {path}"),
            Self::Absent => format!("not there: {path}"),
            Self::Foreign => format!("left in place: {path}, which is not a link to {}", program.display()),
        }
    }
}

/// Why a link was not created or removed.
#[derive(Debug, Error)]
enum LinkError {
    #[error("cannot create {}: something else is already there\nhint: move it away, or choose another directory", .0.display())]
    Occupied(PathBuf),
    #[error("cannot {verb} {}: {}", .path.display(), io_text(.source))]
    Io {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Creates `path` as a link to `program`. Relies on the kernel to refuse an existing name, so that nothing that appears
/// in between can be lost.
fn link(program: &Path, path: &Path) -> Result<Outcome, LinkError> {
    match symlink(program, path) {
        Ok(()) => Ok(Outcome::Created),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if leads_to(path, program) {
                Ok(Outcome::AlreadyThere)
            } else {
                Err(LinkError::Occupied(path.to_owned()))
            }
        }
        Err(source) => Err(LinkError::Io { verb: "create", path: path.to_owned(), source }),
    }
}

/// Removes `path` if it is a link to `program`.
fn remove(program: &Path, path: &Path) -> Result<Outcome, LinkError> {
    let failed = |source| LinkError::Io { verb: "remove", path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.parent().is_some_and(Path::is_dir) => {
            Ok(Outcome::Absent)
        }
        Err(error) => Err(failed(error)),
        Ok(_) if !leads_to(path, program) => Ok(Outcome::Foreign),
        Ok(_) => fs::remove_file(path).map(|()| Outcome::Removed).map_err(failed),
    }
}

/// Is `path` a link, and does it end at `program`?
fn leads_to(path: &Path, program: &Path) -> bool {
    fs::read_link(path).is_ok() && is_same_file(path, program)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    let target = |path: &Path| fs::canonicalize(path).ok();
    target(a).is_some() && target(a) == target(b)
}

/// One line for each name: what a shell with this search path starts.
fn found_first(search_path: &OsStr, program: &Path, directory: &Path, is_removal: bool) -> String {
    let mut text = String::new();
    let mut is_shadowed = false;
    for name in NAMES {
        let line = match first_on_path(search_path, name) {
            Some(found) if is_same_file(&found, program) => format!("{name} starts linerate ({})", found.display()),
            Some(found) => {
                is_shadowed = true;
                format!("{name} starts another program ({})", found.display())
            }
            None => {
                is_shadowed = true;
                format!("{name} is not on the PATH")
            }
        };
        text.push_str(&line);
        text.push('\n');
    }
    if is_shadowed && !is_removal {
        text.push_str(&format!(
            "hint: put the directory first on the PATH: export PATH={}:$PATH\n",
            absolute(directory).display()
        ));
    } else {
        text.push_str("hint: shells remember where they found a program; `hash -r` makes this shell look again\n");
    }
    text
}

/// The directory as a PATH needs it. One that cannot be found stays as typed.
fn absolute(directory: &Path) -> PathBuf {
    fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned())
}

/// The first executable file of this name (environ(7)); an empty entry is the working directory.
fn first_on_path(search_path: &OsStr, name: &str) -> Option<PathBuf> {
    let is_executable =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    std::env::split_paths(search_path).map(|directory| directory.join(name)).find(is_executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program_in(directory: &Path) -> PathBuf {
        let program = directory.join("linerate");
        fs::write(&program, "program").expect("a writable directory");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("our own file");
        program
    }

    #[test]
    fn a_link_is_created_once_and_never_replaces_anything() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = program_in(directory.path());

        let path = directory.path().join("iperf3");
        assert_eq!(link(&program, &path).expect("nothing in the way"), Outcome::Created);
        assert_eq!(fs::read_link(&path).expect("a link"), program);
        assert_eq!(link(&program, &path).expect("our own link"), Outcome::AlreadyThere);

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

    #[test]
    fn only_links_to_this_program_are_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = program_in(directory.path());
        let path = directory.path().join("iperf3");
        assert_eq!(remove(&program, &path).expect("nothing there"), Outcome::Absent);
        link(&program, &path).expect("nothing in the way");
        assert_eq!(remove(&program, &path).expect("our own link"), Outcome::Removed);
        assert!(fs::symlink_metadata(&path).is_err());

        for target in ["elsewhere", "nowhere"] {
            let other = directory.path().join("other");
            fs::write(directory.path().join("elsewhere"), "").expect("a writable directory");
            symlink(target, &other).expect("a writable directory");
            assert_eq!(remove(&program, &other).expect("not ours"), Outcome::Foreign, "{target}");
            fs::remove_file(&other).expect("it was left");
        }
        assert_eq!(remove(&program, &program).expect("not a link"), Outcome::Foreign);
        assert!(program.exists());
        let missing = directory.path().join("no/such/directory/iperf3");
        assert!(matches!(remove(&program, &missing), Err(LinkError::Io { .. })));
    }

    #[test]
    fn the_first_executable_on_the_path_counts() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
        for folder in [&ours, &theirs] {
            fs::create_dir(folder).expect("a writable directory");
        }
        let program = program_in(directory.path());
        link(&program, &ours.join("iperf3")).expect("nothing in the way");
        fs::write(theirs.join("iperf3"), "another").expect("a writable directory");

        let path = |folders: [&Path; 2]| std::env::join_paths(folders).expect("plain names");
        let not_executable = path([&theirs, &ours]);
        assert_eq!(first_on_path(&not_executable, "iperf3"), Some(ours.join("iperf3")));
        fs::set_permissions(theirs.join("iperf3"), fs::Permissions::from_mode(0o755)).expect("our own file");
        let shadowed = found_first(&path([&theirs, &ours]), &program, &ours, false);
        assert!(shadowed.starts_with("iperf3 starts another program ("), "{shadowed}");
        assert!(shadowed.contains("iperf is not on the PATH\n"), "{shadowed}");
        assert!(shadowed.contains("export PATH="), "{shadowed}");
        let first = found_first(&path([&ours, &theirs]), &program, &ours, false);
        assert!(first.starts_with("iperf3 starts linerate ("), "{first}");
    }
}
