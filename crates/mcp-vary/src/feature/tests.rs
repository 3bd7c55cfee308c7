use super::*;

/// CN-3: of several values of a key the first is the one that counts, but for excluded ones.
#[test]
fn the_first_value_of_a_key_counts() {
    let (features, _) = Features::from_tags(["units!=us", "units=si", "units=nautical"]);
    assert_eq!(features.value("units"), Some("si"));
    assert_eq!(features.value("format"), None);
}

/// CN-2: why each entry was ignored.
#[track_caller]
fn ignores(settings: &Value, expected: &str) {
    assert_eq!(Features::read(settings).1.to_string(), expected);
}

#[test]
fn what_is_ignored_says_why() {
    ignores(&json!([]), "`settings`: not an object");
    ignores(&json!({"features": 5}), "`features`: not an array");
    ignores(
        &json!({"features": [5, null, [1], {}, true]}),
        "`5`: not a string; `null`: not a string; `an array`: not a string; \
             `an object`: not a string; `true`: not a string",
    );
    let expected = "`2.0`: not a version 1.x, so the extension counts as undeclared";
    ignores(&json!({"version": "2.0"}), expected);
    let expected = "`version`: not a version, so 1.0 is assumed";
    ignores(&json!({"version": 1}), expected);
}

#[test]
fn what_is_past_the_limit_is_not_even_read() {
    let mut members: Vec<_> = (0..64).map(|n| json!(format!("t{n}"))).collect();
    members.extend([json!("="), json!(7), json!("t0")]);
    ignores(
        &json!({"features": members}),
        "`=`: more than 64 entries; `a number`: more than 64 entries; `t0`: more than 64 entries",
    );
}

/// CN-4, CN-22: each helper answers for its own tag.
#[test]
fn helpers_answer_for_their_tags() {
    type Helper = fn(&Features) -> bool;
    let helpers: [(&str, Helper); 5] = [
        ("agent", Features::agent),
        ("human", Features::human),
        ("interactive", Features::interactive),
        ("sampling", Features::sampling),
        ("elicitation", Features::elicitation),
    ];
    for (tag, _) in helpers {
        let (features, _) = Features::from_tags([tag]);
        for (other, helper) in helpers {
            assert_eq!(helper(&features), tag == other, "{other} of {tag}");
        }
        let (denied, _) = Features::from_tags([tag, &format!("!{tag}")]);
        assert!(helpers.iter().all(|(_, helper)| !helper(&denied)));
        assert!(denied.denies(tag) && !denied.is_empty());
    }
}

/// CN-22: every value of the registry has its word.
#[test]
fn formats_and_verbosities_have_their_words() {
    let expected = ["json", "text", "markdown"];
    assert_eq!(Format::ALL.map(Format::as_str), expected);
    let levels = Verbosity::ALL.map(Verbosity::as_str);
    assert_eq!(levels, ["compact", "standard", "verbose"]);
    for word in levels {
        let (features, _) = Features::from_tags([format!("verbosity={word}").as_str()]);
        assert_eq!(features.verbosity().as_str(), word);
    }
    assert_eq!(Format::from_value("xml"), None);
    assert_eq!(Verbosity::from_value(""), None);
}

/// CN-2: tags that are put back together keep the limit, the order and the one occurrence.
#[test]
fn tags_are_collected_within_the_limit() {
    let tag = |n: usize| format!("t{n}").parse::<FeatureTag>().unwrap();
    let features: Features = (0..70).chain(0..3).map(tag).collect();
    assert_eq!(features.tags().len(), MAX_TAGS);
    assert_eq!(features, features.tags().cloned().collect());
}

/// EXT-7: a client writes the version, which older readers ask for.
#[test]
fn a_declaration_carries_its_version() {
    let (features, _) = Features::from_tags(["agent", "!interactive"]);
    let expected = json!({"version": "1.0", "features": ["agent", "!interactive"]});
    assert_eq!(features.to_settings(), expected);
}

#[track_caller]
fn overrides(declared: &str, others: &str, expected: &str) {
    let read = |tags: &str| Features::from_tags(tags.split(',').filter(|tag| !tag.is_empty())).0;
    let features = read(declared).overridden_by(&read(others));
    let tags: Vec<_> = features.tags().map(FeatureTag::as_str).collect();
    assert_eq!(tags.join(","), expected);
}

/// CN-18: what is said later takes the place of what was said of the same, and of nothing else.
#[test]
fn what_is_said_closer_counts() {
    overrides("agent,format=json", "", "agent,format=json");
    overrides("", "format=text", "format=text");
    let declared = "agent,format=json,format!=text";
    overrides(declared, "format=text", "format=text,agent");
    let others = "format=text,format=markdown";
    overrides("format=json", others, "format=text,format=markdown");
    let declared = "interactive,!sampling";
    overrides(declared, "!interactive,sampling", "!interactive,sampling");
    overrides("agent,!human", "human", "human");
    overrides("human,tasks", "agent", "agent,tasks");
    let declared = "verbosity=compact,x-a=1";
    overrides(declared, "x-a=2", "x-a=2,verbosity=compact");
    let many: Vec<_> = (0..MAX_TAGS).map(|n| format!("x-{n}")).collect();
    let expected = format!("new,{}", many[..MAX_TAGS - 1].join(","));
    overrides(&many.join(","), "new", &expected);
}
