//! The hints of a tool about its effects, with MCP's defaults.

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
pub enum ToolHint {
    /// The tool does not modify its environment.
    ReadOnlyHint,
    /// The tool may perform destructive updates.
    DestructiveHint,
    /// Calling again with the same arguments has no additional effect.
    IdempotentHint,
    /// The tool may interact with an open world of external entities.
    OpenWorldHint,
}

/// A condition on one hint.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a hint has no fourth state")]
pub enum HintCondition {
    /// The hint is true, declared or by default.
    True,
    /// The hint is false, declared or by default.
    False,
    /// The tool does not declare the hint.
    Absent,
}

/// The boolean hints of one tool.
///
/// # Properties
///
/// | hint | default |
/// |---|---|
/// | `readOnlyHint` | false |
/// | `destructiveHint` | true, but false for a tool that is read-only |
/// | `idempotentHint` | false, but true for a tool that is read-only |
/// | `openWorldHint` | true |
///
/// The defaults are those of MCP's `ToolAnnotations`. It says of the second and the third hint that they are
/// "meaningful only when `readOnlyHint == false`": a read-only tool destroys nothing and can be repeated, whatever
/// it declares. A hint that is not a boolean is ignored.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::{HintCondition, ToolHint, ToolHints};
///
/// let hints = ToolHints::from_tool(r#"{"name": "add", "annotations": {"readOnlyHint": false}}"#);
/// assert!(hints.matches(ToolHint::ReadOnlyHint, HintCondition::False));
///
/// // A tool that does not declare whether it is destructive may be.
/// assert!(hints.matches(ToolHint::DestructiveHint, HintCondition::True));
/// assert!(hints.matches(ToolHint::DestructiveHint, HintCondition::Absent));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ToolHints([Option<bool>; 4]);

impl ToolHint {
    /// All hints.
    pub const ALL: [Self; 4] = [
        Self::ReadOnlyHint,
        Self::DestructiveHint,
        Self::IdempotentHint,
        Self::OpenWorldHint,
    ];

    /// The name in `annotations`.
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

impl fmt::Display for ToolHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ToolHints {
    /// The hints in a tool's definition; none if it cannot be read.
    #[must_use]
    pub fn from_tool(definition: &str) -> Self {
        let annotations = Members::parse(definition).ok().and_then(|tool| {
            let annotations = tool.get_written("annotations")?;
            Members::parse(annotations).ok()
        });
        let Some(annotations) = annotations else {
            return Self::default();
        };
        Self(
            ToolHint::ALL.map(|hint| match annotations.get(hint.as_str()) {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            }),
        )
    }

    /// What a tool declares, in the order of [`ToolHint::ALL`].
    #[must_use]
    pub const fn new(declared: [Option<bool>; 4]) -> Self {
        Self(declared)
    }

    /// What the tool declares.
    #[must_use]
    pub const fn declared(self, hint: ToolHint) -> Option<bool> {
        self.0[hint as usize]
    }

    /// The declared value, else MCP's default.
    #[must_use]
    pub fn effective(self, hint: ToolHint) -> bool {
        let read_only = self.declared(ToolHint::ReadOnlyHint).unwrap_or(false);
        match hint {
            ToolHint::ReadOnlyHint => read_only,
            ToolHint::DestructiveHint => !read_only && self.declared(hint).unwrap_or(true),
            ToolHint::IdempotentHint => read_only || self.declared(hint).unwrap_or(false),
            ToolHint::OpenWorldHint => self.declared(hint).unwrap_or(true),
        }
    }

    /// Whether the hint satisfies a condition.
    #[must_use]
    pub fn matches(self, hint: ToolHint, wanted: HintCondition) -> bool {
        match wanted {
            HintCondition::True => self.effective(hint),
            HintCondition::False => !self.effective(hint),
            HintCondition::Absent => self.declared(hint).is_none(),
        }
    }
}

/// `true`, `false` or `"absent"`.
impl<'de> Deserialize<'de> for HintCondition {
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
    fn holds(annotations: &str, expected: &[ToolHint]) {
        let hints = ToolHints::from_tool(&format!(r#"{{"name":"t","annotations":{annotations}}}"#));
        let held: Vec<ToolHint> = ToolHint::ALL
            .into_iter()
            .filter(|h| hints.effective(*h))
            .collect();
        assert_eq!(held, expected, "of {annotations}");
    }

    /// SV-11: the annotations by which a view selects have MCP's defaults.
    #[test]
    fn what_is_not_said_has_the_defaults_of_mcp() {
        use ToolHint::{DestructiveHint, IdempotentHint, OpenWorldHint, ReadOnlyHint};
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
