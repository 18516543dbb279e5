//! The text format of Prometheus (version 0.0.4).

use std::fmt::{Display, Write};

/// Families of samples as text.
#[derive(Debug, Default)]
pub struct Exposition(pub String);

impl Exposition {
    /// Begins a family; `kind` is its type.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample; `labels` are `name="value"`, separated by commas.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
    }

    /// A family with its samples; nothing without samples.
    pub fn family_if_any(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (impl AsRef<str>, impl Display)>,
    ) {
        // A head without a sample is a metric that does not exist.
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_some() {
            self.family(name, kind, help, samples);
        }
    }

    /// A family with its samples.
    pub fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (impl AsRef<str>, impl Display)>,
    ) {
        self.head(name, kind, help);
        for (labels, value) in samples {
            self.sample(name, labels.as_ref(), value);
        }
    }
}
