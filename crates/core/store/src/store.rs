//! A store: a database, opened.

use crate::database::{Access, Database, Transaction};
use crate::{Place, StoreError, sqlite, unfinished};

/// A database of runs.
#[derive(Debug)]
pub struct Store {
    pub(crate) database: Box<dyn Database>,
    pub(crate) place: Place,
}

impl Store {
    /// Opens a database for writing, and creates it where there is none. Runs whose process ended
    /// without a result become `ended`.
    ///
    /// # Errors
    /// A file that is no database of this program or of a newer version; it is not touched.
    /// Anything the database reports.
    pub fn open(place: &Place) -> Result<Self, StoreError> {
        Ok(Self::open_counting(place)?.0)
    }

    /// As [`Store::open`]; returns also how many records of the spool it took in.
    pub(crate) fn open_counting(place: &Place) -> Result<(Self, usize), StoreError> {
        let database: Box<dyn Database> = match place.server() {
            #[cfg(feature = "postgres")]
            Some(server) => Box::new(crate::postgres::schema::open(server)?),
            _ => Box::new(sqlite::open(place)?),
        };
        Self {
            database,
            place: place.clone(),
        }
        .brought_up_to_date()
    }

    /// Opens a database that exists: for writing, or where that is not permitted for reading.
    ///
    /// # Errors
    /// As [`Store::open`], and [`StoreError::Missing`].
    pub fn open_existing(place: &Place) -> Result<Self, StoreError> {
        let database: Box<dyn Database> = match place.server() {
            #[cfg(feature = "postgres")]
            Some(server) => Box::new(crate::postgres::schema::open_existing(server)?),
            _ => Box::new(sqlite::open_existing(place)?),
        };
        Ok(Self {
            database,
            place: place.clone(),
        }
        .brought_up_to_date()?
        .0)
    }

    /// Opens a database whose tables may be damaged, for reading.
    pub(crate) fn open_damaged(place: &Place) -> Result<Self, StoreError> {
        Ok(Self {
            database: Box::new(sqlite::open_damaged(place)?),
            place: place.clone(),
        })
    }

    /// Where it is.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Space of the whole database.
    ///
    /// # Errors
    /// What the database reports.
    pub fn size_bytes(&self) -> Result<u64, StoreError> {
        self.database.size_bytes()
    }

    pub(crate) fn write(&self) -> Result<Transaction<'_>, StoreError> {
        self.database.transaction(Access::Write)
    }

    fn brought_up_to_date(self) -> Result<(Self, usize), StoreError> {
        match self.mark_ended() {
            Err(StoreError::ReadOnly(_)) => {}
            marked => marked?,
        }

        unfinished::remove_left(&self.place);
        // A record that cannot be taken in stays where it is.
        let taken = self.take_spool().unwrap_or(0);
        Ok((self, taken))
    }
}
