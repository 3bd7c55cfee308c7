use super::*;

fn variant(id: &str) -> ServerVariant {
    ServerVariant::new(id.parse().unwrap(), "")
}

fn today() -> Date {
    "2026-11-20".parse().unwrap()
}

fn replaced(id: &str, by: &str, date: &str) -> ServerVariant {
    let mut info = DeprecationInfo::new("use the other");
    info.replacement = Some(by.parse().unwrap());
    info.removal_date = Some(date.to_owned());
    variant(id).deprecated(info)
}

/// SV-1: the form on the wire, and back.
#[test]
fn the_wire_has_the_members_of_the_extension() {
    let text = r#"{"id":"v1","description":"d","hints":{"a":"b"},"status":"deprecated","deprecationInfo":{"message":"m","replacement":"v2","removalDate":"2027-01-31"}}"#;
    let read: ServerVariant = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let small = variant("a")
        .with_priority(3)
        .with_status(Status::Experimental);
    let expected = json!({"id": "a", "description": "", "status": "experimental"});
    assert_eq!(json!(small), expected);
    let info = DeprecationInfo::new("m");
    assert_eq!(
        json!(variant("a").deprecated(info)),
        json!({"id": "a", "description": "", "status": "deprecated", "deprecationInfo": {"message": "m"}})
    );
}

/// SV-1: a peer's unknown members do no harm; a missing description does.
#[test]
fn what_a_peer_adds_is_ignored() {
    let read = |text| serde_json::from_str::<ServerVariant>(text);
    assert_eq!(
        read(r#"{"id":"a","description":"","icon":[1],"hints":{}}"#).unwrap(),
        variant("a")
    );
    assert!(read(r#"{"id":"a"}"#).is_err());
}

/// SV-1: every mistake is a sentence that names the variant, and all stand side by side.
#[test]
fn all_mistakes_are_named() {
    let declared = vec![
        variant("a\u{202e}").with_status(Status::Experimental),
        variant("a\u{202e}").with_status(Status::Experimental),
        replaced("b", "b", "soon"),
        replaced("c", "d", "2027-02-29"),
    ];
    let mistakes = Variants::new(declared, today()).unwrap_err();
    assert_eq!(mistakes.as_slice().len(), 6);
    assert_eq!(
        mistakes.to_string(),
        "variant `a\\u{202e}` is declared twice; rename one; \
             no variant is stable; the default must be: mark one as stable; \
             variant `b` names itself as its replacement; name another; \
             variant `b` has the removal date `soon`; write it as 2027-01-31; \
             variant `c` names the replacement `d`, which is not declared; \
             variant `c` has the removal date `2027-02-29`; write it as 2027-01-31",
    );
}

/// SV-1: one that cannot be read is named by its place.
#[test]
fn an_unreadable_variant_is_named_by_its_place() {
    let declared = [
        json!({"id": "a", "description": ""}),
        json!({"id": "", "description": ""}),
    ];
    let mistakes = Variants::read(&declared, today()).unwrap_err();
    let expected = "variant number 2 cannot be read: the identifier of a variant is empty";
    assert_eq!(mistakes.to_string(), expected);
}

/// SV-1: a past date warns, and the variant is still there.
#[test]
fn warnings_are_sentences() {
    let mut odd = variant("c");
    odd.deprecation_info = Some(DeprecationInfo::new(""));
    let declared = vec![variant("a"), replaced("b", "a", "2026-11-19"), odd];
    let (variants, warnings) = Variants::new(declared, today()).unwrap();
    let warnings: Vec<_> = warnings.iter().map(Warning::to_string).collect();
    assert_eq!(
        warnings,
        [
            "variant `b` was to be removed on 2026-11-19; it is still served",
            "variant `c` has deprecation information and is not deprecated",
        ]
    );
    assert_eq!(variants.as_slice().len(), 3);
    assert_eq!(variants.get("b"), Some(&variants.as_slice()[1]));
    assert_eq!(variants.get("d"), None);
    assert_eq!((&variants).into_iter().count(), 3);
}

/// SV-1: a replacement that a reader does not see is not named to it.
#[test]
fn a_hidden_replacement_is_not_named() {
    let old = replaced("old", "new", "2027-01-31");
    assert_eq!(old.visible_to(|id| id == "new"), old);
    let seen = old.visible_to(|id| id != "new");
    let info = seen.deprecation_info.unwrap();
    assert_eq!(info.replacement, None);
    assert_eq!(info.message, "use the other");
}

/// SV-1: identifiers say what is wrong with them.
#[test]
fn identifiers_are_checked() {
    let error = |text: &str| text.parse::<VariantId>().unwrap_err().to_string();
    assert_eq!(error(""), "the identifier of a variant is empty");
    let expected = "the identifier of a variant has at most 128 bytes";
    assert_eq!(error(&"a".repeat(129)), expected);
    let expected = "the identifier of a variant holds the control character '\\t'";
    assert_eq!(error("a\tb"), expected);
    let id: VariantId = "a".parse().unwrap();
    assert!(id == "a" && id != "b" && id == *"a" && id != *"b");
    assert!(BTreeSet::from([id.clone()]).contains("a"));
    assert_eq!(format!("{id}{}", id.as_str()), "aa");
}

/// EXT-3: without variants there is nothing to offer; `moreVariantsAvailable` is never false.
#[test]
fn what_is_offered_says_only_what_is_true() {
    assert_eq!(to_settings([], false), None);
    let offered = json!([{"id": "a", "description": "", "status": "stable"}]);
    let expected = Some(json!({"availableVariants": offered, "moreVariantsAvailable": true}));
    assert_eq!(to_settings([&variant("a")], true), expected);
    let expected = Some(json!({"availableVariants": offered}));
    assert_eq!(to_settings([&variant("a")], false), expected);
}

#[test]
fn statuses_are_ordered_and_have_their_words() {
    let all = [Status::Stable, Status::Experimental, Status::Deprecated];
    assert!(all.is_sorted());
    assert_eq!(json!(all), json!(all.map(Status::as_str)));
}
