//! What real servers answered, and sets of rows.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        [$(($name, include_str!(concat!("../../mcp-vary/tests/fixtures/", $folder, "/", $name, ".json")))),*]
    };
}

/// The recorded calls of each server.
pub const CALLS: [(&str, &str); 7] = files!(
    "tool-results": "budget" "everything" "filesystem" "git" "memory" "sqlite" "time"
);

/// The sets of rows.
pub const ROWS: [(&str, &str); 5] =
    files!("rows": "connections" "issues" "logs" "staff" "stations");

/// A set of rows.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The value that a tool returns.
    pub value: Value,
    /// The member of the value with the rows.
    pub list: String,
    /// The member of each row that identifies it.
    pub key: String,
}

impl Rows {
    /// The set that one of [`ROWS`] has.
    pub fn of(text: &str) -> Self {
        let mut set: Value = serde_json::from_str(text).unwrap();
        let text = |key: &str| set[key].as_str().unwrap().to_owned();
        let (list, key) = (text("rows"), text("key"));
        let value = set["structuredContent"].take();
        Self { value, list, key }
    }

    /// The value with its first `count` rows.
    pub fn first(&self, count: usize) -> Value {
        let mut value = self.value.clone();
        value[&self.list].as_array_mut().unwrap().truncate(count);
        value
    }
}

/// The result of every recorded call, as the server wrote it.
pub fn results() -> Vec<String> {
    let member = |object: &RawValue, key: &str| -> Box<RawValue> {
        let mut members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(object.get()).unwrap();
        members.remove(key).unwrap()
    };
    let calls = CALLS.iter().flat_map(|(_, calls)| {
        let calls: Vec<Box<RawValue>> = serde_json::from_str(calls).unwrap();
        calls
    });
    let results = calls.map(|call| member(&member(&call, "reply"), "result"));
    results.map(|result| result.get().to_owned()).collect()
}
