//! Replaces, adds or removes one member of an object; every other byte stays.
//!
//! Unlike [`crate::Members`], these functions are lenient: a repeated key, or one that is not valid Unicode, does
//! not keep the other members from being forwarded.

use std::borrow::Cow;
use std::ops::Range;

use super::location::span;
use super::skip::{MAX_DEPTH, ObjectReader};
use super::strings::{may_contain, string};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The value of `key` in `object`, as written; the last one if the key repeats.
pub fn get<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    if !may_contain(object, key) {
        return None;
    }
    let members = read(object)?;
    let found = members.iter().rev().find(|member| member.is(key))?;
    Some(found.value)
}

/// `object` with every value of `key` replaced by `value`, or `key` appended; unchanged if it is not an object.
pub fn set<'a>(object: &'a str, key: &str, value: &str) -> Cow<'a, str> {
    let Some(members) = read(object) else {
        return Cow::Borrowed(object);
    };
    let mut out = String::with_capacity(object.len());
    let mut copied = 0;
    for member in members.iter().filter(|member| member.is(key)) {
        let place = span(object, member.value);
        out.push_str(&object[copied..place.start]);
        out.push_str(value);
        copied = place.end;
    }
    // A value is never empty, so nothing copied means that the key was not found.
    if copied == 0
        && let Some(end) = object.rfind('}')
    {
        let comma = if members.is_empty() { "" } else { "," };
        let key = string(key);
        out.push_str(&object[..end]);
        out.push_str(&format!("{comma}{key}:{value}"));
        copied = end;
    }
    out.push_str(&object[copied..]);
    Cow::Owned(out)
}

/// `object` without `key`; unchanged if it has no such key.
pub fn remove<'a>(object: &'a str, key: &str) -> Cow<'a, str> {
    let members = read(object).unwrap_or_default();
    if !members.iter().any(|member| member.is(key)) {
        return Cow::Borrowed(object);
    }
    let texts: Vec<_> = members.iter().map(|member| member.range(object)).collect();
    let mut out = object[..texts[0].start].to_owned();
    let mut is_first = true;
    for (at, text) in texts.iter().enumerate() {
        if members[at].is(key) {
            continue;
        }
        if !is_first {
            // The comma before it, with the white space around.
            out.push_str(&object[texts[at - 1].end..text.start]);
        }
        out.push_str(&object[text.clone()]);
        is_first = false;
    }
    out.push_str(&object[texts[texts.len() - 1].end..]);
    Cow::Owned(out)
}

/// `object` with the key `from` renamed to `to`; if `to` already exists, it stays, and `from` is removed.
pub fn rename<'a>(object: &'a str, from: &str, to: &str) -> Cow<'a, str> {
    let members = read(object).unwrap_or_default();
    if members.iter().any(|member| member.is(to)) {
        return remove(object, from);
    }
    let Some(member) = members.iter().find(|member| member.is(from)) else {
        return Cow::Borrowed(object);
    };
    let key = span(object, member.key);
    let before = &object[..key.start - 1];
    let after = &object[key.end + 1..];
    let renamed = format!("{before}{}{after}", string(to));
    // The last value of a repeated key counts.
    match members.iter().filter(|member| member.is(from)).count() {
        1 => Cow::Owned(renamed),
        _ => {
            let value = get(object, from).unwrap_or("null");
            Cow::Owned(set(&remove(object, from), to, value).into_owned())
        }
    }
}

/// The members of `object`, in order; empty if it is not an object. Keys that are not valid Unicode are skipped.
pub fn members(object: &str) -> impl Iterator<Item = (String, &str)> {
    let members = read(object).unwrap_or_default().into_iter();
    members.filter_map(|member| {
        let key = serde_json::from_str(&format!("\"{}\"", member.key));
        Some((key.ok()?, member.value))
    })
}

/// `text` after one more `step`; borrowed as long as no step has changed it.
pub fn and_then<'a>(text: Cow<'a, str>, step: impl Fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => step(text),
        Cow::Owned(text) => match step(&text) {
            Cow::Borrowed(same) if same.len() == text.len() => Cow::Owned(text),
            changed => Cow::Owned(changed.into_owned()),
        },
    }
}

/// One member: key and value as written, the key without its quotes.
struct Member<'a> {
    key: &'a str,
    value: &'a str,
}

impl Member<'_> {
    /// The range of the member in `object`, from its key's quote to the end of its value.
    fn range(&self, object: &str) -> Range<usize> {
        span(object, self.key).start - 1..span(object, self.value).end
    }

    fn is(&self, key: &str) -> bool {
        let spelled_alike = || {
            let quoted = format!("\"{}\"", self.key);
            serde_json::from_str::<String>(&quoted).is_ok_and(|native| native == key)
        };
        self.key == key || self.key.contains('\\') && spelled_alike()
    }
}

/// The members of `object`, in order; `None` if it is not an object.
fn read(object: &str) -> Option<Vec<Member<'_>>> {
    read_plain(object).or_else(|| read_any(object))
}

/// The members of nearly all objects, in one pass.
fn read_plain(object: &str) -> Option<Vec<Member<'_>>> {
    let mut members = Vec::with_capacity(8);
    let mut reader = ObjectReader::open(object, MAX_DEPTH)?;
    while let Some((key, value)) = reader.member().ok()? {
        members.push(Member { key, value });
    }
    reader.is_at_end().then_some(members)
}

/// The members of any object, even of one that nests too deep.
fn read_any(object: &str) -> Option<Vec<Member<'_>>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<Member<'de>>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                let written = key.get();
                members.push(Member {
                    key: &written[1..written.len() - 1],
                    value: value.get(),
                });
            }
            Ok(members)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(object);
    let members = (&mut reader).deserialize_map(Members).ok()?;
    reader.end().ok().map(|()| members)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str = r#"{ "a" : 1.0 ,"\ud800":[ ], "\u0062":2,"c" :3 }"#;

    #[test]
    fn a_value_is_found_by_what_its_key_says() {
        assert_eq!(get(ODD, "a"), Some("1.0"));
        assert_eq!(get(ODD, "b"), Some("2"));
        assert_eq!(get(ODD, "d"), None);
        assert_eq!(get(r#"{"a":1,"a":2}"#, "a"), Some("2"));
        assert_eq!(get("[1]", "a"), None);
    }

    #[test]
    fn a_key_is_found_however_it_is_escaped() {
        for (object, key) in [
            (r#"{"a\/b":1}"#, "a/b"),
            (r#"{"a\u002fb":1}"#, "a/b"),
            (r#"{"a\nb":1}"#, "a\nb"),
            (r#"{"a\"b":1}"#, "a\"b"),
            (r#"{"a\\b":1}"#, "a\\b"),
        ] {
            assert_eq!(get(object, key), Some("1"), "{object}");
        }
    }

    /// The members beside it are forwarded, too.
    #[test]
    fn a_member_beside_a_value_that_nests_too_deep_is_found() {
        let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
        let object = format!(r#"{{"deep":{deep},"\u0061":1}}"#);
        assert_eq!(get(&object, "a"), Some("1"));
        assert_eq!(get(&object, "deep"), Some(&*deep));
        assert_eq!(remove(&object, "deep"), r#"{"\u0061":1}"#);
    }

    #[test]
    fn steps_follow_each_other_and_copy_only_changes() {
        let cut = |text| and_then(text, |text| remove(text, "a"));
        assert!(matches!(cut(Cow::Borrowed("{}")), Cow::Borrowed("{}")));
        for (text, expected) in [(r#"{"a":1,"b":2}"#, r#"{"b":2}"#), ("{}", "{}")] {
            assert_eq!(cut(Cow::Borrowed(text)), expected);
            assert_eq!(cut(Cow::Owned(text.to_owned())), expected);
        }
        // A step can also return a part of the text.
        let inner = and_then(Cow::Owned("[7]".to_owned()), |text| {
            Cow::Borrowed(&text[1..2])
        });
        assert_eq!(inner, "7");
    }

    #[test]
    fn a_value_is_replaced_where_it_stands_or_added_at_the_end() {
        let set = |object, key| set(object, key, "null").into_owned();
        let expected = r#"{ "a" : 1.0 ,"\ud800":[ ], "\u0062":null,"c" :3 }"#;
        assert_eq!(set(ODD, "b"), expected);
        let expected = r#"{ "a" : 1.0 ,"\ud800":[ ], "\u0062":2,"c" :3 ,"d":null}"#;
        assert_eq!(set(ODD, "d"), expected);
        assert_eq!(set("{ }", "a"), r#"{ "a":null}"#);
        assert_eq!(set(r#"{"a":1,"a":2}"#, "a"), r#"{"a":null,"a":null}"#);
        assert_eq!(set("7", "a"), "7");
    }

    /// In one pass: anything else would keep a server waiting that repeats itself.
    #[test]
    fn a_key_given_many_times_is_replaced_each_time() {
        let object = |value| {
            let members = vec![format!(r#""a":{value}"#); 200_000];
            format!("{{{}}}", members.join(","))
        };
        assert!(set(&object("11"), "a", "[null]") == object("[null]"));
        assert!(remove(&object("11"), "a") == "{}");
    }

    #[test]
    fn a_member_is_renamed_where_it_stands() {
        let expected = r#"{ "z" : 1.0 ,"\ud800":[ ], "\u0062":2,"c" :3 }"#;
        assert_eq!(rename(ODD, "a", "z"), expected);
        let expected = r#"{ "a" : 1.0 ,"\ud800":[ ], "z":2,"c" :3 }"#;
        assert_eq!(rename(ODD, "b", "z"), expected);
        assert_eq!(rename(ODD, "b", "a"), remove(ODD, "b"));
        assert_eq!(rename(ODD, "y", "z"), ODD);
        assert_eq!(rename(r#"{"a":1,"a":2}"#, "a", "z"), r#"{"z":2}"#);
        assert_eq!(rename("[1]", "a", "z"), "[1]");
    }

    #[test]
    fn members_come_in_order_without_keys_that_nobody_can_write() {
        let found: Vec<_> = members(ODD).collect();
        let of = |key: &str, value| (key.to_owned(), value);
        assert_eq!(found, [of("a", "1.0"), of("b", "2"), of("c", "3")]);
        assert_eq!(members("7").count(), 0);
    }

    #[test]
    fn a_member_is_cut_out_with_one_comma() {
        assert_eq!(remove(ODD, "a"), r#"{ "\ud800":[ ], "\u0062":2,"c" :3 }"#);
        assert_eq!(remove(ODD, "b"), r#"{ "a" : 1.0 ,"\ud800":[ ],"c" :3 }"#);
        let expected = r#"{ "a" : 1.0 ,"\ud800":[ ], "\u0062":2 }"#;
        assert_eq!(remove(ODD, "c"), expected);
        assert_eq!(remove(ODD, "d"), ODD);
        assert_eq!(remove(r#"{"a":1}"#, "a"), "{}");
        assert_eq!(remove(r#"{"a":1,"a":2,"b":3}"#, "a"), r#"{"b":3}"#);
        assert_eq!(remove("7", "a"), "7");
    }
}
