//! Reports, to their destinations.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use linerate_model::http::{Check, Study};
use linerate_report::http::{
    Style, comparison_html, comparison_json, comparison_text, html, json, preflight, preflight_json, text,
};

use super::spec::CompareSpec;
use crate::Error;
use crate::http::output::{Files, Output};

/// What the standard output can show.
pub(crate) fn style() -> Style {
    Style {
        glyphs: crate::progress::glyphs(),
        is_coloured: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// Writes to the standard output; a reader that has gone away is no error of ours.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::failed(format!("cannot write to the standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// What was looked at before an experiment.
pub(super) fn checks(checks: &[Check], is_json: bool) -> Result<(), Error> {
    print(&if is_json { preflight_json(checks) } else { preflight(checks, style()) })
}

/// The whole of an experiment.
pub(super) fn study(study: &Study, output: Output, files: &Files) -> Result<(), Error> {
    if let Some(path) = &files.html {
        write(path, &html(study))?;
    }
    print(&if output.json || output.json_stream { json(study) } else { text(study, style()) })
}

/// Two experiments side by side.
pub(super) fn comparison(before: &Study, after: &Study, args: &CompareSpec) -> Result<(), Error> {
    if let Some(path) = &args.html {
        write(path, &comparison_html(before, after))?;
    }
    print(&if args.json { comparison_json(before, after) } else { comparison_text(before, after, style()) })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::failed(format!("cannot write {}: {error}", path.display())))
}
