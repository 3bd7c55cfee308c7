//! What is known of a principal, under the names that rules use.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use mcp_vary::ignored::for_display;
use mcp_vary::json::{Json, MAX_DEPTH, Members, elements_up_to, skip, unquoted};

/// The maximum length of the JSON from which claims are read, in bytes. A token that large does not fit into a header.
pub const MAX_CLAIMS_JSON: usize = 64 << 10;

/// The maximum nesting of objects and arrays in that JSON.
pub const MAX_CLAIMS_DEPTH: usize = 8;

/// The maximum number of claims.
pub const MAX_CLAIMS: usize = 64;

/// The maximum length of the name of a claim, in bytes.
pub const MAX_CLAIM_NAME: usize = 256;

/// The maximum length of a string in a claim, in bytes.
pub const MAX_CLAIM_VALUE: usize = 4 << 10;

/// The maximum number of values in a claim, such as groups.
pub const MAX_CLAIM_VALUES: usize = 1000;

/// The longest spelling of a number.
const MAX_NUMBER: usize = 64;

/// The name under which rules find the scopes of a token.
pub(crate) const SCOPE: &str = "scope";

/// What is known of a principal, under the names that rules use.
///
/// The claims of a token are read by a [`ClaimMapping`](crate::ClaimMapping), those that the configuration writes out by
/// [`from_json`](Self::from_json).
///
/// # Properties
///
/// - A claim that is `null` does not exist.
/// - `scope` is always a list, one element for each scope. No other claim is split at spaces: a person may choose their
///   own display name, and `Ann sre` does not make them a member of `sre`.
/// - Strings have at most [`MAX_CLAIM_VALUE`] bytes and no control characters; lists have at most [`MAX_CLAIM_VALUES`]
///   elements. What breaks a limit is refused as a whole: without the claim, a rule that requires its absence would
///   apply.
/// - `Debug` shows the number of claims only.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::{Claim, Claims};
///
/// let claims = Claims::from_json(r#"{"groups": ["dev", "sre"], "email": null, "scope": "read write"}"#)?;
/// assert!(claims.get("groups").is_some_and(|groups| groups.texts().any(|group| group == "sre")));
/// assert!(claims.get("email").is_none());
/// assert!(claims.has_scope("write"));
///
/// // One string stays one value, spaces or not.
/// let claims = Claims::from_json(r#"{"name": "Ann sre"}"#)?;
/// assert_eq!(claims.get("name").and_then(Claim::as_text).as_deref(), Some("Ann sre"));
/// # Ok::<(), mcp_vary_access::ClaimsError>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Claims {
    claims: BTreeMap<Box<str>, Claim>,
}

/// The value of one claim.
#[derive(Clone, PartialEq)]
pub enum Claim {
    /// A string.
    Text(Box<str>),
    /// A list of strings.
    List(Box<[Box<str>]>),
    /// A number, as it was written.
    Number(Box<str>),
    /// `true` or `false`.
    Bool(bool),
    /// An object, or a list that contains something other than strings.
    Json {
        /// The value as compact JSON, which expressions read.
        json: Box<str>,
        /// The strings of the list, and the spelling of its numbers and booleans, which patterns read.
        texts: Box<[Box<str>]>,
    },
}

/// Why claims were refused. It contains no values.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ClaimsError {
    /// The text is longer than [`MAX_CLAIMS_JSON`].
    #[error("the claims have more than {MAX_CLAIMS_JSON} bytes")]
    TooLarge,
    /// The text is not a JSON object.
    #[error("the claims are not a JSON object")]
    NotAnObject,
    /// The text nests deeper than [`MAX_CLAIMS_DEPTH`].
    #[error("the claims nest deeper than {MAX_CLAIMS_DEPTH} levels")]
    TooDeep,
    /// An object repeats a name.
    #[error("an object in the claims repeats a name")]
    RepeatedName,
    /// There are more claims than [`MAX_CLAIMS`].
    #[error("there are more than {MAX_CLAIMS} claims")]
    TooManyClaims,
    /// A name is empty, longer than [`MAX_CLAIM_NAME`], or contains a control character.
    #[error("the name of a claim is empty, too long, or contains a control character")]
    Name,
    /// The name `scope` is reserved for the scopes.
    #[error("`scope` cannot be mapped as a claim; name its places under `scope-claims`")]
    ScopeName,
    /// A string is longer than [`MAX_CLAIM_VALUE`], or a number is longer than any useful one.
    #[error(
        "the claim `{0}` has a value of more than {MAX_CLAIM_VALUE} bytes, or a very long number"
    )]
    TooLong(String),
    /// A list has more elements than [`MAX_CLAIM_VALUES`].
    #[error(
        "the claim `{0}` has more than {MAX_CLAIM_VALUES} values; identity providers can restrict it to the groups of \
         one application"
    )]
    TooManyValues(String),
    /// A string contains a control character, or is not valid Unicode.
    #[error("the claim `{0}` contains a control character, or is not valid Unicode")]
    Control(String),
    /// The scopes are neither a string nor a list of strings.
    #[error("the claim `{0}` is neither a string nor a list of strings")]
    NotScopes(String),
}

impl Claims {
    /// Reads all members of a JSON object, each as a claim of its name.
    ///
    /// This is for claims that the configuration gives to an API key or to the client on standard input, and for
    /// `vary access explain`.
    ///
    /// # Errors
    ///
    /// When `json` is not an object, or breaks a limit of this module.
    pub fn from_json(json: &str) -> Result<Self, ClaimsError> {
        let members = open(json)?;
        if members.len() > MAX_CLAIMS {
            return Err(ClaimsError::TooManyClaims);
        }
        let mut claims = Self::default();
        for (name, value) in members.iter() {
            check_name(name)?;
            match name {
                SCOPE => claims.add_scopes(name, value)?,
                _ => claims.add(name, value)?,
            }
        }
        Ok(claims)
    }

    /// Adds the claim `name`, unless its value is `null`.
    pub(crate) fn add(&mut self, name: &str, json: &str) -> Result<(), ClaimsError> {
        if let Some(claim) = Claim::parse(name, json)? {
            self.claims.insert(name.into(), claim);
        }
        Ok(())
    }

    /// Adds the scopes in `json`, the value of the claim `name`.
    pub(crate) fn add_scopes(&mut self, name: &str, json: &str) -> Result<(), ClaimsError> {
        let added: Vec<Box<str>> = match Claim::parse(name, json)? {
            None => return Ok(()),
            Some(Claim::Text(text)) => text
                .split(' ')
                .filter(|scope| !scope.is_empty())
                .map(Box::from)
                .collect(),
            Some(Claim::List(list)) => list.into_vec(),
            Some(_) => return Err(ClaimsError::NotScopes(for_display(name))),
        };
        let mut scopes: Vec<Box<str>> = self.scopes().map(Box::from).collect();
        scopes.extend(added);
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.len() > MAX_CLAIM_VALUES {
            return Err(ClaimsError::TooManyValues(for_display(name)));
        }
        self.claims.insert(SCOPE.into(), Claim::List(scopes.into()));
        Ok(())
    }

    /// The claim `name`.
    pub fn get(&self, name: &str) -> Option<&Claim> {
        self.claims.get(name)
    }

    /// The claims in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Claim)> {
        self.claims.iter().map(|(name, claim)| (&**name, claim))
    }

    /// The scopes of the token (RFC 6749, section 3.3), sorted.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.get(SCOPE).into_iter().flat_map(Claim::texts)
    }

    /// Whether the token has the scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        match self.get(SCOPE) {
            Some(Claim::List(list)) => list.binary_search_by(|item| (**item).cmp(scope)).is_ok(),
            _ => false,
        }
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claims({})", self.claims.len())
    }
}

impl Claim {
    /// Reads a value of valid JSON; `None` for `null`.
    fn parse(name: &str, raw: &str) -> Result<Option<Self>, ClaimsError> {
        let json = raw.trim_matches(JSON_SPACE);
        Ok(Some(match json.as_bytes().first() {
            Some(b'"') => Self::Text(text(name, json)?),
            Some(b'[') => Self::parse_list(name, json)?,
            Some(b'{') => Self::parse_json(json, Vec::new())?,
            Some(b'n') => return Ok(None),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            _ if json.len() > MAX_NUMBER => return Err(ClaimsError::TooLong(for_display(name))),
            _ => Self::Number(json.into()),
        }))
    }

    fn parse_list(name: &str, json: &str) -> Result<Self, ClaimsError> {
        let elements = elements_up_to(json, MAX_CLAIM_VALUES)
            .map_err(|_| ClaimsError::TooManyValues(for_display(name)))?;
        let is_plain = elements.iter().all(|element| element.starts_with('"'));
        let mut texts = Vec::new();
        for element in elements {
            match element.as_bytes().first() {
                Some(b'"') => texts.push(text(name, element)?),
                Some(b'{' | b'[' | b'n') => {}
                _ if element.len() > MAX_NUMBER => {
                    return Err(ClaimsError::TooLong(for_display(name)));
                }
                _ => texts.push(element.into()),
            }
        }
        if is_plain {
            Ok(Self::List(texts.into()))
        } else {
            Self::parse_json(json, texts)
        }
    }

    fn parse_json(json: &str, texts: Vec<Box<str>>) -> Result<Self, ClaimsError> {
        let value = Json::parse(json).map_err(|_| ClaimsError::RepeatedName)?;
        Ok(Self::Json {
            json: value.to_json().into(),
            texts: texts.into(),
        })
    }

    /// The value, if it is a single string, number or boolean.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(Cow::Borrowed(text)),
            Self::Bool(bool) => Some(Cow::Borrowed(bool_text(*bool))),
            Self::List(list) => match &**list {
                [only] => Some(Cow::Borrowed(only)),
                _ => None,
            },
            Self::Json { .. } => None,
        }
    }

    /// The values that a pattern of a rule is compared with: the string, the elements of the list, the spelling of the
    /// number, `true` or `false`. An object has none, and neither has an object in a list.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, list): (Option<&str>, &[Box<str>]) = match self {
            Self::Text(text) | Self::Number(text) => (Some(text), &[]),
            Self::Bool(bool) => (Some(bool_text(*bool)), &[]),
            Self::List(texts) | Self::Json { texts, .. } => (None, texts),
        };
        one.into_iter().chain(list.iter().map(|text| &**text))
    }

    /// Whether the claim is a list without elements, which rules treat as no claim.
    pub fn is_empty_list(&self) -> bool {
        matches!(self, Self::List(list) if list.is_empty())
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text(..)",
            Self::List(_) => "List(..)",
            Self::Number(_) => "Number(..)",
            Self::Bool(_) => "Bool(..)",
            Self::Json { .. } => "Json(..)",
        })
    }
}

/// What JSON calls whitespace.
const JSON_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The members of `json`, once its size and depth are known to be within their limits.
pub(crate) fn open(raw: &str) -> Result<Members<'_>, ClaimsError> {
    if raw.len() > MAX_CLAIMS_JSON {
        return Err(ClaimsError::TooLarge);
    }
    let json = raw.trim_matches(JSON_SPACE);
    let is_whole = |depth| skip(json, 0, depth) == Some(json.len());
    if !json.starts_with('{') || !is_whole(MAX_DEPTH) {
        return Err(ClaimsError::NotAnObject);
    }
    if !is_whole(MAX_CLAIMS_DEPTH) {
        return Err(ClaimsError::TooDeep);
    }
    members(json)
}

/// The members of an object in valid JSON.
pub(crate) fn members(json: &str) -> Result<Members<'_>, ClaimsError> {
    Members::parse(json).map_err(|_| ClaimsError::RepeatedName)
}

/// Whether `name` can be the name of a claim.
pub(crate) fn check_name(name: &str) -> Result<(), ClaimsError> {
    let is_valid =
        (1..=MAX_CLAIM_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_valid {
        Ok(())
    } else {
        Err(ClaimsError::Name)
    }
}

/// The text of a JSON string in the claim `name`.
fn text(name: &str, json: &str) -> Result<Box<str>, ClaimsError> {
    let text = unquoted(json).ok_or_else(|| ClaimsError::Control(for_display(name)))?;
    if text.len() > MAX_CLAIM_VALUE {
        return Err(ClaimsError::TooLong(for_display(name)));
    }
    if text.chars().any(char::is_control) {
        return Err(ClaimsError::Control(for_display(name)));
    }
    Ok(text.into())
}

const fn bool_text(bool: bool) -> &'static str {
    if bool { "true" } else { "false" }
}

#[cfg(test)]
mod tests;
