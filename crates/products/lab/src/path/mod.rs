//! How good a path is: which phases are run, when a load ends, and what follows from the samples.
//!
//! Everything here is a pure function or a state machine without clock, thread and socket.
//! [`plan()`] makes phases of what a user asks for, [`Saturation`] steers a load, [`conclude()`]
//! makes a report of what the phases brought. Directions are seen from the client.

mod capacity;
mod ceiling;
mod clock;
mod conclude;
mod delays;
mod grade;
mod hull;
mod jitter;
mod ladder;
mod loss;
mod marks;
mod plan;
mod responsiveness;
mod samples;
mod saturation;
mod unmeasured;
mod voice;

pub use capacity::CapacitySearch;
pub use ceiling::{CeilingFacts, ceiling};
pub use clock::{Clock, ClockFacts};
pub use conclude::{ConcludeInput, conclude, goodput_bps};
pub use delays::{round_trips, round_trips_if_any};
pub use grade::grade;
pub use jitter::{delay_variation_p99_ns, probe_jitter_ns};
pub use ladder::{Ladder, LadderPlan, LadderStep};
pub use loss::{Implausible, loss_by_place};
pub use marks::marks;
pub use plan::{Announcement, DatagramRate, Offer, Plan, PlannedPhase, load_within, plan};
pub use responsiveness::{Responsiveness, responsiveness, responsiveness_class};
pub use samples::samples;
pub use saturation::{LoadPlan, MOVING_AVERAGES, STABLE_SHARE, Saturation};
pub use unmeasured::{is_partial, unmeasured};
pub use voice::{CallPath, mos};
