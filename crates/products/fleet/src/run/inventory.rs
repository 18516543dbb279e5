//! Inventories of the command line: a file, names, or names of the user's ssh_config(5).

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use crate::spec::inventory::Inventory;
use crate::spec::inventory::{TEXT_MAX_BYTES, expand_list, from_names, parse, ssh_names};

use linerate_sys::file_system;

use linerate_model::outcome::Error;

/// Reads an inventory from a file; `-` is the standard input.
///
/// # Errors
/// The file is not readable or no inventory.
pub fn from_file(path: &Path) -> Result<Inventory, Error> {
    let text = match path.to_str() {
        Some("-") => bounded(io::stdin()),
        _ => File::open(path).and_then(bounded),
    };
    let text = text.map_err(|error| wrong(path, &error))?;
    parse(&text).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, error: &dyn Display) -> Error {
    Error::usage(format!("{}: {error}", path.display()))
}

/// The hosts of a list such as `h[1-8],nas`.
///
/// # Errors
/// The list has a name that is none.
pub fn from_list(list: &str) -> Result<Inventory, Error> {
    let names = expand_list(list).map_err(|error| Error::usage(format!("--hosts: {error}")))?;
    from_names(names).map_err(|error| Error::usage(format!("--hosts: {error}")))
}

/// The hosts of an ssh configuration whose names fit a pattern such as `rack1-*`.
///
/// # Errors
/// The configuration is not readable, or no name fits.
pub fn from_ssh(pattern: &str, config: Option<&Path>) -> Result<Inventory, Error> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.unwrap_or_default().join(".ssh");
    let path = config.map_or_else(|| home.join("config"), Path::to_path_buf);
    let read = |path: &Path| File::open(path).and_then(bounded);
    let text = read(&path).map_err(|error| wrong(&path, &error))?;

    let include = |name: &str| {
        let files = files_of(&home, name);
        files.iter().filter_map(|path| read(path).ok()).collect()
    };
    let mut names = ssh_names::names(&text, include);
    names.retain(|name| ssh_names::matches(pattern, name));

    if names.is_empty() {
        let path = path.display();
        return Err(Error::usage(format!("no Host of {path} fits {pattern}")));
    }

    from_names(names).map_err(|error| Error::usage(format!("--ssh-hosts: {error}")))
}

/// Files of an `Include`; a relative name is one in the folder of the user's configuration. A
/// pattern is one of its last part.
fn files_of(home: &Path, name: &str) -> Vec<PathBuf> {
    let path = match name.strip_prefix("~/") {
        Some(rest) => home.parent().unwrap_or(home).join(rest),
        None => home.join(name),
    };
    let pattern = path.file_name().and_then(|name| name.to_str());
    let (Some(folder), Some(pattern)) = (path.parent(), pattern) else {
        return Vec::new();
    };

    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name
            .to_str()
            .is_some_and(|name| ssh_names::matches(pattern, name))
        {
            files.push(entry.path());
        }
    }
    files.sort_unstable();

    files
}

/// A text within the bound of inventories.
fn bounded(source: impl Read) -> io::Result<String> {
    let bytes = file_system::read_all(source, TEXT_MAX_BYTES as u64)?;
    String::from_utf8(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}
