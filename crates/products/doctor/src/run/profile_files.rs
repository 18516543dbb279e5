//! Files for what the CPUs did: collapsed stacks, and their flame graph.

use std::fs;
use std::path::PathBuf;

use linerate_host::CpuWatch;
use linerate_model::outcome::Error;

use super::file_error::at;

/// Files for the stacks of the CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileFiles {
    /// Collapsed, one stack with its number of samples on a line.
    pub stacks: Option<PathBuf>,
    /// A flame graph as SVG.
    pub flame: Option<PathBuf>,
}

impl ProfileFiles {
    /// True if there is one.
    pub fn are_wanted(&self) -> bool {
        *self != Self::default()
    }

    /// Checks before a test that its CPUs can be sampled.
    ///
    /// # Errors
    /// The right that is missing.
    pub fn check(&self) -> Result<(), Error> {
        if self.are_wanted() {
            CpuWatch::start().map_err(|error| Error::failed(format!("stacks: {error}")))?;
        }
        Ok(())
    }

    /// Writes the files that are wanted.
    ///
    /// # Errors
    /// No stacks, or a file that cannot be written.
    pub fn write(&self, collapsed: &str) -> Result<(), Error> {
        if let Some(path) = &self.stacks {
            fs::write(path, collapsed).map_err(at(path))?;
        }
        if let Some(path) = &self.flame {
            fs::write(path, flame_graph(collapsed)?).map_err(at(path))?;
        }
        Ok(())
    }
}

/// A flame graph of collapsed stacks; its script sets variables and does nothing.
fn flame_graph(collapsed: &str) -> Result<Vec<u8>, Error> {
    let mut options = inferno::flamegraph::Options::default();
    options.title = "Work of the CPUs".to_owned();
    options.count_name = "samples".to_owned();
    options.no_javascript = true;

    let mut drawn = Vec::new();
    inferno::flamegraph::from_lines(&mut options, collapsed.lines(), &mut drawn)
        .map_err(|error| Error::failed(format!("flame graph: {error}")))?;
    Ok(drawn)
}
