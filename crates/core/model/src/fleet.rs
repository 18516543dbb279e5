//! Nouns of a fleet run: many hosts measured as one system.

mod cell;
mod effects;
mod host_id;
mod ladder;
mod report;
mod run;
mod task;

pub use cell::{Cell, CellFlag, CellOutcome, Measurement, NotRun, NotRunReason, StartTimes};
pub use effects::{EndEffect, FleetEffects, HostEffect, PairEffect, PairSuspect};
pub use host_id::{HostId, HostIdError};
pub use ladder::{LadderDirection, LadderRow, Poisoning};
pub use report::{FLEET_SCHEMA, FleetHeader, FleetHost, FleetReport, FleetTopology, HostPoisoning};
pub use run::FleetRun;
pub use task::{FleetMode, HashIdError, PairDirection, PlanHash, Round, Task, TaskId};
