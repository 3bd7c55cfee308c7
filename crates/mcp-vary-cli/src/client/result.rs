//! Shows a tool's result to a person.

use mcp_vary::json::{Json, Members, elements};
use mcp_vary_view::{model_block, model_result};

use crate::print::indent::indented;
use crate::print::sanitize;
use crate::print::side_by_side::Block;
use crate::tokens;

use super::{Answer, sentence};

/// A client's result under `title`, with its cost in tokens.
pub(crate) fn block(title: &str, answer: &Answer) -> Block {
    let (note, body) = match answer {
        Ok(result) => {
            read(result).unwrap_or_else(|| ("not the result of a tool".to_owned(), result.clone()))
        }
        Err(error) => ("error".to_owned(), sentence(error)),
    };
    Block {
        title: sanitize(title),
        note,
        body: sanitize(&body),
    }
}

/// The tokens of the field of a result that a client forwards to its model.
pub(crate) fn read_tokens(result: &str) -> Option<usize> {
    let texts = model_result(result)?;
    Some(texts.iter().map(|text| tokens::count(text)).sum())
}

/// Whether a result reports that the tool failed.
pub(crate) fn is_error(result: &str) -> bool {
    Members::parse(result).is_ok_and(|members| members.get("isError") == Some("true"))
}

fn read(result: &str) -> Option<(String, String)> {
    let members = Members::parse(result).ok()?;
    let mut body = String::new();
    if is_error(result) {
        body.push_str("isError: true\n");
    }
    let mut note = Vec::new();
    if let Some(content) = members.get("content") {
        let blocks: Vec<String> = elements(content)
            .ok()?
            .iter()
            .map(|block| model_block(block))
            .collect();
        let cost: usize = blocks.iter().map(|block| tokens::count(block)).sum();
        note.push(format!("content {cost} tokens"));
        match blocks.as_slice() {
            [] => body.push_str("content: []\n"),
            blocks => body.push_str(&format!("content:\n{}\n", blocks.join("\n\n"))),
        }
    }
    if let Some(structured) = members.get("structuredContent") {
        let value = Json::parse(structured).ok()?;
        note.push(format!(
            "structuredContent {} tokens",
            tokens::count(&value.to_json())
        ));
        if !body.is_empty() {
            body.push('\n');
        }
        body.push_str(&format!("structuredContent:\n{}\n", indented(&value)));
    }
    Some((note.join("\n"), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(result: &str, note: &str, body: &str) {
        let block = block("x", &Ok(result.to_owned()));
        assert_eq!((block.note.as_str(), block.body.as_str()), (note, body));
    }

    #[test]
    fn a_result_is_shown_field_by_field() {
        reads(
            r#"{"content":[],"structuredContent":{"a":1}}"#,
            "content 0 tokens\nstructuredContent 5 tokens",
            "content: []\n\nstructuredContent:\n{\n  \"a\": 1\n}\n",
        );
        reads(
            r#"{"content":[{"type":"text","text":"hello\nworld"},{"type":"image","data":"QUJD"}],"isError":true}"#,
            "content 16 tokens",
            "isError: true\ncontent:\nhello\nworld\n\n{\"type\":\"image\",\"data\":\"4 characters of base64\"}\n",
        );
        reads("{}", "", "");
    }

    #[test]
    fn an_error_is_shown_as_a_sentence() {
        let block = block(
            "x",
            &Err(r#"{"code":-32602,"message":"Unknown tool"}"#.to_owned()),
        );
        assert_eq!(
            (block.note.as_str(), block.body.as_str()),
            ("error", "Unknown tool (-32602)")
        );
    }
}
