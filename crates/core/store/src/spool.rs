//! Records that could not be written into the database: one file each, taken in by the next writer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use linerate_model::record::RunRecord;

use crate::names::read_file;
use crate::place::private_directory;
use crate::{Place, Store, StoreError, unfinished};

/// Writes a record into the spool. A file without its end has another name.
pub(crate) fn write(place: &Place, record: &RunRecord) -> Result<(), StoreError> {
    let directory = place.spool();
    private_directory()
        .create(&directory)
        .map_err(StoreError::file(&directory))?;
    let path = directory.join(format!("{}.json", record.run_id));
    let part = unfinished::name(&path);

    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)
        .and_then(|mut file| {
            file.write_all(&serde_json::to_vec(record)?)?;
            file.sync_all()?;
            fs::rename(&part, &path)?;
            // The entry of a file needs an fsync of its directory (fsync(2)).
            File::open(&directory)?.sync_all()
        });
    written.map_err(|error| {
        // A part takes room on a disk that is perhaps full.
        let _ = fs::remove_file(&part);
        StoreError::file(&part)(error)
    })
}

/// Complete records of the spool.
pub(crate) fn files(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.spool()).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort_unstable();

    files
}

impl Store {
    /// Takes in the records of the spool and returns their number. What cannot be read stays; a
    /// check names it.
    ///
    /// # Errors
    /// What the database reports; the rest stays in the spool.
    pub(crate) fn take_spool(&self) -> Result<usize, StoreError> {
        let mut taken = 0;
        for path in files(&self.place) {
            // Another writer may have been first.
            let Ok(record) = read_file(&path) else {
                continue;
            };
            self.finish(&record)?;
            fs::remove_file(&path)
                .or_else(|error| {
                    if error.kind() == io::ErrorKind::NotFound {
                        Ok(())
                    } else {
                        Err(error)
                    }
                })
                .map_err(StoreError::file(&path))?;
            taken += 1;
        }

        // Only an empty directory is removed.
        let _ = fs::remove_dir(self.place.spool());
        Ok(taken)
    }
}
