//! Which claims of a token are read, and where they are in it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use mcp_vary::ignored::for_display;
use mcp_vary::json::Members;

use crate::claims::{
    Claims, ClaimsError, MAX_CLAIM_NAME, MAX_CLAIMS, SCOPE, check_name, members, open,
};

/// The maximum number of names in a [`ClaimPath`].
pub const MAX_PATH_SEGMENTS: usize = 8;

/// The place of a claim in a token: names of members, separated by dots.
///
/// `\.` is a dot in a name and `\\` a backslash. [`from_names`](Self::from_names) takes names as they are.
///
/// # Properties
///
/// A printed path parses to the same path. It has 1 to [`MAX_PATH_SEGMENTS`] names without control characters, each
/// of 1 to [`MAX_CLAIM_NAME`] bytes.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::ClaimPath;
///
/// let path: ClaimPath = "realm_access.roles".parse()?;
/// assert_eq!(path.names().collect::<Vec<_>>(), ["realm_access", "roles"]);
///
/// // Claims of some providers are named by a URL, which has dots of its own.
/// let error = "https://acme.example/groups".parse::<ClaimPath>().unwrap_err();
/// assert!(error.to_string().contains(r"write `https://acme\.example/groups`"));
/// # Ok::<(), mcp_vary_access::ClaimPathError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClaimPath(Box<[Box<str>]>);

/// Why a text is not a [`ClaimPath`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the place of a claim `{path}` {reason}")]
pub struct ClaimPathError {
    path: String,
    reason: String,
}

impl ClaimPath {
    /// The path of these names, in which dots have no meaning.
    ///
    /// # Errors
    ///
    /// When there are none or more than [`MAX_PATH_SEGMENTS`], or one of them is empty, longer than
    /// [`MAX_CLAIM_NAME`], or contains a control character.
    pub fn from_names<'n>(
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, ClaimPathError> {
        let path = Self(names.into_iter().map(Box::from).collect());
        let reason = if path.0.is_empty() {
            "has no names".to_owned()
        } else if path.0.len() > MAX_PATH_SEGMENTS {
            format!("has more than {MAX_PATH_SEGMENTS} names")
        } else if path.0.iter().any(|name| name.is_empty()) {
            "has an empty name; write `\\.` for a dot in a name".to_owned()
        } else if path.0.iter().any(|name| check_name(name).is_err()) {
            format!("has a name with a control character, or of more than {MAX_CLAIM_NAME} bytes")
        } else {
            return Ok(path);
        };
        Err(ClaimPathError {
            path: for_display(&path.to_string()),
            reason,
        })
    }

    /// The names, outermost first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// The JSON at this place of the token; `None` if it is not there.
    fn find<'t>(&self, token: &Members<'t>) -> Result<Option<&'t str>, ClaimsError> {
        let mut names = self.names();
        let mut value = names.next().and_then(|name| token.get_written(name));
        for name in names {
            value = match value {
                Some(object) if object.starts_with('{') => members(object)?.get_written(name),
                _ => return Ok(None),
            };
        }
        Ok(value)
    }
}

impl FromStr for ClaimPath {
    type Err = ClaimPathError;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        let error = |reason: String| ClaimPathError {
            path: for_display(path),
            reason,
        };
        let mut names = vec![String::new()];
        let mut chars = path.chars();
        while let Some(c) = chars.next() {
            let end = names.last_mut();
            match (c, end) {
                ('.', _) => names.push(String::new()),
                ('\\', Some(name)) => match chars.next() {
                    Some(escaped @ ('.' | '\\')) => name.push(escaped),
                    _ => {
                        return Err(error(
                            "has a `\\` before something other than `.` or `\\`".into(),
                        ));
                    }
                },
                (_, Some(name)) => name.push(c),
                (_, None) => {}
            }
        }
        if names.len() > 1 && path.contains("://") {
            let escaped = for_display(path).replace('.', "\\.");
            let fix = format!("looks like one name with dots in it; write `{escaped}`");
            return Err(error(fix));
        }
        Self::from_names(names.iter().map(String::as_str))
    }
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            let dot = if at > 0 { "." } else { "" };
            write!(f, "{dot}{}", name.replace('\\', "\\\\").replace('.', "\\."))?;
        }
        Ok(())
    }
}

/// Which claims of a token are read, under which names, and where they are in the token.
///
/// # Properties
///
/// - Only what is named is read. Other claims can have any size and content.
/// - A name with a place is read there and nowhere else: with `groups` at `realm_access.roles`, a member `groups` at the
///   top of the token means nothing.
/// - The scopes are all that the scope claims contain, by default `scope` (RFC 9068, section 2.2.3) and `scp`.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::ClaimMapping;
///
/// let mapping = ClaimMapping::default()
///     .with_claim("groups", "realm_access.roles".parse()?)?
///     .with_names(["groups", "email"])?;
/// let token = r#"{"iss": "https://idp.example", "sub": "1", "scope": "read", "groups": ["admin"],
///                 "realm_access": {"roles": ["dev"]}, "email": "ann@example.com", "name": "Ann"}"#;
/// let claims = mapping.read(token)?;
/// assert!(claims.has_scope("read"));
/// assert!(claims.get("groups").is_some_and(|groups| groups.texts().eq(["dev"])));
/// assert!(claims.get("name").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClaimMapping {
    claims: BTreeMap<Box<str>, ClaimPath>,
    scopes: Vec<ClaimPath>,
    name: Option<ClaimPath>,
}

/// Reads scopes only.
impl Default for ClaimMapping {
    fn default() -> Self {
        let scopes = [SCOPE, "scp"].map(|name| ClaimPath([name.into()].into()));
        Self {
            claims: BTreeMap::new(),
            scopes: scopes.into(),
            name: None,
        }
    }
}

impl ClaimMapping {
    /// Reads the claim `name` at `path`.
    ///
    /// # Errors
    ///
    /// When `name` cannot be the name of a claim or is `scope`, whose places are set with
    /// [`with_scope_claims`](Self::with_scope_claims), or when there are more names than [`MAX_CLAIMS`].
    pub fn with_claim(mut self, name: &str, path: ClaimPath) -> Result<Self, ClaimsError> {
        if name == SCOPE {
            return Err(ClaimsError::ScopeName);
        }
        check_name(name)?;
        self.claims.insert(name.into(), path);
        self.checked()
    }

    /// Reads each of `names` at the top of the token, except those that have a place already. `scope` is always read.
    ///
    /// These are the names that rules and templates use.
    ///
    /// # Errors
    ///
    /// When one cannot be the name of a claim, or when there are more than [`MAX_CLAIMS`].
    pub fn with_names<'n>(
        mut self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, ClaimsError> {
        for name in names.into_iter().filter(|name| *name != SCOPE) {
            check_name(name)?;
            let place = self.claims.entry(name.into());
            place.or_insert_with(|| ClaimPath([name.into()].into()));
        }
        self.checked()
    }

    /// Reads scopes at these places instead of `scope` and `scp`.
    #[must_use]
    pub fn with_scope_claims(mut self, places: impl IntoIterator<Item = ClaimPath>) -> Self {
        self.scopes = places.into_iter().collect();
        self
    }

    /// Names people by the claim at this place.
    #[must_use]
    pub fn with_name_claim(mut self, place: ClaimPath) -> Self {
        self.name = Some(place);
        self
    }

    /// What `json`, the payload of a verified token, says in the claim by which people are named. `None` if that is not a text.
    pub fn read_name(&self, json: &str) -> Option<String> {
        let place = self.name.as_ref()?;
        let token = open(json).ok()?;
        let value = place.find(&token).ok()??;
        let mut claims = Claims::default();
        claims.add("name", value).ok()?;
        let name = claims.get("name")?.as_text()?.into_owned();
        (!name.is_empty()).then_some(name)
    }

    fn checked(self) -> Result<Self, ClaimsError> {
        if self.claims.len() > MAX_CLAIMS {
            return Err(ClaimsError::TooManyClaims);
        }
        Ok(self)
    }

    /// Reads the claims in `json`, the payload of a verified token.
    ///
    /// # Errors
    ///
    /// When `json` is not an object, repeats a name, or one of the claims that are read breaks a limit of
    /// [`Claims`].
    pub fn read(&self, json: &str) -> Result<Claims, ClaimsError> {
        let token = open(json)?;
        let mut claims = Claims::default();
        for (name, path) in &self.claims {
            if let Some(value) = path.find(&token)? {
                claims.add(name, value)?;
            }
        }
        for path in &self.scopes {
            if let Some(value) = path.find(&token)? {
                claims.add_scopes(&path.to_string(), value)?;
            }
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ClaimPath {
        text.parse().unwrap()
    }

    #[track_caller]
    fn reads(mapping: &ClaimMapping, token: &str, expected: &[(&str, &[&str])]) {
        let claims = mapping.read(token).unwrap();
        let all: Vec<(&str, Vec<&str>)> = claims
            .iter()
            .map(|(name, claim)| (name, claim.texts().collect()))
            .collect();
        let expected: Vec<(&str, Vec<&str>)> = expected
            .iter()
            .map(|(name, texts)| (*name, texts.to_vec()))
            .collect();
        assert_eq!(all, expected, "{token}");
    }

    #[test]
    fn a_path_is_names_between_dots() {
        #[track_caller]
        fn is(text: &str, names: &[&str]) {
            let path = path(text);
            assert_eq!(path.names().collect::<Vec<_>>(), names);
            assert_eq!(path.to_string(), text);
            assert_eq!(path, ClaimPath::from_names(names.iter().copied()).unwrap());
        }
        is("groups", &["groups"]);
        is("realm_access.roles", &["realm_access", "roles"]);
        is(r"https://acme\.com/groups", &["https://acme.com/groups"]);
        is(r"a\\.b", &["a\\", "b"]);
        is("a:b/c d", &["a:b/c d"]);
        is("a.b.c.d.e.f.g.h", &["a", "b", "c", "d", "e", "f", "g", "h"]);
    }

    #[test]
    fn what_is_not_a_path_is_refused_with_the_fix() {
        #[track_caller]
        fn refused(text: &str, why: &str) {
            let error = text.parse::<ClaimPath>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        refused("", "has an empty name");
        refused("a..b", "has an empty name; write `\\.` for a dot in a name");
        refused(".a", "has an empty name");
        refused("a.b.c.d.e.f.g.h.i", "has more than 8 names");
        refused("a\u{7}", "control character");
        refused(&"a".repeat(257), "more than 256 bytes");
        refused(r"a\b", "before something other than");
        refused(r"a\", "before something other than");
        refused(
            "https://a.b/c",
            r"one name with dots in it; write `https://a\.b/c`",
        );
        let none = ClaimPath::from_names([]).unwrap_err().to_string();
        assert!(none.ends_with("has no names"), "{none}");
    }

    #[test]
    fn only_what_is_named_is_read() {
        let mapping = ClaimMapping::default()
            .with_names(["email", "scope"])
            .unwrap();
        let large = "x".repeat(50_000);
        let token = format!(r#"{{"email":"a@b.c","name":"\u0000{large}","scope":"s"}}"#);
        reads(
            &mapping,
            &token,
            &[("email", &["a@b.c"]), ("scope", &["s"])],
        );
        reads(&mapping, "{}", &[]);
    }

    #[test]
    fn a_claim_with_a_place_is_read_nowhere_else() {
        let mapping = ClaimMapping::default()
            .with_claim("groups", path("realm_access.roles"))
            .unwrap()
            .with_names(["groups"])
            .unwrap();
        for token in [
            r#"{"groups":["admin"]}"#,
            r#"{"groups":["admin"],"realm_access":null}"#,
            r#"{"groups":["admin"],"realm_access":"roles"}"#,
            r#"{"groups":["admin"],"realm_access":[{"roles":["admin"]}]}"#,
            r#"{"groups":["admin"],"realm_access":{"role":["admin"]}}"#,
            r#"{"groups":["admin"],"realm_access":{"roles":null}}"#,
            r#"{"groups":["admin"],"realm_access.roles":["admin"]}"#,
        ] {
            reads(&mapping, token, &[]);
        }
        let token = r#"{"groups":["admin"],"realm_access":{"a":1,"roles":["dev"]}}"#;
        reads(&mapping, token, &[("groups", &["dev"])]);
        let url = ClaimMapping::default()
            .with_claim("groups", path(r"https://acme\.com/groups"))
            .unwrap();
        let token = r#"{"https://acme.com/groups":["dev"]}"#;
        reads(&url, token, &[("groups", &["dev"])]);
    }

    #[test]
    fn people_are_named_by_a_text_at_its_place() {
        #[track_caller]
        fn is(token: &str, expected: Option<&str>) {
            let mapping = ClaimMapping::default().with_name_claim(path("user.mail"));
            assert_eq!(mapping.read_name(token).as_deref(), expected, "{token}");
            assert_eq!(ClaimMapping::default().read_name(token), None);
        }
        is(r#"{"user":{"mail":"ann@b.c"}}"#, Some("ann@b.c"));
        is(r#"{"user":{"mail":7}}"#, Some("7"));
        for nobody in [
            "{}",
            r#"{"user":{"mail":""}}"#,
            r#"{"user":{"mail":null}}"#,
            r#"{"user":{"mail":["a","b"]}}"#,
            r#"{"user":{"mail":"a\nb"}}"#,
            r#"{"mail":"ann@b.c"}"#,
        ] {
            is(nobody, None);
        }
    }

    #[test]
    fn scopes_are_those_of_all_scope_claims() {
        let both = r#"{"scope":"b a","scp":["c","a"]}"#;
        let mapping = ClaimMapping::default();
        reads(&mapping, both, &[("scope", &["a", "b", "c"])]);
        let scp = mapping.with_scope_claims([path("scp")]);
        reads(&scp, both, &[("scope", &["a", "c"])]);
        let nested = ClaimMapping::default().with_scope_claims([path("x.y")]);
        reads(&nested, r#"{"x":{"y":"s"}}"#, &[("scope", &["s"])]);
        let error = nested.read(r#"{"x":{"y":1}}"#).unwrap_err().to_string();
        assert!(error.starts_with("the claim `x.y` is neither"), "{error}");
    }

    #[test]
    fn a_mapping_that_cannot_be_is_refused() {
        let new = ClaimMapping::default;
        let error = new().with_claim("scope", path("scp")).unwrap_err();
        assert_eq!(error, ClaimsError::ScopeName);
        assert_eq!(new().with_claim("", path("a")), Err(ClaimsError::Name));
        assert_eq!(new().with_names(["a\0"]), Err(ClaimsError::Name));
        let names: Vec<String> = (0..=MAX_CLAIMS).map(|at| format!("c{at}")).collect();
        let all = names.iter().map(String::as_str);
        assert!(new().with_names(all.clone().skip(1)).is_ok());
        assert_eq!(new().with_names(all), Err(ClaimsError::TooManyClaims));
    }

    #[test]
    fn an_object_on_the_way_may_not_repeat_a_name() {
        let mapping = ClaimMapping::default()
            .with_claim("g", path("a.b"))
            .unwrap();
        let token = r#"{"a":{"b":["x"],"b":["y"]}}"#;
        assert_eq!(mapping.read(token), Err(ClaimsError::RepeatedName));
    }
}
