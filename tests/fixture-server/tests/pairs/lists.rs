//! Lists, read page by page.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::pair::{LISTS, Pair};

pub(crate) async fn tools(pair: Arc<Pair>) -> String {
    list(&pair, "tools").await
}

pub(crate) async fn prompts(pair: Arc<Pair>) -> String {
    list(&pair, "prompts").await
}

pub(crate) async fn resources(pair: Arc<Pair>) -> String {
    list(&pair, "resources").await
}

pub(crate) async fn templates(pair: Arc<Pair>) -> String {
    list(&pair, "resourceTemplates").await
}

async fn list(pair: &Pair, key: &'static str) -> String {
    let method = LISTS.iter().find(|(_, known)| *known == key);
    let (method, _) = method.expect("it is one of the lists");
    let mut client = pair.client().await;
    let (mut items, mut pages, mut cursor) = (Vec::new(), 0, Value::Null);
    loop {
        let params = match &cursor {
            Value::Null => json!({}),
            cursor => json!({"cursor": cursor}),
        };
        let mut answer = client.ask(method, params).await.answer;
        let Value::Array(page) = answer["result"][key].take() else {
            return answer.to_string();
        };
        items.extend(page);
        pages += 1;
        cursor = answer["result"]["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    let expected = pair.listed.list(key).as_array();
    let expected = expected.expect("the server lists");
    let differ = items
        .iter()
        .zip(expected)
        .find(|(item, expected)| item != expected);
    match differ {
        Some((item, expected)) => format!("{item} instead of {expected}"),
        None if items.len() != expected.len() => format!("{} of {}", items.len(), expected.len()),
        None if pages > 1 => "all as they are listed, page by page".to_owned(),
        None => "all as they are listed".to_owned(),
    }
}

/// A cursor that is nobody's.
pub(crate) async fn cursor(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let params = json!({"cursor": "from-3"});
    let answer = client.ask("tools/list", params).await.answer;
    answer["error"]["code"].to_string()
}
