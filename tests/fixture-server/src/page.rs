//! Lists in pages.

use std::num::NonZeroUsize;

use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

/// One page of `items`, and the cursor of the next if there is one.
///
/// # Errors
///
/// A cursor that no page of this list ended with is an invalid parameter.
pub(crate) fn page<T>(
    items: Vec<T>,
    request: Option<&PaginatedRequestParams>,
    size: Option<NonZeroUsize>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match request.and_then(|request| request.cursor.as_deref()) {
        None => 0,
        Some(cursor) => start(cursor, items.len())?,
    };
    let size = size.map_or(usize::MAX, NonZeroUsize::get);
    let end = start.saturating_add(size);
    let next = (end < items.len()).then(|| format!("{PREFIX}{end}"));
    Ok((items.into_iter().skip(start).take(size).collect(), next))
}

fn start(cursor: &str, items: usize) -> Result<usize, ErrorData> {
    cursor
        .strip_prefix(PREFIX)
        .and_then(|start| start.parse().ok())
        .filter(|start| (1..items).contains(start))
        .ok_or_else(|| ErrorData::invalid_params(format!("unknown cursor: {cursor}"), None))
}

const PREFIX: &str = "from-";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn pages(items: u32, size: usize, expected: &[&[u32]]) {
        let size = NonZeroUsize::new(size);
        let mut request = PaginatedRequestParams::default();
        let mut seen = Vec::new();
        loop {
            let (items, next) = page((0..items).collect(), Some(&request), size).unwrap();
            seen.push(items);
            let Some(next) = next else { break };
            request.cursor = Some(next);
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn pages_cover_the_list_once_in_order() {
        pages(5, 2, &[&[0, 1], &[2, 3], &[4]]);
        pages(4, 2, &[&[0, 1], &[2, 3]]);
        pages(3, 0, &[&[0, 1, 2]]);
        pages(0, 2, &[&[]]);
    }

    #[test]
    fn a_cursor_of_no_page_is_refused() {
        for cursor in ["", "from-", "from-0", "from-3", "3", "from--1"] {
            let request = PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned()));
            assert!(
                page(vec![1, 2, 3], Some(&request), None).is_err(),
                "{cursor:?}"
            );
        }
    }
}
