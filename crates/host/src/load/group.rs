//! The control group of a process: how long it was held back, and what it has of what it may have (cgroups(7)).

use std::fs;

use linerate_model::http::Peak;

use super::error::ReadError;
use super::file::{KernelFile, Room};
use super::text;

/// Files of a control group, of either version.
#[derive(Debug)]
pub(crate) struct Group {
    cpu: Result<KernelFile, ReadError>,
    memory: Result<Gauge, ReadError>,
    tasks: Result<Gauge, ReadError>,
}

/// A value and its limit.
#[derive(Debug)]
struct Gauge {
    now: KernelFile,
    most: KernelFile,
}

impl Group {
    /// The group of a process. What is missing is reported by every sample.
    pub(crate) fn of(pid: u32) -> Self {
        let groups = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let directory = |controller| {
            text::group_directory(&groups, controller)
                .ok_or_else(|| ReadError::not_found("no control group that can be read"))
        };
        let gauge = |controller, [now, most]: [&str; 2], [old_now, old_most]: [&str; 2]| {
            let (path, is_second) = directory(controller)?;
            if path.ends_with('/') {
                // Which has neither limits nor, mostly, statistics.
                return Err(ReadError::not_found("the program is in that of all processes"));
            }
            let (now, most) = if is_second { (now, most) } else { (old_now, old_most) };
            let open = |name| KernelFile::open(format!("{path}/{name}"));
            Ok(Gauge {
                now: open(now),
                most: open(most),
            })
        };
        let memory = ["memory.current", "memory.max"];
        let tasks = ["pids.current", "pids.max"];
        Self {
            cpu: directory("cpu").map(|(path, _)| KernelFile::open(format!("{path}/cpu.stat"))),
            memory: gauge("memory", memory, ["memory.usage_in_bytes", "memory.limit_in_bytes"]),
            tasks: gauge("pids", tasks, tasks),
        }
    }

    /// Time it was kept from running since it exists.
    pub(crate) fn throttled_ns(&self, room: &mut Room) -> Result<u64, ReadError> {
        let file = self.cpu.as_ref().map_err(Clone::clone)?;
        let found = text::throttled_ns(file.read(room)?);
        found.ok_or_else(|| ReadError::lacking("the control group has no quota"))
    }

    /// Memory in bytes.
    pub(crate) fn memory(&self, room: &mut Room) -> Result<Peak, ReadError> {
        self.memory.as_ref().map_err(Clone::clone)?.read(room)
    }

    /// Processes and threads.
    pub(crate) fn tasks(&self, room: &mut Room) -> Result<Peak, ReadError> {
        self.tasks.as_ref().map_err(Clone::clone)?.read(room)
    }
}

impl Gauge {
    fn read(&self, room: &mut Room) -> Result<Peak, ReadError> {
        let now = text::number(self.now.read(room)?);
        Ok(Peak {
            peak: now.ok_or_else(|| ReadError::lacking("the control group's value is no number"))?,
            limit: text::group_limit(self.most.read(room)?),
        })
    }
}
