use std::sync::Mutex;

use super::*;

fn items(all: &[(&str, &str)]) -> Vec<ListedItem> {
    let item = |(name, members): &(&str, &str)| ListedItem {
        id: (*name).into(),
        json: format!(r#"{{"name":"{name}"{members}}}"#).into(),
    };
    all.iter().map(item).collect()
}

/// What is reported of `before` and `after`, a line each.
fn reported(
    changes: &ServerChanges,
    before: &[(&str, &str)],
    after: &[(&str, &str)],
) -> Vec<String> {
    let known = changes.latest().len();
    changes.compare(
        &"git".into(),
        ListKind::Tools,
        &items(before),
        &items(after),
    );
    let mut new = changes.latest();
    new.truncate(new.len() - known);
    let line = |seen: &SeenChange| {
        format!(
            "{} {} {}",
            seen.change.subject.as_str(),
            seen.change.name,
            seen.change.summary()
        )
    };
    new.iter().rev().map(line).collect()
}

#[test]
fn what_a_server_changes_is_reported_item_by_item() {
    let a = r#","description":"A","inputSchema":{"type":"object"}"#;
    for (before, after, expected) in [
        (vec![("a", a)], vec![("a", a), ("b", a)], vec!["tool b new"]),
        (
            vec![("a", a), ("b", a)],
            vec![("b", a)],
            vec!["tool a gone"],
        ),
        (
            vec![("a", a)],
            vec![(
                "a",
                r#","description":"B","inputSchema":{"type":"object","x":1}"#,
            )],
            vec!["tool a description, inputSchema"],
        ),
        (
            vec![("a", a)],
            vec![("a", r#","description":"A"#)],
            vec!["tool a description, inputSchema, name"],
        ),
        (
            vec![("a", "")],
            vec![("a", r#","annotations":{"readOnlyHint":true}"#)],
            vec!["tool a annotations"],
        ),
        (
            vec![("a", ""), ("b", "")],
            vec![("b", ""), ("a", "")],
            vec![],
        ),
        (
            vec![("a", a)],
            vec![(
                "a",
                r#", "inputSchema": {"type": "object"}, "description": "\u0041""#,
            )],
            vec![],
        ),
        (
            vec![("a", r#","_meta":{"at":1}"#)],
            vec![("a", r#","_meta":{"at":2}"#)],
            vec![],
        ),
    ] {
        assert_eq!(
            reported(&ServerChanges::default(), &before, &after),
            expected,
            "{before:?} {after:?}"
        );
    }
}

/// Two connections see one change; a change back and the same change again are changes.
#[test]
fn what_several_connections_see_is_reported_once() {
    let changes = ServerChanges::default();
    let (one, other) = (
        [("a", r#","description":"1""#)],
        [("a", r#","description":"2""#)],
    );
    for (before, after, expected) in [
        (&one, &other, 1),
        (&one, &other, 0),
        (&other, &one, 1),
        (&other, &one, 0),
        (&one, &other, 1),
    ] {
        assert_eq!(reported(&changes, before, after).len(), expected);
    }
}

#[test]
fn instructions_are_compared() {
    let changes = ServerChanges::default();
    let server = "git".into();
    for (before, after, expected) in [
        (None, None, 0),
        (Some("a"), Some("a"), 0),
        (Some("a"), Some("b"), 1),
        (Some("b"), None, 2),
        (None, Some("c"), 3),
    ] {
        changes.compare_instructions(&server, before, after);
        assert_eq!(changes.latest().len(), expected);
    }
    let summaries: Vec<_> = changes
        .latest()
        .iter()
        .map(|it| it.change.summary())
        .collect();
    assert_eq!(summaries, ["new", "gone", "instructions"]);
}

#[test]
fn resources_come_and_go_without_a_report() {
    let changes = ServerChanges::default();
    for kind in [ListKind::Resources, ListKind::Templates] {
        changes.compare(&"git".into(), kind, &[], &items(&[("a", "")]));
    }
    assert_eq!(changes.latest().len(), 0);
}

#[test]
fn the_observer_gets_each_and_memory_is_bounded() {
    static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let changes = ServerChanges::default();
    changes.observe(
        || 7,
        |change| NAMES.lock().unwrap().push(change.name.to_string()),
    );
    let large = format!(r#","description":"{}""#, "x".repeat(300_000));
    let names: Vec<_> = (0..200).map(|at| at.to_string()).collect();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), &*large)).collect();
    changes.compare(&"git".into(), ListKind::Tools, &[], &items(&all));
    assert_eq!(*NAMES.lock().unwrap(), names);
    let kept = changes.latest();
    assert!(
        (1..8).contains(&kept.len()) && kept[0].at == 7,
        "{}",
        kept.len()
    );
    changes.compare(
        &"git".into(),
        ListKind::Tools,
        &items(&all),
        &items(&all[..1]),
    );
    let huge = format!(r#","description":"{}""#, "x".repeat(3 << 20));
    changes.compare(
        &"git".into(),
        ListKind::Tools,
        &[],
        &items(&[("huge", &huge)]),
    );
    let latest = changes.latest();
    assert_eq!(&*latest[0].change.name, "huge");
    assert_eq!(latest.len(), 1);
}
