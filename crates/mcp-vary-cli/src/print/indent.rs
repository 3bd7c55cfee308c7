//! Formats JSON on several lines.

use mcp_vary::json::{Json, write_string};

/// `value` on several lines, with two spaces per level and unchanged spelling of numbers.
pub(crate) fn indented(value: &Json<'_>) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

fn write(out: &mut String, value: &Json<'_>, level: usize) {
    match value {
        Json::Array(items) if !items.is_empty() => {
            list(out, ['[', ']'], level, items, |out, item| {
                write(out, item, level + 1)
            });
        }
        Json::Object(members) if !members.is_empty() => {
            list(out, ['{', '}'], level, members, |out, (key, member)| {
                write_string(out, key);
                out.push_str(": ");
                write(out, member, level + 1);
            });
        }
        flat => flat.write(out),
    }
}

fn list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    level: usize,
    items: &[T],
    one: impl Fn(&mut String, &T),
) {
    out.push(open);
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(level + 1));
        one(out, item);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(level));
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_its_numbers_stay_as_they_are() {
        let text = r#"{"b":[1.10,{"a":9007199254740993}],"a":[],"c":{}}"#;
        let expected = r#"{
  "b": [
    1.10,
    {
      "a": 9007199254740993
    }
  ],
  "a": [],
  "c": {}
}"#;
        assert_eq!(indented(&Json::parse(text).unwrap()), expected);
    }
}
