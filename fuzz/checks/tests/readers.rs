//! Whatever the gateway checked of a message is what every other reader of it finds.

use fuzz_checks::gateway::{locations, members};
use proptest::prelude::*;

/// A key that the gateway knows, as it is or in another spelling, or one of no meaning.
fn key() -> impl Strategy<Value = String> {
    let known = "name arguments uri ref argument context cursor task taskId requestState _meta inputResponses type \
         value ttl limit query progressToken io.modelcontextprotocol/server-variant";
    let known: Vec<&str> = known.split(' ').collect();
    let known = prop::sample::select(known);
    let spelled = (known, 0..9_u8).prop_map(|(known, how)| match how {
        0..=2 => known.to_owned(),
        3 => known.to_uppercase(),
        4 => format!("{}{}", known[..1].to_uppercase(), &known[1..]),
        5 => format!("{known}\\u0000"),
        6 => known
            .replacen('s', "\u{17f}", 1)
            .replacen('k', "\u{212a}", 1),
        7 => format!("\\u{:04x}{}", known.as_bytes()[0], &known[1..]),
        _ => known
            .replacen('i', "\u{131}", 1)
            .replacen("st", "\u{fb06}", 1),
    });
    prop_oneof![9 => spelled, 1 => "[a-z]{1,3}"]
}

/// The text of an object whose keys may repeat, on up to two levels.
fn object() -> impl Strategy<Value = String> {
    let written = |members: Vec<(String, String)>| {
        let members = members
            .iter()
            .map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    let plain = prop_oneof![
        Just("1.0".to_owned()),
        Just("\"ref/prompt\"".to_owned()),
        Just("[]".to_owned())
    ];
    let inner = prop::collection::vec((key(), plain.clone()), 0..4).prop_map(written);
    prop::collection::vec((key(), prop_oneof![plain, inner]), 0..6).prop_map(written)
}

/// A URI of one of the servers of `locations`, with odd parts and odd spellings of what variants hide.
fn uri() -> impl Strategy<Value = String> {
    let starts = "file:///srv/docs/ file:///srv/docs/app/ file:///srv/docs/notes/ FILE:///srv/docs/app/ \
         file://localhost/srv/docs/app/ file:/srv/docs/app/ file:// app:/// https://example.org/ \
         HTTPS://Example.ORG/app/ https:";
    let start = prop::sample::select(starts.split(' ').collect::<Vec<_>>());
    let parts = "/ // \\ %2f %2F %5c . .. %2e .%2E %252e secret %73ecret SECRET app notes readme a my%20file .md ? # \
         ; %3f %00 % \u{e9} %c3%a9 %ff srv/docs/";
    let mut parts: Vec<&str> = parts.split(' ').collect();
    parts.extend(["my file", "\t", " "]);
    let part = prop::sample::select(parts);
    let parts = prop::collection::vec(part, 0..7);
    (start, parts).prop_map(|(start, parts)| format!("{start}{}", parts.concat()))
}

/// The property about URIs is about some that are sent, and some that are refused.
#[test]
fn some_spellings_of_resources_are_sent() {
    for (uri, variants) in [
        ("file:///srv/docs/app/readme", 3),
        ("FILE:///srv/docs/app/%72eadme", 3),
        ("file:///srv/docs/app/my file", 3),
        ("file:///srv/docs/app/a%2fb", 3),
        ("https://EXAMPLE.org/app/index", 4),
        ("file:///srv/docs/app/x", 3),
        ("app:///x", 1),
        ("file:///srv/docs/notes/x.md", 3),
        ("file:///srv/docs/secret", 0),
        ("file:///srv/docs/app/../secret", 0),
        ("app:///../secret", 0),
    ] {
        assert_eq!(locations::located(uri), variants, "{uri}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// SV-11, SV-12: what the gateway checked of a URI is what readers see that decode it, resolve its path, or compare
    /// its scheme and host in any case.
    #[test]
    fn what_was_checked_of_a_uri_is_where_every_reader_finds_it(uri in prop_oneof![9 => uri(), 1 => "\\PC{0,30}"]) {
        locations::located(&uri);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// SV-12: what the gateway checked is what readers see that take the first key, the last key, or any case.
    #[test]
    fn what_was_checked_is_what_every_reader_sees(
        method in prop::sample::select(vec![
            "tools/call", "tools/list", "prompts/get", "resources/read", "completion/complete", "tasks/get", "ledger/x",
        ]),
        params in object(),
    ) {
        members(format!("{method}\n{params}").as_bytes());
    }
}
