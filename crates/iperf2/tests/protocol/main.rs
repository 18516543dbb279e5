//! The protocol as its users see it: recorded peers, whole tests in simulated time, and everything that can go wrong.

mod captures;
mod failures;
mod flows;
mod hostile;
mod replay;
mod streams;
