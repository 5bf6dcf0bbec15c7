//! Approval gates: which calls need the approvals that a warrant names.

use super::bounds::{MAX_CONSTRAINTS, MAX_TOOLS};
use super::cbor::{Malformed, Reader, Writer};
use super::constraint::fit::{Fit, Undecidable, value_fits};
use super::constraint::narrow::is_narrower;
use super::constraint::{Constraint, TooMuch, Work};
use crate::json::Json;

/// The gates by tool. `*` is every tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Gates(Vec<(String, Gate)>);

/// The gate of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// `None`: each call needs approvals. Otherwise a call that meets one of them.
    pub arguments: Option<Vec<(String, Condition)>>,
    /// For the approver.
    pub message: Option<String>,
}

/// When an argument makes a call need approvals. A missing argument does.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    Always,
    /// If the value fits.
    If(Constraint),
    /// Unless the value fits.
    Unless(Constraint),
}

impl Gates {
    /// Reads the value of the extension.
    ///
    /// # Errors
    ///
    /// It does not have the form.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let gates = reader.entries(MAX_TOOLS, |reader, _| Gate::read(reader))?;
        reader.end()?;
        Ok(Self(gates))
    }

    /// Gates by tool.
    #[must_use]
    pub fn new(mut gates: Vec<(String, Gate)>) -> Self {
        gates.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self(gates)
    }

    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.map(self.0.len());
        for (tool, gate) in &self.0 {
            writer.text(tool);
            gate.write(&mut writer);
        }
        writer.bytes
    }

    #[must_use]
    pub fn get(&self, tool: &str) -> Option<&Gate> {
        self.0.iter().find(|(name, _)| name == tool).map(|(_, gate)| gate)
    }

    /// Whether a call needs approvals by one of these names of its tool.
    ///
    /// # Errors
    ///
    /// A condition cannot be evaluated.
    pub fn need_approvals(
        &self,
        names: &[&str],
        input: &Json,
        work: &mut Work,
    ) -> Result<bool, Undecidable> {
        for gate in names.iter().filter_map(|name| self.get(name)) {
            if gate.is_closed(input, work)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a child keeps each gate that is about its tools, or makes it stricter. `child` are its gates, and
    /// `concerns` says whether a gate's tool is one of its tools.
    ///
    /// # Errors
    ///
    /// It takes too much work.
    pub fn are_kept_by(
        &self,
        child: Option<&Self>,
        concerns: impl Fn(&str) -> bool,
        work: &mut Work,
    ) -> Result<bool, TooMuch> {
        for (tool, gate) in self.0.iter().filter(|(tool, _)| concerns(tool)) {
            let kept = child.and_then(|gates| gates.get(tool));
            let is_kept = kept.map_or(Ok(false), |kept| gate.is_kept_by(kept, work));
            if !is_kept? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The tools that have gates.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(tool, _)| tool.as_str())
    }
}

impl Gate {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (mut arguments, mut message) = (None, None);
        reader.members(&mut |reader, name| {
            match name {
                "args" => {
                    arguments = Some(match reader.null() {
                        true => None,
                        false => Some(
                            reader.entries(MAX_CONSTRAINTS, |reader, _| Condition::read(reader))?,
                        ),
                    });
                }
                "message" => message = Some(reader.owned_text()?),
                _ => return Err(Malformed("an approval gate has an unknown member")),
            }
            Ok(())
        })?;
        let arguments = arguments.ok_or(Malformed("an approval gate has no `args`"))?;
        Ok(Self { arguments, message })
    }

    fn write(&self, writer: &mut Writer) {
        writer.map(1 + usize::from(self.message.is_some()));
        writer.text("args");
        match &self.arguments {
            None => writer.null(),
            Some(arguments) => {
                writer.map(arguments.len());
                for (name, condition) in arguments {
                    writer.text(name);
                    condition.write(writer);
                }
            }
        }
        if let Some(message) = &self.message {
            writer.text("message");
            writer.text(message);
        }
    }

    fn is_closed(&self, input: &Json, work: &mut Work) -> Result<bool, Undecidable> {
        let Some(arguments) = &self.arguments else { return Ok(true) };
        let mut closed = false;
        for (name, condition) in arguments {
            let closes = match (input.get(name), condition) {
                (None, _) | (_, Condition::Always) => true,
                (Some(value), Condition::If(constraint)) => {
                    value_fits(constraint, value, work)? != Fit::No
                }
                (Some(value), Condition::Unless(constraint)) => {
                    value_fits(constraint, value, work)? != Fit::Yes
                }
            };
            // The rest is evaluated too, so that what cannot be evaluated is noticed.
            closed |= closes;
        }
        Ok(closed)
    }

    fn is_kept_by(&self, child: &Self, work: &mut Work) -> Result<bool, TooMuch> {
        let (mine, theirs) = match (&self.arguments, &child.arguments) {
            (_, None) => return Ok(true),
            (None, Some(_)) => return Ok(false),
            (Some(mine), Some(theirs)) => (mine, theirs),
        };
        for (name, condition) in mine {
            let kept = theirs.iter().find(|(other, _)| other == name).map(|(_, kept)| kept);
            let is_kept = match (condition, kept) {
                (_, None) => false,
                (_, Some(Condition::Always)) => true,
                (Condition::Unless(wide), Some(Condition::Unless(narrow))) => {
                    wide == narrow || is_narrower(wide, narrow, work)?
                }
                (condition, Some(kept)) => condition == kept,
            };
            if !is_kept {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Condition {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.is_text() {
            return match reader.text()? {
                "all" => Ok(Self::Always),
                _ => Err(Malformed("the condition of an approval gate is unknown")),
            };
        }
        if reader.is_array() {
            return Constraint::read(reader).map(Self::If);
        }
        if reader.map()? != 1 || reader.text()? != "exempt" {
            return Err(Malformed("the condition of an approval gate is unknown"));
        }
        match Constraint::read(reader)? {
            Constraint::Wildcard
            | Constraint::Any(_)
            | Constraint::Not(_)
            | Constraint::Unsupported(..) => {
                Err(Malformed("an approval gate cannot be open for this type of constraint"))
            }
            constraint => Ok(Self::Unless(constraint)),
        }
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Always => writer.text("all"),
            Self::If(constraint) => constraint.write(writer),
            Self::Unless(constraint) => {
                writer.map(1);
                writer.text("exempt");
                constraint.write(writer);
            }
        }
    }
}
