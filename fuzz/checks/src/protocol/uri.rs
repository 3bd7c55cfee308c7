//! URI templates, patterns, and the map between a server's URIs and a view's.

use mcp_vary_testkit::lenient_path::lenient_path;
use mcp_vary_view::{
    Candidate, Pattern, Rule, Selection, UriMap, UriTemplate, check_uri, normal_uri, uri_identity,
};

/// A URI has one normal form; what is not refused is what a reader finds that resolves paths; and a view's URIs lead to its
/// servers' and back. The first three lines are a pattern and the templates of server and view, the rest is the URI.
pub fn uri(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = text.splitn(4, '\n');
    let mut part = || parts.next().unwrap_or_default();
    let (pattern, native, shown, uri) = (part(), part(), part(), part());
    let normal = normal_uri(uri);
    assert_eq!(normal_uri(&normal), normal);
    let identity = uri_identity(uri);
    assert_eq!(uri_identity(&identity), identity);
    assert_eq!(uri_identity(&normal), identity);
    assert!(normal.len() <= uri.len() && identity.len() <= uri.len());
    match check_uri(uri) {
        Ok(()) => {
            assert_eq!(normal, uri);
            check_path(uri);
        }
        Err(fault) => {
            let fix = fault.fix();
            let form = fix.strip_prefix("write `");
            if let Some(form) = form.and_then(|form| form.strip_suffix('`')) {
                assert_eq!(check_uri(form), Ok(()));
            }
        }
    }
    check_pattern(pattern, uri);
    check_map(native, shown, uri);
}

/// A selection by paths means what a reader finds that resolves them.
fn check_path(uri: &str) {
    let Some(path) = uri.strip_prefix("f:/").filter(|it| !it.starts_with('/')) else {
        return;
    };
    let path = lenient_path(path);
    let rule = |pattern: &str| Rule::by_name(pattern.parse().expect("a pattern"));
    let item = candidate(uri);
    let all = Selection {
        exclude: vec![rule("f:/secret"), rule("f:/secret/*")],
        ..Selection::default()
    };
    if all.selects_unlisted_resource(item) {
        assert!(path != "secret" && !path.starts_with("secret/"), "{path}");
    }
    let some = Selection {
        include: vec![rule("f:/a/*"), rule("f:/*.md")],
        ..Selection::default()
    };
    if some.selects_unlisted_resource(item) {
        let is_below = path == "a" || path.starts_with("a/");
        assert!(is_below || path.ends_with(".md"), "{path}");
    }
}

fn candidate(uri: &str) -> Candidate<'_> {
    Candidate {
        name: uri,
        upstream_name: uri,
        server: "s",
        hints: None,
    }
}

/// What a pattern matches as it is written, it excludes in every spelling, and a listed URI is selected by it.
fn check_pattern(pattern: &str, uri: &str) {
    let Ok(pattern) = pattern.parse::<Pattern>() else {
        return;
    };
    let is_meant = pattern.matches(uri);
    let rules = vec![Rule::by_name(pattern)];
    let excluding = Selection {
        exclude: rules.clone(),
        ..Selection::default()
    };
    let including = Selection {
        include: rules,
        ..Selection::default()
    };
    let item = candidate(uri);
    if is_meant {
        assert!(!excluding.selects_unlisted_resource(item));
        assert!(!excluding.selects_resource(item));
        assert!(including.selects_resource(item));
    }
    let _ = including.selects_unlisted_resource(item);
}

/// What a view calls otherwise is found where it is, and what its template stands for is that in both.
fn check_map(native: &str, shown: &str, uri: &str) {
    let template = UriTemplate::new(native);
    assert!(!template.matches(uri) || template.matches_with_slashes(uri));
    let _ = template.check(uri);
    let map = UriMap::new([(native, shown)]);
    if let Some(native) = map.to_upstream(uri) {
        let back = map.to_view(&native);
        assert_eq!(back.as_deref().map(uri_identity), Some(uri_identity(uri)));
    }
    if let Some(shown) = map.to_view(uri) {
        let back = map.to_upstream(&shown);
        assert_eq!(back.as_deref().map(uri_identity), Some(uri_identity(uri)));
    }
}
