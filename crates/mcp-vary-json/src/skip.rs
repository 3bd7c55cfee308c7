//! Finds the end of values in one pass, without allocation.

use super::strings::{plain_string_end, string_end};

/// The maximum nesting depth of containers.
pub const MAX_DEPTH: usize = 128;

/// The end of the value at `at` in `text`, after optional white space; `None` if it is invalid or nests deeper than
/// `depth`.
///
/// # Properties
///
/// Accepts JSON by RFC 8259, with at most `depth` levels and no more than 128.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::skip;
///
/// let text = r#"{"a": [1, "}"]}, 2"#;
/// assert_eq!(skip(text, 0, 128), Some(text.len() - 3));
/// assert_eq!(skip(text, 5, 1), Some(text.len() - 4));
///
/// // The brackets nest one deeper than allowed; and a number has no leading zero.
/// assert_eq!((skip(text, 0, 1), skip("01,", 0, 1)), (None, Some(1)));
/// ```
pub fn skip(text: &str, at: usize, depth: usize) -> Option<usize> {
    value(text.as_bytes(), at, depth.min(MAX_DEPTH))
}

/// Reads the members of an object one by one, in one pass, without parsing the values.
///
/// # Properties
///
/// Once it is [at its end](Self::is_at_end), the object was valid JSON. Keys may repeat, and are the text between
/// their quotes: one with a `\` has escapes.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::ObjectReader;
///
/// let mut reader = ObjectReader::open(r#"{"id": 7, "a\u0062": [1.0]}"#, 2).unwrap();
/// assert_eq!(reader.member(), Ok(Some(("id", "7"))));
/// assert_eq!(reader.member(), Ok(Some(("a\\u0062", "[1.0]"))));
/// assert_eq!(reader.member(), Ok(None));
/// assert!(reader.is_at_end());
/// ```
#[derive(Clone, Debug)]
pub struct ObjectReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_first: bool,
}

/// The text is not valid JSON, or nests too deep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Invalid;

impl<'a> ObjectReader<'a> {
    /// Starts to read an object with at most `depth` levels; `None` if `text` does not start with an object.
    pub fn open(text: &'a str, depth: usize) -> Option<Self> {
        let at = space(text.as_bytes(), 0);
        let is_object = text.as_bytes().get(at) == Some(&b'{');
        (is_object && depth > 0).then(|| Self {
            text,
            at: at + 1,
            depth: depth.min(MAX_DEPTH) - 1,
            is_first: true,
        })
    }

    /// The next key and value, both as written; `None` at the end of the object.
    ///
    /// # Errors
    ///
    /// When the next member is invalid; do not continue then.
    pub fn member(&mut self) -> Result<Option<(&'a str, &'a str)>, Invalid> {
        let Some(key) = self.key()? else {
            return Ok(None);
        };
        Ok(Some((key, self.value()?)))
    }

    /// The next key, as written; `None` at the end of the object. Read its [`value`](Self::value) before the next key.
    ///
    /// # Errors
    ///
    /// When no valid key is next; do not continue then.
    #[inline]
    pub fn key(&mut self) -> Result<Option<&'a str>, Invalid> {
        self.next_key(string_end).ok_or(Invalid)
    }

    /// The value of the [`key`](Self::key) that was read last, as written.
    ///
    /// # Errors
    ///
    /// When the value is invalid or nests too deep; do not continue then.
    #[inline]
    pub fn value(&mut self) -> Result<&'a str, Invalid> {
        let start = self.at;
        self.at = value(self.text.as_bytes(), start, self.depth).ok_or(Invalid)?;
        Ok(&self.text[start..self.at])
    }

    /// The value of the [`key`](Self::key) that was read last, as written; it ends at `end`.
    pub(super) fn value_until(&mut self, end: usize) -> &'a str {
        let start = std::mem::replace(&mut self.at, end);
        &self.text[start..end]
    }

    /// The text of the object, and how far it was read.
    pub(super) const fn position(&self) -> (&'a str, usize) {
        (self.text, self.at)
    }

    /// Reads the value of the [`key`](Self::key) that was read last, which is an object, by `read`; its text, and
    /// what `read` returned. `None` if the value is not an object, or `read` did not get to its end.
    pub(super) fn object<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<(&'a str, T)> {
        let bytes = self.text.as_bytes();
        let is_object = bytes.get(self.at) == Some(&b'{');
        let mut inside = (is_object && self.depth > 0).then(|| Self {
            text: self.text,
            at: self.at + 1,
            depth: self.depth - 1,
            is_first: true,
        })?;
        let found = read(&mut inside)?;
        let start = std::mem::replace(&mut self.at, inside.at);
        (bytes[inside.at - 1] == b'}').then(|| (&self.text[start..inside.at], found))
    }

    /// Like [`key`](Self::key), and an error for a key with an escape.
    #[inline]
    pub(super) fn plain_key(&mut self) -> Result<Option<&'a str>, Invalid> {
        self.next_key(plain_string_end).ok_or(Invalid)
    }

    #[inline]
    fn next_key(
        &mut self,
        string_end: impl FnOnce(&[u8], usize) -> Option<usize>,
    ) -> Option<Option<&'a str>> {
        let bytes = self.text.as_bytes();
        let at = space(bytes, self.at);
        let at = match (*bytes.get(at)?, self.is_first) {
            (b'}', _) => {
                self.at = at + 1;
                return Some(None);
            }
            (b',', false) => space(bytes, at + 1),
            (_, true) => at,
            _ => return None,
        };
        self.is_first = false;
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        let end = string_end(bytes, at + 1)?;
        self.at = space(bytes, colon(bytes, end)?);
        Some(Some(&self.text[at + 1..end - 1]))
    }

    /// Whether nothing follows the object; call it after the last member.
    pub fn is_at_end(&self) -> bool {
        space(self.text.as_bytes(), self.at) == self.text.len()
    }
}

/// The elements of an array, each as written, and one more than `most` if there are more; `None` if the array is
/// invalid or nests too deep.
pub(super) fn elements(text: &str, most: usize) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = space(bytes, 0);
    if bytes.get(at) != Some(&b'[') {
        return None;
    }
    at = space(bytes, at + 1);
    let mut is_open = bytes.get(at) != Some(&b']');
    while is_open {
        let start = space(bytes, at);
        let end = value(bytes, start, MAX_DEPTH - 1)?;
        all.push(&text[start..end]);
        if all.len() > most {
            return Some(all);
        }
        at = space(bytes, end);
        is_open = match bytes.get(at)? {
            b',' => true,
            b']' => false,
            _ => return None,
        };
        at += usize::from(is_open);
    }
    (space(bytes, at + 1) == bytes.len()).then_some(all)
}

/// The number of values in the JSON `text`, itself included; arbitrary for text that is not JSON.
///
/// An empty container counts as two: the number is an upper bound for the nodes of a tree.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::count_values;
///
/// assert_eq!(count_values(r#"{"a": ["[,", 1, 2]}"#), 5);
/// ```
pub fn count_values(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut count = 1;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' | b',' => count += 1,
            b'"' => match string_end(bytes, at) {
                Some(end) => at = end,
                None => return count,
            },
            _ => {}
        }
    }
    count
}

/// The enclosing containers: one bit each, set for an object.
#[derive(Default)]
struct Nesting {
    depth: usize,
    objects: u128,
}

impl Nesting {
    fn enter(&mut self, is_object: bool, limit: usize) -> Option<()> {
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(is_object);
        (self.depth <= limit).then_some(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
    }

    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

fn value(bytes: &[u8], mut at: usize, limit: usize) -> Option<usize> {
    let mut around = Nesting::default();
    loop {
        at = space(bytes, at);
        at = match *bytes.get(at)? {
            b'"' => string_end(bytes, at + 1)?,
            b'{' => {
                around.enter(true, limit)?;
                let inside = space(bytes, at + 1);
                // An empty container is closed below.
                if bytes.get(inside) != Some(&b'}') {
                    at = key(bytes, inside)?;
                    continue;
                }
                inside
            }
            b'[' => {
                around.enter(false, limit)?;
                let inside = space(bytes, at + 1);
                if bytes.get(inside) != Some(&b']') {
                    at = inside;
                    continue;
                }
                inside
            }
            b'-' | b'0'..=b'9' => number(bytes, at)?,
            b't' => word(bytes, at, b"true")?,
            b'f' => word(bytes, at, b"false")?,
            b'n' => word(bytes, at, b"null")?,
            _ => return None,
        };
        match after_value(bytes, at, &mut around)? {
            Next::Value(next) => at = next,
            Next::End(end) => return Some(end),
        }
    }
}

/// What follows a value.
enum Next {
    Value(usize),
    End(usize),
}

/// Closes containers, and finds the start of the next value.
fn after_value(bytes: &[u8], mut at: usize, around: &mut Nesting) -> Option<Next> {
    loop {
        if around.depth == 0 {
            return Some(Next::End(at));
        }
        at = space(bytes, at);
        match (*bytes.get(at)?, around.is_object()) {
            (b',', true) => return key(bytes, space(bytes, at + 1)).map(Next::Value),
            (b',', false) => return Some(Next::Value(at + 1)),
            (b'}', true) | (b']', false) => around.leave(),
            _ => return None,
        }
        at += 1;
    }
}

/// The position after the key at `at` and its colon.
fn key(bytes: &[u8], at: usize) -> Option<usize> {
    colon(bytes, quoted(bytes, at)?)
}

/// The position after the next colon.
fn colon(bytes: &[u8], at: usize) -> Option<usize> {
    let at = space(bytes, at);
    (bytes.get(at) == Some(&b':')).then_some(at + 1)
}

/// The end of the string whose opening quote is at `at`.
fn quoted(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at + 1),
        _ => None,
    }
}

/// Skips white space from `at`. Messages of programs have hardly any.
#[inline]
fn space(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(byte) if *byte > b' ' => at,
        _ => skip_space(bytes, at),
    }
}

#[inline(never)]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

pub(super) fn number(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(bytes[at] == b'-');
    at = match bytes.get(at)? {
        b'0' => at + 1,
        _ => digits(bytes, at)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = digits(bytes, at)?;
    }
    Some(at)
}

/// The end of at least one digit.
fn digits(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes
        .get(at..)?
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let count = digits.count();
    (count > 0).then_some(at + count)
}

pub(super) fn word(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    let end = at + word.len();
    (bytes.get(at..end)? == word).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(text: &str, expected: &[&str]) {
        let found = elements(text, usize::MAX);
        assert_eq!(found.as_deref(), Some(expected), "{text}");
    }

    /// Without the slower reader that explains what is wrong.
    #[test]
    fn every_array_is_read_in_one_pass() {
        holds("[]", &[]);
        holds(" [ ] ", &[]);
        holds("[1]", &["1"]);
        let text = "\n[1 ,\t[2, 3],{\"]\": []} ] ";
        holds(text, &["1", "[2, 3]", "{\"]\": []}"]);
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = nested(MAX_DEPTH);
        holds(&deepest, &[&deepest[1..deepest.len() - 1]]);
        assert_eq!(elements(&nested(MAX_DEPTH + 1), 9), None);
    }

    #[test]
    fn what_is_no_array_has_no_elements() {
        for text in [
            "", " ", "{}", "1", "[", "[1", "[1,", "[1,]", "[,]", "[1 2]", "[1}", "[]]", "[1] 2",
        ] {
            assert_eq!(elements(text, 9), None, "{text}");
        }
    }
}
