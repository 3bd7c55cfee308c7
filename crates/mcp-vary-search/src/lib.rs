//! Search over the tools of one view: an index, and the ranking of a query.
//!
//! | question | here |
//! |---|---|
//! | what is searched of a tool? | [`Tool`], and [`argument_names`] of its input schema |
//! | how does the index follow changes? | [`ToolIndex::push`], [`ToolIndex::replace`], [`ToolIndex::remove`] |
//! | what is asked? | [`Query`] |
//! | what is found, best first? | [`ToolIndex::search`], [`Match`] |
//! | how is a text split into terms? | [`terms()`] |
//!
//! The ranking is BM25 over weighted fields (BM25F, Robertson and Zaragoza 2009, section 3.6), for each part of a query
//! ("read a file, or write a document" has two), plus what the other tools of the server match. Decision 0038 says
//! what was tried.
//!
//! # Properties
//!
//! - There is no IO, clock, randomness or state besides the index: the same index and query give the same result.
//! - After any changes an index finds what an index would that was built from its tools.
//! - Texts of servers and clients are not trusted. Reading them is bounded and cannot panic.
//!
//! # Examples
//!
//! ```
//! use mcp_vary_search::{Query, Tool, ToolIndex};
//!
//! let mut index = ToolIndex::new();
//! index.push(&Tool::new("create_issue", "github").summary("Opens an issue in a repository."));
//! index.push(&Tool::new("writeFile", "filesystem").summary("Writes text to a file."));
//!
//! let found = index.search(&Query::new("write a file")?, 5);
//! assert_eq!(found[0].position, 1);
//!
//! // Words that are written together elsewhere are found too.
//! let found = index.search(&Query::new("file system")?, 5);
//! assert_eq!(found[0].position, 1);
//! # Ok::<(), mcp_vary_search::QueryError>(())
//! ```

mod index;
mod interner;
mod query;
mod ranking;
mod stem;
mod stop_words;
mod terms;
mod tool;

pub use index::{MAX_TOOLS, PositionError, ToolIndex};
pub use query::{MAX_QUERY, MAX_QUERY_WORDS, Query, QueryError};
pub use ranking::{MAX_RESULTS, Match};
pub use terms::{MAX_WORD, terms};
pub use tool::{MAX_ARGUMENTS, MAX_SCHEMA_DEPTH, MAX_TOOL_TERMS, Tool, argument_names};
