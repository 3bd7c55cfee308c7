//! Why a text is not an expression.

/// The maximum length of an expression, in bytes.
pub const MAX_EXPRESSION: usize = 4 << 10;

/// The maximum nesting of the operations of an expression.
pub const MAX_EXPRESSION_DEPTH: usize = 32;

/// The maximum nesting of brackets in the text of an expression. The generated parser takes up to 200 KiB of stack for
/// each in a build without optimisation, and a thread has 2 MiB.
pub const MAX_EXPRESSION_BRACKETS: usize = 8;

/// Why a text is not an [`Expression`](super::Expression).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ExpressionError {
    /// The text is longer than [`MAX_EXPRESSION`].
    #[error("it has more than {MAX_EXPRESSION} bytes")]
    TooLong,
    /// The expression nests deeper than [`MAX_EXPRESSION_DEPTH`].
    #[error("it nests deeper than {MAX_EXPRESSION_DEPTH} operations, or 4 macros")]
    TooDeep,
    /// The brackets nest deeper than [`MAX_EXPRESSION_BRACKETS`].
    #[error("it nests deeper than {MAX_EXPRESSION_BRACKETS} brackets")]
    TooManyBrackets,
    /// The text is not CEL.
    #[error("it is not an expression in CEL: {0}")]
    Syntax(String),
    /// A variable does not exist.
    #[error(
        "it uses `{0}`, which does not exist; there are args, claims, kind, name, principal, server, tool, variant"
    )]
    UnknownVariable(String),
    /// A function does not exist here.
    #[error(
        "it calls `{0}`, which does not exist here; see the documentation of rules for the functions"
    )]
    UnknownFunction(String),
    /// A macro whose results could grow without bounds.
    #[error("it uses `map` or `filter`; use `exists`, `exists_one` or `all`")]
    UnboundedMacro,
    /// `claims` is used other than with a name.
    #[error("it uses `claims` without a name; write `claims.NAME` or `claims[\"NAME\"]`")]
    AllClaims,
    /// `principal` has no such member.
    #[error("it uses `principal.{0}`; there are principal.kind, .id, .key and .client")]
    UnknownMember(String),
    /// The result cannot be a boolean.
    #[error("it is not a condition: its result is not true or false")]
    NotBoolean,
}
