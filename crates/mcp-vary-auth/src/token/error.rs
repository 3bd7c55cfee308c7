//! Why a token is not accepted: exactly, for logs, and in six texts, for clients.

use mcp_vary_access::{ClaimsError, PrincipalError};

/// Why a token is not accepted. It never contains a part of the token; which check failed is for the log.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TokenError {
    /// It does not have three parts (RFC 7515, section 7.1).
    #[error(
        "it is not a signed JWT of three parts: it was cut short, or the provider issues other tokens; let it issue JWTs as access tokens, often by naming this server as their audience"
    )]
    Shape,
    /// The header is too large, not canonical base64url, not an object, too deep, or repeats a name.
    #[error(
        "its header cannot be read: the token was changed, or is not a JWT (the header is base64url of a JSON object of at most 1024 bytes with unique names)"
    )]
    Header,
    /// The same of the payload.
    #[error(
        "its payload cannot be read: the token was cut short or changed (the payload is base64url of a JSON object of at most 6144 bytes with unique names)"
    )]
    Payload,
    /// A claim is missing, or is of another type or range than RFC 9068 and RFC 7519 give it.
    #[error("its claim `{0}` is missing or malformed; {fix}", fix = claim_fix(.0))]
    Claim(&'static str),
    /// The claims break a limit.
    #[error("its claims cannot be used: {0}")]
    Claims(#[from] ClaimsError),
    /// `iss` or `sub` cannot identify a principal.
    #[error("its principal cannot be used: {0}")]
    Principal(#[from] PrincipalError),
    /// The algorithm is `none`, symmetric, unknown, or not one for the key.
    #[error(
        "its `alg` is {0}, which the issuer's key does not allow; let the provider sign with RS256 to RS512 or PS256 to PS512 (RSA), ES256, ES384 or EdDSA"
    )]
    Algorithm(&'static str),
    /// It has `crit`: it says that it must be refused by who does not know an extension.
    #[error("it has critical extensions")]
    Critical,
    /// `typ` is not one of an access token.
    #[error("its `typ` is not `at+jwt` or `JWT`")]
    Type,
    /// It is an ID token.
    #[error("it has `at_hash` or `c_hash`, so it is an ID token")]
    IdToken,
    /// It is bound to a key that a bearer does not prove.
    #[error("it has `cnf`, so it is sender-constrained")]
    SenderConstrained,
    /// No issuer is configured, and it is not an API key.
    #[error("no key and no issuer knows it")]
    Unknown,
    /// No trusted issuer has this identifier.
    #[error("its issuer is not trusted")]
    Issuer,
    /// It was issued for another resource.
    #[error("its audience is another resource")]
    Audience,
    /// The issuer has no key with its `kid`; or without `kid`, not exactly one for the algorithm.
    #[error(
        "no key of the issuer's key set has its `kid`; compare the issuer, and whether its keys were rotated"
    )]
    UnknownKey,
    /// The signature does not verify.
    #[error(
        "its signature does not verify: the token was cut short or changed, or a key of another provider signed it"
    )]
    Signature,
    /// `exp` is past.
    #[error("it has expired")]
    Expired,
    /// `nbf` or `iat` is in the future.
    #[error("its `{0}` is in the future")]
    NotYetValid(&'static str),
}

/// What a client learns of a token that is not accepted: one of six texts, which say nothing of the token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidToken {
    /// It is not a token that this server can read, or not a known API key.
    Malformed,
    /// The signature does not verify with a key of the issuer.
    Signature,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// It was issued by somebody else, or for somebody else.
    NotForThisServer,
    /// It is of a kind that is never accepted.
    Kind,
}

impl TokenError {
    /// What the client learns.
    pub const fn answer(&self) -> InvalidToken {
        match self {
            Self::Shape
            | Self::Header
            | Self::Payload
            | Self::Claim(_)
            | Self::Claims(_)
            | Self::Principal(_) => InvalidToken::Malformed,
            Self::Algorithm(_)
            | Self::Critical
            | Self::Type
            | Self::IdToken
            | Self::SenderConstrained => InvalidToken::Kind,
            Self::Unknown | Self::Issuer | Self::Audience => InvalidToken::NotForThisServer,
            Self::UnknownKey | Self::Signature => InvalidToken::Signature,
            Self::Expired => InvalidToken::Expired,
            Self::NotYetValid(_) => InvalidToken::NotYetValid,
        }
    }
}

/// What the provider should write into a claim (RFC 7519, section 4.1).
fn claim_fix(name: &str) -> &'static str {
    match name {
        "iss" => "let the provider write its own URL into it, as text",
        "sub" => "let the provider write into it who the token is for, as text that is not empty",
        "aud" => "let the provider write the address of this server into it, as text or in a list",
        "exp" => {
            "let the provider give the token a lifetime: the end in seconds since 1970, as a number"
        }
        _ => "let the provider write it as a number, in seconds since 1970, or leave it out",
    }
}

impl InvalidToken {
    /// The `error_description`.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Malformed => "the token is unknown or malformed",
            Self::Signature => "the signature of the token cannot be verified",
            Self::Expired => "the token has expired",
            Self::NotYetValid => "the token is not valid yet",
            Self::NotForThisServer => "the token was not issued for this server",
            Self::Kind => "tokens of this kind are not accepted",
        }
    }
}
