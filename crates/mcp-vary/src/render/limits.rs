//! How much of a value stays.

/// How much of a value stays; an array keeps its first element, and the first row whole, in any case.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::Limits;
///
/// let limits = Limits::default().with_rows(50).with_text(80);
/// assert_eq!((limits.rows, limits.elements, limits.text), (50, 20, 80));
///
/// // Every text, wherever it stands.
/// assert_eq!(limits.passage, 80);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Elements of an array that is in no other array.
    pub rows: usize,
    /// Those of them that stay whole; the others keep their key, or go where they have none.
    pub detailed: usize,
    /// Bytes that the rows which stay whole may have together.
    pub detailed_bytes: usize,
    /// Elements of an array within another.
    pub elements: usize,
    /// An object with more members than this is a list of them: it keeps as many as an array would keep
    /// elements, and this many where that is more. One of scalars alone keeps as many as there may be rows.
    pub members: usize,
    /// Bytes of a string, at the least, wherever it stands.
    pub text: usize,
    /// Bytes of a string that is in no array; those in an array share them.
    pub passage: usize,
    /// Bytes of a text that the author wrote as such, where the whole of it can be read.
    pub prose: usize,
    /// Levels of arrays and objects: with 1, whatever the value itself has is a scalar.
    pub depth: usize,
    /// About how many bytes the value may have as JSON.
    pub bytes: usize,
    /// Whether fewer words say the same: what is empty goes, rows beyond the detailed ones keep their key,
    /// and a text has uniform rows as columns. Else there are only cuts.
    pub is_terse: bool,
}

impl Default for Limits {
    /// 500 rows, 50 of them whole in 16 KiB, 20 elements in each list of a row, 64 members of any object, 120
    /// to 1,000 bytes to a text, 8 KiB of prose.
    fn default() -> Self {
        Self {
            rows: 500,
            detailed: 50,
            detailed_bytes: 16 * 1024,
            elements: 20,
            members: 64,
            text: 120,
            passage: 1000,
            prose: 8 * 1024,
            depth: usize::MAX,
            bytes: usize::MAX,
            is_terse: true,
        }
    }
}

impl Limits {
    /// Keeps everything, in as many words.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::json::Json;
    /// use mcp_vary::render::{Limits, compact};
    ///
    /// let value = Json::parse(r#"{"next": null, "rows": [[1, 2], [3], []]}"#)?;
    /// assert_eq!(compact(&value, &Limits::none()).value, value);
    ///
    /// // What nests too deep is counted, and shown to be there.
    /// let short = compact(&value, &Limits::none().with_depth(2));
    /// assert_eq!(short.value.to_json(), r#"{"next":null,"rows":["…","…",[]]}"#);
    /// assert_eq!(short.left_out[0].to_string(), "/rows/*: 2 places nested deeper than is shown");
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    #[must_use]
    pub fn none() -> Self {
        Self {
            rows: usize::MAX,
            detailed: usize::MAX,
            detailed_bytes: usize::MAX,
            elements: usize::MAX,
            members: 64,
            text: usize::MAX,
            passage: usize::MAX,
            prose: usize::MAX,
            depth: usize::MAX,
            bytes: usize::MAX,
            is_terse: false,
        }
    }

    /// Keeps so many elements of an array that is in no other.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Keeps so many rows whole.
    #[must_use]
    pub fn with_detailed(mut self, detailed: usize) -> Self {
        self.detailed = detailed;
        self
    }

    /// Keeps rows whole as long as they have so many bytes together.
    #[must_use]
    pub fn with_detailed_bytes(mut self, bytes: usize) -> Self {
        self.detailed_bytes = bytes;
        self
    }

    /// Keeps every row that stays as a whole.
    #[must_use]
    pub fn with_whole_rows(self) -> Self {
        self.with_detailed(usize::MAX)
            .with_detailed_bytes(usize::MAX)
    }

    /// Keeps so many elements of an array within another.
    #[must_use]
    pub fn with_elements(mut self, elements: usize) -> Self {
        self.elements = elements;
        self
    }

    /// Keeps so many bytes of any string, and a little less where a sentence or line ends.
    #[must_use]
    pub fn with_text(mut self, text: usize) -> Self {
        self.text = text;
        self.with_passage(text)
    }

    /// Keeps so many bytes of a string that is in no array.
    #[must_use]
    pub fn with_passage(mut self, passage: usize) -> Self {
        self.passage = passage;
        self
    }

    /// Keeps so many bytes of a text that the author wrote as such.
    #[must_use]
    pub fn with_prose(mut self, prose: usize) -> Self {
        self.prose = prose;
        self
    }

    /// Keeps so many members of any object.
    #[must_use]
    pub fn with_members(mut self, members: usize) -> Self {
        self.members = members;
        self
    }

    /// Keeps so many levels of arrays and objects; one in any case.
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth.max(1);
        self
    }

    /// Keeps about so many bytes of the value as JSON: the first elements of an array that have room, and of
    /// an object's members the large ones share what the small ones leave.
    #[must_use]
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Keeps of every array at most so many elements, and of every object that is a list of its members.
    #[must_use]
    pub fn with_at_most(mut self, elements: usize) -> Self {
        self.rows = self.rows.min(elements);
        self.elements = self.elements.min(elements);
        self
    }
}
