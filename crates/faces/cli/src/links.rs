//! Links through which linerate is called by the name of a program that it replaces.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use clap::Args;
use linerate::{Error, Outcome};
use linerate_model::printable::{printable, printable_lines};
use linerate_sys::error::io_text;

use crate::output::{complain, outcome_of};

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
pub(crate) fn main(args: &LinksArgs) -> Outcome {
    outcome_of("linerate", run(args))
}

fn run(args: &LinksArgs) -> Result<Outcome, Error> {
    let program = std::env::current_exe()
        .map_err(|error| Error::failed(format!("cannot find the path of this program: {error}")))?;
    if !args.directory.is_dir() {
        return Err(Error::failed(format!(
            "{} is no directory; create it, or choose another one",
            args.directory.display()
        )));
    }

    let mut outcome = Outcome::Done;
    let act = if args.remove { remove } else { link };
    for name in NAMES {
        match act(&program, &args.directory.join(name)) {
            Ok(line) => drop(writeln!(io::stdout(), "{}", printable(&line))),
            // One name that cannot be linked does not keep the others from it.
            Err(text) => outcome = complain("linerate", &text, Outcome::NotCompleted),
        }
    }

    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let found = found_first(&search_path, &program, &args.directory, args.remove);
    let _ = io::stdout().write_all(printable_lines(&found).as_bytes());
    Ok(outcome)
}

/// Creates `path` as a link to `program`. Relies on the kernel to refuse an existing name, so that
/// nothing that appears in between can be lost.
fn link(program: &Path, path: &Path) -> Result<String, String> {
    let shown = path.display();
    // Before any check, which could be outdated: symlink(2) replaces no file.
    match symlink(program, path) {
        Ok(()) => Ok(format!("created {shown} -> {}", program.display())),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(format!("cannot create {shown}: {}", io_text(&error)))
        }
        Err(_) if leads_to(path, program) => {
            Ok(format!("already there: {shown} -> {}", program.display()))
        }
        Err(_) => Err(format!(
            "cannot create {shown}: something else is already there\nhint: move it away, or choose \
             another directory"
        )),
    }
}

/// Removes `path` if it is a link to `program`.
fn remove(program: &Path, path: &Path) -> Result<String, String> {
    let shown = path.display();
    let failed = |error| format!("cannot remove {shown}: {}", io_text(&error));

    // Of the link itself, because the program at its end may be gone.
    match fs::symlink_metadata(path) {
        // A missing directory is an error; a missing link in it is what was requested.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && path.parent().is_some_and(Path::is_dir) =>
        {
            Ok(format!("not there: {shown}"))
        }
        Err(error) => Err(failed(error)),
        Ok(_) if !leads_to(path, program) => Ok(format!(
            "left in place: {shown}, which is not a link to {}",
            program.display()
        )),
        Ok(_) => fs::remove_file(path)
            .map(|()| format!("removed {shown}"))
            .map_err(failed),
    }
}

/// Is `path` a link, and does it end at `program`?
fn leads_to(path: &Path, program: &Path) -> bool {
    // A copy of the program is no link, and is left alone.
    fs::read_link(path).is_ok() && is_same_file(path, program)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    let target = |path: &Path| fs::canonicalize(path).ok();
    // Two paths that cannot be resolved are not the same file.
    target(a).is_some() && target(a) == target(b)
}

/// One line for each name: what a shell with this search path starts.
fn found_first(search_path: &OsStr, program: &Path, directory: &Path, is_removal: bool) -> String {
    let mut text = String::new();
    let mut is_shadowed = false;

    for name in NAMES {
        let found = first_on_path(search_path, name);
        let is_ours = found
            .as_deref()
            .is_some_and(|found| is_same_file(found, program));
        is_shadowed |= !is_ours;
        text += &match found {
            Some(found) if is_ours => format!("{name} starts linerate ({})\n", found.display()),
            Some(found) => format!("{name} starts another program ({})\n", found.display()),
            None => format!("{name} is not on the PATH\n"),
        };
    }

    // A removal needs no hint how to find the links.
    if is_shadowed && !is_removal {
        text.push_str(&format!(
            "hint: put the directory first on the PATH: export PATH={}:$PATH\n",
            absolute(directory).display()
        ));
    } else {
        text.push_str(
            "hint: shells remember where they found a program; `hash -r` makes this shell look \
             again\n",
        );
    }

    text
}

/// The directory as a PATH needs it. One that cannot be found stays as typed.
fn absolute(directory: &Path) -> PathBuf {
    fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned())
}

/// The first executable file of this name (environ(7)); an empty entry is the working directory.
fn first_on_path(search_path: &OsStr, name: &str) -> Option<PathBuf> {
    let is_executable = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(search_path)
        .map(|directory| directory.join(name))
        .find(is_executable)
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
        assert!(
            link(&program, &path)
                .expect("nothing in the way")
                .starts_with("created ")
        );
        assert_eq!(fs::read_link(&path).expect("a link"), program);
        assert!(
            link(&program, &path)
                .expect("our own link")
                .starts_with("already there: ")
        );

        let occupied = directory.path().join("occupied");
        fs::write(&occupied, "precious").expect("a writable directory");
        assert!(
            link(&program, &occupied)
                .expect_err("a file")
                .contains("something else is already there")
        );
        assert_eq!(
            fs::read_to_string(&occupied).expect("still there"),
            "precious"
        );

        let dangling = directory.path().join("dangling");
        symlink("nowhere", &dangling).expect("a writable directory");
        assert!(
            link(&program, &dangling)
                .expect_err("a link")
                .contains("something else is already there")
        );

        let missing = directory.path().join("no/such/directory");
        assert!(
            link(&program, &missing)
                .expect_err("no directory")
                .ends_with("No such file or directory")
        );
    }

    #[test]
    fn only_links_to_this_program_are_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = program_in(directory.path());
        let path = directory.path().join("iperf3");
        assert!(
            remove(&program, &path)
                .expect("nothing there")
                .starts_with("not there: ")
        );
        link(&program, &path).expect("nothing in the way");
        assert!(
            remove(&program, &path)
                .expect("our own link")
                .starts_with("removed ")
        );
        assert!(fs::symlink_metadata(&path).is_err());

        for target in ["elsewhere", "nowhere"] {
            let other = directory.path().join("other");
            fs::write(directory.path().join("elsewhere"), "").expect("a writable directory");
            symlink(target, &other).expect("a writable directory");
            assert!(
                remove(&program, &other)
                    .expect(target)
                    .starts_with("left in place: "),
                "{target}"
            );
            fs::remove_file(&other).expect("it was left");
        }

        assert!(
            remove(&program, &program)
                .expect("not a link")
                .starts_with("left in place: ")
        );
        assert!(program.exists());
        let missing = directory.path().join("no/such/directory/iperf3");
        assert!(
            remove(&program, &missing)
                .expect_err("no directory")
                .ends_with("No such file or directory")
        );
    }

    #[test]
    fn the_first_executable_on_the_path_counts() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (ours, theirs) = (
            directory.path().join("ours"),
            directory.path().join("theirs"),
        );
        for folder in [&ours, &theirs] {
            fs::create_dir(folder).expect("a writable directory");
        }

        let program = program_in(directory.path());
        link(&program, &ours.join("iperf3")).expect("nothing in the way");
        fs::write(theirs.join("iperf3"), "another").expect("a writable directory");

        let path = |folders: [&Path; 2]| std::env::join_paths(folders).expect("plain names");
        let not_executable = path([&theirs, &ours]);
        assert_eq!(
            first_on_path(&not_executable, "iperf3"),
            Some(ours.join("iperf3"))
        );
        fs::set_permissions(theirs.join("iperf3"), fs::Permissions::from_mode(0o755))
            .expect("our own file");

        let shadowed = found_first(&path([&theirs, &ours]), &program, &ours, false);
        assert!(
            shadowed.starts_with("iperf3 starts another program ("),
            "{shadowed}"
        );
        assert!(
            shadowed.contains("iperf is not on the PATH\n"),
            "{shadowed}"
        );
        assert!(shadowed.contains("export PATH="), "{shadowed}");

        let first = found_first(&path([&ours, &theirs]), &program, &ours, false);
        assert!(first.starts_with("iperf3 starts linerate ("), "{first}");
    }
}
