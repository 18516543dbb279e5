//! The libraries for programs in C and in other languages.

mod libiperf;
mod liblinerate;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// Longest time of a program under valgrind.
const SLOW: Duration = Duration::from_secs(120);

/// A library of this build. `LINERATE_LIBS` is the folder of others.
fn library(name: &str) -> PathBuf {
    let build = || {
        let test = std::env::current_exe().expect("this test is a file");
        test.parent()
            .and_then(Path::parent)
            .expect("a folder of the build")
            .to_owned()
    };
    let path = std::env::var("LINERATE_LIBS")
        .map_or_else(|_| build(), PathBuf::from)
        .join(name);
    assert!(
        path.exists(),
        "{}: not there; cargo build --workspace makes it",
        path.display()
    );

    path
}

/// The folder of Debian's library, where it is installed.
fn original_libiperf() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    folders
        .filter_map(|folder| Some(folder.ok()?.path()))
        .find(|folder| folder.join("libiperf.so.0").exists())
}

/// A file of this folder.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/interop/libraries")
        .join(name)
}

/// A program in C, linked against a library.
struct Compiled {
    /// With the program, and the library by its soname.
    folder: TempDir,
    path: PathBuf,
}

impl Compiled {
    fn new(source: &str, library: &Path) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("program.c");
        std::fs::write(&file, source).expect("a source file");

        let path = folder.path().join("program");
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=c11",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-g",
        ]);
        compiler
            .arg("-I")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/faces/capi/include"));
        compiler.arg("-o").arg(&path).arg(&file).arg(library);

        let output = compiler.output().expect("cc runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        std::os::unix::fs::symlink(library, folder.path().join(soname(library))).expect("a link");

        Self { folder, path }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Where the library is that it was linked with.
    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The name by which a program that was linked with the library loads it.
fn soname(library: &Path) -> String {
    let dynamic = Command::new("readelf")
        .arg("-d")
        .arg(library)
        .output()
        .expect("readelf runs");
    let text = String::from_utf8_lossy(&dynamic.stdout).into_owned();
    let name = text
        .split_once("soname: [")
        .and_then(|(_, rest)| rest.split_once(']'));

    name.unwrap_or_else(|| panic!("no soname: {text}"))
        .0
        .to_owned()
}

/// The command under valgrind: memory that was lost is exit code 9.
fn valgrind(command: &Command, words: &[&str]) -> Command {
    let mut under = Command::new("valgrind");
    under.args([
        "--quiet",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        "--error-exitcode=9",
    ]);
    under.arg(command.get_program()).args(words);
    under.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );

    under
}
