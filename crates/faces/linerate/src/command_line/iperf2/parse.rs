//! Parses the variables of the environment and the words of a command line: each option found acts
//! on the settings.

use std::ffi::{OsStr, OsString};

use linerate_iperf2::report::Layout;
use linerate_model::spec::{LocalOptions, Payload, TestSpec};

use super::args::{Args, Outcome, OutputOptions, named_layout};
use super::message::Message;
use super::options::{self, OPTIONS};
use crate::command_line::getopt::{Getopt, OLD_GNU};
use crate::command_line::options::Value;

impl Args {
    /// The defaults; `--lr-format` counts wherever it stands.
    pub(crate) fn new(words: &[OsString]) -> Self {
        let mut local = LocalOptions::default();
        local.port = 5001;
        local.interval = None;

        let mut test = TestSpec::default();
        test.payload = Payload::Repeating;
        let output = OutputOptions {
            layout: layout(words),
            ..OutputOptions::default()
        };

        Self {
            local,
            test,
            output,
            ..Self::default()
        }
    }

    /// Reads the environment and the words after the program name.
    ///
    /// # Errors
    /// The first option that ends the program.
    pub(crate) fn parse(
        &mut self,
        program: &OsStr,
        words: &[OsString],
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Outcome {
        self.read_environment(environment)?;
        let grammar = options::grammar();
        let mut walk = Getopt::new(&grammar, words);
        for found in &mut walk {
            match found {
                Ok(found) => OPTIONS
                    .get(found.id)
                    .map_or(Ok(()), |option| option.act(self, found.value))?,
                // An unknown option is named and ignored.
                Err(error) => self
                    .messages
                    .push(Message::Error(error.message(program, OLD_GNU))),
            }
        }

        for word in walk.operands() {
            let beginning = [program.as_encoded_bytes(), b": ignoring extra argument -- "].concat();
            self.messages.push(Message::Error(
                [&beginning, word.as_encoded_bytes()].concat(),
            ));
        }

        Ok(())
    }

    /// A later value overrides, so the command line comes afterwards.
    fn read_environment(&mut self, environment: &dyn Fn(&str) -> Option<OsString>) -> Outcome {
        for name in options::ENVIRONMENT {
            let Some(value) = environment(name) else {
                continue;
            };
            let Some(option) = OPTIONS.iter().find(|option| option.variable == Some(name)) else {
                continue;
            };

            // The presence of the variable is enough for a switch.
            let value = (option.effect.value() != Value::None).then_some(value.as_os_str());
            option.act(self, value)?;
        }

        Ok(())
    }
}

/// The layout that `--lr-format` names.
fn layout(words: &[OsString]) -> Layout {
    let grammar = options::grammar();
    let mut layout = Layout::default();

    for found in Getopt::new(&grammar, words).flatten() {
        let is_format = OPTIONS
            .get(found.id)
            .is_some_and(|option| option.long == options::LR_FORMAT);
        if is_format && let Some(named) = found.value.and_then(named_layout) {
            layout = named;
        }
    }

    layout
}
