//! A store as its users see it: files, records, several processes, damage.

mod damage;
mod leftovers;
mod places;
mod processes;
mod records;
mod runs;
mod scale;
#[cfg(feature = "postgres")]
mod server;
