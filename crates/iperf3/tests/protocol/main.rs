//! The protocol as its users see it: recorded peers, whole tests in simulated time, and everything that can go wrong.

mod dialogue;
mod failures;
mod items;
mod pair;
mod replay;
