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
    /// Whether its texts are the same each time.
    pub(crate) is_steady: bool,
    /// Its results for clients with tags, if they were looked at.
    pub(crate) shaped: Vec<Value>,
}

impl CalledTool {
    pub(crate) fn params(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }

    /// Whether its results have a structure without any extension.
    pub(crate) fn has_structure(&self) -> bool {
        is_structured(&self.result)
    }

    /// Whether its results have data, which can be written as JSON: it has a structure, by itself or for clients with tags, or
    /// the run names it, and no tag makes a difference.
    pub(crate) fn has_data(&self) -> bool {
        let is_data = self.has_structure() || (self.is_named && !self.depends_on_tags());
        let is_json = |result: &Value| is_structured(result) || has_json_text(result);
        (is_data && !self.answers_few_words()) || self.other_texts().any(is_json)
    }

    /// Whether tags change its texts.
    pub(crate) fn depends_on_tags(&self) -> bool {
        self.is_steady && self.other_texts().next().is_some()
    }

    /// Whether tags change its texts, and make JSON only of texts, as in the reference of content negotiation in Swift.
    pub(crate) fn lacks_structures(&self) -> bool {
        let mut shaped = self.shaped.iter();
        self.depends_on_tags() && !self.has_structure() && !shaped.any(is_structured)
    }

    /// The results for clients with tags that have other content than the one without.
    fn other_texts(&self) -> impl Iterator<Item = &Value> {
        let default = self.result.get("content");
        let shaped = self.shaped.iter();
        shaped.filter(move |result| result.get("content") != default)
    }

    /// Whether its texts have a few words at most, and its structure has no more.
    pub(crate) fn answers_few_words(&self) -> bool {
        let text = texts(&self.result).collect::<Vec<_>>().join(" ");
        let is_repeated = match self.result.get("structuredContent") {
            None | Some(Value::Null) => true,
            Some(Value::Object(members)) => {
                members.len() <= 1 && members.values().all(|value| value.as_str() == Some(&text))
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
            is_steady: true,
            shaped: Vec::new(),
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
        negotiating.shaped = vec![text("{\"weather\": \"sunny\"}")];
        assert!(negotiating.has_data() && negotiating.lacks_structures());
        negotiating.shaped = vec![text("**sunny**")];
        assert!(negotiating.depends_on_tags() && !negotiating.has_data());
    }
}
