//! Resources and prompts, as generated ones are told.

use mcp_vary::feature::Features;
use mcp_vary::json::{Members, elements, string};
use mcp_vary::predicate::Predicate;
use mcp_vary::shape::{
    PromptAlternative, Rendering, Report, Representation, Representations, Role, Shaped,
    prompt_result, resource_result,
};
use proptest::collection::vec;
use proptest::prelude::*;

use mcp_vary::feature::registered_tags;
use mcp_vary_testkit::generate::written::{given, spacing, tags, word};

/// One of the contents, and whether its text may be told otherwise.
fn content() -> impl Strategy<Value = (String, bool)> {
    let text = prop_oneof![
        3 => (given(true), spacing()).prop_map(|(given, spacing)| given.value.to_json(spacing)),
        1 => word(),
    ];
    let media_type = prop::sample::select(
        &[
            "",
            r#""mimeType":"application/json","#,
            r#""mimeType":"text/plain","#,
            r#""mimeType":"text/markdown","#,
            r#""mimeType":"application/geo+json","#,
            r#""mimeType":7,"#,
        ][..],
    );
    (text, media_type, 0..6_u8).prop_map(|(text, media_type, kind)| match kind {
        // Bytes are bytes, whatever else is said of them.
        5 => (
            format!(
                r#"{{"uri":"a:b", {media_type}"blob":"aGk=","text":{}}}"#,
                string(&text)
            ),
            false,
        ),
        0 => (
            format!(r#"{{"uri":"a:b", {media_type}"blob":"aGk=","x":1.10}}"#),
            false,
        ),
        1 => (
            format!(
                r#"{{"uri":"other:b", {media_type}"text":{}}}"#,
                string(&text)
            ),
            false,
        ),
        _ => (
            format!(
                r#"{{"uri":"a:b", {media_type}"text":{} ,"_meta":{{"n": 1.0}}}}"#,
                string(&text)
            ),
            true,
        ),
    })
}

fn representations(native: bool) -> Representations {
    let rendered = if native {
        Representation::text("text/markdown", "own words").unwrap()
    } else {
        Representation::Rendered(Rendering::GeoMarkdown)
    };
    Representations::default()
        .with(rendered)
        .and_then(|all| all.with(Representation::Rendered(Rendering::Text)))
        .unwrap()
        .with_under("interactive".parse().unwrap(), Representation::AsServed)
}

fn told(shaped: Shaped, result: &str) -> String {
    match shaped {
        Shaped::Changed { result, .. } => result,
        Shaped::Unchanged => result.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-15, CN-19, CN-7: blobs, other resources and unknown members stay; what is rendered says what it is;
    /// twice is once, and who asks for nothing gets every byte.
    #[test]
    fn a_resource_keeps_all_that_is_no_text(contents in vec(content(), 0..4), tags in tags(registered_tags()), own in any::<bool>()) {
        let written: Vec<_> = contents.iter().map(|(written, _)| written.as_str()).collect();
        let result = format!(r#"{{ "contents" : [{}],"ttlMs":1e3, "_meta":{{"a":1.0}}}}"#, written.join(" ,"));
        let (features, _) = Features::from_tags(tags);
        let all = representations(own);
        let of = |uri: &str| (uri == "a:b").then_some(&all);
        let report = Some(Report::default());
        let once = told(resource_result(&result, &features, of, report), &result);
        prop_assert_eq!(&told(resource_result(&once, &features, of, report), &once), &once);
        prop_assert_eq!(resource_result(&result, &Features::default(), of, report), Shaped::Unchanged);
        let members = Members::parse(&once).unwrap();
        prop_assert_eq!(members.get("ttlMs"), Some("1e3"));
        let now = elements(members.get("contents").unwrap()).unwrap();
        prop_assert_eq!(now.len(), contents.len());
        for (now, (before, may_change)) in now.iter().zip(&contents) {
            if now == before {
                continue;
            }
            prop_assert!(may_change, "{} was {}", now, before);
            let now = Members::parse(now).unwrap();
            let media_type = now.get_str("mimeType").unwrap();
            prop_assert!(["text/markdown", "text/plain"].contains(&&*media_type));
            prop_assert_eq!(now.get("_meta"), Some(r#"{"n": 1.0}"#));
            prop_assert_eq!(now.get("uri"), Some("\"a:b\""));
        }
    }

    /// CN-15, CN-19, CN-8: a prompt keeps its images and resources in their order, has one block to a message, and is told
    /// once.
    #[test]
    fn a_prompt_keeps_all_that_is_no_text(texts in vec(word(), 0..4), tags in tags(registered_tags()), under in "human|agent|\\*", words in word()) {
        let others = [
            r#"{"role":"user","content":{"type":"image", "data":"aGk=","mimeType":"image/png"}}"#,
            r#"{"role":"user", "content":{"type":"resource","resource":{"uri":"a:b","text":"c"}}}"#,
            r#"{"role":"user", "content":{"type":"hologram"}}"#,
        ];
        let texts = texts.iter().map(|text| {
            format!(r#"{{"role":"assistant","content":{{"type":"text","text":{}}}}}"#, string(text))
        });
        let mut messages: Vec<_> = texts.collect();
        for (at, other) in others.iter().enumerate() {
            messages.insert((2 * at).min(messages.len()), (*other).to_owned());
        }
        let result = format!(r#"{{"messages": [{}], "x":1.10}}"#, messages.join(", "));
        let (features, _) = Features::from_tags(tags);
        let predicate: Predicate = under.parse().unwrap();
        let all = [(predicate, PromptAlternative::new(Role::User, &words))];
        let report = Some(Report::default());
        let once = told(prompt_result(&result, &features, &all, report), &result);
        prop_assert_eq!(&told(prompt_result(&once, &features, &all, report), &once), &once);
        prop_assert_eq!(prompt_result(&result, &Features::default(), &all, report), Shaped::Unchanged);
        let members = Members::parse(&once).unwrap();
        prop_assert_eq!(members.get("x"), Some("1.10"));
        let now = elements(members.get("messages").unwrap()).unwrap();
        let kept: Vec<_> = now.iter().filter(|message| others.contains(message)).copied().collect();
        prop_assert_eq!(&kept, &others, "{}", once);
        for message in now {
            let message = Members::parse(message).unwrap();
            let is_one = message.get("content").is_some_and(|content| content.starts_with('{'));
            prop_assert!(is_one);
        }
    }
}
