//! A token that was verified.

use std::fmt;
use std::sync::Arc;

use mcp_vary::variant::VariantId;
use mcp_vary_access::Principal;
use mcp_vary_base::caller_token::CallerToken;

use super::error::TokenError;
use crate::address::EndpointPath;

/// How far the clocks of issuers may be from this one, in seconds.
pub const LEEWAY: u64 = 60;

/// A token that was verified: who presents it, and what it was issued for. `Debug` shows no claim.
#[derive(Clone)]
pub struct VerifiedToken {
    /// Who presents the token.
    pub principal: Arc<Principal>,
    /// `exp`, in seconds since 1970-01-01 UTC.
    pub expires_at: u64,
    /// The client that the token was issued to, if it says so, for audit.
    pub client_id: Option<Arc<str>>,
    /// The issuer.
    pub issuer: IssuerIndex,
    pub(super) audience: Audience,
    pub(super) has_scopes: bool,
}

/// What a token was issued for.
#[derive(Clone, Debug)]
pub(super) enum Audience {
    /// This server, at any of its addresses.
    Server,
    /// The addresses of these variants, which may not exist.
    Variants(Vec<VariantId>),
}

/// Why a verified token does not admit a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refused {
    /// 401: it is not for this address, or it has expired since it was verified.
    Token(TokenError),
    /// 403: it lacks a scope that every request needs.
    Scopes,
}

impl VerifiedToken {
    /// Whether the token is good for a request to `target` at `now`, in seconds since 1970-01-01 UTC; and the variant
    /// that it is pinned to.
    ///
    /// A token for the addresses of variants only is good at these addresses and pins the request to the variant
    /// (SV-9); at `/mcp` it is another resource's.
    ///
    /// # Errors
    ///
    /// See [`Refused`].
    pub fn admit(&self, target: &EndpointPath, now: u64) -> Result<Option<&VariantId>, Refused> {
        if is_expired(self.expires_at, now) {
            return Err(Refused::Token(TokenError::Expired));
        }
        let pin = match &self.audience {
            Audience::Server => None,
            Audience::Variants(variants) => {
                let pin = variants.iter().find(|id| target.variant() == Some(id));
                Some(pin.ok_or(Refused::Token(TokenError::Audience))?)
            }
        };
        self.has_scopes.then_some(pin).ok_or(Refused::Scopes)
    }

    /// The same, whose principal has the token.
    pub(crate) fn with_text(mut self, text: &str, digest: [u8; 32]) -> Self {
        let token = CallerToken::new(text, digest, self.expires_at);
        let principal = Principal::clone(&self.principal).with_access_token(token);
        self.principal = Arc::new(principal);
        self
    }
}

impl fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut token = f.debug_struct("VerifiedToken");
        token.field("principal", &self.principal);
        token
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The position of an issuer in the configuration.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct IssuerIndex(pub(super) usize);

impl IssuerIndex {
    /// The position, from 0.
    pub const fn get(self) -> usize {
        self.0
    }
}

pub(super) const fn is_expired(expires_at: u64, now: u64) -> bool {
    now >= expires_at.saturating_add(LEEWAY)
}
