//! The number of tokens of a text, in the encoding o200k of `tiktoken`.
//!
//! | question | here |
//! |---|---|
//! | how many tokens does a text have? | [`count`] |
//! | where does the table of tokens come from? | `cargo run -p mcp-vary-tokens --example table` |
//!
//! `tiktoken-rs` counts the same, with a table in base64, three maps over it and 128 copies of its pattern. It is what the tests compare with, and
//! this crate is what is shipped: 2 MB less in the program, and no allocation for each token.
//!
//! # Properties
//!
//! - A count is that of `tiktoken`, with special tokens as plain text.
//! - Any text can be counted, in a time of at most `n log n`. Nothing panics.
//! - The table is read when the first text is counted.
//!
//! # Examples
//!
//! ```
//! use mcp_vary_tokens::count;
//!
//! assert_eq!(count("hello world"), 2);
//! assert!(count("<|endoftext|>") > 1);
//! ```

mod encoding;
mod table;

use std::sync::LazyLock;

use self::encoding::Encoding;

/// The number of tokens of `text`. Special tokens count as plain text.
pub fn count(text: &str) -> usize {
    ENCODING.count(text)
}

/// The number of tokens of JSON texts as one compact array.
///
/// # Examples
///
/// ```
/// use mcp_vary_tokens::{count, count_array};
///
/// assert_eq!(count_array(&["1", "2"]), count("[1,2]"));
/// ```
pub fn count_array<T: AsRef<str>>(items: &[T]) -> usize {
    let texts: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    count(&format!("[{}]", texts.join(",")))
}

static ENCODING: LazyLock<Encoding> = LazyLock::new(Encoding::o200k);
