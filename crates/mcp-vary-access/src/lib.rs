//! Who a client is, and what it may use.
//!
//! | question | here |
//! |---|---|
//! | who sent the request? | [`Principal`], [`PrincipalId`] |
//! | what does the identity provider say about them? | [`Claims`], [`ClaimMapping`], [`ClaimPath`] |
//!
//! Everything is a value: no IO, no clock, no randomness. What a token contains is not trusted: reading it is bounded and
//! cannot panic, and no `Debug`, `Display` or error shows a subject or the value of a claim.

mod claims;
mod mapping;
mod principal;

pub use claims::{
    Claim, Claims, ClaimsError, MAX_CLAIM_NAME, MAX_CLAIM_VALUE, MAX_CLAIM_VALUES, MAX_CLAIMS,
    MAX_CLAIMS_DEPTH, MAX_CLAIMS_JSON,
};
pub use mapping::{ClaimMapping, ClaimPath, ClaimPathError, MAX_PATH_SEGMENTS};
pub use principal::{
    MAX_IDENTITY, Principal, PrincipalError, PrincipalId, PrincipalIdError, PrincipalKind,
};
