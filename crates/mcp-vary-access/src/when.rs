//! The principals to whom a rule applies.

use std::collections::BTreeMap;
use std::fmt;

use mcp_vary_view::Pattern;

use crate::claims::{Claim, Claims, ClaimsError, check_name};
use crate::principal::Principal;

/// The maximum number of patterns in one condition of a [`When`].
pub const MAX_WHEN_PATTERNS: usize = 256;

/// The principals to whom a rule applies: all conditions must hold.
///
/// | condition | holds for |
/// |---|---|
/// | a claim | principals of whose values of the claim one matches one of the patterns |
/// | `key` | clients with an API key of that name |
/// | `client` | clients with a certificate of that subject, alone or beside a token or key |
/// | `anyone` | everyone who is let in, anonymous clients too |
///
/// Instead of patterns, each of them can be required to be absent. A claim is absent if it does not exist, is `null`, or
/// is an empty list. Names of claims have no special meaning: `iss` and `sub` are claims of every token.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::{Claims, Principal, Presence, When};
///
/// let sre = When::new().with_claim("groups", Presence::of(["sre", "*-admin"])?)?;
/// let in_groups = |groups: &str| {
///     let claims = Claims::from_json(&format!(r#"{{"groups": {groups}}}"#))?;
///     Principal::token("https://idp.example", "ann", claims).map_err(Box::<dyn std::error::Error>::from)
/// };
/// assert!(sre.matches(&in_groups(r#"["dev", "db-admin"]"#)?));
/// assert!(!sre.matches(&in_groups(r#""dev sre""#)?));
///
/// // Absence is a condition, too, and anonymous clients have nothing.
/// let no_key = When::new().with_key(Presence::Absent)?;
/// assert!(no_key.matches(&Principal::anonymous()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct When {
    claims: BTreeMap<Box<str>, Presence>,
    key: Option<Presence>,
    client: Option<Presence>,
    is_anyone: bool,
}

/// What a condition of a [`When`] requires.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Presence {
    /// One of the values matches one of these patterns.
    AnyOf(Vec<Pattern>),
    /// There is no value.
    Absent,
}

/// Why a condition is not possible.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WhenError {
    /// A condition has no patterns, which would hold for nobody.
    #[error("`when` has a condition without patterns; write `absent`, or one pattern at least")]
    NoPatterns,
    /// A condition has more patterns than [`MAX_WHEN_PATTERNS`].
    #[error("`when` has a condition of more than {MAX_WHEN_PATTERNS} patterns")]
    TooManyPatterns,
    /// The name of a claim is not possible.
    #[error("`when`: {0}")]
    Claim(#[from] ClaimsError),
}

impl Presence {
    /// A value that matches one of the patterns.
    ///
    /// # Errors
    ///
    /// When one is not a [`Pattern`].
    pub fn of<'p>(
        patterns: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self, mcp_vary_view::PatternError> {
        let parsed: Result<_, _> = patterns.into_iter().map(str::parse).collect();
        Ok(Self::AnyOf(parsed?))
    }

    fn checked(self) -> Result<Self, WhenError> {
        match &self {
            Self::AnyOf(patterns) if patterns.is_empty() => Err(WhenError::NoPatterns),
            Self::AnyOf(patterns) if patterns.len() > MAX_WHEN_PATTERNS => {
                Err(WhenError::TooManyPatterns)
            }
            _ => Ok(self),
        }
    }

    fn holds<'v>(&self, mut values: impl Iterator<Item = &'v str>) -> bool {
        match self {
            Self::AnyOf(patterns) => {
                values.any(|value| patterns.iter().any(|pattern| pattern.matches(value)))
            }
            Self::Absent => values.next().is_none(),
        }
    }
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::AnyOf(patterns) => {
                let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
                match &*texts {
                    [only] => f.write_str(only),
                    _ => write!(f, "[{}]", texts.join(", ")),
                }
            }
        }
    }
}

impl When {
    /// No conditions yet. A rule needs one at least.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everyone.
    pub fn anyone() -> Self {
        Self {
            is_anyone: true,
            ..Self::default()
        }
    }

    /// Requires a claim.
    ///
    /// # Errors
    ///
    /// When `name` cannot be the name of a claim, or `presence` has no patterns or too many.
    pub fn with_claim(mut self, name: &str, presence: Presence) -> Result<Self, WhenError> {
        check_name(name)?;
        self.claims.insert(name.into(), presence.checked()?);
        Ok(self)
    }

    /// Requires an API key.
    ///
    /// # Errors
    ///
    /// When `presence` has no patterns or too many.
    pub fn with_key(mut self, presence: Presence) -> Result<Self, WhenError> {
        self.key = Some(presence.checked()?);
        Ok(self)
    }

    /// Requires a client certificate.
    ///
    /// # Errors
    ///
    /// When `presence` has no patterns or too many.
    pub fn with_client(mut self, presence: Presence) -> Result<Self, WhenError> {
        self.client = Some(presence.checked()?);
        Ok(self)
    }

    /// Whether there are no conditions, not even `anyone`.
    pub fn is_empty(&self) -> bool {
        !self.is_anyone && self.claims.is_empty() && self.key.is_none() && self.client.is_none()
    }

    /// Whether all conditions hold for the principal.
    ///
    /// # Properties
    ///
    /// Without any condition it matches nobody.
    pub fn matches(&self, principal: &Principal) -> bool {
        let optional = |presence: &Option<Presence>, value: Option<&str>| {
            presence
                .as_ref()
                .is_none_or(|presence| presence.holds(value.into_iter()))
        };
        !self.is_empty()
            && optional(&self.key, principal.key_name())
            && optional(&self.client, principal.certificate_subject())
            && self.matches_claims(principal.claims())
    }

    fn matches_claims(&self, claims: &Claims) -> bool {
        self.claims.iter().all(|(name, presence)| {
            let claim = claims.get(name);
            match presence {
                // An object has no texts, but it is there.
                Presence::Absent => claim.is_none_or(Claim::is_empty_list),
                Presence::AnyOf(_) => presence.holds(claim.into_iter().flat_map(Claim::texts)),
            }
        })
    }

    /// The names of the claims that must be read from tokens.
    pub fn claim_names(&self) -> impl Iterator<Item = &str> {
        self.claims.keys().map(|name| &**name)
    }
}

/// The conditions as they are written, such as `groups: sre, key: absent`.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims = self.claims.iter().map(|(name, it)| (&**name, it));
        let key = self.key.iter().map(|presence| ("key", presence));
        let client = self.client.iter().map(|presence| ("client", presence));
        let all = claims.chain(key).chain(client);
        let mut parts: Vec<String> = all.map(|(name, it)| format!("{name}: {it}")).collect();
        if self.is_anyone {
            parts.push("anyone".into());
        }
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence(patterns: &[&str]) -> Presence {
        match patterns {
            ["absent"] => Presence::Absent,
            _ => Presence::of(patterns.iter().copied()).unwrap(),
        }
    }

    fn principal(claims: &str) -> Principal {
        Principal::token("i", "s", Claims::from_json(claims).unwrap()).unwrap()
    }

    #[track_caller]
    fn by_groups(patterns: &[&str], yes: &[&str], no: &[&str]) {
        let when = When::new()
            .with_claim("groups", presence(patterns))
            .unwrap();
        for groups in yes {
            let principal = principal(&format!(r#"{{"groups":{groups}}}"#));
            assert!(when.matches(&principal), "{when} for {groups}");
        }
        for groups in no {
            let principal = principal(&format!(r#"{{"groups":{groups}}}"#));
            assert!(!when.matches(&principal), "{when} for {groups}");
        }
    }

    #[test]
    fn a_claim_matches_if_one_of_its_values_matches_one_pattern() {
        by_groups(
            &["sre"],
            &[r#""sre""#, r#"["dev","sre"]"#, r#"["sre",1]"#],
            &[
                r#""Sre""#,
                r#""sre ""#,
                r#""dev sre""#,
                "[]",
                "null",
                r#"{"sre":"sre"}"#,
                r#"[["sre"]]"#,
            ],
        );
        by_groups(
            &["dev-*", "?"],
            &[r#""dev-""#, r#"["x"]"#, "7"],
            &[r#""dev""#, "77"],
        );
        by_groups(&["true"], &["true", r#""true""#], &["false", "1"]);
    }

    #[test]
    fn absent_is_what_does_not_exist_or_is_empty() {
        by_groups(
            &["absent"],
            &["null", "[]"],
            &[r#""""#, r#"["a"]"#, "false", "0", "{}", "[null]"],
        );
        let when = When::new().with_claim("groups", Presence::Absent).unwrap();
        assert!(when.matches(&principal("{}")));
        assert!(when.matches(&Principal::anonymous()));
    }

    #[test]
    fn scopes_are_matched_one_by_one() {
        let when = When::new()
            .with_claim("scope", presence(&["write"]))
            .unwrap();
        assert!(when.matches(&principal(r#"{"scope":"read write"}"#)));
        assert!(!when.matches(&principal(r#"{"scope":"read writer"}"#)));
    }

    #[test]
    fn keys_and_certificates_are_matched_by_name() {
        let none = Claims::default;
        let key = Principal::key("ci-1", none()).unwrap();
        let certificate = Principal::certificate("CN=ci-1", none()).unwrap();
        let both = Principal::key("ci-1", none()).unwrap();
        let both = both.with_certificate("CN=ci-1").unwrap();
        let stdio = Principal::stdio("ci-1", none()).unwrap();
        let all = [&key, &certificate, &both, &stdio, &Principal::anonymous()];
        let matched = |when: When| all.map(|principal| when.matches(principal));
        let new = When::new;
        let by_key = new().with_key(presence(&["ci-*"])).unwrap();
        assert_eq!(matched(by_key.clone()), [true, false, true, false, false]);
        let no_key = new().with_key(Presence::Absent).unwrap();
        assert_eq!(matched(no_key), [false, true, false, true, true]);
        let by_client = new().with_client(presence(&["CN=*"])).unwrap();
        assert_eq!(matched(by_client), [false, true, true, false, false]);
        let no_client = new().with_client(Presence::Absent).unwrap();
        assert_eq!(matched(no_client), [true, false, false, true, true]);
        let key_only = by_key.with_client(Presence::Absent).unwrap();
        assert_eq!(matched(key_only), [true, false, false, false, false]);
    }

    #[test]
    fn all_conditions_must_hold() {
        let when = When::new().with_claim("a", presence(&["1"])).unwrap();
        let when = when.with_claim("b", presence(&["2"])).unwrap();
        assert!(when.matches(&principal(r#"{"a":1,"b":2}"#)));
        assert!(!when.matches(&principal(r#"{"a":1,"b":1}"#)));
        assert!(!when.matches(&principal(r#"{"b":2}"#)));
        assert_eq!(when.claim_names().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn anyone_is_everyone_and_no_condition_is_nobody() {
        for principal in [Principal::anonymous(), principal("{}")] {
            assert!(When::anyone().matches(&principal));
            assert!(!When::new().matches(&principal));
        }
        assert!(When::new().is_empty() && !When::anyone().is_empty());
        let both = When::anyone().with_key(presence(&["a"])).unwrap();
        assert!(!both.matches(&Principal::anonymous()));
    }

    #[test]
    fn impossible_conditions_are_refused() {
        let none = Presence::AnyOf(Vec::new());
        let found = When::new().with_key(none.clone());
        assert_eq!(found, Err(WhenError::NoPatterns));
        let found = When::new().with_claim("a", none.clone());
        assert_eq!(found, Err(WhenError::NoPatterns));
        assert_eq!(When::new().with_client(none), Err(WhenError::NoPatterns));
        let many = presence(&["a"; MAX_WHEN_PATTERNS + 1]);
        assert_eq!(When::new().with_key(many), Err(WhenError::TooManyPatterns));
        let unnamed = When::new().with_claim("", Presence::Absent);
        assert_eq!(unnamed, Err(WhenError::Claim(ClaimsError::Name)));
    }

    #[test]
    fn conditions_are_shown_as_they_are_written() {
        let when = When::anyone()
            .with_claim("g", presence(&["a", "b*"]))
            .unwrap();
        let when = when.with_key(Presence::Absent).unwrap();
        let when = when.with_client(presence(&["c"])).unwrap();
        let expected = "g: [a, b*], key: absent, client: c, anyone";
        assert_eq!(when.to_string(), expected);
    }
}
