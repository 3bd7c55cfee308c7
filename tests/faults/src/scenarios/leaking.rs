//! What many failures leave behind.

use std::time::Instant;

use serde_json::json;

use crate::case::{Case, come_from, each_calls, holds};
use crate::process::until;

/// How often the server dies and comes back.
const DEATHS: usize = 5;

/// After several deaths the gateway has no more children and open files than before the first.
pub(crate) async fn nothing_is_left(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let house = case.open().await?;
    come_from(
        "one",
        &each_calls(&house.clients, "echo", "first", json!({})).await,
    )?;
    let (children, files) = (house.gateway.children()?, house.gateway.descriptors()?);
    let begun = Instant::now();
    for _ in 0..DEATHS {
        let killed = super::returning::replace(case, &house, |_| {}).await?;
        case.recovers(&house.clients, "one", killed).await?;
    }
    case.rows.clear();
    // Connections of clients close a moment after their answers.
    until(|| {
        let now = (house.gateway.children()?, house.gateway.descriptors()?);
        holds(
            now.0 <= children && now.1 <= files,
            format!(
                "children and files: {children} and {files} before, {} and {} after",
                now.0, now.1
            ),
        )
    })
    .await?;
    let said = format!("{children} children and {files} open files, as before");
    case.note_gateway("after five deaths", said, begun.elapsed());
    let expected = if case.is_stdio() { 2 } else { 0 };
    until(|| {
        let left = case.server.left().len();
        let mine = if case.is_stdio() { left } else { 0 };
        holds(
            mine == expected,
            format!("{left} processes of the server are left"),
        )
    })
    .await
}
