//! Sets of scopes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Scopes in the order in which they were named, each once (RFC 6749, section 3.3).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// The scopes of a text, separated by spaces. What is not a scope is dropped, and what is more than 64 of them.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::from_names(text.split(' '))
    }

    /// The scopes with these names. What is not a scope is dropped, and what is more than 64 of them.
    #[must_use]
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut scopes = Self::default();
        for name in names {
            scopes.insert(name);
        }
        scopes
    }

    fn insert(&mut self, name: &str) {
        let is_scope = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        let is_valid = !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_scope);
        if is_valid && self.0.len() < MAX_SCOPES && !self.contains(name) {
            self.0.push(name.to_owned());
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `name` is one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|scope| scope == name)
    }

    /// These and `others`.
    pub(crate) fn union(&self, others: &Self) -> Self {
        Self::from_names(self.0.iter().chain(&others.0).map(String::as_str))
    }

    /// Whether all of `others` are among these.
    pub(crate) fn contains_all(&self, others: &Self) -> bool {
        others.0.iter().all(|scope| self.contains(scope))
    }
}

/// As the value of the parameter `scope`.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// The most scopes, and the most bytes of one.
const MAX_SCOPES: usize = 64;
const MAX_NAME: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_a_bounded_set_in_order() {
        assert_eq!(Scopes::parse("b a  b \"x\" é").to_string(), "b a");
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(Scopes::parse(&many.join(" ")).0.len(), MAX_SCOPES);
        let union = Scopes::parse("a b").union(&Scopes::parse("c a"));
        assert_eq!(union.to_string(), "a b c");
        assert!(union.contains_all(&Scopes::parse("c b")) && !Scopes::default().contains("a"));
    }
}
