//! Keys of objects.

use std::borrow::Cow;
use std::fmt;

use serde::de::Visitor;

/// A repeated key in `members`.
///
/// Few keys are compared pairwise, many are sorted, so no object takes quadratic time.
pub(crate) fn duplicate_key<'m, V>(members: &'m [(Cow<'_, str>, V)]) -> Option<&'m str> {
    if members.len() <= 16 {
        let mut keys = members.iter().enumerate();
        return keys.find_map(|(at, (key, _))| {
            let before = &members[..at];
            before.iter().any(|(k, _)| k == key).then_some(key.as_ref())
        });
    }
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_ref()).collect();
    keys.sort_unstable();
    keys.windows(2)
        .find_map(|pair| (pair[0] == pair[1]).then_some(pair[0]))
}

/// A key, borrowed if it has no escapes.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "readers take the text out of it")]
pub struct Key<'a>(pub Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}
