//! Reports, to their destinations.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use linerate_model::http::Study;
use linerate_model::outcome::Error;

use crate::report::{html, json, text};
use crate::run::Output;

pub(crate) use linerate_document::progress::style;

/// Writes to the standard output; a reader that has gone away is no error of ours.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::failed(format!(
            "cannot write to the standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// The whole of an experiment.
pub(super) fn study(
    study: &Study,
    output: Output,
    is_verbose: bool,
    html_file: Option<&Path>,
) -> Result<(), Error> {
    html_file.map_or(Ok(()), |path| write(path, &html(study)))?;
    print(&if output.json || output.json_stream {
        json(study)
    } else {
        text(study, is_verbose, style())
    })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text)
        .map_err(|error| Error::failed(format!("cannot write {}: {error}", path.display())))
}
