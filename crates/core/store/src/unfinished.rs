//! Files that are written under another name first, and what processes that were killed left of
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_sys::file_system;

use crate::Place;

/// Between the name of a file and the process that writes it.
const NEW: &str = ".new";
/// Ends of the names of SQLite's other files.
const BESIDE: [&str; 4] = ["", "-journal", "-wal", "-shm"];

/// Name of a file that becomes `path` when it is complete, `history.db.new4711-0`.
pub(crate) fn name(path: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);

    let mut name = path.as_os_str().to_owned();
    name.push(format!(
        "{NEW}{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    PathBuf::from(name)
}

/// Removes files with such names whose process has ended: those of the database and of records in
/// the spool.
pub(crate) fn remove_left(place: &Place) {
    let database = place
        .path()
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let directory = place
        .path()
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    remove_in(directory.unwrap_or(Path::new(".")), |base| base == database);
    remove_in(&place.spool(), |base| base.ends_with(".json"));
}

fn remove_in(directory: &Path, is_base: impl Fn(&str) -> bool) {
    // Processes of other hosts are not known here.
    if file_system::is_remote(directory).unwrap_or(true) {
        return;
    }

    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((base, pid)) = name.to_str().and_then(parts) else {
            continue;
        };

        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_base(base) && !Path::new(&format!("/proc/{pid}")).exists() {
            // Another process may have been first.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The name that such a file would have received, and the process that wrote it.
fn parts(name: &str) -> Option<(&str, u32)> {
    let (base, rest) = name.rsplit_once(NEW)?;
    let (pid, rest) = rest.split_once('-')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (count, beside) = rest.split_at(digits);
    let is_ours = !count.is_empty()
        && BESIDE.contains(&beside)
        && pid.bytes().all(|byte| byte.is_ascii_digit());
    let pid = pid.parse().ok().filter(|pid| is_ours && *pid > 0)?;

    Some((base, pid))
}
