//! The journal of a proof: what restores the former settings, on disk while others are in force.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use linerate_model::outcome::Error;
use linerate_sys::error::io_text;
use linerate_sys::{interfaces, process};
use serde::{Deserialize, Serialize};

use super::command::permitted;
use crate::run::file_error::at;

const DIRECTORY: &str = "/run/linerate";
const BYTES_MAX: u64 = 256 * 1024;
const COMMANDS_MAX: usize = 32;

/// Commands that restore the former settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// The boot in which it was written; another one has not got the settings any more.
    pub boot_id: String,
    /// Commands that restore the former settings, in order.
    pub undo: Vec<String>,
    /// Interface to the server.
    pub interface: String,
    /// The former settings by the keys of their facts.
    pub settings: BTreeMap<String, String>,
}

/// The file of a network namespace. It is locked, so that a host has one proof at a time, and empty
/// while the former settings are in force.
#[derive(Debug)]
pub(super) struct Journal {
    pub path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens and locks the journal of this network namespace.
    ///
    /// # Errors
    /// Another proof runs, or the system's.
    pub(super) fn open() -> Result<Self, Error> {
        let directory = Path::new(DIRECTORY);
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(at(directory)(error));
            }
            _ => {}
        }

        // A link would lead writes of root to another place.
        let metadata = fs::symlink_metadata(directory).map_err(at(directory))?;
        if !metadata.is_dir() || !is_of_root(&metadata) {
            return Err(Error::failed(format!(
                "{DIRECTORY}: not a directory that only root can write to"
            )));
        }

        Self::open_at(directory.join(format!(
            "prove-{}.json",
            namespace().map_err(at(directory))?
        )))
    }

    fn open_at(path: PathBuf) -> Result<Self, Error> {
        loop {
            let mut options = OpenOptions::new();
            let file = options
                .read(true)
                .write(true)
                .create(true)
                // The content may be the record of a process that was killed.
                .truncate(false)
                .mode(0o600)
                .open(&path);
            let file = file.map_err(at(&path))?;
            if !process::lock(&file)
                .map_err(|error| Error::failed(format!("{}: {}", path.display(), error.text())))?
            {
                return Err(Error::failed(format!(
                    "{}: another --prove changes settings of this host; wait for its end",
                    path.display()
                )));
            }

            // The owner of the lock may have removed the file that was opened.
            let locked = file.metadata().map_err(at(&path))?.ino();
            if fs::metadata(&path).is_ok_and(|found| found.ino() == locked) {
                return Ok(Self { path, file });
            }
        }
    }

    /// Record that an earlier process left behind in this boot; `None` of an empty journal or
    /// another boot.
    ///
    /// # Errors
    /// Content that this program does not write.
    pub(super) fn read(&mut self, boot_id: &str) -> Result<Option<Record>, Error> {
        let metadata = self.file.metadata().map_err(at(&self.path))?;
        let mut text = String::new();
        // JSON that is cut at the bound does not parse, so that a longer file is an error.
        let read = (&self.file).take(BYTES_MAX).read_to_string(&mut text);
        let content = match read {
            Err(error) => Err(io_text(&error)),
            _ if !metadata.is_file() || !is_of_root(&metadata) => {
                Err("writable by users other than root".to_owned())
            }
            Ok(0) => return Ok(None),
            Ok(_) => parse(&text),
        };
        let record = content.map_err(|reason| {
            Error::failed(format!(
                "{}: not a journal of --prove: {reason}; remove it when the settings of this host \
                 are right",
                self.path.display()
            ))
        })?;
        if record.boot_id == boot_id {
            return Ok(Some(record));
        }

        // The reboot has restored the settings.
        self.clear().map(|()| None)
    }

    /// Stores what restores the former settings, before they are changed.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&mut self, record: &Record) -> Result<(), Error> {
        self.clear()?;
        let text = serde_json::to_vec(record).map_err(Error::failed)?;
        let written = self
            .file
            .write_all(&text)
            .and_then(|()| self.file.sync_all());

        // Nothing is changed yet, so an incomplete record is not needed.
        written
            .map_err(at(&self.path))
            .or_else(|error| self.clear().and(Err(error)))
    }

    /// The former settings are in force.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn clear(&mut self) -> Result<(), Error> {
        let cleared = self
            .file
            .rewind()
            .and_then(|()| self.file.set_len(0))
            .and_then(|()| self.file.sync_all());
        cleared.map_err(at(&self.path))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self
            .file
            .metadata()
            .is_ok_and(|metadata| metadata.len() == 0)
        {
            // An empty file does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// True if only root can write to it.
fn is_of_root(metadata: &Metadata) -> bool {
    metadata.uid() == 0 && metadata.mode() & 0o022 == 0
}

/// Number of the network namespace; before Linux 5.14 the inode, which a later namespace may get
/// again.
fn namespace() -> io::Result<u64> {
    interfaces::namespace_cookie()
        .or_else(|_| fs::metadata("/proc/self/ns/net").map(|namespace| namespace.ino()))
}

fn parse(text: &str) -> Result<Record, String> {
    let record: Record = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if record.undo.is_empty() || record.undo.len() > COMMANDS_MAX {
        return Err(format!("{} commands", record.undo.len()));
    }

    record
        .undo
        .iter()
        // The file is input: root runs no command of it that a fix must not have.
        .try_for_each(|line| permitted(line).map(drop))?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            boot_id: "b".to_owned(),
            undo: vec!["tc qdisc del dev lr0 root".to_owned()],
            interface: "lr0".to_owned(),
            settings: BTreeMap::from([(
                "nic.lr0.qdisc.root.kind".to_owned(),
                "noqueue".to_owned(),
            )]),
        }
    }

    #[test]
    fn journal_holds_what_was_written_until_the_settings_are_restored() {
        if !linerate_sys::privileges::is_root() {
            return;
        }

        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("journal");
        let open = || Journal::open_at(path.clone()).expect("a free journal");
        let mut journal = open();
        assert_eq!(journal.read("b"), Ok(None));
        journal.write(&record()).expect("written");

        let refused = Journal::open_at(path.clone())
            .expect_err("locked")
            .to_string();
        assert!(refused.contains("another --prove"), "{refused}");
        drop(journal);
        assert_eq!(open().read("b"), Ok(Some(record())));
        assert_eq!(open().read("next boot"), Ok(None));
        assert!(!path.exists());

        let mut journal = open();
        journal
            .write(&record())
            .and_then(|()| journal.clear())
            .expect("cleared");
        drop(journal);
        assert!(!path.exists());
        fs::write(&path, vec![b'x'; 300_000]).expect("a writable folder");

        let refused = open().read("b").expect_err("broken").to_string();
        assert!(refused.contains("not a journal of --prove"), "{refused}");
    }

    #[test]
    fn foreign_content_is_never_run() {
        let text = serde_json::to_string(&record()).expect("JSON");
        assert_eq!(parse(&text), Ok(record()));

        for foreign in [
            text.replace("tc qdisc del dev lr0 root", "sh -c reboot"),
            text.replace("tc qdisc del dev lr0 root", "ip link set dev lr0 down"),
            text.replace("[\"tc qdisc del dev lr0 root\"]", "[]"),
            text.replace("\"b\"", "1"),
            text.replace("\"undo\"", "\"do\""),
            text.chars().take(text.len() - 1).collect(),
        ] {
            assert!(parse(&foreign).is_err(), "{foreign}");
        }
    }
}
