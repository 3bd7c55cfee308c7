//! Any JSON value of a file.

use mcp_vary::json::Json;

use crate::document::Value;
use crate::reader::{Located, Reader};

/// Reads any JSON value and replaces variables in its texts.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Json<'static>> {
    Some(match &field.node.value {
        Value::Null => Json::Null,
        Value::Scalar(word) => match Json::parse(word) {
            Ok(json) => json.into_owned(),
            // YAML accepts more spellings of numbers than JSON.
            Err(_) => Json::String(word.clone().into()),
        },
        Value::Text(_) => Json::String(reader.word(field)?.into()),
        Value::List(_) => {
            let items = field.items().into_iter();
            let values = items.map(|item| read(reader, &item));
            Json::Array(values.collect::<Option<_>>()?)
        }
        Value::Table(entries) => {
            let members = entries.iter().map(|entry| {
                Some((
                    entry.key.clone().into(),
                    read(reader, &field.member(entry))?,
                ))
            });
            Json::Object(members.collect::<Option<_>>()?)
        }
    })
}
