//! JSON as written: order, spelling of numbers and unknown members are preserved.
//!
//! [`Members`] and [`elements`] parse one level and leave every value as a slice of text; [`Json`] is the whole
//! tree, for rendering and rules that inspect every value; [`build`] reads it into another type. None of them converts
//! numbers, so `1.10`, `1e5` and a 30-digit integer stay as they are. [`to_value`] does, for libraries that take a
//! [`serde_json::Value`].

mod build;
mod compact;
pub mod edit;
mod elements;
mod error;
mod fold;
mod key;
mod location;
mod members;
mod minify;
mod read;
mod skip;
mod strings;
mod tree;
mod value;

pub use self::build::{Builder, build};
pub use self::compact::{compact, compacted};
pub use self::elements::{elements, elements_up_to};
pub use self::error::{JsonError, fault, quoted};
pub use self::fold::{folded, is_lookalike};
pub use self::key::Key;
pub use self::location::{pointer, span};
pub use self::members::{Members, object};
pub use self::minify::minified;
pub use self::skip::{Invalid, MAX_DEPTH, ObjectReader, count_values, skip};
pub use self::strings::{is_string_of, may_contain, string, unquoted, write_string};
pub use self::tree::Json;
pub use self::value::{to_map, to_value};
