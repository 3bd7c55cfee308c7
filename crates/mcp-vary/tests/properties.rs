//! What is always true of tags, predicates, rankings, cursors and settings.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::cursor::{CursorBinding, CursorError, CursorKeys, open, seal};
use mcp_vary::error::with_active_variant;
use mcp_vary::extension::{
    CONTENT_NEGOTIATION, Carrier, EXTENSIONS, SERVER_VARIANTS, advertise, declared, settings,
    strip_capabilities,
};
use mcp_vary::feature::{FeatureTag, Features, Form, MAX_TAG, MAX_TAGS, Presence};
use mcp_vary::hints::{MAX_KEYS, MAX_VALUES, VariantHints};
use mcp_vary::json::Members;
use mcp_vary::predicate::{Predicate, choose};
use mcp_vary::rank::{Ranked, Ranking, Weights, rank};
use mcp_vary::state::{self, Parameters, StateError};
use mcp_vary::variant::{Date, ServerVariant, Status, VariantId};
use mcp_vary_testkit::lenient_path::lenient_path;
use mcp_vary_view::{
    Candidate, Selection, UriMap, UriTemplate, check_uri, normal_uri, uri_identity,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

const KEY: &str = "[A-Za-z0-9][A-Za-z0-9._/-]{0,20}";
const VALUE: &str = "[\"-+\\--:<>-~]{1,20}";

/// A tag of the grammar, written from its parts.
fn tag() -> impl Strategy<Value = (String, Form, String, Option<String>)> {
    (KEY, VALUE, 0..4).prop_map(|(key, value, form)| match form {
        0 => (key.clone(), Form::Presence, key, None),
        1 => (format!("!{key}"), Form::Negation, key, None),
        2 => (format!("{key}={value}"), Form::Equality, key, Some(value)),
        _ => (
            format!("{key}!={value}"),
            Form::Inequality,
            key,
            Some(value),
        ),
    })
}

/// A URI or template over few words, so that one stands for another.
fn common_uri() -> impl Strategy<Value = String> {
    "[ab]:(1|2|/|-|\\{x\\}|\\{\\+y\\}){0,5}"
}

/// A URI of few parts, most of them written oddly.
fn odd_uri() -> impl Strategy<Value = String> {
    let starts = ["f:/", "f:/", "F:/", "f:///", "http://H/", "", "%66:/"];
    let parts = [
        "/", "/", "a", "secret", "secret", ".", "..", "%2e", "%2E", "%2f", "%5C", "\\", "%73ecret",
        "%c3%a9", "é", "%C3", "%", "%25", "?", "#", ";", "=", "%00", "\t", " ", "%20", "(", "%28",
        "{+x}", "A",
    ];
    let parts = vec(select(parts.to_vec()), 0..8);
    (select(starts.to_vec()), parts).prop_map(|(start, parts)| start.to_owned() + &parts.concat())
}

/// The path of a URI as a lenient file server reads it, which also drops control characters.
fn path_read(uri: &str) -> String {
    let uri: String = uri.chars().filter(|c| !c.is_control()).collect();
    let path = uri.trim().split(['?', '#', ';']).next().unwrap_or_default();
    lenient_path(path.split_once(':').map_or(path, |(_, path)| path))
}

/// A tag over few words, so that tags meet.
fn common_tag() -> impl Strategy<Value = String> {
    let terms = ["agent", "human", "interactive", "format", "x-n"];
    let values = ["json", "text", "markdown", "7", "1000"];
    (select(terms.to_vec()), select(values.to_vec()), 0..4).prop_map(
        |(key, value, form)| match form {
            0 => key.to_owned(),
            1 => format!("!{key}"),
            2 => format!("{key}={value}"),
            _ => format!("{key}!={value}"),
        },
    )
}

fn features() -> impl Strategy<Value = Features> {
    vec(common_tag(), 0..8).prop_map(|tags| Features::from_tags(tags.iter().map(String::as_str)).0)
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let range = (0u64..2000, 0u64..2000, 0..4).prop_map(|(one, other, ends)| match ends {
        0 => "x-n=[-]".to_owned(),
        1 => format!("x-n=[{one}-]"),
        2 => format!("x-n=[-{one}]"),
        _ => format!("x-n=[{}-{}]", one.min(other), one.max(other)),
    });
    let term = prop_oneof![3 => common_tag(), 1 => range];
    vec(term, 0..4).prop_filter_map("terms that never hold together", |terms| {
        if terms.is_empty() {
            Some(Predicate::any())
        } else {
            terms.join("&").parse().ok()
        }
    })
}

fn variant() -> impl Strategy<Value = ServerVariant> {
    let status = select(&[Status::Stable, Status::Experimental, Status::Deprecated][..]);
    (status, vec(hint(), 0..4), 0u32..3).prop_map(|(status, hints, priority)| {
        let mut variant = ServerVariant::new("v".parse().unwrap(), "")
            .with_status(status)
            .with_priority(priority);
        variant.hints.extend(hints);
        variant
    })
}

/// Variants with identifiers of their own.
fn variants() -> impl Strategy<Value = Vec<ServerVariant>> {
    vec(variant(), 0..9).prop_map(|mut variants| {
        for (at, variant) in variants.iter_mut().enumerate() {
            variant.id = format!("v{at}").parse().unwrap();
        }
        variants
    })
}

fn hint() -> impl Strategy<Value = (String, String)> {
    let keys = ["modelFamily", "useCase", "contextSize", "status", "other"];
    let values = ["a", "b", "c", "any", "experimental", "stable"];
    (select(keys.to_vec()), select(values.to_vec())).prop_map(|(k, v)| (k.to_owned(), v.to_owned()))
}

fn hints() -> impl Strategy<Value = VariantHints> {
    vec(hint(), 0..8).prop_map(|pairs| {
        VariantHints::from_pairs(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str()))).0
    })
}

/// Any JSON, with words in it that mean something here.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        common_tag().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        let keys = [
            "extensions",
            "experimental",
            CONTENT_NEGOTIATION,
            SERVER_VARIANTS,
            "version",
            "features",
            "variantHints",
            "hints",
            "description",
            "com.example/other",
        ];
        let key = prop_oneof![6 => select(keys.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
        prop_oneof![
            1 => vec(inner.clone(), 0..6).prop_map(Value::from),
            3 => vec((key, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The declared order, which the moved one is taken out of.
fn key(entry: &Ranked, variants: &[ServerVariant]) -> (i64, Status, u32, usize) {
    let at = variants.iter().position(|v| v.id == entry.id).unwrap();
    (-entry.score, entry.status, variants[at].priority, at)
}

fn advertises_rightly(ranking: &Ranking, limit: usize) {
    let (advertised, more) = ranking.advertise(limit);
    let entry = |id: &VariantId| ranking.entries().iter().find(|e| e.id == *id).unwrap();
    if advertised.is_empty() {
        assert!(!more);
        return;
    }
    assert!(advertised.len() <= limit.clamp(2, 5));
    assert_eq!(advertised.first(), ranking.first());
    assert_eq!(more, advertised.len() < ranking.entries().len());
    let places: Vec<_> = advertised
        .iter()
        .map(|id| ranking.ids().position(|other| other == id).unwrap())
        .collect();
    assert!(
        places.is_sorted_by(|a, b| a < b),
        "ranked order, no doubles"
    );
    let fallback = |entry: &Ranked| entry.status == Status::Stable;
    let found = advertised[1..].iter().map(entry).any(fallback);
    assert_eq!(found, ranking.entries()[1..].iter().any(fallback));
}

proptest! {
    /// CN-1: a tag of the grammar is read into its parts and printed as it was.
    #[test]
    fn a_tag_of_the_grammar_is_read((text, form, key, value) in tag()) {
        let tag: FeatureTag = text.parse().unwrap();
        prop_assert_eq!(tag.to_string(), text);
        prop_assert_eq!((tag.form(), tag.key(), tag.value()), (form, key.as_str(), value.as_deref()));
    }

    /// CN-1: a tag with a character that no tag holds is none, wherever it stands.
    #[test]
    fn a_stray_character_is_no_tag((text, ..) in tag(), stray in select(&[' ', '\n', '\0', ',', ';', 'é', '\u{7f}'][..]), at: Index) {
        let mut text = text;
        text.insert(at.index(text.len() + 1), stray);
        prop_assert!(text.parse::<FeatureTag>().is_err());
    }

    /// CN-1, CN-2: whatever is read as a tag prints as it was, within the limit.
    #[test]
    fn whatever_is_a_tag_prints_as_it_was(text in "[!=a-c.é ]{0,8}|.{0,140}") {
        if let Ok(tag) = text.parse::<FeatureTag>() {
            prop_assert_eq!(tag.as_str(), &text);
            prop_assert!(text.len() <= MAX_TAG);
        }
    }

    /// CN-3: a declared absence wins, in whatever order and company.
    #[test]
    fn absence_wins(tags in vec(common_tag(), 0..8), absent in "[a-z]{1,8}", at: Index) {
        let mut tags = tags;
        tags.push(absent.clone());
        tags.insert(at.index(tags.len() + 1), format!("!{absent}"));
        let (features, _) = Features::from_tags(tags.iter().map(String::as_str));
        prop_assert_eq!(features.state(&absent), Presence::Absent);
        prop_assert_eq!(features.value(&absent), None);
    }

    /// CN-3: what a tag asks and what its opposite asks are answered by opposites.
    #[test]
    fn opposite_tags_have_opposite_states(features in features(), key in "agent|human|format|x-n", value in "json|7") {
        prop_assert_eq!(features.state(&format!("!{key}")), features.state(&key).opposite());
        let (is, is_not) = (format!("{key}={value}"), format!("{key}!={value}"));
        prop_assert_eq!(features.state(&is_not), features.state(&is).opposite());
        prop_assert_eq!(features.has(&is), features.values(&key).any(|v| v == value));
    }

    /// CN-2: junk between tags takes nothing from them.
    #[test]
    fn junk_between_tags_changes_nothing(tags in vec(common_tag(), 0..20), junk in vec(any_json(), 0..20), at: Index) {
        let junk: Vec<_> = junk
            .into_iter()
            .filter(|value| value.as_str().is_none_or(|text| text.parse::<FeatureTag>().is_err()))
            .collect();
        let mut members: Vec<Value> = tags.iter().map(|tag| json!(tag)).collect();
        let at = at.index(members.len() + 1);
        members.splice(at..at, junk.clone());
        let (features, ignored) = Features::read(&json!({"features": members}));
        prop_assert_eq!(features, Features::from_tags(tags.iter().map(String::as_str)).0);
        prop_assert_eq!(ignored.count(), junk.len());
    }

    /// EXT-5, EXT-6: reading any capabilities keeps the limits, and what is read reads back.
    #[test]
    fn any_capabilities_can_be_read(capabilities in any_json()) {
        let features = declared::<Features>(&capabilities);
        prop_assert!(features.value.tags().len() <= MAX_TAGS);
        prop_assert!(features.carrier.is_some() || features.value.is_empty());
        prop_assert_eq!(Features::read(&features.value.to_settings()).0, features.value);
        let hints = declared::<VariantHints>(&capabilities);
        prop_assert!(hints.value.iter().count() <= MAX_KEYS);
        prop_assert!(hints.value.iter().all(|(_, values)| (1..=MAX_VALUES).contains(&values.len())));
        prop_assert_eq!(VariantHints::read(&hints.value.to_settings()).0, hints.value);
        prop_assert!((features.ignored.to_string() + &hints.ignored.to_string()).is_ascii());
    }

    /// EXT-5: no number of entries is too large, and all are counted.
    #[test]
    fn limits_hold_for_any_number_of_entries(tags in 0usize..200, keys in 0usize..100, values in 0usize..50) {
        let many = |n, name: &str| (0..n).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
        let (features, ignored) = Features::read(&json!({"features": many(tags, "t")}));
        prop_assert_eq!(features.tags().len() + ignored.count(), tags);
        prop_assert_eq!(features.tags().len(), tags.min(64));
        let hints: Map<_, _> = many(keys, "k").into_iter().map(|k| (k, json!(many(values, "v")))).collect();
        let (hints, _) = VariantHints::read(&json!({"variantHints": {"hints": hints}}));
        prop_assert_eq!(hints.iter().count(), if values == 0 { 0 } else { keys.min(32) });
        prop_assert!(hints.iter().all(|(_, all)| all.len() == values.min(16)));
    }

    /// EXT-6: what we advertise is found in `extensions`, and where the peer looks for it.
    #[test]
    fn what_is_advertised_is_found(capabilities in any_json(), carrier in select(&Carrier::ALL[..])) {
        let mut ours = capabilities.as_object().cloned().unwrap_or_default();
        advertise(&mut ours, CONTENT_NEGOTIATION, json!({"found": true}), carrier);
        let ours = Value::Object(ours);
        let found = settings(&ours, CONTENT_NEGOTIATION).unwrap();
        prop_assert_eq!(found.carrier(), Carrier::Extensions);
        let there = carrier.path().iter().fold(&ours, |value, key| &value[key]);
        prop_assert_eq!(&there[CONTENT_NEGOTIATION], &json!({"found": true}));
    }

    /// EXT-9: stripping leaves nothing of ours, takes nothing else, and is done at once.
    #[test]
    fn stripping_takes_what_is_ours(capabilities in any_json(), other in any_json()) {
        let mut capabilities = capabilities.as_object().cloned().unwrap_or_default();
        capabilities.insert("other".to_owned(), other.clone());
        let text = json!(capabilities).to_string();
        let stripped = strip_capabilities(&text, EXTENSIONS).unwrap();
        let rest: Value = serde_json::from_str(&stripped).unwrap();
        prop_assert!(settings(&rest, CONTENT_NEGOTIATION).is_none());
        prop_assert!(settings(&rest, SERVER_VARIANTS).is_none());
        prop_assert_eq!(&rest["other"], &other);
        prop_assert_eq!(strip_capabilities(&stripped, EXTENSIONS).unwrap(), stripped.as_ref());
    }

    /// CN-20: a predicate reads back as it prints.
    #[test]
    fn a_predicate_reads_back_as_it_prints(predicate in predicate()) {
        prop_assert_eq!(predicate.to_string().parse(), Ok(predicate));
    }

    /// CN-20: the order of terms decides nothing, and one term more never matches more.
    #[test]
    fn terms_only_narrow(predicate in predicate(), features in features()) {
        let text = predicate.to_string();
        let mut terms: Vec<_> = text.split(" & ").collect();
        terms.reverse();
        let turned: Predicate = terms.join(" & ").parse().unwrap();
        prop_assert_eq!(turned.matches(&features), predicate.matches(&features));
        prop_assert_eq!(turned.specificity(), predicate.specificity());
        let all = terms.iter().all(|term| term.parse::<Predicate>().unwrap().matches(&features));
        prop_assert_eq!(predicate.matches(&features), all);
        if terms.len() > 1 {
            let fewer: Predicate = terms[1..].join(" & ").parse().unwrap();
            prop_assert!(fewer.specificity() < predicate.specificity());
        }
    }

    /// CN-20: what is chosen holds, and nothing that holds is more specific or as specific and earlier.
    #[test]
    fn the_most_specific_match_is_chosen(alternatives in vec(predicate(), 0..6), features in features()) {
        let numbered: Vec<_> = alternatives.iter().cloned().zip(0usize..).collect();
        let chosen = choose(&numbered, &features).copied();
        let matching = || alternatives.iter().enumerate().filter(|(_, p)| p.matches(&features));
        prop_assert_eq!(chosen.is_some(), matching().count() > 0);
        if let Some(chosen) = chosen {
            prop_assert!(alternatives[chosen].matches(&features));
            for (at, other) in matching() {
                let (best, rival) = (alternatives[chosen].specificity(), other.specificity());
                prop_assert!(best > rival || (best == rival && chosen <= at));
            }
        }
    }

    /// SV-5: a ranking loses nothing and adds nothing, and every score is the sum of its reasons.
    #[test]
    fn a_ranking_is_a_permutation(variants in variants(), hints in hints()) {
        let ranking = rank(&variants, &hints, &Weights::default());
        let mut ranked: Vec<_> = ranking.ids().cloned().collect();
        ranked.sort();
        let mut given: Vec<_> = variants.iter().map(|v| v.id.clone()).collect();
        given.sort();
        prop_assert_eq!(ranked, given);
        for entry in ranking.entries() {
            prop_assert_eq!(entry.score, entry.reasons.iter().map(|r| r.points).sum::<i64>());
        }
    }

    /// SV-3, SV-5: the order is total and stable; only the first may stand where its score does not put it.
    #[test]
    fn a_ranking_is_ordered(variants in variants(), hints in hints()) {
        let ranking = rank(&variants, &hints, &Weights::default());
        let keys: Vec<_> = ranking.entries().iter().map(|entry| key(entry, &variants)).collect();
        let moved = ranking.entries().iter().take_while(|entry| entry.promoted).count();
        prop_assert!(moved <= 1);
        prop_assert!(keys[moved..].is_sorted_by(|a, b| a < b));
        prop_assert!(moved == 0 || keys[1] < keys[0], "moved only when it had to be");
        prop_assert!(!ranking.entries().iter().skip(1).any(|entry| entry.promoted));
    }

    /// SV-3: the first is stable if any is, or experimental if the client asked for that.
    #[test]
    fn the_first_is_settled(variants in variants(), hints in hints()) {
        let ranking = rank(&variants, &hints, &Weights::default());
        let asked = hints.values("status").iter().any(|value| value == "experimental");
        if let Some(first) = ranking.entries().first()
            && variants.iter().any(|v| v.status == Status::Stable)
        {
            prop_assert!(first.status == Status::Stable || (asked && first.status == Status::Experimental));
        }
    }

    /// SV-5: with priorities that decide every tie, the order of declaration decides nothing.
    #[test]
    fn declaration_only_breaks_ties(variants in variants(), hints in hints(), seed: Index) {
        let mut variants = variants;
        for (priority, variant) in (0..).zip(&mut variants) {
            variant.priority = priority;
        }
        let ranking = rank(&variants, &hints, &Weights::default());
        if !variants.is_empty() {
            let middle = seed.index(variants.len());
            variants.rotate_left(middle);
        }
        let turned = rank(&variants, &hints, &Weights::default());
        prop_assert!(ranking.ids().eq(turned.ids()));
    }

    /// SV-3: what is advertised is a part of the ranking, with its first and a stable fallback.
    #[test]
    fn what_is_advertised_has_a_fallback(variants in variants(), hints in hints(), limit in 0usize..9) {
        advertises_rightly(&rank(&variants, &hints, &Weights::default()), limit);
    }

    /// SV-5: no weights overflow, and none makes the order partial.
    #[test]
    fn any_weights_rank(variants in variants(), hints in hints(), numbers in any::<[i32; 5]>()) {
        let [first, step, any, stable, deprecated] = numbers;
        let mut weights = Weights::default().with("useCase", first, step).with("modelFamily", step, first);
        (weights.any, weights.stable, weights.deprecated) = (any, stable, deprecated);
        prop_assert_eq!(rank(&variants, &hints, &weights).entries().len(), variants.len());
    }

    /// SV-11, SV-12: what a view's URI is to the server has no other URI in the view.
    #[test]
    fn uris_of_a_view_are_one_to_one(moves in vec((common_uri(), common_uri()), 0..5), uris in vec(common_uri(), 20)) {
        let map = UriMap::new(moves.iter().map(|(own, shown)| (own.as_str(), shown.as_str())));
        for uri in uris.iter().chain(moves.iter().flat_map(|(own, shown)| [own, shown])) {
            if let Some(own) = map.to_upstream(uri) {
                let back = map.to_view(&own);
                prop_assert_eq!(back.as_deref(), Some(uri.as_str()));
            }
            if let Some(shown) = map.to_view(uri) {
                let back = map.to_upstream(&shown);
                let back = back.as_deref().map(uri_identity);
                prop_assert_eq!(back, Some(uri_identity(uri)));
            }
        }
    }

    /// SV-11: each URI has one normal form, which is no longer, and so has what all its spellings share.
    #[test]
    fn a_normal_uri_is_its_own_normal_form(uri in prop_oneof![odd_uri(), "\\PC{0,30}", "[%a-fA-F0-9:/@.]{0,30}"]) {
        let normal = normal_uri(&uri);
        prop_assert_eq!(normal_uri(&normal), normal.clone());
        prop_assert!(normal.len() <= uri.len());
        let identity = uri_identity(&uri);
        prop_assert_eq!(uri_identity(&identity), identity.clone());
        prop_assert!(identity.len() <= uri.len());
        prop_assert_eq!(uri_identity(&normal), identity);
        match check_uri(&uri) {
            Ok(()) => prop_assert_eq!(&*normal, uri.as_str()),
            // What it says to write can be written.
            Err(fault) => if let Some(form) = fault.fix().strip_prefix("write `") {
                prop_assert_eq!(check_uri(form.trim_end_matches('`')), Ok(()));
            },
        }
    }

    /// SV-11: a URI that is not refused is read where it looks as if it were read.
    #[test]
    fn a_lenient_reader_reads_what_was_checked(uri in odd_uri()) {
        let selection: Selection = serde_json::from_value(json!({"exclude": ["f:/secret", "f:/secret/*"]})).unwrap();
        let only: Selection = serde_json::from_value(json!({"include": ["f:/a/*", "f:/*.md"]})).unwrap();
        let item = Candidate { name: &uri, upstream_name: &uri, server: "s", hints: None };
        // What stands behind two slashes is no path.
        if uri.starts_with("f:/") && !uri.starts_with("f://") && check_uri(&uri).is_ok() {
            let path = path_read(&uri);
            if selection.selects_unlisted_resource(item) {
                prop_assert!(path != "secret" && !path.starts_with("secret/"), "{path}");
            }
            if only.selects_unlisted_resource(item) {
                prop_assert!(path == "a" || path.starts_with("a/") || path.ends_with(".md"), "{path}");
            }
        }
    }

    /// SV-11: a template stands for what it makes of values, and for nothing with a slash where none can be.
    #[test]
    fn a_template_stands_for_its_values(template in "[ab]:(1|2|/|-|\\{x\\}|\\{\\+y\\}|\\{z\\*\\}){0,6}", values in vec("[12/-]{0,3}", 6)) {
        let (mut uri, mut values) = (String::new(), values.into_iter());
        let (mut rest, mut fits) = (template.as_str(), true);
        while let Some((literal, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}').unwrap();
            let value = values.next().unwrap();
            fits &= expression != "x" || !value.contains('/');
            uri += literal;
            uri += &value;
            rest = after;
        }
        uri += rest;
        let read = UriTemplate::new(&template);
        prop_assert!(!fits || read.matches(&uri), "{template} {uri}");
        prop_assert!(read.matches_with_slashes(&uri), "{template} {uri}");
        // The pattern that says the same.
        let pattern = template.replace("{x}", "[^/]*").replace("{+y}", ".*").replace("{z*}", ".*");
        let known = json!({"pattern": format!("^{pattern}$")});
        let validator = jsonschema::validator_for(&known).unwrap();
        prop_assert_eq!(read.matches(&uri), validator.is_valid(&json!(uri)), "{} {}", template, uri);
    }

    /// SV-13: a cursor opens under its own binding, whatever is in it.
    #[test]
    fn a_cursor_opens_where_it_was_made(key: [u8; 32], id in "[^\\p{Cc}]{1,32}", method in ".{0,20}", principal in ".{0,20}", inner in ".{0,40}") {
        let (keys, variant) = (CursorKeys::new(key), id.parse().unwrap());
        let binding = CursorBinding { variant: &variant, method: &method, principal: &principal };
        prop_assert_eq!(open(&keys, &binding, &seal(&keys, &binding, &inner)), Ok(inner));
    }

    /// SV-13: a cursor opens nowhere else, and names its variant only where that alone is wrong.
    #[test]
    fn a_cursor_opens_nowhere_else(one in vec("[ab]{1,3}", 4), other in vec("[ab]{1,3}", 4), rotated: bool) {
        let (keys, others) = (CursorKeys::new([1; 32]), CursorKeys::new([2; 32]));
        let (here, there): (VariantId, VariantId) = (one[0].parse().unwrap(), other[0].parse().unwrap());
        let made = CursorBinding { variant: &here, method: &one[1], principal: &one[2] };
        let used = CursorBinding { variant: &there, method: &other[1], principal: &other[2] };
        let cursor = seal(&keys, &made, &one[3]);
        prop_assert_eq!(open(&others, &made, &cursor), Err(CursorError::Invalid));
        let keys = if rotated { others.with_previous([[1; 32]]) } else { keys };
        let expected = match (made == used, (&one[1], &one[2]) == (&other[1], &other[2])) {
            (true, _) => Ok(one[3].clone()),
            (false, true) => Err(CursorError::WrongVariant(here.clone())),
            (false, false) => Err(CursorError::Invalid),
        };
        prop_assert_eq!(open(&keys, &used, &cursor), expected);
    }

    /// SV-13: one character changed, added or taken away, and a cursor is no cursor.
    #[test]
    fn a_changed_cursor_is_forged(inner in ".{0,20}", at: Index, to in "[A-Za-z0-9_-]", how in 0..3) {
        let (keys, variant) = (CursorKeys::new([1; 32]), "compact".parse().unwrap());
        let binding = CursorBinding { variant: &variant, method: "tools/list", principal: "alice" };
        let sealed = seal(&keys, &binding, &inner);
        let mut forged = sealed.clone();
        let at = at.index(forged.len());
        match how {
            0 => forged.replace_range(at..=at, &to),
            1 => forged.insert_str(at, &to),
            _ => drop(forged.remove(at)),
        }
        prop_assume!(forged != sealed);
        prop_assert_eq!(open(&keys, &binding, &forged), Err(CursorError::Invalid));
    }

    /// SV-26: a state comes back in time and to its own request, and never otherwise.
    #[test]
    fn a_state_comes_back_to_its_request(one in vec("[ab]{1,2}", 4), other in vec("[ab]{1,2}", 4), text in ".{0,40}", expires: u64, now: u64) {
        let keys = CursorKeys::new([1; 32]);
        let about = |name: &str| Parameters::of(name, None);
        let (made_for, used_for) = (about(&one[3]), about(&other[3]));
        let (here, there): (VariantId, VariantId) = (one[0].parse().unwrap(), other[0].parse().unwrap());
        let made = state::StateBinding { variant: &here, method: &one[1], principal: &one[2], parameters: &made_for };
        let used = state::StateBinding { variant: &there, method: &other[1], principal: &other[2], parameters: &used_for };
        let sealed = state::seal(&keys, &made, &text, expires);
        let in_time = if now < expires { Ok(text) } else { Err(StateError::Expired) };
        prop_assert_eq!(&state::open(&keys, &made, &sealed, now), &in_time);
        let elsewhere = if made == used { in_time } else { Err(StateError::Invalid) };
        prop_assert_eq!(state::open(&keys, &used, &sealed, now), elsewhere);
    }

    /// SV-12: the active variant is added to a server's data, which loses nothing.
    #[test]
    fn error_data_keeps_what_is_there(data in any_json(), id in "[^\\p{Cc}]{1,32}") {
        let active = id.parse().unwrap();
        let text = data.to_string();
        let enriched: Value = serde_json::from_str(&with_active_variant(Some(&text), &active)).unwrap();
        let mut expected = data;
        if let Value::Object(members) = &mut expected {
            members.entry("activeVariant").or_insert_with(|| json!(id));
        }
        prop_assert_eq!(enriched, expected);
        prop_assert!(Members::parse(&with_active_variant(None, &active)).is_ok());
    }

    /// SV-1: days are counted as the calendar has them, and a day reads back as it prints.
    #[test]
    fn days_are_counted(day in 0u64..2_900_000, time in 0u64..86_400) {
        let start = Date::from_unix(0);
        let date = Date::from_unix(day * 86_400 + time);
        prop_assert_eq!(date.days_since(start), i64::try_from(day).unwrap());
        prop_assert_eq!(date.to_string().parse(), Ok(date));
        prop_assert_eq!(date.cmp(&start), day.cmp(&0));
    }
}
