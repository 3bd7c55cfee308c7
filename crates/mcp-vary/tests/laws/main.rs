//! What holds of every result, whoever asks and however the operator has it told: of generated ones, each with a
//! schema that it meets, and of every fixture.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod case;
mod fixtures;
mod parts;
mod resources;
mod scalars;

use mcp_vary::json::{Members, elements};
use mcp_vary::render::LeftOut;
use mcp_vary::shape::{META_APPLIED, Policy};
use proptest::prelude::*;
use serde_json::Value;

use case::{Case, WHOLE, case};

/// What a client gets is a result, in which all that is no text is as it was.
#[track_caller]
fn keeps_what_is_no_text(case: &Case, sent: &str) {
    if case.served.is_error || case.served.is_twice {
        // Errors, and results without one meaning.
        assert_eq!(sent, case.served.result);
        return;
    }
    let members = Members::parse(sent).unwrap();
    let blocks = elements(members.get("content").unwrap_or("[]")).unwrap();
    let others: Vec<_> = blocks.into_iter().filter(|block| is_other(block)).collect();
    assert_eq!(others, case.served.others, "of {}", case.served.result);
    for (key, value) in &case.served.unknown {
        assert_eq!(members.get(key), Some(value.as_str()), "{key}");
    }
    let meta = |result: &Members<'_>| {
        let meta = Members::parse(result.get("_meta").unwrap_or("{}")).unwrap();
        let all = meta.iter().filter(|(key, _)| *key != META_APPLIED);
        all.map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<Vec<_>>()
    };
    let served = Members::parse(&case.served.result).unwrap();
    assert_eq!(meta(&members), meta(&served));
}

/// Whether a block is the server's, and no text.
fn is_other(block: &str) -> bool {
    let Ok(members) = Members::parse(block) else {
        return true;
    };
    let is_text = members.get_str("type").as_deref() == Some("text");
    let is_link = members.get_str("uri").as_deref() == Some(WHOLE);
    !(is_link || is_text && members.get_str("text").is_some())
}

/// The structured value stays where it was promised, and meets what was promised.
#[track_caller]
fn meets_its_schema(case: &Case, sent: &str) {
    let value = Members::parse(sent)
        .ok()
        .and_then(|members| members.get("structuredContent").map(str::to_owned));
    if case.served.value.is_none() || case.served.is_twice {
        return;
    }
    if case.tool.ui {
        assert_eq!(value, case.served.value, "what an interface is filled with");
        return;
    }
    if !case.tool.output_schema {
        return;
    }
    let value = value.unwrap_or_else(|| panic!("no value in {sent}"));
    match serde_json::from_str::<Value>(&value) {
        Ok(value) => assert!(case.accepts(&value), "{value} under {}", case.served.schema),
        // Nobody here reads numbers like `1e400`.
        Err(_) => assert_eq!(Some(value), case.served.value),
    }
}

/// Who is told what was applied gets nothing else the second time; who is not is told no differently.
#[track_caller]
fn is_told_once(case: &Case) {
    let mut case = case.clone();
    case.policy.report = true;
    let once = case.tell(&case.served.result).result;
    assert_eq!(case.tell(&once).result, once);
}

/// A result that said something still does.
#[track_caller]
fn says_something(case: &Case, sent: &str) {
    let Ok(members) = Members::parse(sent) else {
        return;
    };
    let has_value = members
        .get("structuredContent")
        .is_some_and(|it| it != "null");
    let is_null = members.get("structuredContent") == Some("null");
    let may_be = case.served.value.is_none() || case.tool.output_schema;
    assert!(!is_null || may_be, "{sent}");
    let blocks = elements(members.get("content").unwrap_or("[]")).unwrap();
    let reported = case.served.value.is_some() || !case.served.texts.is_empty();
    assert!(
        !reported || has_value || blocks.len() > case.served.others.len(),
        "{sent} of {}",
        case.served.result
    );
}

/// The whole that is kept is what the server wrote, and all that is missing is in it.
#[track_caller]
fn leads_to_what_was_written(case: &Case, whole: &str, left_out: &[LeftOut]) {
    let written = case.served.value.iter().cloned();
    let texts = case.served.texts.iter();
    let texts = texts.flat_map(|text| [text.clone(), mcp_vary::json::string(text)]);
    assert!(written.chain(texts).any(|one| one == whole), "{whole}");
    parts::leads_to_what_is_missing(whole, left_out);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-8: images, audio, links, resources, errors and what nobody here knows are as they were, byte for byte and
    /// in their order, whoever asks and whatever the operator says.
    #[test]
    fn no_image_link_or_error_is_lost(case in case()) {
        keeps_what_is_no_text(&case, &case.tell(&case.served.result).result);
    }

    /// TR-4, TR-5, CN-13, CN-14: a structured value that was promised is there, and meets the schema, in whatever words;
    /// that of a user interface is what the server wrote.
    #[test]
    fn a_promise_is_kept(case in case()) {
        meets_its_schema(&case, &case.tell(&case.served.result).result);
    }

    /// CN-19: nothing is shaped twice.
    #[test]
    fn what_was_told_is_told_no_differently(case in case()) {
        is_told_once(&case);
    }

    /// CN-19: for JSON that follows from the rules, reported or not.
    #[test]
    fn json_is_shaped_once(mut case in case()) {
        case.told = None;
        case.policy = Policy { report: false, text_only: false, ..case.policy };
        for tags in [vec!["agent", "format=json"], vec!["format=json"]] {
            case.tags = tags;
            let once = case.tell(&case.served.result).result;
            prop_assert_eq!(case.tell(&once).result, once);
        }
    }

    /// CN-9, CN-10: unless few words are asked for, a structured value is kept as it was written, or left out.
    #[test]
    fn a_structured_value_is_kept_as_written_or_left_out(mut case in case()) {
        case.told = None;
        case.tags.retain(|tag| *tag != "verbosity=compact");
        let told = case.tell(&case.served.result).result;
        let members = Members::parse(&told).ok();
        let value = members.and_then(|members| members.get("structuredContent").map(str::to_owned));
        prop_assert!(case.served.value.is_none() || value.is_none() || value == case.served.value);
    }

    /// TR-3: a result that said something says something to everybody.
    #[test]
    fn nobody_is_left_without_a_word(case in case()) {
        says_something(&case, &case.tell(&case.served.result).result);
    }

    /// CN-10: no declaration makes a value unreachable: each scalar of the server's structure is in the result, or
    /// behind a link in it.
    #[test]
    fn every_scalar_of_the_structure_stays_reachable(mut case in case()) {
        case.told = None;
        case.kept = Some(true);
        scalars::are_reachable(&case, &case.tell(&case.served.result));
    }

    /// CN-7, CN-11: who declares nothing that can be used gets every byte, few words configured or not.
    #[test]
    fn who_asks_for_nothing_gets_every_byte(mut case in case(), tags in prop::sample::subsequence(&["!agent", "format=xml", "format!=text", "x-acme=1", "verbosity=verbose", "sampling"][..], 0..4)) {
        case.tags = tags;
        case.told = None;
        prop_assert_eq!(&case.tell(&case.served.result).result, &case.served.result);
    }

    /// CN-13: the whole that is kept is what the server wrote, and all that is missing is in it.
    #[test]
    fn what_is_kept_is_what_the_server_wrote(mut case in case()) {
        case.told = None;
        let told = case.tell(&case.served.result);
        if let Some(whole) = told.whole {
            leads_to_what_was_written(&case, &whole, &told.left_out);
        }
    }

    /// CN-8: what is cut off, or no result at all, is shaped without a panic.
    #[test]
    fn no_bytes_bring_a_panic(case in case(), cut in any::<prop::sample::Index>(), text in "\\PC*") {
        let result = &case.served.result;
        let cut = (0..=cut.index(result.len())).rev().find(|at| result.is_char_boundary(*at)).unwrap();
        case.tell(&result[..cut]);
        case.tell(&text);
    }
}
