//! A token that was read and not verified yet.

use std::fmt;

use jsonwebtoken::Algorithm;
use mcp_vary_json::Json;

use super::error::TokenError;
use crate::algorithm::{parse_algorithm, refused_name};
use crate::strict::{Object, decode, parse_object};

/// The largest header, in bytes of JSON.
pub const MAX_HEADER: usize = 1 << 10;

/// The largest payload, in bytes of JSON.
pub const MAX_PAYLOAD: usize = 6 << 10;

/// The deepest nesting of both.
pub const MAX_DEPTH: usize = 8;

/// The most audiences of a token.
pub const MAX_AUDIENCES: usize = 64;

/// A token whose form was checked, and whose signature was not. `Debug` shows no part of it.
///
/// # Properties
///
/// Header and payload are canonical base64url of JSON objects within the limits of this module, whose names are unique
/// at every level, so every other reader finds the same values. The algorithm is asymmetric, nothing critical is
/// unknown, and the kind is that of an access token. `jku`, `x5u`, `x5c` and `jwk` are not read: keys come from the
/// issuer's set only.
pub struct UnverifiedToken<'a> {
    pub(super) text: &'a str,
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    pub(super) payload: String,
    pub(super) claims: RegisteredClaims,
}

/// The claims that decide whether a token is accepted.
pub(super) struct RegisteredClaims {
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) audiences: Vec<String>,
    /// Seconds since 1970-01-01 UTC, as are the next two.
    pub(super) expires_at: u64,
    pub(super) not_before: Option<u64>,
    pub(super) issued_at: Option<u64>,
    pub(super) client_id: Option<String>,
}

impl<'a> UnverifiedToken<'a> {
    /// Reads a token.
    ///
    /// # Errors
    ///
    /// When it does not have the form of an access token, or is of a kind that is never accepted.
    pub fn parse(text: &'a str) -> Result<Self, TokenError> {
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Shape);
        };
        let (algorithm, key_id) = read_header(header)?;
        let payload = decode(payload, MAX_PAYLOAD).ok_or(TokenError::Payload)?;
        let payload = String::from_utf8(payload).map_err(|_| TokenError::Payload)?;
        let claims = read_claims(&payload)?;
        Ok(Self {
            text,
            algorithm,
            key_id,
            payload,
            claims,
        })
    }

    /// What it says of its issuer, `iss`. Anybody could have written it.
    pub fn issuer(&self) -> &str {
        &self.claims.issuer
    }

    /// What it says of its audiences, `aud`. Anybody could have written them.
    pub fn audiences(&self) -> &[String] {
        &self.claims.audiences
    }

    /// Its `exp`, in seconds since 1970.
    pub const fn expires_at(&self) -> u64 {
        self.claims.expires_at
    }
}

impl fmt::Debug for UnverifiedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnverifiedToken({} bytes)", self.text.len())
    }
}

/// The algorithm and the key id of a header (RFC 7515, section 4.1).
fn read_header(part: &str) -> Result<(Algorithm, Option<String>), TokenError> {
    let bytes = decode(part, MAX_HEADER).ok_or(TokenError::Header)?;
    let header = parse_object(&bytes, MAX_DEPTH).ok_or(TokenError::Header)?;
    // "If any of the listed extension Header Parameters are not understood and supported by the recipient, then the
    // JWS is invalid." (RFC 7515, section 4.1.11) None is understood here.
    if header.contains("crit") {
        return Err(TokenError::Critical);
    }
    let name = header.text("alg");
    let known = name.and_then(parse_algorithm);
    let algorithm = known.ok_or_else(|| TokenError::Algorithm(refused_name(name)))?;
    let kind = header.optional_text("typ").map_err(|_| TokenError::Type)?;
    if !kind.is_none_or(is_access_token_type) {
        return Err(TokenError::Type);
    }
    let key_id = header
        .optional_text("kid")
        .map_err(|_| TokenError::Header)?;
    Ok((algorithm, key_id.map(str::to_owned)))
}

/// RFC 9068, section 4, asks for `at+jwt`; many issuers write `JWT` or nothing. Media types ignore case.
fn is_access_token_type(name: &str) -> bool {
    const TYPES: [&str; 3] = ["at+jwt", "application/at+jwt", "JWT"];
    TYPES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn read_claims(payload: &str) -> Result<RegisteredClaims, TokenError> {
    let claims = parse_object(payload.as_bytes(), MAX_DEPTH).ok_or(TokenError::Payload)?;
    // OpenID Connect Core 1.0, section 3.3.2.11: no access token has a hash of itself.
    if claims.contains("at_hash") || claims.contains("c_hash") {
        return Err(TokenError::IdToken);
    }
    // RFC 7800: a bearer does not prove that it has the key, so it may have stolen the token.
    if claims.contains("cnf") {
        return Err(TokenError::SenderConstrained);
    }
    let text = |name: &'static str| {
        let text = claims.text(name).filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or(TokenError::Claim(name))
    };
    let claim = claims.texts("aud", MAX_AUDIENCES);
    let named = claim.filter(|all| !all.is_empty());
    let audiences = named.ok_or(TokenError::Claim("aud"))?;
    Ok(RegisteredClaims {
        issuer: text("iss")?,
        subject: text("sub")?,
        audiences: audiences.into_iter().map(str::to_owned).collect(),
        expires_at: date(&claims, "exp")?.ok_or(TokenError::Claim("exp"))?,
        not_before: date(&claims, "nbf")?,
        issued_at: date(&claims, "iat")?,
        client_id: client_id(&claims).map(str::to_owned),
    })
}

/// A `NumericDate` (RFC 7519, section 2), without its fraction; `None` if it is absent.
fn date(claims: &Object<'_>, name: &'static str) -> Result<Option<u64>, TokenError> {
    let spelling = match claims.get(name) {
        // A claim that is `null` is malformed. Only one that is not there is absent.
        None if claims.contains(name) => return Err(TokenError::Claim(name)),
        None => return Ok(None),
        Some(Json::Number(spelling)) => spelling,
        Some(_) => return Err(TokenError::Claim(name)),
    };
    let seconds: f64 = spelling.parse().map_err(|_| TokenError::Claim(name))?;
    if !(0.0..=MAX_DATE).contains(&seconds) {
        return Err(TokenError::Claim(name));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    Ok(Some(seconds as u64))
}

/// The client that the token was issued to (RFC 9068, section 2.2; `azp` of OpenID Connect), for audit.
fn client_id<'c>(claims: &'c Object<'_>) -> Option<&'c str> {
    let id = claims.text("client_id").or_else(|| claims.text("azp"))?;
    let is_printable = id.len() <= MAX_CLIENT_ID && !id.chars().any(char::is_control);
    is_printable.then_some(id)
}

/// The end of the year 9999.
const MAX_DATE: f64 = 253_402_300_799.0;

/// The longest id of a client that is recorded, in bytes.
const MAX_CLIENT_ID: usize = 1024;
