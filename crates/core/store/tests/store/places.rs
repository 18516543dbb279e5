//! Where tests keep their store: in a file, or in a new database of the server that `TEST_SERVER`
//! names.

use std::env;
use std::ops::Deref;

use linerate_store::{Place, Store};

/// A place of its own.
pub(crate) struct TestPlace {
    directory: tempfile::TempDir,
    place: Place,
    /// As `--store` names it.
    name: String,
}

/// A place where nothing is yet.
pub(crate) fn place() -> TestPlace {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("history.db").display().to_string();
    let name = env::var("TEST_SERVER").map_or(file, |server| new_database(&server));
    TestPlace {
        place: named(&name, directory.path()),
        directory,
        name,
    }
}

/// A new store.
pub(crate) fn store() -> (TestPlace, Store) {
    let place = place();
    let store = Store::open(&place).expect("a new store");
    (place, store)
}

/// The tests of this process are to see a server.
pub(crate) fn is_server() -> bool {
    env::var_os("TEST_SERVER").is_some()
}

impl TestPlace {
    /// Variables from which [`given`] makes the place in another process.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        [
            ("TEST_STORE", self.name.clone()),
            ("TEST_STATE", self.directory.path().display().to_string()),
        ]
    }
}

impl Deref for TestPlace {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// The place of the process that started this one.
pub(crate) fn given() -> Place {
    let variable = |name| env::var(name).expect("started by another test");
    named(&variable("TEST_STORE"), variable("TEST_STATE").as_ref())
}

fn named(name: &str, state: &std::path::Path) -> Place {
    if name.contains("://") {
        Place::url(name, state).expect("a URL")
    } else {
        Place::file(name)
    }
}

#[cfg(feature = "postgres")]
fn new_database(server: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);

    let name = format!(
        "t{}_{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let mut client = postgres::Client::connect(server, postgres::NoTls).expect("a server");
    client
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .expect("created");

    server.replacen("/postgres?", &format!("/{name}?"), 1)
}

#[cfg(not(feature = "postgres"))]
fn new_database(server: &str) -> String {
    panic!("{server}: without the feature postgres")
}
