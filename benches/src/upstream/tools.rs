//! The tools of the upstream server.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The tool that is called.
pub(crate) const ECHO: &str = "echo";

/// The name of the tool at `index`; the first is [`ECHO`].
pub(crate) fn name(index: usize) -> String {
    match index {
        0 => ECHO.to_owned(),
        _ => format!("record_{index:03}"),
    }
}

/// Whether the tool at `index` declares `readOnlyHint`.
pub(crate) const fn only_reads(index: usize) -> bool {
    index.is_multiple_of(2)
}

/// The approximate size of a row in bytes.
pub(crate) const ROW: usize = 50;

/// A row of data.
pub(crate) fn row(index: usize) -> Value {
    json!({"key": format!("row {index:04}"), "value": index * 37 % 1000, "is": "ordinary"})
}

/// `count` tools of realistic size, as a JSON array.
pub(crate) fn list(count: usize) -> String {
    let mut list = "[".to_owned();
    for index in 0..count {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(list, "{comma}{}", tool(index));
    }
    list.push(']');
    list
}

fn tool(index: usize) -> String {
    let name = name(index);
    let reads = only_reads(index);
    format!(
        r#"{{"name":"{name}","title":"The tool {name}","description":"Says again what it was told. The answer can be made large, late or long-winded, so that each of these can be measured alone.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What is said again"}},"size":{{"type":"integer","minimum":0,"description":"How many bytes more the answer has"}},"delay":{{"type":"integer","minimum":0,"description":"After how many milliseconds it comes"}},"steps":{{"type":"integer","minimum":0,"description":"How often progress is told before"}}}},"required":["text"]}},"annotations":{{"readOnlyHint":{reads}}}}}"#
    )
}
