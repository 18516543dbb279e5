//! The interface of a history to its database.
//!
//! Every statement has one text for all databases. Its parameters `$1…` appear in ascending order:
//! SQLite numbers them in the order of their first appearance.

mod value;

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

pub(crate) use value::{Row, Value, params};

use crate::StoreError;

/// Each step leads from one schema version to the next. Steps are never changed after a release.
pub(crate) const STEPS: [&str; 1] = [include_str!("schema.sql")];
/// Longest wait of a writer for another one.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// Refuses a database of schema version `found` that a newer version of the program made.
pub(crate) fn check_version(place: &str, found: i64, known: i64) -> Result<(), StoreError> {
    if found > known {
        return Err(StoreError::Newer {
            place: place.to_owned(),
            found,
            known,
        });
    }

    Ok(())
}

/// Access of a transaction.
#[derive(PartialEq, Eq)]
pub(crate) enum Access {
    /// All its statements read one state of the database.
    Read,
    /// It excludes other writers from its start on, so that it cannot fail halfway for their sake.
    Write,
}

/// A connection to a database.
pub(crate) trait Database: fmt::Debug + Send {
    /// Executes a statement and returns the number of rows it changed.
    fn execute(&self, statement: &str, parameters: &[Value]) -> Result<usize, StoreError>;

    /// Passes each row of the result to `each`, until that fails.
    fn query(
        &self,
        statement: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Starts a transaction.
    fn begin(&self, access: Access) -> Result<(), StoreError>;

    /// Ends a transaction.
    fn commit(&self) -> Result<(), StoreError>;

    /// Ends a transaction without a trace.
    fn roll_back(&self);

    /// Sets how long a writer waits for another one.
    fn set_lock_timeout(&self, timeout: Duration);

    /// The connection ended, so that the database has to be opened again.
    fn is_closed(&self) -> bool;

    /// Faults of the structure, one line each.
    fn integrity(&self) -> Result<Vec<String>, StoreError>;

    /// Returns the space of removed rows to the system.
    fn shrink(&self) -> Result<(), StoreError>;

    /// Space of the whole database.
    fn size_bytes(&self) -> Result<u64, StoreError>;

    /// Ends the connection and reports errors that the end reveals.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

impl dyn Database + '_ {
    /// The first row of a result.
    pub(crate) fn one<T>(
        &self,
        statement: &str,
        parameters: &[Value],
        read: impl FnMut(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.all(statement, parameters, read)?.into_iter().next())
    }

    /// All rows of a result.
    pub(crate) fn all<T>(
        &self,
        statement: &str,
        parameters: &[Value],
        mut read: impl FnMut(&Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.query(statement, parameters, &mut |row| {
            all.push(read(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Starts a transaction that ends without a trace unless it is committed.
    pub(crate) fn transaction(&self, access: Access) -> Result<Transaction<'_>, StoreError> {
        self.begin(access)?;
        Ok(Transaction {
            database: self,
            is_over: false,
        })
    }
}

/// A transaction. Statements of its database belong to it.
pub(crate) struct Transaction<'a> {
    database: &'a dyn Database,
    is_over: bool,
}

impl Transaction<'_> {
    pub(crate) fn commit(mut self) -> Result<(), StoreError> {
        self.database.commit()?;
        self.is_over = true;
        Ok(())
    }
}

impl<'a> Deref for Transaction<'a> {
    type Target = dyn Database + 'a;

    fn deref(&self) -> &Self::Target {
        self.database
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.database.roll_back();
        }
    }
}
