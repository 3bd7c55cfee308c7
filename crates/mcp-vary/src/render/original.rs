//! A compacted value beside the value that it was derived from.

use super::line::{fits_line, is_container};
use crate::json::Json;

/// The value that a schema requires to be wrapped in an object: SDKs call it `result`. A heading for it would be
/// useless.
pub(super) fn unwrapped<'v, 'w, 'a, 'b>(
    value: &'v Json<'a>,
    whole: Option<&'w Json<'b>>,
) -> (&'v Json<'a>, Option<&'w Json<'b>>) {
    match value.as_object() {
        Some([(key, only)]) if key == "result" && is_container(only) && !fits_line(only) => {
            (only, member(whole, key))
        }
        _ => (value, whole),
    }
}

/// The original of the member `key`.
pub(super) fn member<'v, 'a>(whole: Option<&'v Json<'a>>, key: &str) -> Option<&'v Json<'a>> {
    whole?.get(key)
}

/// The original of the element number `at`.
pub(super) fn element_at<'v, 'a>(whole: Option<&'v Json<'a>>, at: usize) -> Option<&'v Json<'a>> {
    whole?.as_array()?.get(at)
}
