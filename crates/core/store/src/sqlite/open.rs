//! Opening a database file: what it is, what it may be, and its schema.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use linerate_sys::file_system;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::Sqlite;
use crate::database::{BUSY, Database, STEPS, check_version};
use crate::{Place, StoreError, unfinished};

/// `lrun`: recognised by file(1) and by [`check_file`].
const APPLICATION_ID: u32 = u32::from_be_bytes(*b"lrun");

/// Opens a database for writing, and creates it where there is none.
pub(crate) fn open(place: &Place) -> Result<Sqlite, StoreError> {
    place.create_directory()?;
    // An empty file is a place that was reserved, as mktemp(1) does.
    if !fs::metadata(place.path()).is_ok_and(|file| !file.is_file() || file.len() > 0) {
        create(place.path())?;
    }
    open_for_writing(place.path(), &STEPS)
}

/// Opens a database that exists: for writing, or where that is not permitted for reading.
pub(crate) fn open_existing(place: &Place) -> Result<Sqlite, StoreError> {
    let path = place.path();
    if !path.exists() {
        return Err(StoreError::Missing(place.to_string()));
    }

    match open_for_writing(path, &STEPS) {
        Err(error) if is_read_only(&error) => open_for_reading(path),
        // A newer version may have left the tables readable for older ones.
        Err(StoreError::Newer {
            place,
            found,
            known,
        }) => {
            let sqlite = open_for_reading(path)?;
            let database: &dyn Database = &sqlite;
            let query = "SELECT value FROM meta WHERE key = 'readable_by'";
            let readable_by: Option<String> = database.one(query, &[], |row| row.get(0))?;
            let readable_by = readable_by.and_then(|version| version.parse::<i64>().ok());
            let is_readable = readable_by.is_some_and(|version| version <= known);
            if is_readable {
                Ok(sqlite)
            } else {
                Err(StoreError::Newer {
                    place,
                    found,
                    known,
                })
            }
        }
        opened => opened,
    }
}

fn open_for_writing(path: &Path, steps: &[&str]) -> Result<Sqlite, StoreError> {
    check_file(path)?;
    OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(StoreError::file(path))?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let place = path.display().to_string();
    check_version(&place, version(&connection)?, steps.len() as i64)?;
    migrate(&connection, path, steps)?;

    // The index of a WAL is in memory that hosts cannot share (sqlite.org/wal.html).
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    let is_shared = file_system::is_remote(directory.unwrap_or(Path::new("."))).unwrap_or(true);
    let journal = if is_shared { "TRUNCATE" } else { "WAL" };

    // Refused while another process reads in the former mode, which works as well.
    let _ = connection.pragma_update_and_check(None, "journal_mode", journal, |_| Ok(()));
    connection.pragma_update(
        None,
        "synchronous",
        if is_shared { "FULL" } else { "NORMAL" },
    )?;
    Ok(Sqlite {
        connection,
        path: path.to_owned(),
        is_read_only: false,
    })
}

fn open_for_reading(path: &Path) -> Result<Sqlite, StoreError> {
    check_file(path)?;
    let connection = match connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        // The index of the WAL cannot be created beside it. Without a WAL none is needed.
        Err(_) if !has_wal(path) => connect(
            &immutable(path),
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        )?,
        opened => opened?,
    };
    Ok(Sqlite {
        connection,
        path: path.to_owned(),
        is_read_only: true,
    })
}

/// Opens a database whose tables may be damaged. No other process may write into it meanwhile.
pub(crate) fn open_damaged(place: &Place) -> Result<Sqlite, StoreError> {
    let path = place.path();
    check_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;

    // Without it SQLite reads nothing of a file that is shorter than its header says.
    connection.pragma_update(None, "writable_schema", true)?;
    check_version(
        &place.to_string(),
        version(&connection)?,
        STEPS.len() as i64,
    )?;

    // The damaged file and its log stay as they are.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Held until it is closed, so that no run is written into the old database any more.
    match connection.execute_batch("BEGIN IMMEDIATE") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
            return Err(error.into());
        }
        _ => {}
    }

    Ok(Sqlite {
        connection,
        path: path.to_owned(),
        is_read_only: true,
    })
}

/// Creates an empty database under another name first: another process sees all of it or nothing.
fn create(path: &Path) -> Result<(), StoreError> {
    match create_once(path) {
        // A process of another container, to which this one is not known, may have removed the
        // file.
        Err(StoreError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            create_once(path)
        }
        created => created,
    }
}

fn create_once(path: &Path) -> Result<(), StoreError> {
    let new = unfinished::name(path);
    // SQLite gives its other files the mode of this one.
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .map_err(StoreError::file(&new))?;

    let made = fill(&new).and_then(|()| {
        if fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
            fs::remove_file(path).map_err(StoreError::file(path))?;
        }

        // Unlike a renamed file, a link never replaces the database of another process.
        match fs::hard_link(&new, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(StoreError::file(path)(error))
            }
            _ => Ok(()),
        }
    });
    let _ = fs::remove_file(&new);
    made
}

fn fill(path: &Path) -> Result<(), StoreError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Has to precede the tables.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    migrate(&connection, path, &STEPS)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    // SQLite's own default is off, in each connection (sqlite.org/foreignkeys.html).
    connection.pragma_update(None, "foreign_keys", true)?;

    // Reads the file for the first time.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Refuses what is no database of this program, before SQLite opens it and might write.
fn check_file(path: &Path) -> Result<(), StoreError> {
    let foreign = |what| {
        Err(StoreError::Foreign {
            path: path.to_owned(),
            what,
        })
    };
    let kind = fs::metadata(path)
        .map_err(StoreError::file(path))?
        .file_type();
    if kind.is_dir() {
        return foreign("a directory, not a file");
    }
    if !kind.is_file() {
        return foreign("not a regular file");
    }

    let mut header = Vec::new();
    File::open(path)
        .and_then(|file| file.take(100).read_to_end(&mut header))
        .map_err(StoreError::file(path))?;
    if !header.starts_with(b"SQLite format 3\0") || header.len() < 100 {
        return foreign("not a SQLite database");
    }
    // The application id of the header (sqlite.org/fileformat.html, 1.3).
    if header[68..72] != APPLICATION_ID.to_be_bytes() {
        return foreign("a SQLite database of another program");
    }

    Ok(())
}

fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Migrates an older schema to the latest version, in one transaction, after a copy of the
/// database.
fn migrate(connection: &Connection, path: &Path, steps: &[&str]) -> Result<(), StoreError> {
    let known = steps.len() as i64;
    let old = version(connection)?;
    if old == known {
        return Ok(());
    }

    if old > 0 {
        let mut copy = path.as_os_str().to_owned();
        copy.push(format!(".schema{old}"));
        if !Path::new(&copy).exists() {
            // A copy of one state, which includes the log (sqlite.org/lang_vacuum.html).
            connection.execute("VACUUM INTO $1", [copy.to_string_lossy()])?;
        }
    }

    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have been first.
    let from = usize::try_from(version(&transaction)?).unwrap_or(usize::MAX);
    for step in steps.get(from..).unwrap_or_default() {
        transaction.execute_batch(step)?;
    }

    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    Ok(transaction.commit()?)
}

fn is_read_only(error: &StoreError) -> bool {
    use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};

    match error {
        StoreError::File { source, .. } => {
            matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            )
        }
        StoreError::Sqlite(error) => {
            matches!(
                error.sqlite_error_code(),
                Some(CannotOpen | PermissionDenied | ReadOnly)
            )
        }
        _ => false,
    }
}

fn has_wal(path: &Path) -> bool {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    fs::metadata(wal).is_ok_and(|wal| wal.len() > 0)
}

/// The file as a URI that promises SQLite that no one writes.
fn immutable(path: &Path) -> PathBuf {
    let escaped = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    PathBuf::from(format!("file:{escaped}?immutable=1"))
}
