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
    /// Bytes of a string, at the least, wherever it stands.
    pub text: usize,
    /// Bytes of a string that is in no array; those in an array share them.
    pub passage: usize,
    /// Bytes of a text that the author wrote as such, where the whole of it can be read.
    pub prose: usize,
}

impl Default for Limits {
    /// 500 rows, 50 of them whole in 16 KiB, 20 elements in each list of a row, 120 to 1,000 bytes to a
    /// text, 8 KiB of prose.
    fn default() -> Self {
        Self {
            rows: 500,
            detailed: 50,
            detailed_bytes: 16 * 1024,
            elements: 20,
            text: 120,
            passage: 1000,
            prose: 8 * 1024,
        }
    }
}

impl Limits {
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
}
