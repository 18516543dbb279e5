//! A proof of a fix as text and JSON.

use super::diagnosis::{verbatim, wrapped};
use linerate_document::blocks::Document;
use linerate_document::pretty_json;
use linerate_document::style::Style;
use linerate_model::numbers::{digits, rate};
use linerate_model::stats::range;

use crate::proof::{Proof, ProofResult, Rates};

/// Effect of a fix on the rate, as text.
pub fn proof(proof: &Proof, style: Style) -> String {
    let effect = &proof.effect;
    let commands = proof
        .commands
        .iter()
        .enumerate()
        .map(|(place, command)| match place {
            0 => verbatim("Prove", &format!("{}: {command}", proof.id)),
            _ => verbatim(
                "",
                &format!("{:indent$}{command}", "", indent = proof.id.len() + 2),
            ),
        });
    let mut blocks: Vec<_> = commands.collect();
    blocks.push(verbatim(
        "",
        &format!("without it  {}", side(&effect.without)),
    ));
    blocks.push(verbatim("", &format!("with it     {}", side(&effect.with))));

    let (result, next) = match effect.result {
        ProofResult::Helps => ("it helps", ""),
        ProofResult::Worse => ("it is worse", ""),
        ProofResult::NoDifference => ("it makes no difference", ""),
        ProofResult::Undecided => ("undecided", "; a longer --budget may decide"),
    };
    let low = digits(effect.interval.low);
    let high = digits(effect.interval.high);
    let percent = effect.confidence * 100.0;
    let times = format!(
        "{} times the rate ({percent:.0} % interval {low} to {high})",
        digits(effect.ratio)
    );
    blocks.push(wrapped("Result", format!("{result}: {times}{next}")));
    blocks.push(wrapped("", "the former settings are restored"));

    Document {
        name: "linerate doctor --prove",
        blocks,
    }
    .text(style)
}

/// Effect of a fix on the rate, as a JSON object.
pub fn proof_json(proof: &Proof) -> String {
    pretty_json(proof)
}

/// `95.6 Mbit/s (6 runs, 95.5 Mbit/s to 95.7 Mbit/s)`
fn side(rates: &Rates) -> String {
    let ends =
        range(&rates.runs_bps).map(|ends| format!(", {} to {}", rate(ends.low), rate(ends.high)));
    format!(
        "{} ({} runs{})",
        rate(rates.median_bps),
        rates.runs_bps.len(),
        ends.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use linerate_document::expected::assert_expected_in;

    use super::*;
    use crate::proof::{Effect, PROOF_SCHEMA};

    const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

    #[test]
    fn text_and_json_have_the_same_answer() {
        let rates = |low: f64, step: f64| {
            (0..6)
                .map(|run| low + step * f64::from(run))
                .collect::<Vec<_>>()
        };
        let effect = Effect::of(rates(95e6, 1e5), rates(9e9, 1e8)).expect("six a side");
        let commands = vec![
            "sysctl -w net.core.rmem_max=8388608".to_owned(),
            "second".to_owned(),
        ];
        let undo = vec!["undo".to_owned()];
        let (id, title, server) = ("WIN-03".to_owned(), "t".to_owned(), "192.0.2.7".to_owned());
        let one = Proof {
            schema: PROOF_SCHEMA,
            id,
            title,
            server,
            commands,
            undo,
            effect,
        };
        assert_expected_in(FOLDER, "doctor-proof.txt", &proof(&one, Style::PLAIN));
        assert_expected_in(FOLDER, "doctor-proof.json", &proof_json(&one));
    }
}
