//! Who a client is, and what it may use.
//!
//! | question | here |
//! |---|---|
//! | who sent the request? | [`Principal`], [`PrincipalId`] |
//! | what does the identity provider say about them? | [`Claims`], [`ClaimMapping`], [`ClaimPath`] |
//! | to whom does a rule apply, and what does it do? | [`AccessRule`], [`When`], [`ItemPattern`], [`Expression`] |
//! | which rules apply to a principal, and which variants are they offered? | [`AccessPolicy::class_of`], [`AccessClass`] |
//! | what may a class do with an item, and a principal with a call? | [`AccessPolicy::decide`], [`AccessPolicy::check`] |
//! | may a class use anything of a server? | [`AccessPolicy::server_access`] |
//! | why? | [`AccessPolicy::explain`] |
//!
//! Everything is a value: no IO, no clock, no randomness. What a token or a call contains is not trusted: reading it is
//! bounded and cannot panic, and no `Debug`, `Display` or error shows a subject, an argument or the value of a claim.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod call;
mod claims;
mod class;
mod decision;
mod explain;
mod expression;
mod item;
mod mapping;
mod pattern;
mod policy;
mod principal;
mod rule;
mod server;
mod when;

pub use call::Call;
pub use claims::{
    Claim, Claims, ClaimsError, MAX_CLAIM_NAME, MAX_CLAIM_VALUE, MAX_CLAIM_VALUES, MAX_CLAIMS,
    MAX_CLAIMS_DEPTH, MAX_CLAIMS_JSON,
};
pub use class::{AccessClass, MAX_RULES, RuleIndex, RuleSet, VariantAccess};
pub use decision::{CallCheck, Decision, Denial, HiddenBy, Verdict};
pub use explain::{AccessReport, ItemReport, Reason};
pub use expression::{
    EvaluationError, Expression, ExpressionError, MAX_ARGUMENTS, MAX_EXPRESSION,
    MAX_EXPRESSION_BRACKETS, MAX_EXPRESSION_DEPTH, MAX_WORK,
};
pub use item::{Item, ItemKind, ItemPattern};
pub use mapping::{ClaimMapping, ClaimPath, ClaimPathError, MAX_PATH_SEGMENTS};
pub use policy::{AccessPolicy, PolicyError};
pub use principal::{
    MAX_IDENTITY, Principal, PrincipalError, PrincipalId, PrincipalIdError, PrincipalKind,
};
pub use rule::{AccessRule, MAX_ITEM_PATTERNS, MAX_RULE_SCOPES, RuleError};
pub use server::{Server, ServerAccess};
pub use when::{MAX_WHEN_PATTERNS, Presence, When, WhenError};
