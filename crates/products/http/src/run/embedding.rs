//! The view of the program that runs a load or an experiment.

use linerate_model::live::LiveState;

/// A view of what runs: changes the state that is shown, and ends when it is dropped.
pub type LiveView = Box<dyn Fn(&mut dyn FnMut(&mut LiveState))>;

/// Opens a view on the terminal; `None` where there is no terminal that can show it.
pub type OpenView = fn() -> Option<LiveView>;
