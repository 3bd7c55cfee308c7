//! What a tool says of its effects, with what MCP says where it says nothing.

use std::fmt;

use mcp_vary::json::Members;
use serde::{Deserialize, Serialize};

/// One of the hints in a tool's `annotations`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the four of MCP's ToolAnnotations"
)]
pub enum Hint {
    /// The tool does not modify its environment.
    ReadOnlyHint,
    /// The tool may perform destructive updates.
    DestructiveHint,
    /// Calling again with the same arguments has no additional effect.
    IdempotentHint,
    /// The tool may interact with an open world of external entities.
    OpenWorldHint,
}

/// What is asked of a hint.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a hint has no fourth state")]
pub enum Wanted {
    /// It holds, said or by default.
    True,
    /// It does not hold, said or by default.
    False,
    /// Nothing is said.
    Absent,
}

/// The hints of one tool, as far as they are booleans.
///
/// # Properties
///
/// | hint | where nothing is said |
/// |---|---|
/// | `readOnlyHint` | false |
/// | `destructiveHint` | true, but false for a tool that is read-only |
/// | `idempotentHint` | false, but true for a tool that is read-only |
/// | `openWorldHint` | true |
///
/// The defaults are those of MCP's `ToolAnnotations`, which says of the second and the third that they
/// are "meaningful only when `readOnlyHint == false`": what changes nothing destroys nothing, however
/// often, so that for a read-only tool both are settled whatever it says of them. A hint that is no
/// boolean says nothing.
///
/// # Examples
///
/// ```
/// use crate::{Hint, Hints, Wanted};
///
/// let hints = Hints::of_tool(r#"{"name": "add", "annotations": {"readOnlyHint": false}}"#);
/// assert!(hints.is(Hint::ReadOnlyHint, Wanted::False));
///
/// // A tool that does not say whether it destroys may destroy.
/// assert!(hints.is(Hint::DestructiveHint, Wanted::True));
/// assert!(hints.is(Hint::DestructiveHint, Wanted::Absent));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Hints([Option<bool>; 4]);

impl Hint {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::ReadOnlyHint,
        Self::DestructiveHint,
        Self::IdempotentHint,
        Self::OpenWorldHint,
    ];

    /// Its name in `annotations`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnlyHint => "readOnlyHint",
            Self::DestructiveHint => "destructiveHint",
            Self::IdempotentHint => "idempotentHint",
            Self::OpenWorldHint => "openWorldHint",
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Hints {
    /// The hints of a tool's definition; none where it cannot be read.
    #[must_use]
    pub fn of_tool(definition: &str) -> Self {
        let annotations = Members::parse(definition).ok().and_then(|tool| {
            let annotations = tool.get_written("annotations")?;
            Members::parse(annotations).ok()
        });
        let Some(annotations) = annotations else {
            return Self::default();
        };
        Self(Hint::ALL.map(|hint| match annotations.get(hint.as_str()) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        }))
    }

    /// What the tool says.
    #[must_use]
    pub const fn said(self, hint: Hint) -> Option<bool> {
        self.0[hint as usize]
    }

    /// What holds: what the tool says, else MCP's default.
    #[must_use]
    pub fn holds(self, hint: Hint) -> bool {
        let read_only = self.said(Hint::ReadOnlyHint).unwrap_or(false);
        match hint {
            Hint::ReadOnlyHint => read_only,
            Hint::DestructiveHint => !read_only && self.said(hint).unwrap_or(true),
            Hint::IdempotentHint => read_only || self.said(hint).unwrap_or(false),
            Hint::OpenWorldHint => self.said(hint).unwrap_or(true),
        }
    }

    /// Whether the hint is as wanted.
    #[must_use]
    pub fn is(self, hint: Hint, wanted: Wanted) -> bool {
        match wanted {
            Wanted::True => self.holds(hint),
            Wanted::False => !self.holds(hint),
            Wanted::Absent => self.said(hint).is_none(),
        }
    }
}

/// `true`, `false` or `"absent"`.
impl<'de> Deserialize<'de> for Wanted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected true, false or absent")]
        enum Written {
            Bool(bool),
            Absent(Absent),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Absent {
            Absent,
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Bool(true) => Self::True,
            Written::Bool(false) => Self::False,
            Written::Absent(Absent::Absent) => Self::Absent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(annotations: &str, expected: &[Hint]) {
        let hints = Hints::of_tool(&format!(r#"{{"name":"t","annotations":{annotations}}}"#));
        let held: Vec<Hint> = Hint::ALL.into_iter().filter(|h| hints.holds(*h)).collect();
        assert_eq!(held, expected, "of {annotations}");
    }

    /// SV-11: the annotations by which a view selects have MCP's defaults.
    #[test]
    fn what_is_not_said_has_the_defaults_of_mcp() {
        use Hint::{DestructiveHint, IdempotentHint, OpenWorldHint, ReadOnlyHint};
        holds("{}", &[DestructiveHint, OpenWorldHint]);
        holds("null", &[DestructiveHint, OpenWorldHint]);
        holds(
            r#"{"readOnlyHint": true}"#,
            &[ReadOnlyHint, IdempotentHint, OpenWorldHint],
        );
        holds(
            r#"{"readOnlyHint": true, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false}"#,
            &[ReadOnlyHint, IdempotentHint],
        );
        holds(
            r#"{"destructiveHint": false, "idempotentHint": true}"#,
            &[IdempotentHint, OpenWorldHint],
        );
        holds(
            r#"{"readOnlyHint": "true", "openWorldHint": null}"#,
            &[DestructiveHint, OpenWorldHint],
        );
    }
}
