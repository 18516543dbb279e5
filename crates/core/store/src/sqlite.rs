//! SQLite: a file of this host.

mod open;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use crate::StoreError;
use crate::database::{Access, Database, Row, Value};

pub(crate) use open::{open, open_damaged, open_existing};

/// A connection to a database file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    is_read_only: bool,
}

impl Database for Sqlite {
    fn execute(&self, statement: &str, parameters: &[Value]) -> Result<usize, StoreError> {
        Ok(self
            .connection
            .prepare(statement)?
            .execute(params_from_iter(parameters))?)
    }

    fn query(
        &self,
        statement: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare(statement)?;
        let columns = statement.column_count();

        let mut rows = statement.query(params_from_iter(parameters))?;
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| Ok(value(row.get_ref(column)?)));
            each(&Row(values.collect::<Result<_, rusqlite::Error>>()?))?;
        }

        Ok(())
    }

    fn begin(&self, access: Access) -> Result<(), StoreError> {
        if access == Access::Write && self.is_read_only {
            return Err(StoreError::ReadOnly(self.path.clone()));
        }

        let statement = if access == Access::Write {
            "BEGIN IMMEDIATE"
        } else {
            "BEGIN"
        };
        Ok(self.connection.execute_batch(statement)?)
    }

    fn commit(&self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn roll_back(&self) {
        // Some errors end a transaction.
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn set_lock_timeout(&self, timeout: Duration) {
        let _ = self.connection.busy_timeout(timeout);
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let database: &dyn Database = self;
        let lines: Vec<String> = database.all("PRAGMA integrity_check", &[], |row| row.get(0))?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    fn shrink(&self) -> Result<(), StoreError> {
        self.query("PRAGMA incremental_vacuum", &[], &mut |_| Ok(()))
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let size = |path: &PathBuf| fs::metadata(path).map(|file| file.len());
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        Ok(
            size(&self.path).map_err(StoreError::file(&self.path))?
                + size(&log.into()).unwrap_or(0),
        )
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(self.connection.close().map_err(|(_, error)| error)?)
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        // Only a damaged file has other text than UTF-8.
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec())
            .map_or_else(|_| Value::Blob(bytes.to_vec()), Value::Text),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
