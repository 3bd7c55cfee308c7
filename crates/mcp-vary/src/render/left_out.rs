//! What was left out of a value, and where to read it.

use std::fmt;

use super::part::Part;

/// The rule by which something was left out.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum LeftOutRule {
    /// Members that are `null` or empty.
    Empty,
    /// Everything but the key, of the rows after the complete ones.
    Details,
    /// The elements of an array after the first ones.
    Elements,
    /// The members of an object after the first ones.
    Members,
    /// The end of a text.
    Text,
    /// Arrays and objects beyond the depth limit.
    Depth,
    /// Any of these, at further locations that are not listed.
    Elsewhere,
}

/// What one rule left out at all locations of one path; prints as a phrase.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The rule.
    pub rule: LeftOutRule,
    /// A JSON pointer into the whole value, with `*` for every element of an array, and for every member of an
    /// object that is a list.
    pub path: String,
    /// The first location, as a JSON pointer.
    pub first: String,
    /// The number of elements or bytes that the first location retains: the missing part begins there.
    pub offset: usize,
    /// The number of locations.
    pub occurrences: usize,
    /// The number of retained members, elements or bytes at all locations.
    pub retained: usize,
    /// The number of all members, elements or bytes.
    pub total: usize,
}

impl LeftOut {
    /// The end of the text at `path`.
    pub(crate) fn of_text(path: String, retained: usize, total: usize) -> Self {
        Self {
            rule: LeftOutRule::Text,
            first: path.clone(),
            path,
            offset: retained,
            occurrences: 1,
            retained,
            total,
        }
    }

    /// The elements of the root value.
    pub(crate) fn of_elements(retained: usize, of: usize) -> Self {
        Self {
            rule: LeftOutRule::Elements,
            ..Self::of_text(String::new(), retained, of)
        }
    }

    /// The same, for a value at `pointer` in another value.
    pub(crate) fn under(mut self, pointer: &str) -> Self {
        self.path.insert_str(0, pointer);
        self.first.insert_str(0, pointer);
        self
    }

    /// Counts one more location.
    pub(super) fn count(&mut self, stored: usize, of: usize) {
        self.occurrences += 1;
        self.retained += stored;
        self.total += of;
    }

    /// The part of the whole value that begins with the missing part of the first location.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::json::Json;
    /// use mcp_vary::render::{Limits, compact, read};
    ///
    /// let whole = Json::parse(r#"{"rows": [{"id": 1}, {"id": 2}, {"id": 3}]}"#)?;
    /// let short = compact(&whole, &Limits::default().with_rows(2));
    /// let part = short.left_out[0].part();
    /// assert_eq!(part.to_query(), "pointer=/rows&offset=2");
    /// assert_eq!(read(&whole, &part)?.value.to_json(), r#"[{"id":3}]"#);
    ///
    /// // An empty member is read at its own location.
    /// let short = compact(&Json::parse(r#"{"next": null}"#)?, &Limits::default());
    /// assert_eq!(short.left_out[0].part().to_query(), "pointer=/next");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn part(&self) -> Part {
        let pointer = match self.rule {
            // The first key-only row is at `offset`.
            LeftOutRule::Details => self.first.rsplit_once('/').map_or("", |(rows, _)| rows),
            _ => &self.first,
        };
        Part::at(pointer).with_offset(self.offset)
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            retained: stored,
            total: of,
            occurrences: count,
            ..
        } = self;
        if !path.is_empty() && self.rule != LeftOutRule::Elsewhere {
            write!(f, "{path}: ")?;
        }
        match self.rule {
            LeftOutRule::Empty => write!(f, "{count} empty"),
            LeftOutRule::Details => write!(f, "{stored} of {of} in full, the others by their key"),
            LeftOutRule::Elements => write!(f, "{stored} of {of} elements"),
            LeftOutRule::Members => write!(f, "{stored} of {of} members"),
            LeftOutRule::Depth if *count == 1 => write!(f, "nested deeper than is shown"),
            LeftOutRule::Depth => write!(f, "{count} places nested deeper than is shown"),
            LeftOutRule::Text if *count == 1 => write!(f, "{stored} of {of} bytes"),
            LeftOutRule::Text => write!(f, "{count} shortened, {stored} of {of} bytes"),
            LeftOutRule::Elsewhere => write!(f, "{count} more places"),
        }
    }
}

/// The lines of a notice about `left_out`, one line each; empty members share one line.
///
/// With `whole`, the URI of the whole value, each line has the URI of the missing part at its first location.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Limits, compact, notice};
///
/// let whole = Json::parse(r#"{"next": null, "rows": [{"id": 1, "a": ""}, {"id": 2, "a": ""}, {"id": 3}]}"#)?;
/// let short = compact(&whole, &Limits::default().with_rows(2));
/// assert_eq!(
///     notice(&short.left_out, Some("vary://result/x")),
///     ["empty: /next, /rows/*/a ×2; vary://result/x",
///      "/rows: 2 of 3 elements; vary://result/x?pointer=/rows&offset=2"],
/// );
///
/// // Without a URI, only the counts.
/// assert_eq!(notice(&short.left_out[1..2], None), ["/rows: 2 of 3 elements"]);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn notice(left_out: &[LeftOut], whole: Option<&str>) -> Vec<String> {
    let is_empty = |one: &&LeftOut| one.rule == LeftOutRule::Empty;
    let empty: Vec<_> = left_out.iter().filter(is_empty).map(counted).collect();
    let end = whole.map_or_else(String::new, |uri| format!("; {uri}"));
    let mut lines = Vec::new();
    if !empty.is_empty() {
        lines.push(format!("empty: {}{end}", empty.join(", ")));
    }
    for one in left_out.iter().filter(|one| !is_empty(one)) {
        let query = one.part().to_query();
        lines.push(match whole {
            Some(uri) if !query.is_empty() => format!("{one}; {uri}?{query}"),
            _ => format!("{one}{end}"),
        });
    }
    lines
}

/// The first lines that fit into `room` bytes, and a line with the number of the others.
pub(crate) fn fold_lines(lines: Vec<String>, whole: Option<&str>, room: usize) -> Vec<String> {
    let mut lines = lines;
    let mut left = room;
    let fits = |line: &&String| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    };
    let fitting = lines.iter().take_while(fits).count();
    let others = lines.len() - fitting;
    // A single further line is as short as a line that counts it.
    if others > 1 {
        lines.truncate(fitting);
        let end = whole.map_or_else(String::new, |uri| format!("; {uri}"));
        let more = if fitting > 0 { "more " } else { "" };
        lines.push(format!("{others} {more}kinds of things left out{end}"));
    }
    lines
}

/// A path, with the number of its locations if there are several.
fn counted(one: &LeftOut) -> String {
    match one.occurrences {
        1 => one.path.clone(),
        places => format!("{} ×{places}", one.path),
    }
}
