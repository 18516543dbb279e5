//! Texts: a diagnosis, rules, limits by arithmetic, and the proof of a fix.

mod ceilings;
mod diagnosis;
mod proof;

use linerate_model::stored_name;

pub use ceilings::ceilings;
pub(crate) use diagnosis::place;
pub use diagnosis::{
    COLUMN, card, cards, checked, checks, confidence, doubt, findings, first_step, fix_script,
    graded, json, limit_and_steps, limiting, sentence, short, steps, text, text_after_test,
    verbatim, wrapped,
};
pub use proof::{proof, proof_json};

use crate::catalogue;

/// The rule with this id as text: what it finds, why that matters and where to read on; `None` if
/// there is no such rule.
pub fn explanation(id: &str) -> Option<String> {
    let rule = catalogue().find(|rule| rule.id.eq_ignore_ascii_case(id))?;
    Some(format!(
        "{}  {}\n\n{}\n\nseverity    {}\nconfidence  {} at best\nsee         {}\n",
        rule.id,
        rule.title,
        rule.explanation,
        stored_name(rule.severity),
        stored_name(rule.confidence),
        rule.reference
    ))
}
