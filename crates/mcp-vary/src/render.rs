//! Renders JSON values as text for people ([`markdown`], [`text`]), and compacts them ([`compact`]).
//!
//! Rendering is total and lossless: every key and every scalar of the value appears; numbers, dates and Unicode stay
//! as written. It is language-neutral: no word is added, no date rewritten, no number grouped or rounded. The output
//! is linear in the input.
//!
//! An object becomes a list of its members, an array of objects a table, nested values sections. A table becomes
//! sections if it would be too wide to read: more than [`MAX_COLUMNS`] columns, a cell over [`MAX_CELL`] bytes, or
//! mostly empty rows. Values nested deeper than sections are written on one line, as `key: value, key: value`.

mod columns;
mod compact;
mod geo;
mod index;
mod left_out;
mod limits;
mod line;
mod markdown;
mod original;
pub mod part;
mod schema;
mod table;
mod text;
mod tokens;

pub use self::compact::{
    Compact, Contract, ELLIPSIS, META_LEFT_OUT, compact, compact_columns, compact_structured,
};
pub(crate) use self::compact::{fair_share, shorter_prose};
pub use self::geo::geo_json;
pub use self::index::Index;
pub(crate) use self::left_out::fold_lines;
pub use self::left_out::{LeftOut, LeftOutRule, notice};
pub use self::limits::Limits;
pub use self::markdown::{compact_markdown, markdown};
pub use self::part::{
    DEFAULT_PAGE, DEFAULT_TEXT_PAGE, MAX_PAGE_BYTES, Page, Part, PartError, read,
};
pub use self::table::{MAX_CELL, MAX_COLUMNS};
pub use self::text::{compact_text, text};
pub use self::tokens::tokens;
