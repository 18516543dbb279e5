//! Parses the variables of the environment and the arguments of a command line: each option found
//! acts on the settings.

use std::ffi::{OsStr, OsString};

use linerate_model::command_line::getopt::{Getopt, OLD_GNU};
use linerate_model::command_line::table::Value;
use linerate_model::command_line::values::ValueChecks;
use linerate_model::spec::{LocalOptions, Payload, TestSpec};

use super::Message;
use super::args::{Args, Outcome, OutputOptions, named_layout};
use super::table::{self, OPTIONS};
use crate::report::Layout;

impl Args {
    /// The defaults; `--lr-format` counts at any position.
    pub(crate) fn new(argv: &[OsString], checks: ValueChecks) -> Self {
        let local = LocalOptions {
            port: 5001,
            interval: None,
            ..LocalOptions::default()
        };

        let test = TestSpec {
            payload: Payload::Repeating,
            ..TestSpec::default()
        };
        let output = OutputOptions {
            layout: layout(argv),
            ..OutputOptions::default()
        };

        Self {
            local,
            test,
            output,
            checks,
            ..Self::default()
        }
    }

    /// Reads the environment and the arguments after the program name.
    ///
    /// # Errors
    /// The first option that ends the program.
    pub(crate) fn parse(
        &mut self,
        program: &OsStr,
        argv: &[OsString],
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Outcome {
        self.read_environment(environment)?;
        let grammar = table::grammar();
        let mut walk = Getopt::new(&grammar, argv);
        for found in &mut walk {
            match found {
                Ok(found) => OPTIONS
                    .get(found.id)
                    .map_or(Ok(()), |option| table::apply(option, self, found.value))?,
                // An unknown option is named and ignored.
                Err(error) => self
                    .messages
                    .push(Message::Error(error.message(program, OLD_GNU))),
            }
        }

        for operand in walk.operands() {
            let beginning = [program.as_encoded_bytes(), b": ignoring extra argument -- "].concat();
            self.messages.push(Message::Error(
                [&beginning, operand.as_encoded_bytes()].concat(),
            ));
        }

        Ok(())
    }

    /// A later value overrides, so the command line comes afterwards.
    fn read_environment(&mut self, environment: &dyn Fn(&str) -> Option<OsString>) -> Outcome {
        for (name, long) in table::ENVIRONMENT {
            let option = OPTIONS.iter().find(|option| option.long() == long);
            let (Some(value), Some(option)) = (environment(name), option) else {
                continue;
            };

            // The presence of the variable is enough for a switch.
            let value = (option.value() != Value::None).then_some(value.as_os_str());
            table::apply(option, self, value)?;
        }

        Ok(())
    }
}

/// The layout that `--lr-format` names.
fn layout(argv: &[OsString]) -> Layout {
    let grammar = table::grammar();
    let mut layout = Layout::default();

    for found in Getopt::new(&grammar, argv).flatten() {
        let is_format = OPTIONS
            .get(found.id)
            .is_some_and(|option| option.long() == table::LR_FORMAT);
        if is_format && let Some(named) = found.value.and_then(named_layout) {
            layout = named;
        }
    }

    layout
}
