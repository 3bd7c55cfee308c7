//! The principal of a request, and its id.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_vary_base::caller_token::CallerToken;
use sha2::{Digest as _, Sha256};

use crate::claims::Claims;

/// The maximum length of an issuer, of a subject, of a key's name and of a certificate's subject, in bytes.
///
/// OpenID Connect Core 1.0, section 2, limits `sub` to 255 characters; distinguished names are longer.
pub const MAX_IDENTITY: usize = 1024;

/// Who sends a request: who they are, and the claims by which rules recognise them.
///
/// | kind | identified by |
/// |---|---|
/// | token | `iss` and `sub` of a verified access token (RFC 9068, section 2.2) |
/// | key | the name of an API key in the configuration |
/// | certificate | the subject of a verified client certificate |
/// | stdio | the name that the configuration gives to the client on standard input |
/// | anonymous | nothing: all anonymous clients are one principal |
///
/// # Properties
///
/// Two principals are the same if their [`id`](Self::id) is the same. It depends on nothing but the columns above, so a
/// refreshed token, or one with other groups, belongs to the same principal. `Debug` and `Display` show the kind and the
/// id only.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::{Claims, Principal};
///
/// let ann = Principal::token("https://idp.example", "ann", Claims::default())?;
/// let refreshed = Claims::from_json(r#"{"groups": ["sre"]}"#)?;
/// assert_eq!(ann.id(), Principal::token("https://idp.example", "ann", refreshed)?.id());
///
/// // A key that somebody named like a subject is another principal.
/// assert_ne!(ann.id(), Principal::key("ann", Claims::default())?.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Principal {
    identity: Identity,
    id: PrincipalId,
    id_text: Box<str>,
    /// What the claim says by which people are named.
    name: Option<Box<str>>,
    certificate: Option<Box<str>>,
    access_token: Option<CallerToken>,
    claims: Claims,
}

/// How a principal was recognised.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PrincipalKind {
    /// By an access token.
    Token,
    /// By an API key.
    Key,
    /// By a client certificate.
    Certificate,
    /// By the configuration, which names the client on standard input.
    Stdio,
    /// Not at all.
    Anonymous,
}

#[derive(Clone)]
enum Identity {
    Token { issuer: Box<str>, subject: Box<str> },
    Key { name: Box<str> },
    Certificate { subject: Box<str> },
    Stdio { name: Box<str> },
    Anonymous,
}

/// Why a text cannot identify a principal. It never contains the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PrincipalError {
    /// The text is empty.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// The text is longer than [`MAX_IDENTITY`].
    #[error("the {0} has more than {MAX_IDENTITY} bytes")]
    TooLong(&'static str),
    /// The text contains a control character.
    #[error("the {0} contains a control character")]
    Control(&'static str),
}

impl Principal {
    /// The principal of a verified access token: its `iss` and `sub`.
    ///
    /// # Errors
    ///
    /// When one of them is empty, longer than [`MAX_IDENTITY`], or contains a control character.
    pub fn token(issuer: &str, subject: &str, claims: Claims) -> Result<Self, PrincipalError> {
        let identity = Identity::Token {
            issuer: checked("issuer", issuer)?,
            subject: checked("subject", subject)?,
        };
        Ok(Self::new(identity, claims))
    }

    /// The principal of an API key, with the claims that the configuration gives to the key.
    ///
    /// # Errors
    ///
    /// As [`token`](Self::token).
    pub fn key(name: &str, claims: Claims) -> Result<Self, PrincipalError> {
        let name = checked("name of the key", name)?;
        Ok(Self::new(Identity::Key { name }, claims))
    }

    /// The principal of a verified client certificate.
    ///
    /// # Errors
    ///
    /// As [`token`](Self::token).
    pub fn certificate(subject: &str, claims: Claims) -> Result<Self, PrincipalError> {
        let subject = checked("subject of the certificate", subject)?;
        Ok(Self::new(Identity::Certificate { subject }, claims))
    }

    /// The principal that the configuration gives to the client on standard input.
    ///
    /// # Errors
    ///
    /// As [`token`](Self::token).
    pub fn stdio(name: &str, claims: Claims) -> Result<Self, PrincipalError> {
        let name = checked("name of the principal", name)?;
        Ok(Self::new(Identity::Stdio { name }, claims))
    }

    /// The principal of clients that present nothing.
    pub fn anonymous() -> Self {
        Self::new(Identity::Anonymous, Claims::default())
    }

    /// Adds the subject of the certificate of the connection, over which a token or key arrived.
    ///
    /// Rules can require it; the id stays the same.
    ///
    /// # Errors
    ///
    /// As [`token`](Self::token).
    pub fn with_certificate(mut self, subject: &str) -> Result<Self, PrincipalError> {
        self.certificate = Some(checked("subject of the certificate", subject)?);
        Ok(self)
    }

    /// Adds the access token by which the principal was recognised, for servers to which it is exchanged.
    ///
    /// The id stays the same.
    #[must_use]
    pub fn with_access_token(mut self, token: CallerToken) -> Self {
        self.access_token = Some(token);
        self
    }

    /// Adds what a token says in the claim by which people are named.
    ///
    /// The id stays the same.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    fn new(identity: Identity, claims: Claims) -> Self {
        let id = identity.id();
        Self {
            identity,
            id,
            id_text: id.to_string().into(),
            name: None,
            certificate: None,
            access_token: None,
            claims,
        }
    }

    /// The id of the principal.
    pub const fn id(&self) -> PrincipalId {
        self.id
    }

    /// The id as text, computed once: 22 characters of base64url.
    pub fn id_text(&self) -> &str {
        &self.id_text
    }

    /// How the principal was recognised.
    pub const fn kind(&self) -> PrincipalKind {
        match self.identity {
            Identity::Token { .. } => PrincipalKind::Token,
            Identity::Key { .. } => PrincipalKind::Key,
            Identity::Certificate { .. } => PrincipalKind::Certificate,
            Identity::Stdio { .. } => PrincipalKind::Stdio,
            Identity::Anonymous => PrincipalKind::Anonymous,
        }
    }

    /// The issuer of the token, if a token was presented.
    pub fn issuer(&self) -> Option<&str> {
        match &self.identity {
            Identity::Token { issuer, .. } => Some(issuer),
            _ => None,
        }
    }

    /// The subject of the token, if a token was presented. It may be personal: do not log it.
    pub fn subject(&self) -> Option<&str> {
        match &self.identity {
            Identity::Token { subject, .. } => Some(subject),
            _ => None,
        }
    }

    /// The name of the API key, if a key was presented.
    pub fn key_name(&self) -> Option<&str> {
        match &self.identity {
            Identity::Key { name } => Some(name),
            _ => None,
        }
    }

    /// The name that the operator gave: of the key or of the client on standard input, the subject of the certificate, or
    /// what the chosen claim of the token says. It may be personal: only the status, the page and the audit log show it.
    pub fn name(&self) -> Option<&str> {
        match &self.identity {
            Identity::Token { .. } => self.name.as_deref(),
            Identity::Key { name } | Identity::Stdio { name } => Some(name),
            Identity::Certificate { subject } => Some(subject),
            Identity::Anonymous => None,
        }
    }

    /// The name of the client on standard input, if it is the principal.
    pub fn stdio_name(&self) -> Option<&str> {
        match &self.identity {
            Identity::Stdio { name } => Some(name),
            _ => None,
        }
    }

    /// The subject of the client certificate: of the principal, or of the connection over which it sent its token or key.
    pub fn certificate_subject(&self) -> Option<&str> {
        match &self.identity {
            Identity::Certificate { subject } => Some(subject),
            _ => self.certificate.as_deref(),
        }
    }

    /// The access token by which the principal was recognised, where some server needs it.
    pub const fn access_token(&self) -> Option<&CallerToken> {
        self.access_token.as_ref()
    }

    /// Whether the client presented nothing.
    pub const fn is_anonymous(&self) -> bool {
        matches!(self.identity, Identity::Anonymous)
    }

    /// The claims by which rules recognise the principal.
    pub const fn claims(&self) -> &Claims {
        &self.claims
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({} {})", self.kind(), self.id)
    }
}

/// The kind and the id, such as `token 5Jc2…`.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.id)
    }
}

impl PrincipalKind {
    /// The kind in reports: `token`, `key`, `certificate`, `stdio` or `anonymous`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Key => "key",
            Self::Certificate => "certificate",
            Self::Stdio => "stdio",
            Self::Anonymous => "anonymous",
        }
    }
}

impl fmt::Display for PrincipalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Identity {
    /// No part contains a zero byte, so no two identities have the same text.
    fn id(&self) -> PrincipalId {
        let (kind, issuer, subject) = match self {
            Self::Token { issuer, subject } => ("token", &**issuer, &**subject),
            Self::Key { name } => ("key", "", &**name),
            Self::Certificate { subject } => ("certificate", "", &**subject),
            Self::Stdio { name } => ("stdio", "", &**name),
            Self::Anonymous => ("anonymous", "", ""),
        };
        let mut hash = Sha256::new();
        for part in [kind, "/", issuer, "\0", subject] {
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let (id, _) = digest.split_at(PrincipalId::BYTES);
        let mut bytes = [0; PrincipalId::BYTES];
        bytes.copy_from_slice(id);
        PrincipalId(bytes)
    }
}

fn checked(part: &'static str, text: &str) -> Result<Box<str>, PrincipalError> {
    match text {
        "" => Err(PrincipalError::Empty(part)),
        _ if text.len() > MAX_IDENTITY => Err(PrincipalError::TooLong(part)),
        _ if text.chars().any(char::is_control) => Err(PrincipalError::Control(part)),
        _ => Ok(text.into()),
    }
}

/// The id of a principal: the first 16 bytes of SHA-256 over `kind/issuer`, a zero byte, and the subject or name.
///
/// # Properties
///
/// It is printed as 22 characters of base64url without padding (RFC 4648, section 5) and parses back. Sessions, cursors
/// and logs contain it instead of the subject. It is a digest without a secret: somebody who guesses issuer and subject
/// can compute it.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::{Claims, Principal, PrincipalId};
///
/// let id = Principal::token("https://idp.example", "ann", Claims::default())?.id();
/// assert_eq!(id.to_string().len(), 22);
/// assert_eq!(id.to_string().parse(), Ok(id));
///
/// // The last character has four unused bits, which must be zero: an id has one spelling.
/// let anonymous = Principal::anonymous().id().to_string();
/// let respelt = format!("{}B", &anonymous[..21]);
/// assert!(respelt.parse::<PrincipalId>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PrincipalId([u8; 16]);

/// A text is not a [`PrincipalId`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a principal's id is 22 characters of base64url")]
pub struct PrincipalIdError;

impl PrincipalId {
    /// The length of an id.
    pub const BYTES: usize = 16;

    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl FromStr for PrincipalId {
    type Err = PrincipalIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| PrincipalIdError)?;
        bytes.try_into().map(Self).map_err(|_| PrincipalIdError)
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrincipalId({self})")
    }
}

#[cfg(test)]
mod tests;
