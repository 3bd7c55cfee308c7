use super::*;

fn token(issuer: &str, subject: &str) -> Principal {
    Principal::token(issuer, subject, Claims::default()).unwrap()
}

fn all_kinds(name: &str) -> Vec<Principal> {
    let claims = Claims::default;
    vec![
        token(name, name),
        Principal::key(name, claims()).unwrap(),
        Principal::certificate(name, claims()).unwrap(),
        Principal::stdio(name, claims()).unwrap(),
        Principal::anonymous(),
    ]
}

/// The value is in sealed texts of running sessions, so it must not change between versions.
#[test]
fn the_id_is_the_start_of_the_digest_of_kind_issuer_and_subject() {
    let digest = Sha256::digest(b"token/https://idp.example\0ann");
    let id = token("https://idp.example", "ann").id();
    assert_eq!(id.as_bytes()[..], digest[..16]);
    assert_eq!(id.to_string(), URL_SAFE_NO_PAD.encode(&digest[..16]));
    let digest = Sha256::digest(b"key/\0ci");
    let id = Principal::key("ci", Claims::default()).unwrap().id();
    assert_eq!(id.as_bytes()[..], digest[..16]);
}

#[test]
fn principals_differ_by_kind_issuer_and_subject() {
    let mut ids: Vec<_> = all_kinds("a").iter().map(Principal::id).collect();
    ids.extend([token("a", "ab").id(), token("aa", "b").id()]);
    ids.extend([token("a", "b").id(), token("b", "a").id()]);
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn the_id_does_not_depend_on_claims_or_on_the_connection() {
    let claims = Claims::from_json(r#"{"groups":["sre"]}"#).unwrap();
    let other = Principal::token("i", "s", claims).unwrap();
    let other = other.with_certificate("CN=laptop").unwrap();
    assert_eq!(other.id(), token("i", "s").id());
    assert_eq!(other.certificate_subject(), Some("CN=laptop"));
    assert_eq!(token("i", "s").certificate_subject(), None);
}

#[test]
fn each_kind_shows_what_identifies_it_and_nothing_else() {
    for principal in all_kinds("n") {
        let kind = principal.kind();
        let is = |wanted| (kind == wanted).then_some("n");
        assert_eq!(principal.issuer(), is(PrincipalKind::Token));
        assert_eq!(principal.subject(), is(PrincipalKind::Token));
        assert_eq!(principal.key_name(), is(PrincipalKind::Key));
        assert_eq!(principal.stdio_name(), is(PrincipalKind::Stdio));
        let has_name = !matches!(kind, PrincipalKind::Token | PrincipalKind::Anonymous);
        assert_eq!(principal.name(), has_name.then_some("n"));
        let certificate = is(PrincipalKind::Certificate);
        assert_eq!(principal.certificate_subject(), certificate);
        assert_eq!(principal.is_anonymous(), kind == PrincipalKind::Anonymous);
    }
}

#[test]
fn neither_debug_nor_display_shows_subject_or_claims() {
    let claims = r#"{"email":"confidential@example.com","groups":["confidential"]}"#;
    for name in ["confidential"] {
        let mut all = all_kinds(name);
        let claims = Claims::from_json(claims).unwrap();
        all.push(Principal::key(name, claims).unwrap());
        all.push(Principal::anonymous().with_certificate(name).unwrap());
        for principal in all {
            let shown = format!("{principal:?} {principal} {principal:#?}");
            assert!(!shown.contains(name), "{shown}");
            assert!(shown.contains(principal.id_text()), "{shown}");
        }
    }
}

#[test]
fn what_cannot_be_an_identity_is_refused_without_showing_it() {
    let long = "s".repeat(MAX_IDENTITY);
    assert!(Principal::token(&long, &long, Claims::default()).is_ok());
    let longer = "s".repeat(MAX_IDENTITY + 1);
    let megabyte = "s".repeat(1 << 20);
    for (text, why) in [
        ("", "is empty"),
        (&longer, "has more than 1024 bytes"),
        (&megabyte, "has more than 1024 bytes"),
        ("a\0b", "contains a control character"),
        ("a\nb", "contains a control character"),
        ("a\u{85}b", "contains a control character"),
    ] {
        let none = Claims::default;
        let refused = [
            (Principal::token(text, "s", none()), "the issuer"),
            (Principal::token("i", text, none()), "the subject"),
            (Principal::key(text, none()), "the name of the key"),
            (
                Principal::certificate(text, none()),
                "the subject of the certificate",
            ),
            (Principal::stdio(text, none()), "the name of the principal"),
            (
                Principal::anonymous().with_certificate(text),
                "the subject of the certificate",
            ),
        ];
        for (principal, what) in refused {
            let error = principal.unwrap_err().to_string();
            assert_eq!(error, format!("{what} {why}"));
        }
    }
}

#[test]
fn only_the_spelling_that_is_printed_is_an_id() {
    let id = token("i", "s").id();
    let text = id.to_string();
    assert_eq!(text.parse(), Ok(id));
    let longer = format!("{text}A");
    let padded = format!("{text}==");
    let spaced = format!(" {text}");
    for wrong in ["", "A", &text[..21], &longer, &padded, &spaced] {
        assert_eq!(wrong.parse::<PrincipalId>(), Err(PrincipalIdError));
    }
}
