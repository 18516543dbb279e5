//! PostgreSQL: a server that several hosts share.

mod login;
pub(crate) mod schema;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use ::postgres::error::SqlState;
use ::postgres::types::private::BytesMut;
use ::postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use ::postgres::{Client, Row as ServerRow, Statement};

use crate::StoreError;
use crate::database::{Access, BUSY, Database, Row, Value};
use crate::place::Server;

/// Key of the lock that writers hold: `lrun`.
const WRITER_LOCK: u32 = u32::from_be_bytes(*b"lrun");

/// A connection to a server.
pub(crate) struct Postgres {
    client: RefCell<Client>,
    /// By their text: each one is sent and planned once.
    statements: RefCell<HashMap<String, Statement>>,
    /// The database, without secrets.
    place: String,
}

impl Postgres {
    fn connect(server: &Server) -> Result<Self, StoreError> {
        let place = server.to_string();
        let client = login::connect(server)?;
        let postgres = Self {
            client: RefCell::new(client),
            statements: RefCell::default(),
            place,
        };
        postgres.batch("SET search_path TO linerate")?;
        postgres.set_lock_timeout(BUSY);

        Ok(postgres)
    }

    fn batch(&self, text: &str) -> Result<(), StoreError> {
        self.client
            .borrow_mut()
            .batch_execute(text)
            .map_err(|error| self.error(&error))
    }

    fn prepared(&self, text: &str) -> Result<Statement, StoreError> {
        if let Some(known) = self.statements.borrow().get(text) {
            return Ok(known.clone());
        }

        let statement = self
            .client
            .borrow_mut()
            .prepare(text)
            .map_err(|error| self.error(&error))?;
        self.statements
            .borrow_mut()
            .insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    fn error(&self, error: &::postgres::Error) -> StoreError {
        let is_locked = error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
        StoreError::Server {
            place: self.place.clone(),
            why: login::reason(error),
            is_locked,
        }
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Database for Postgres {
    fn execute(&self, statement: &str, parameters: &[Value]) -> Result<usize, StoreError> {
        let statement = self.prepared(statement)?;
        let changed = self
            .client
            .borrow_mut()
            .execute(&statement, &references(parameters));
        Ok(changed
            .map_err(|error| self.error(&error))?
            .try_into()
            .unwrap_or(usize::MAX))
    }

    fn query(
        &self,
        statement: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let statement = self.prepared(statement)?;
        // The connection is free again when `each` uses it.
        let rows = self
            .client
            .borrow_mut()
            .query(&statement, &references(parameters));
        rows.map_err(|error| self.error(&error))?
            .iter()
            .try_for_each(|row| each(&self.row(row)?))
    }

    fn begin(&self, access: Access) -> Result<(), StoreError> {
        match access {
            // READ COMMITTED would see writes of others between two statements of a reader.
            Access::Read => self.batch("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
            // Two writers of the same facts could wait for each other otherwise.
            Access::Write => self
                .batch(&format!(
                    "BEGIN; SELECT pg_advisory_xact_lock({WRITER_LOCK})"
                ))
                .inspect_err(|_| self.roll_back()),
        }
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.batch("COMMIT")
    }

    fn roll_back(&self) {
        let _ = self.batch("ROLLBACK");
    }

    fn set_lock_timeout(&self, timeout: Duration) {
        // 0 is no limit.
        let _ = self.batch(&format!(
            "SET lock_timeout = {}",
            timeout.as_millis().max(1)
        ));
    }

    fn is_closed(&self) -> bool {
        self.client.borrow().is_closed()
    }

    /// The server checks its own pages.
    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Autovacuum does it.
    fn shrink(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let query = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE \
                     relnamespace = 'linerate'::regnamespace AND relkind = 'r'";
        let database: &dyn Database = self;
        let size: Option<u64> = database.one(query, &[], |row| row.get(0))?;
        Ok(size.unwrap_or(0))
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let Self { client, place, .. } = *self;
        let failed = |error: ::postgres::Error| StoreError::Server {
            place,
            why: login::reason(&error),
            is_locked: false,
        };
        client.into_inner().close().map_err(failed)
    }
}

impl Postgres {
    fn row(&self, row: &ServerRow) -> Result<Row, StoreError> {
        let values =
            (0..row.len()).map(|column| value(row, column).map_err(|error| self.error(&error)));
        Ok(Row(values.collect::<Result<_, _>>()?))
    }
}

fn references(parameters: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    parameters
        .iter()
        .map(|value| value as &(dyn ToSql + Sync))
        .collect()
}

fn value(row: &ServerRow, column: usize) -> Result<Value, ::postgres::Error> {
    let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
    Ok(or_null(match *row.columns()[column].type_() {
        Type::BOOL => row.try_get::<_, Option<bool>>(column)?.map(Value::from),
        Type::INT4 => row
            .try_get::<_, Option<i32>>(column)?
            .map(|number| Value::Integer(number.into())),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(column)?.map(Value::Real),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(column)?.map(Value::Blob),
        Type::INT8 => row.try_get::<_, Option<i64>>(column)?.map(Value::Integer),
        _ => row.try_get::<_, Option<String>>(column)?.map(Value::Text),
    }))
}

/// The server infers the types of parameters, and numbers take the one that it found.
impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) if *kind == Type::INT4 => {
                i32::try_from(*number)?.to_sql(kind, out)
            }
            Self::Integer(number) => number.to_sql(kind, out),
            Self::Real(number) => number.to_sql(kind, out),
            // Text of a server has no NUL.
            Self::Text(text) => text.replace('\0', "\u{fffd}").to_sql(kind, out),
            Self::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [
            Type::INT4,
            Type::INT8,
            Type::FLOAT8,
            Type::TEXT,
            Type::BYTEA,
        ]
        .contains(kind)
    }

    to_sql_checked!();
}
