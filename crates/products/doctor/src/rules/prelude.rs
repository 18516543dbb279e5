//! Names that most rules use: facts, comparisons, and outcomes.

pub(super) use linerate_model::finding::{Confidence, Evidence, Inapplicable, Severity};

pub(super) use crate::arithmetic::*;
pub(super) use crate::command::*;
pub(super) use crate::limit;
pub(super) use crate::rule::{Judge, RuleRow};
pub(super) use crate::ruling::*;
pub(super) use crate::scope::*;
