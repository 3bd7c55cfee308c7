//! JWT access tokens (RFC 9068, RFC 7519, RFC 8725).
//!
//! A token is read ([`UnverifiedToken`]), verified with the keys of the issuer that it names ([`TokenVerifier`]), and
//! admitted to one address ([`VerifiedToken::admit`]). The second step does not depend on the address, so that its
//! outcome can be cached.

mod error;
mod unverified;
mod verified;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode};
use mcp_vary_access::{ClaimMapping, Principal};
use serde::de::IgnoredAny;

pub use self::error::{InvalidToken, TokenError};
pub use self::unverified::{MAX_AUDIENCES, MAX_DEPTH, MAX_HEADER, MAX_PAYLOAD, UnverifiedToken};
use self::verified::{Audience, is_expired};
pub use self::verified::{IssuerIndex, LEEWAY, Refused, VerifiedToken};
use crate::address::{EndpointPath, PublicUrl};
use crate::discovery::Issuer;
use crate::jwks::{KeySet, VerificationKey};
use crate::provider::Provider;
use crate::scope::Scope;

/// The most issuers of a configuration.
pub const MAX_ISSUERS: usize = 64;

/// An issuer that the configuration trusts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustedIssuer {
    /// Its identifier.
    pub issuer: Issuer,
    /// What `aud` may be besides the addresses of this server: for issuers that do not know RFC 8707.
    pub audiences: Vec<String>,
    /// The scopes that every request needs.
    pub scopes: Vec<Scope>,
    /// Which claims are read, and where they and the scopes are.
    pub claims: ClaimMapping,
}

/// Verifies tokens.
#[derive(Clone, Debug)]
pub struct TokenVerifier {
    issuers: Vec<TrustedIssuer>,
    by_name: BTreeMap<Issuer, IssuerIndex>,
    public: PublicUrl,
}

/// Why the issuers of a configuration cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum IssuersError {
    /// Two have one identifier.
    #[error("issuer {} is `{issuer}`, as an earlier one is; put its audiences and scopes into one entry", index + 1)]
    Repeated {
        /// The position of the second, from 0.
        index: usize,
        /// The identifier.
        issuer: Issuer,
    },
    /// There are more than [`MAX_ISSUERS`].
    #[error("there are more than 64 issuers")]
    TooMany,
    /// An audience is empty.
    #[error("issuer {} has an empty audience; leave it out", index + 1)]
    EmptyAudience {
        /// The position of the issuer, from 0.
        index: usize,
    },
}

impl TokenVerifier {
    /// A verifier of the tokens of `issuers` for the server at `public`.
    ///
    /// # Errors
    ///
    /// See [`IssuersError`].
    pub fn new(
        _: Provider,
        public: PublicUrl,
        issuers: Vec<TrustedIssuer>,
    ) -> Result<Self, IssuersError> {
        if issuers.len() > MAX_ISSUERS {
            return Err(IssuersError::TooMany);
        }
        let mut by_name = BTreeMap::new();
        for (index, trusted) in issuers.iter().enumerate() {
            let issuer = trusted.issuer.clone();
            if trusted.audiences.iter().any(String::is_empty) {
                return Err(IssuersError::EmptyAudience { index });
            }
            if by_name.insert(issuer.clone(), IssuerIndex(index)).is_some() {
                return Err(IssuersError::Repeated { index, issuer });
            }
        }
        Ok(Self {
            issuers,
            by_name,
            public,
        })
    }

    /// The issuers, in the order of the configuration.
    pub fn issuers(&self) -> &[TrustedIssuer] {
        &self.issuers
    }

    /// The audience of a token for the server: its address, as clients type it.
    pub fn audience_of_server(&self) -> String {
        self.public.resource(&EndpointPath::Base)
    }

    /// The issuer at `index`.
    pub fn issuer(&self, index: IssuerIndex) -> Option<&TrustedIssuer> {
        self.issuers.get(index.0)
    }

    /// The issuer that `token` names, byte for byte. It is trusted only after [`verify`](Self::verify).
    ///
    /// # Errors
    ///
    /// [`TokenError::Issuer`].
    pub fn find_issuer(&self, token: &UnverifiedToken<'_>) -> Result<IssuerIndex, TokenError> {
        let found = self.by_name.get(token.claims.issuer.as_str());
        found.copied().ok_or(TokenError::Issuer)
    }

    /// Verifies `token` with `keys`, which are those of its [issuer](Self::find_issuer), at `now`, in seconds since
    /// 1970-01-01 UTC.
    ///
    /// The audience is recognised here, and compared with the address of a request by [`VerifiedToken::admit`].
    ///
    /// # Errors
    ///
    /// See [`TokenError`]. After [`TokenError::UnknownKey`] newer keys may help.
    pub fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        keys: &KeySet,
        now: u64,
    ) -> Result<VerifiedToken, TokenError> {
        let index = self.find_issuer(token)?;
        let trusted = self.issuer(index).ok_or(TokenError::Issuer)?;
        let found = keys.find(token.key_id.as_deref(), token.algorithm);
        let key = found.ok_or_else(|| missing_key(token, keys))?;
        verify_signature(token, key, trusted)?;
        let claims = &token.claims;
        check_times(claims.expires_at, claims.not_before, claims.issued_at, now)?;
        let audience = self.audience(&claims.audiences, trusted)?;
        let mapped = trusted.claims.read(&token.payload)?;
        let has_scopes = trusted
            .scopes
            .iter()
            .all(|scope| mapped.has_scope(scope.as_str()));
        let mut principal = Principal::token(&claims.issuer, &claims.subject, mapped)?;
        if let Some(name) = trusted.claims.read_name(&token.payload) {
            principal = principal.with_name(&name);
        }
        Ok(VerifiedToken {
            principal: Arc::new(principal),
            expires_at: claims.expires_at,
            client_id: claims.client_id.as_deref().map(Into::into),
            issuer: index,
            audience,
            has_scopes,
        })
    }

    /// What the audiences of a token mean here.
    fn audience(
        &self,
        audiences: &[String],
        trusted: &TrustedIssuer,
    ) -> Result<Audience, TokenError> {
        let mut variants = Vec::new();
        for audience in audiences {
            // First, so that an audience of the configuration cannot undo the pin of a variant's address.
            match self.public.audience_path(audience) {
                Some(EndpointPath::Base) => return Ok(Audience::Server),
                Some(target) => variants.extend(target.variant().cloned()),
                None if trusted.audiences.contains(audience) => return Ok(Audience::Server),
                None => {}
            }
        }
        if variants.is_empty() {
            return Err(TokenError::Audience);
        }
        Ok(Audience::Variants(variants))
    }
}

/// Why no key fits `token`.
fn missing_key(token: &UnverifiedToken<'_>, keys: &KeySet) -> TokenError {
    let id = token.key_id.as_deref();
    if id.is_some_and(|id| keys.ids().any(|known| known == id)) {
        TokenError::Algorithm("of another kind")
    } else {
        TokenError::UnknownKey
    }
}

/// Verifies the signature by `jsonwebtoken`, which also compares `alg` and `iss` by its own reading.
fn verify_signature(
    token: &UnverifiedToken<'_>,
    key: &VerificationKey,
    trusted: &TrustedIssuer,
) -> Result<(), TokenError> {
    let mut validation = Validation::new(token.algorithm);
    validation.required_spec_claims =
        HashSet::from(["exp", "iss", "aud", "sub"].map(str::to_owned));
    validation.set_issuer(&[trusted.issuer.as_str()]);
    // It reads the clock of the system for these; here the time is an argument.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    // Which audiences are right depends on the address of the request.
    validation.validate_aud = false;
    match decode::<IgnoredAny>(token.text, &key.key, &validation) {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            ErrorKind::InvalidIssuer => TokenError::Issuer,
            ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => {
                TokenError::Algorithm("of another kind")
            }
            ErrorKind::Json(_) => TokenError::Header,
            _ => TokenError::Signature,
        }),
    }
}

fn check_times(
    expires_at: u64,
    not_before: Option<u64>,
    issued_at: Option<u64>,
    now: u64,
) -> Result<(), TokenError> {
    let is_future = |time: Option<u64>| time.is_some_and(|time| time > now.saturating_add(LEEWAY));
    match () {
        () if is_expired(expires_at, now) => Err(TokenError::Expired),
        () if is_future(not_before) => Err(TokenError::NotYetValid("nbf")),
        () if is_future(issued_at) => Err(TokenError::NotYetValid("iat")),
        () => Ok(()),
    }
}
