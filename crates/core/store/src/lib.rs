//! History of runs: a SQLite database in the state directory of the user, or a PostgreSQL server
//! that several hosts share (feature `postgres`).
//!
//! * [`Place`]: where the database is
//! * [`Store`]: writes, lists, loads and names runs
//! * [`Recorder`]: a thread that writes the runs of a process, and the spool where it cannot
//! * [`upkeep`]: check, repair, prune
//! * [`Builder`], [`playback()`], [`text`], [`keys`]: records as values, without I/O

#![forbid(unsafe_code)]

mod annotate;
mod database;
mod encoding;
mod error;
mod list;
mod names;
mod owner;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
mod read;
mod record;
mod recorder;
mod spool;
mod sqlite;
mod store;
mod unfinished;
pub mod upkeep;
mod write;

pub use annotate::{Label, Note, parse_label};
pub use error::StoreError;
pub use linerate_model::record::RunRow;
pub use list::{Filter, Sort, TrialValue};
pub use names::{is_file_name, load_named};
pub use owner::RunProcess;
pub use place::{Place, state_directory};
pub use record::{Builder, keys, playback, scrubbed, text};
pub use recorder::{Recorded, Recorder, Trials};
pub use store::Store;
pub use write::Saved;
