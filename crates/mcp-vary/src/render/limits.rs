//! Limits of a compacted value.

/// Limits of a compacted value. An array always retains its first element, and the first row stays complete.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::Limits;
///
/// let limits = Limits::default().with_rows(50).with_text(80);
/// assert_eq!((limits.rows, limits.elements, limits.text), (50, 20, 80));
///
/// // Applies to every text, wherever it is.
/// assert_eq!(limits.passage, 80);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Elements of an array that is not in another array.
    pub rows: usize,
    /// Complete rows; the others are reduced to their key, or removed if they have none.
    pub detailed: usize,
    /// Bytes of all complete rows together.
    pub detailed_bytes: usize,
    /// Elements of an array within another.
    pub elements: usize,
    /// An object with more members is a list: it retains as many members as an array would retain elements, but at
    /// least this number. A list of scalars retains as many as there may be rows.
    pub members: usize,
    /// Bytes that every string may have.
    pub text: usize,
    /// Bytes of a string outside of arrays; strings in an array share them.
    pub passage: usize,
    /// Bytes of an author's text, if the whole text can be read elsewhere.
    pub prose: usize,
    /// Levels of arrays and objects; with 1, the value contains only scalars.
    pub depth: usize,
    /// Approximate bytes of the value as JSON.
    pub bytes: usize,
    /// Whether to compact further: empty members are removed, rows beyond the complete ones are reduced to their
    /// key, and texts show uniform rows as columns. If false, values are only cut.
    pub is_terse: bool,
}

impl Default for Limits {
    /// 500 rows, 50 of them complete within 16 KiB, 20 elements in each list of a row, 64 members of an object, 120
    /// to 1,000 bytes for a text, 8 KiB of prose.
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

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident($field:ident))*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $setter(mut self, $field: usize) -> Self {
            self.$field = $field;
            self
        }
    )*};
}

impl Limits {
    setters! {
        /// Sets the elements of an array that is not in another array.
        with_rows(rows)
        /// Sets the number of complete rows.
        with_detailed(detailed)
        /// Sets the bytes of all complete rows together.
        with_detailed_bytes(detailed_bytes)
        /// Sets the elements of an array within another array.
        with_elements(elements)
        /// Sets the bytes of a string outside of arrays.
        with_passage(passage)
        /// Sets the bytes of an author's text.
        with_prose(prose)
        /// Sets the members of an object.
        with_members(members)
        /// Sets the approximate bytes of the value as JSON: the first elements of an array that fit stay, and large
        /// members of an object share what the small ones leave.
        with_bytes(bytes)
    }

    /// No limits, and no compaction.
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
    /// // A value that nests too deep is counted, with a placeholder in its position.
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

    /// Retains rows completely or not at all.
    #[must_use]
    pub fn with_whole_rows(self) -> Self {
        self.with_detailed(usize::MAX)
            .with_detailed_bytes(usize::MAX)
    }

    /// Sets the bytes of every string; texts end a little earlier, at a sentence or line.
    #[must_use]
    pub fn with_text(mut self, text: usize) -> Self {
        self.text = text;
        self.with_passage(text)
    }

    /// Sets the levels of arrays and objects, at least one.
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth.max(1);
        self
    }

    /// Limits the elements of every array, and the members of every object that is a list.
    #[must_use]
    pub fn with_at_most(mut self, elements: usize) -> Self {
        self.rows = self.rows.min(elements);
        self.elements = self.elements.min(elements);
        self
    }
}
