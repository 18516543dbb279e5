//! Marks by which a process is recognised by others of its user.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::error::{During, Result};
use crate::other_process::OtherProcess;
use crate::sendfile_source::create_memfd;

/// A mark of this process, as long as this lives: an empty file in memory (memfd_create(2), Linux
/// 3.17), whose name `/proc/PID/fd` shows. No other process can set it, and no child inherits it.
#[derive(Debug)]
pub struct ProcessMark(#[expect(dead_code, reason = "an open descriptor is the mark")] File);

impl ProcessMark {
    /// Marks this process.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set(name: &str) -> Result<Self> {
        create_memfd(name).map(Self).during("memfd_create", name)
    }
}

impl OtherProcess {
    /// True if it is of the user of this process, and has the mark.
    ///
    /// # Errors
    /// The operating system's, for instance when the process has ended.
    pub fn has_mark(&self, name: &str) -> io::Result<bool> {
        let folder = format!("/proc/{}", self.pid());
        let is_own = fs::metadata(&folder)?.uid() == fs::metadata("/proc/self")?.uid();
        let link = format!("/memfd:{name} (deleted)");

        let entries = fs::read_dir(format!("{folder}/fd"))?;
        let mut links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let is_marked = links.any(|found| found.to_str() == Some(&link));

        // Of a process that has ended, the number may be another one's by now.
        let has_ended = self.ends_within(Duration::ZERO)?;
        Ok(is_own && is_marked && !has_ended)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn mark_is_that_of_its_process_while_it_lives_and_of_no_child() {
        let this = OtherProcess::open(std::process::id()).expect("open");
        let mut before = Command::new("sleep").arg("60").spawn().expect("sleep");
        let mark = ProcessMark::set("linerate-test-1").expect("a mark");
        let mut behind = Command::new("sleep").arg("60").spawn().expect("sleep");

        assert!(this.has_mark("linerate-test-1").expect("a process"));
        assert!(!this.has_mark("linerate-test").expect("a process"));

        for child in [&mut before, &mut behind] {
            let other = OtherProcess::open(child.id()).expect("open");
            // A child of vfork(2) has the descriptors of its parent until it executes the program.
            let is_asleep = || {
                fs::read(format!("/proc/{}/comm", child.id())).is_ok_and(|name| name == b"sleep\n")
            };
            while !is_asleep() {
                std::thread::yield_now();
            }

            assert!(!other.has_mark("linerate-test-1").expect("a process"));
            child.kill().and_then(|()| child.wait()).expect("a child");
            assert!(!other.has_mark("linerate-test-1").unwrap_or(false));
        }

        drop(mark);
        assert!(!this.has_mark("linerate-test-1").expect("a process"));
    }
}
