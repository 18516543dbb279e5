//! Processes and their children, users, signals, scheduling and terminals.

pub mod child;
pub mod other_process;
pub mod privileges;
pub mod process;
pub mod process_mark;
pub mod scheduling;
pub mod sd_notify;
pub mod signal;
pub mod terminal;
