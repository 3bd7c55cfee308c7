//! Where a value is: in a text, and in a tree.

use std::ops::Range;

/// The range of `part`, a slice of `whole`, in it.
pub fn span(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// The JSON pointer to the member or element `token` of the value at `parent`.
pub fn pointer(parent: &str, token: &str) -> String {
    let escaped = token.replace('~', "~0").replace('/', "~1");
    format!("{parent}/{escaped}")
}
