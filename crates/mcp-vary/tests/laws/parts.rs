//! The whole of a result, read in parts, is what it was: every spelling of it.

use std::borrow::Cow;

use mcp_vary::json::Json;
use mcp_vary::render::{LeftOut, Part, read};
use proptest::prelude::*;

use mcp_vary_testkit::generate::written::{given, spacing};

/// Reads everything from `part` on, a page after the other, as a client does: by the query of the next part.
#[track_caller]
pub(crate) fn read_on<'a>(whole: &Json<'a>, part: &Part) -> Json<'a> {
    let mut all: Option<Json<'a>> = None;
    let mut next = Some(part.offset);
    let mut pages = 0;
    while let Some(offset) = next {
        let mut requested = part.clone().with_offset(offset);
        requested.limit = part.limit;
        let requested = Part::parse(&requested.to_query()).unwrap();
        let page = read(whole, &requested).unwrap();
        // A page begins where the last one ended.
        assert_eq!(page.offset, offset);
        assert!(
            page.next
                .is_none_or(|next| next > offset && next < page.total)
        );
        let written = page.value.to_json();
        assert_eq!(Json::parse(&written).as_ref(), Ok(&page.value));
        all = Some(match (all, page.value) {
            (None, value) => value,
            (Some(Json::Array(mut all)), Json::Array(more)) => {
                all.extend(more);
                Json::Array(all)
            }
            (Some(Json::Object(mut all)), Json::Object(more)) => {
                all.extend(more);
                Json::Object(all)
            }
            (Some(Json::String(all)), Json::String(more)) => {
                Json::String(Cow::Owned(format!("{all}{more}")))
            }
            (all, value) => panic!("{value:?} follows {all:?}"),
        });
        next = page.next;
        pages += 1;
        assert!(pages <= page.total.max(1), "the chain of pages ends");
    }
    all.unwrap()
}

/// What each place in a notice leads to can be read, and is there.
#[track_caller]
pub(crate) fn leads_to_what_is_missing(whole: &str, left_out: &[LeftOut]) {
    let whole = Json::parse(whole).unwrap();
    assert_eq!(read_on(&whole, &Part::default()), whole);
    for one in left_out {
        let part = one.part();
        assert!(read(&whole, &part).is_ok(), "{one} at {part:?}");
        read_on(&whole, &part);
    }
}

/// Calls `see` with every place in `value`.
fn each_place<'v, 'a>(value: &'v Json<'a>, at: &str, see: &mut impl FnMut(&str, &'v Json<'a>)) {
    see(at, value);
    match value {
        Json::Array(elements) => {
            for (n, element) in elements.iter().enumerate() {
                each_place(element, &format!("{at}/{n}"), see);
            }
        }
        Json::Object(members) => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                each_place(member, &format!("{at}/{key}"), see);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-13: from whatever place, in pages of whatever length, the parts are the whole: numbers as they are
    /// spelled, members in their order, texts to the last character.
    #[test]
    fn the_parts_are_the_whole(given in given(true), spacing in spacing(), limit in 1..40_usize) {
        let written = given.value.to_json(spacing);
        let whole = Json::parse(&written).unwrap();
        each_place(&whole, "", &mut |at, value| {
            let part = Part::at(at);
            assert_eq!(read_on(&whole, &part), *value, "{at}");
            // Long texts have many places to begin at.
            let limit = match value {
                Json::String(text) => limit.max(text.len() / 16),
                _ => limit,
            };
            assert_eq!(read_on(&whole, &part.with_limit(limit)), *value, "{at}");
        });
    }
}
