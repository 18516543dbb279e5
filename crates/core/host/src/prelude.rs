//! Names that most readers use: facts, sources of the kernel, and reasons of absence.

pub(crate) use linerate_model::snapshot::{Absence, Fact, Quality, Snapshot, Source, Value};

pub(crate) use crate::error::*;
pub(crate) use crate::netlink::client::*;
pub(crate) use crate::netlink::*;
pub(crate) use crate::recorder::Recorder;
pub(crate) use crate::short_file::*;
