//! The exported functions, in the groups of the interface. `iperf_api.h` describes each.

mod arguments;
mod life;
mod run;
mod settings;
mod texts;
mod unavailable;
mod variadic;
