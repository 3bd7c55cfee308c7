//! What of a value was left out, and where to read it.

use std::fmt;

use super::Part;

/// By which rule something was left out.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Rule {
    /// Members that are `null` or empty: they carry nothing.
    Empty,
    /// All but the key of the rows after the first ones.
    Details,
    /// The elements of an array after the first ones.
    Elements,
    /// The members of an object after the first ones.
    Members,
    /// The end of a text.
    Text,
    /// Arrays and objects that are nested deeper than is shown.
    Depth,
    /// Any of these, at more places than are told apart.
    Elsewhere,
}

/// What was left out by one rule at all places of one path; prints as a phrase.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LeftOut {
    /// By which rule.
    pub rule: Rule,
    /// Where, as a JSON pointer into the whole value, with `*` for every element of an array, and for
    /// every member of an object that is a list of them.
    pub path: String,
    /// The first such place, as a JSON pointer.
    pub first: String,
    /// How many elements or bytes of the first place stay, so that what is missing begins there.
    pub offset: usize,
    /// At how many places.
    pub places: usize,
    /// How many members, elements or bytes stay, over all places.
    pub kept: usize,
    /// How many there were.
    pub of: usize,
}

impl LeftOut {
    /// The end of the text at `path`.
    pub(crate) fn of_text(path: String, kept: usize, of: usize) -> Self {
        Self {
            rule: Rule::Text,
            first: path.clone(),
            path,
            offset: kept,
            places: 1,
            kept,
            of,
        }
    }

    /// The elements of the value itself.
    pub(crate) fn of_elements(kept: usize, of: usize) -> Self {
        Self {
            rule: Rule::Elements,
            ..Self::of_text(String::new(), kept, of)
        }
    }

    /// The same of a value that stands at `pointer` in another.
    pub(crate) fn under(mut self, pointer: &str) -> Self {
        self.path.insert_str(0, pointer);
        self.first.insert_str(0, pointer);
        self
    }

    /// Counts one more place.
    pub(super) fn count(&mut self, kept: usize, of: usize) {
        self.places += 1;
        self.kept += kept;
        self.of += of;
    }

    /// The part of the whole value that begins with what is missing at the first place.
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
    /// // What is empty is read where it stands.
    /// let short = compact(&Json::parse(r#"{"next": null}"#)?, &Limits::default());
    /// assert_eq!(short.left_out[0].part().to_query(), "pointer=/next");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn part(&self) -> Part {
        let pointer = match self.rule {
            // The first row that is not whole is the one at `offset`.
            Rule::Details => self.first.rsplit_once('/').map_or("", |(rows, _)| rows),
            _ => &self.first,
        };
        Part::at(pointer).from(self.offset)
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            kept,
            of,
            places,
            ..
        } = self;
        if !path.is_empty() && self.rule != Rule::Elsewhere {
            write!(f, "{path}: ")?;
        }
        match self.rule {
            Rule::Empty => write!(f, "{places} empty"),
            Rule::Details => write!(f, "{kept} of {of} in full, the others by their key"),
            Rule::Elements => write!(f, "{kept} of {of} elements"),
            Rule::Members => write!(f, "{kept} of {of} members"),
            Rule::Depth if *places == 1 => write!(f, "nested deeper than is shown"),
            Rule::Depth => write!(f, "{places} places nested deeper than is shown"),
            Rule::Text if *places == 1 => write!(f, "{kept} of {of} bytes"),
            Rule::Text => write!(f, "{places} shortened, {kept} of {of} bytes"),
            Rule::Elsewhere => write!(f, "{places} more places"),
        }
    }
}

/// `left_out` as a line for each, for a notice beside the value; what was empty in one line.
///
/// With `whole`, the URI of the whole value, each line leads to what is missing at its first place.
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
/// // Nowhere to read on: the counts alone.
/// assert_eq!(notice(&short.left_out[1..2], None), ["/rows: 2 of 3 elements"]);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn notice(left_out: &[LeftOut], whole: Option<&str>) -> Vec<String> {
    let is_empty = |one: &&LeftOut| one.rule == Rule::Empty;
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

/// The first of `lines`, as many as have `room` bytes, and how many there are beside them.
pub(crate) fn folded(lines: Vec<String>, whole: Option<&str>, room: usize) -> Vec<String> {
    let mut lines = lines;
    let mut left = room;
    let fits = |line: &&String| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    };
    let fitting = lines.iter().take_while(fits).count();
    let others = lines.len() - fitting;
    // A single line is as long as one that says that there is one.
    if others > 1 {
        lines.truncate(fitting);
        let end = whole.map_or_else(String::new, |uri| format!("; {uri}"));
        let more = if fitting > 0 { "more " } else { "" };
        lines.push(format!("{others} {more}kinds of things left out{end}"));
    }
    lines
}

/// A path, and at how many places of it there is something if there are several.
fn counted(one: &LeftOut) -> String {
    match one.places {
        1 => one.path.clone(),
        places => format!("{} ×{places}", one.path),
    }
}
