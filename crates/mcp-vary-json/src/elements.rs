//! The elements of one array.

use std::fmt;

use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::JsonError;
use super::skip;

/// The elements of an array, each as written.
///
/// # Errors
///
/// When `text` is not a JSON array.
pub fn elements(text: &str) -> Result<Vec<&str>, JsonError> {
    read_elements(text, usize::MAX)
}

/// Like [`elements`], with a limit; reads and stores no more than that.
///
/// # Errors
///
/// When `text` is not a JSON array, or has more than `most` elements.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::elements_up_to;
///
/// assert_eq!(elements_up_to("[1, [2, 3]]", 2)?, ["1", "[2, 3]"]);
/// let error = elements_up_to("[1, 2, 3]", 2).unwrap_err();
/// assert_eq!(error.to_string(), "it has more than 2 elements");
/// # Ok::<(), mcp_vary_json::JsonError>(())
/// ```
pub fn elements_up_to(text: &str, most: usize) -> Result<Vec<&str>, JsonError> {
    let all = read_elements(text, most)?;
    if all.len() > most {
        let why = format!("it has more than {most} elements");
        return Err(JsonError::new(why));
    }
    Ok(all)
}

/// The elements, and one more than `most` if there are more.
fn read_elements(text: &str, most: usize) -> Result<Vec<&str>, JsonError> {
    if let Some(all) = skip::elements(text, most) {
        return Ok(all);
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let all = (&mut json).deserialize_seq(Elements { limit: most })?;
    if all.len() <= most {
        json.end()?;
    }
    Ok(all)
}

struct Elements {
    limit: usize,
}

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(element) = seq.next_element::<&'de RawValue>()? {
            if all.len() <= self.limit {
                all.push(element.get());
            }
        }
        Ok(all)
    }
}
