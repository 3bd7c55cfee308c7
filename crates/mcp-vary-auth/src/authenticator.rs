//! From the credential of a request to its principal, or to the reason why there is none.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_vary::variant::VariantId;
use mcp_vary_access::Principal;

use crate::address::EndpointPath;
use crate::cache::{TokenCache, TokenDigest};
use crate::challenge::Refusal;
use crate::credential::{BearerToken, Credential, CredentialError};
use crate::jwks::KeySet;
use crate::key::{KeyDigest, KeyTable};
use crate::refresh::KeysUnavailable;
use crate::token::{
    InvalidToken, IssuerIndex, Refused, TokenError, TokenVerifier, TrustedIssuer, UnverifiedToken,
};

/// Who may pass.
///
/// # Properties
///
/// A credential that is not accepted is refused even where clients without one may pass: nobody becomes somebody else
/// by sending something wrong.
#[derive(Debug, Default)]
pub struct Authenticator {
    keys: KeyTable,
    tokens: Option<TokenVerifier>,
    cache: TokenCache,
    /// Whether principals have their tokens.
    retains_tokens: AtomicBool,
    /// The principal of clients without a credential; none if they may not pass.
    anonymous: Option<Arc<Principal>>,
}

/// A request that may pass. `Debug` shows no claim.
#[derive(Clone)]
pub struct Admission {
    /// Who sends it.
    pub principal: Arc<Principal>,
    /// The end of the credential, in seconds since 1970-01-01 UTC, if it has one.
    pub expires_at: Option<u64>,
    /// The variant that the credential is pinned to.
    pub pin: Option<VariantId>,
    /// The client that the token was issued to, for audit.
    pub client_id: Option<Arc<str>>,
    /// The digest of the API key, if one was presented.
    pub key: Option<KeyDigest>,
}

/// A request that may not pass.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denial {
    /// What to answer.
    pub refusal: Refusal,
    /// Which check of the token failed, for the log.
    pub reason: Option<TokenError>,
    /// The issuer whose keys should be fetched, after which the request may pass.
    pub fetch: Option<IssuerIndex>,
    /// The scopes of a token that lacks some, for logs.
    pub given_scopes: Vec<String>,
}

impl Authenticator {
    /// Accepts the API keys of `keys` and the tokens that `tokens` verifies.
    pub fn new(keys: KeyTable, tokens: Option<TokenVerifier>) -> Self {
        Self {
            keys,
            tokens,
            cache: TokenCache::default(),
            retains_tokens: AtomicBool::new(false),
            anonymous: None,
        }
    }

    /// Sets whether clients without a credential may pass, as nobody.
    #[must_use]
    pub fn with_anonymous(mut self, allows: bool) -> Self {
        self.anonymous = allows.then(|| Arc::new(Principal::anonymous()));
        self
    }

    /// Gives the principals of tokens that are verified from now on their tokens, for servers to which they are exchanged.
    pub fn retain_tokens(&self) {
        self.retains_tokens.store(true, Ordering::Relaxed);
    }

    /// Whether clients that present no credential are accepted.
    pub const fn allows_anonymous(&self) -> bool {
        self.anonymous.is_some()
    }

    /// The API keys.
    pub const fn keys(&self) -> &KeyTable {
        &self.keys
    }

    /// The verifier of tokens, if an issuer is configured.
    pub const fn tokens(&self) -> Option<&TokenVerifier> {
        self.tokens.as_ref()
    }

    /// The tokens that were verified.
    pub const fn cache(&self) -> &TokenCache {
        &self.cache
    }

    /// Decides on a request to `target` at `now`, in seconds since 1970-01-01 UTC.
    ///
    /// `key_set` returns the keys of an issuer. It is called for tokens that were not verified lately.
    ///
    /// # Errors
    ///
    /// When the request may not pass.
    pub fn authenticate(
        &self,
        credential: Credential<'_>,
        target: &EndpointPath,
        now: u64,
        key_set: impl FnOnce(IssuerIndex) -> Result<Arc<KeySet>, KeysUnavailable>,
    ) -> Result<Admission, Denial> {
        match credential {
            Credential::None => {
                let principal = self.anonymous.as_ref().ok_or(Refusal::NoCredential)?;
                Ok(Admission::of(Arc::clone(principal)))
            }
            Credential::Bearer(token) if KeyTable::looks_like_a_key(token.as_str()) => {
                self.find_key(token, now)
            }
            Credential::Bearer(token) => self.verify_token(token, target, now, key_set),
        }
    }

    /// Whether what `before` admitted may go on at `now`, in seconds since 1970-01-01 UTC: for streams, which outlive
    /// their request.
    ///
    /// A key must still be there. The issuer of a token must be trusted as it was when the token was verified; if its
    /// entry changed, the client has to present the token again.
    pub fn still_admits(&self, before: &Self, admission: &Admission, now: u64) -> bool {
        if admission.expires_at.is_some_and(|at| at <= now) {
            return false;
        }
        match (admission.principal.issuer(), &admission.key) {
            (Some(issuer), _) => {
                let trusted = self.trusted_issuer(issuer);
                trusted.is_some() && trusted == before.trusted_issuer(issuer)
            }
            (None, Some(key)) => {
                let key = self.keys.get(key);
                key.is_some_and(|key| {
                    key.principal.id() == admission.principal.id() && !key.is_expired(now)
                })
            }
            (None, None) => !admission.principal.is_anonymous() || self.allows_anonymous(),
        }
    }

    fn trusted_issuer(&self, name: &str) -> Option<&TrustedIssuer> {
        let mut issuers = self.tokens.iter().flat_map(TokenVerifier::issuers);
        issuers.find(|trusted| trusted.issuer.as_str() == name)
    }

    fn find_key(&self, token: BearerToken<'_>, now: u64) -> Result<Admission, Denial> {
        let refuse = |reason| Refusal::InvalidToken(reason).into();
        let known = self.keys.find(token.as_str());
        let key = known.ok_or_else(|| refuse(InvalidToken::Malformed))?;
        if key.is_expired(now) {
            return Err(refuse(InvalidToken::Expired));
        }
        Ok(Admission {
            principal: Arc::clone(&key.principal),
            expires_at: key.expires_at,
            pin: None,
            client_id: None,
            key: Some(key.digest),
        })
    }

    fn verify_token(
        &self,
        token: BearerToken<'_>,
        target: &EndpointPath,
        now: u64,
        key_set: impl FnOnce(IssuerIndex) -> Result<Arc<KeySet>, KeysUnavailable>,
    ) -> Result<Admission, Denial> {
        let tokens = self.tokens.as_ref().ok_or(TokenError::Unknown)?;
        let digest = TokenDigest::of(token.as_str());
        let verified = match self.cache.get(digest, now) {
            Some(verified) => verified,
            None => {
                let unverified = UnverifiedToken::parse(token.as_str())?;
                let issuer = tokens.find_issuer(&unverified)?;
                let keys = key_set(issuer).map_err(|_| Denial::without_keys(issuer))?;
                let checked = tokens.verify(&unverified, &keys, now);
                let mut verified = checked.map_err(|reason| Denial::of_token(reason, issuer))?;
                if self.retains_tokens.load(Ordering::Relaxed) {
                    verified = verified.with_text(token.as_str(), digest.0);
                }
                let verified = Arc::new(verified);
                self.cache.insert(digest, Arc::clone(&verified), now);
                verified
            }
        };
        let pin = verified.admit(target, now).map_err(|refused| {
            let given = verified.principal.claims().scopes();
            denial(
                refused,
                tokens.issuer(verified.issuer),
                given.map(str::to_owned).collect(),
            )
        })?;
        Ok(Admission {
            principal: Arc::clone(&verified.principal),
            expires_at: Some(verified.expires_at),
            pin: pin.cloned(),
            client_id: verified.client_id.clone(),
            key: None,
        })
    }
}

/// The answer to a token that was verified and does not admit the request.
fn denial(refused: Refused, issuer: Option<&TrustedIssuer>, given_scopes: Vec<String>) -> Denial {
    match refused {
        Refused::Token(reason) => reason.into(),
        Refused::Scopes => {
            let scopes = issuer.map(|issuer| issuer.scopes.clone());
            Denial {
                given_scopes,
                ..Refusal::InsufficientScope(scopes.unwrap_or_default()).into()
            }
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut admission = f.debug_struct("Admission");
        admission.field("principal", &self.principal);
        admission.field("expires_at", &self.expires_at);
        admission.field("pin", &self.pin).finish_non_exhaustive()
    }
}

impl Admission {
    /// A request of `principal`, whose credential has no end of its own.
    pub const fn of(principal: Arc<Principal>) -> Self {
        Self {
            principal,
            expires_at: None,
            pin: None,
            client_id: None,
            key: None,
        }
    }
}

impl Denial {
    const fn without_keys(issuer: IssuerIndex) -> Self {
        Self {
            refusal: Refusal::KeysUnavailable,
            reason: None,
            fetch: Some(issuer),
            given_scopes: Vec::new(),
        }
    }

    fn of_token(reason: TokenError, issuer: IssuerIndex) -> Self {
        let fetch = (reason == TokenError::UnknownKey).then_some(issuer);
        Self {
            fetch,
            ..reason.into()
        }
    }
}

impl From<TokenError> for Denial {
    fn from(reason: TokenError) -> Self {
        Self {
            refusal: Refusal::InvalidToken(reason.answer()),
            reason: Some(reason),
            fetch: None,
            given_scopes: Vec::new(),
        }
    }
}

impl From<CredentialError> for Denial {
    fn from(error: CredentialError) -> Self {
        Refusal::BadRequest(error).into()
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            reason: None,
            fetch: None,
            given_scopes: Vec::new(),
        }
    }
}
