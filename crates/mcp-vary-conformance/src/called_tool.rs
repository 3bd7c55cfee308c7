//! A tool that was called, and what is known of its results.

use serde_json::{Value, json};

use crate::json::{array_at, text_at};

/// The most words of an answer that says too little to have another form.
const FEW_WORDS: usize = 3;

/// A tool that the checks may call, whatever it declares.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NamedTool {
    pub(crate) name: String,
    /// Its arguments; without them, they are made from the input schema.
    pub(crate) arguments: Option<Value>,
}

/// A call that a check may repeat, and its result without any extension.
#[derive(Clone, Debug)]
pub(crate) struct CalledTool {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) result: Value,
    /// Whether the run names it.
    pub(crate) is_named: bool,
    /// Whether its results show a user interface: then their texts belong to it, whatever the tags.
    pub(crate) has_interface: bool,
    /// Its results for clients that asked for JSON, if they were looked at.
    pub(crate) as_json: Vec<Value>,
}

impl CalledTool {
    pub(crate) fn params(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }

    /// Whether its results have a structure without any extension.
    pub(crate) fn has_structure(&self) -> bool {
        is_structured(&self.result)
    }

    /// Whether its results have data, which can be written in several forms: it has a structure, by itself or for clients that
    /// ask for JSON, or the run names it.
    pub(crate) fn has_data(&self) -> bool {
        let has_some = !self.answers_few_words() && (self.is_named || self.has_structure());
        let default = self.result.get("content");
        let becomes_json =
            |result: &Value| has_json_text(result) && result.get("content") != default;
        let mut as_json = self.as_json.iter();
        has_some || as_json.any(|result| is_structured(result) || becomes_json(result))
    }

    /// Whether its texts have a few words at most, and its structure has no more.
    pub(crate) fn answers_few_words(&self) -> bool {
        let texts: Vec<&str> = texts(&self.result).collect();
        let text = texts.join(" ");
        let is_repeated = match self.result.get("structuredContent") {
            None | Some(Value::Null) => true,
            Some(Value::Object(members)) => {
                members.len() <= 1 && members.values().all(|it| it.as_str() == Some(&text))
            }
            Some(_) => false,
        };
        let is_short = text.split_whitespace().count() <= FEW_WORDS;
        is_repeated && is_short && !has_json_text(&self.result)
    }
}

/// Whether a result has a structure.
pub(crate) fn is_structured(result: &Value) -> bool {
    let structure = result.get("structuredContent");
    structure.is_some_and(|structure| !structure.is_null())
}

/// The texts of a result.
pub(crate) fn texts(result: &Value) -> impl Iterator<Item = &str> {
    let blocks = array_at(result, &["content"]).iter();
    let texts = blocks.filter(|block| text_at(block, &["type"]) == Some("text"));
    texts.filter_map(|block| text_at(block, &["text"]))
}

/// Whether one of the texts is a JSON object or array with something in it.
pub(crate) fn has_json_text(result: &Value) -> bool {
    texts(result).any(|text| match serde_json::from_str(text) {
        Ok(Value::Object(members)) => !members.is_empty(),
        Ok(Value::Array(elements)) => !elements.is_empty(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(result: Value) -> CalledTool {
        CalledTool {
            name: "a".to_owned(),
            arguments: json!({}),
            output_schema: None,
            result,
            is_named: true,
            has_interface: false,
            as_json: Vec::new(),
        }
    }

    #[test]
    fn a_few_words_are_no_data_and_more_are() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let with = |mut result: Value, structure: Value| {
            result["structuredContent"] = structure;
            result
        };
        for few in [
            text("sunny"),
            json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}),
            with(text("sunny"), json!({"result": "sunny"})),
            with(text("{}"), json!({})),
        ] {
            assert!(!tool(few.clone()).has_data(), "{few}");
        }
        for data in [
            text("It is sunny in Bern."),
            text("{\"city\":\"Bern\"}"),
            with(text("sunny"), json!({"city": "Bern"})),
            with(text("8"), json!([8])),
        ] {
            assert!(tool(data.clone()).has_data(), "{data}");
        }
        let mut negotiating = tool(text("sunny"));
        negotiating.as_json = vec![text("{\"weather\": \"sunny\"}")];
        assert!(negotiating.has_data());
    }
}
