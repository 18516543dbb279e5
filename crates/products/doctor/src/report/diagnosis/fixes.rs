//! A shell script of the fixes.

use std::fmt::Write;

use linerate_model::finding::Diagnosis;
use linerate_model::printable::printable_lines;

use super::{one_line, place_of_commands};

/// A shell script with every command that helps, each with its reason and the way back. All
/// commands are comments: nothing runs until a user has read a line and removed its comment mark.
pub fn fix_script(diagnosis: &Diagnosis) -> String {
    let mut out = String::from(
        "#!/bin/sh\n# Suggested changes. Read each one, then remove the `# ` before it.\n",
    );
    for finding in diagnosis
        .findings
        .iter()
        .filter(|finding| !finding.remedy.is_empty())
    {
        let _ = writeln!(
            out,
            "\n# {} {}: {}",
            finding.id, finding.subject, finding.title
        );
        for need in &finding.needs {
            let _ = writeln!(out, "# needs: {need}");
        }

        let there = place_of_commands(finding);
        for command in &finding.remedy {
            let _ = writeln!(out, "# {}{there}", one_line(command));
        }

        for command in &finding.undo {
            let _ = writeln!(out, "# undo: {}{there}", one_line(command));
        }
    }

    printable_lines(&out)
}
