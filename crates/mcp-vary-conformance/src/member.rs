//! A member of what a peer declares, and the values that it may have.

use serde_json::Value;

use crate::json::{at, brief};
use crate::objection::{Verdict, ensure, not_applicable, violation};

/// A member of the capabilities of a peer, or of its settings of an extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// The extension of the settings; none for a member of the capabilities.
    pub(crate) extension: Option<&'static str>,
    pub(crate) path: &'static [&'static str],
    pub(crate) is_right: fn(&Value) -> bool,
    pub(crate) if_absent: IfAbsent,
}

/// What follows if a member is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IfAbsent {
    Right,
    NotApplicable(&'static str),
    Violation(&'static str),
}

impl Member {
    /// A member that may be absent.
    pub(crate) const fn of(
        extension: Option<&'static str>,
        path: &'static [&'static str],
        is_right: fn(&Value) -> bool,
    ) -> Self {
        Self {
            extension,
            path,
            is_right,
            if_absent: IfAbsent::Right,
        }
    }

    /// The same, with what follows if it is absent.
    pub(crate) const fn or(mut self, if_absent: IfAbsent) -> Self {
        self.if_absent = if_absent;
        self
    }

    /// Objects unless the member of `declared` is right.
    pub(crate) fn test(&self, declared: Option<&Value>) -> Verdict {
        match declared.and_then(|declared| at(declared, self.path)) {
            Some(value) => {
                let name = self.path.last().copied().unwrap_or_default();
                ensure!((self.is_right)(value), "`{name}` is {}", brief(value));
                Ok(())
            }
            None => match self.if_absent {
                IfAbsent::Right => Ok(()),
                IfAbsent::NotApplicable(reason) => not_applicable(reason),
                IfAbsent::Violation(finding) => violation(finding),
            },
        }
    }
}
