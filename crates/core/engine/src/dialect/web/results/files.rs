//! Results as files of a directory, one each. A thread writes them, because a disk may be slow.

use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::UNIX_EPOCH;

use linerate_sys::file_system;
use linerate_web::wire::page::{self, MESSAGE_BYTES_MAX};

use crate::lock::lock;

/// The directory, and who writes there.
pub(super) struct ResultFiles {
    /// `None` at the end.
    work: Option<SyncSender<Work>>,
    writer: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

/// Name of a file, and its text; `None` to remove it.
type Work = (String, Option<String>);

/// Files that may wait for the writer.
const QUEUE: usize = 256;
/// Longest file: a result with its client and label.
const FILE_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 + 1024;
/// Length of a name in hexadecimal digits.
const NAME_LEN: usize = 32;

impl ResultFiles {
    /// Makes the directory where it does not exist, and returns the results in it with their times,
    /// ms since 1970, the oldest first.
    pub(super) fn open(directory: &Path) -> io::Result<(Self, Vec<(u64, String)>)> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let mut saved: Vec<_> = fs::read_dir(directory)?
            .flatten()
            .filter_map(|entry| saved(&entry))
            .collect();
        saved.sort_unstable();

        let (work, queue) = sync_channel(QUEUE);
        let failure = Arc::new(Mutex::new(None));
        let path = directory.to_owned();
        let failed = Arc::clone(&failure);
        let writer = thread::Builder::new()
            .name("results".to_owned())
            .spawn(move || write_all(&path, &queue, &failed))?;
        let files = Self {
            work: Some(work),
            writer: Some(writer),
            failure,
        };
        Ok((files, saved))
    }

    /// Writes a result, or removes it. A file that stays for want of room in the queue is removed
    /// after the next start.
    pub(super) fn write(&self, name: String, text: Option<String>) {
        let is_new = text.is_some();
        let queue = self.work.as_ref();
        let is_queued = queue.is_some_and(|queue| queue.try_send((name, text)).is_ok());
        if is_new && !is_queued {
            *lock(&self.failure) = Some("the disk is slower than the results".to_owned());
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.failure).take()
    }
}

impl Drop for ResultFiles {
    /// Waits until the last results are written.
    fn drop(&mut self) {
        self.work = None;
        let _ = self.writer.take().map(JoinHandle::join);
    }
}

/// Text of a result; `None` for a file that is none, or was not written to its end.
pub(super) fn read(directory: &Path, name: &str) -> Option<String> {
    let text = file_system::read_text(&path(directory, name), FILE_BYTES_MAX).ok()?;
    page::result(text.as_bytes()).is_some().then_some(text)
}

/// Time and name of a result. Other files in the directory are left alone.
fn saved(entry: &DirEntry) -> Option<(u64, String)> {
    let file = entry.file_name();
    let name = file.to_str()?.strip_suffix(".json")?;
    let is_name = name.len() == NAME_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let metadata = entry.metadata().ok()?;
    let age = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let at_ms = u64::try_from(age.as_millis()).ok()?;
    (is_name && metadata.is_file()).then(|| (at_ms, name.to_owned()))
}

fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

fn write_all(directory: &Path, queue: &Receiver<Work>, failure: &Mutex<Option<String>>) {
    for (name, text) in queue {
        let path = path(directory, &name);
        let outcome = match text {
            Some(text) => fs::write(&path, text),
            None => fs::remove_file(&path),
        };
        if let Err(error) = outcome {
            *lock(failure) = Some(format!("{}: {error}", path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Results;
    use super::*;

    const KEEP: Duration = Duration::from_secs(3600);

    #[test]
    fn results_outlive_their_server_until_they_expire() {
        let directory =
            std::env::temp_dir().join(format!("linerate-results-{}", std::process::id()));
        let (kept, broken) = ("a".repeat(NAME_LEN), "b".repeat(NAME_LEN));
        let opened = || {
            let mut results = Results::new(KEEP);
            let now_ms = linerate_sys::clock::unix_ms();
            results.open(&directory, now_ms).expect("a directory");
            (results, now_ms)
        };
        let (mut results, now_ms) = opened();
        results.store(kept.clone(), "{\"result\":1}".to_owned(), now_ms);
        drop(results);
        fs::write(path(&directory, &broken), "{\"resu").expect("a file");
        fs::write(directory.join("notes.json"), "mine").expect("a file");

        let (mut results, now_ms) = opened();
        assert_eq!(results.get(&kept, now_ms), Some("{\"result\":1}"));
        assert_eq!(results.get(&broken, now_ms), None);
        assert_eq!(results.get(&kept, now_ms + 3_600_000), None);
        drop(results);
        let left: Vec<_> = fs::read_dir(&directory)
            .expect("a directory")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        fs::remove_dir_all(&directory).expect("it is ours");
        assert_eq!(left, ["notes.json"]);
    }
}
