use super::*;

#[track_caller]
fn stands_for(template: &str, uri: &str, expected: bool) {
    let matches = UriTemplate::new(template).matches(uri);
    assert_eq!(matches, expected, "{template} {uri}");
}

#[test]
fn a_template_stands_for_what_it_can_produce() {
    stands_for("place:{name}", "place:bern", true);
    stands_for("place:{name}", "city:bern", false);
    stands_for("repo://{owner}/{name}/issues", "repo://a/b/issues", true);
    stands_for("repo://{owner}/{name}/issues", "repo://a/issues", false);
    stands_for("file://{+path}", "file:///a/b", true);
    stands_for("x:{a}{?b,c}", "x:1?b=2", true);
    stands_for("plain:uri", "plain:uri", true);
    stands_for("plain:uri", "plain:uri2", false);
    stands_for("open:{brace", "open:{brace", true);
    stands_for("{any}", "", true);
}

#[test]
fn literals_do_not_overlap() {
    stands_for("a{x}aa", "aa", false);
    stands_for("a{x}aa", "aaa", true);
    stands_for("{x}-{y}-{z}", "1-2", false);
}

#[test]
fn a_long_uri_is_nobodys() {
    let uri = |length: usize| format!("a:{}", "x".repeat(length - 2));
    stands_for("a:{x}", &uri(MAX_URI), true);
    stands_for("a:{x}", &uri(MAX_URI + 1), false);
}

/// Both ways; `-` is what does not exist.
#[track_caller]
fn are(moves: &[(&str, &str)], pairs: &[(&str, &str)]) {
    let map = UriMap::new(moves.iter().copied());
    for (own, shown) in pairs {
        if *own != "-" {
            let found = map.to_view(own);
            assert_eq!(
                found.as_deref().unwrap_or("-"),
                *shown,
                "of the server: {own}"
            );
        }
        if *shown != "-" {
            let found = map.to_upstream(shown);
            assert_eq!(
                found.as_deref().unwrap_or("-"),
                *own,
                "of the view: {shown}"
            );
        }
    }
}

/// SV-11, SV-12: what a view calls otherwise exists only so.
#[test]
fn what_moved_is_found_where_it_is_and_nowhere_else() {
    are(&[], &[("a:1", "a:1")]);
    are(
        &[("doc:a", "guide:a")],
        &[("doc:a", "guide:a"), ("-", "doc:a"), ("doc:b", "doc:b")],
    );
    are(
        &[("doc:{name}", "ours:{name}/text")],
        &[
            ("doc:{name}", "ours:{name}/text"),
            ("doc:a", "ours:a/text"),
            ("-", "doc:a"),
            ("-", "doc:{name}"),
            ("ours:a", "ours:a"),
            // What the server calls so has no place: the view's is another.
            ("ours:a/text", "-"),
        ],
    );
}

/// SV-11: two may change places.
#[test]
fn two_that_change_places_do_not_become_one() {
    are(
        &[("a:1", "a:2"), ("a:2", "a:1")],
        &[("a:1", "a:2"), ("a:2", "a:1")],
    );
    are(
        &[("a:{x}", "b:{x}"), ("b:{x}", "a:{x}")],
        &[("a:1", "b:1"), ("b:1", "a:1")],
    );
}

/// SV-11: what has no place in a view says why.
#[test]
fn what_is_in_the_way_is_known() {
    #[track_caller]
    fn is(moves: &[(&str, &str)], own: &str, obstacle: Option<(&str, &str)>) {
        let map = UriMap::new(moves.iter().copied());
        let found = map.conflict(own);
        assert_eq!(
            found.as_ref().map(|(by, uri)| (*by, &**uri)),
            obstacle,
            "{own}"
        );
    }
    let same = [("a:1", "c:0"), ("a:2", "c:0")];
    is(&same, "a:1", None);
    is(&same, "a:2", Some(("a:2", "c:0")));
    is(&same, "c:0", Some(("a:1", "c:0")));
    let unclear = [("r:{o}/{n}", "q:{o}-{n}")];
    is(&unclear, "r:a-b/c", Some(("r:{o}/{n}", "q:a-b-c")));
    is(&unclear, "q:a-b", Some(("r:{o}/{n}", "q:a-b")));
    is(&unclear, "r:a/b", None);
}

#[test]
fn of_two_that_move_to_one_place_the_first_is_there() {
    are(
        &[("a:1", "c:0"), ("a:2", "c:0")],
        &[("a:1", "c:0"), ("a:2", "-"), ("c:0", "-")],
    );
}

#[test]
fn a_template_takes_along_what_it_stands_for() {
    let moves = [
        ("file:///srv/{+path}", "srv:/{+path}"),
        ("file:///srv/app/{+path}", "app:/{+path}"),
        ("file:///srv/app/LICENSE", "license:"),
    ];
    are(
        &moves,
        &[
            ("file:///srv/log/1", "srv:/log/1"),
            ("file:///srv/app/a/b", "app:/a/b"),
            ("file:///srv/app/LICENSE", "license:"),
            ("-", "srv:/app/a"),
            ("-", "app:/LICENSE"),
            ("file:///srv/log/{day}", "srv:/log/{day}"),
            ("file:///etc/passwd", "file:///etc/passwd"),
        ],
    );
}

/// What could be meant in two ways would be read as another resource.
#[test]
fn what_could_be_meant_in_two_ways_is_not_there() {
    let moves = [("r:{owner}/{name}", "q:{owner}-{name}")];
    are(
        &moves,
        &[("r:a/b", "q:a-b"), ("r:a-b/c", "-"), ("r:a/b-c", "q:a-b-c")],
    );
    // The braces of an expression are not torn apart.
    are(&moves, &[("r:{/n}", "r:{/n}")]);
}

#[test]
fn what_a_view_cannot_say_is_refused_and_left_out() {
    #[track_caller]
    fn refused(own: &str, shown: &str, why: &str) {
        assert_eq!(UriMap::check(own, shown).unwrap_err().to_string(), why);
        assert!(UriMap::new([(own, shown)]).is_empty());
    }
    let no_uri = "is not a URI; begin with a scheme, such as `docs:`, and leave out white space";
    for shown in [
        "", "guide", "/a", "1a:b", "a b:c", "a: b", "a:\u{7}", "{x}:a", "{+any}/x", "ä:b",
    ] {
        refused("doc:a", shown, no_uri);
    }
    refused(
        "doc:{name}",
        "a:b",
        "has nothing in braces instead of `{name}` of the server's template; \
             write the same expressions in the same order, and change only the text around them",
    );
    refused(
        "doc:{a}/{+b}",
        "doc:{+b}/{a}",
        "has `{+b}`, `{a}` instead of `{a}`, `{+b}` of the server's template; \
             write the same expressions in the same order, and change only the text around them",
    );
    refused(
        "doc:a",
        "doc:{a}",
        "has `{a}` instead of nothing in braces of the server's template; \
             write no braces: the server lists a URI, not a template",
    );
    refused(
        "doc:{a}/{b}",
        "doc:{a}{b}",
        "has nothing between `{a}` and `{b}`, so it is ambiguous where one ends; put something between them",
    );
    for (own, shown) in [
        ("doc:{a}{?b}", "d:{a}{?b}"),
        ("{+any}", "x:{+any}"),
        ("a", "x-1.b+c:"),
    ] {
        assert_eq!(UriMap::check(own, shown), Ok(()));
    }
}
