//! Server variants: cursors belong to the variant that made them.

use serde_json::{Value, json};

use crate::check::{BOTH, Check, Level, Objection, Scope, Test, Verdict, not_applicable, require};
use crate::client::{Client, KINDS, Kind, selecting};
use crate::json::text_at;
use crate::probe::Probe;
use crate::source;

use super::selection::any_kind;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "SV-13/other-variant-is-refused",
        level: Level::Must,
        source: source::CURSORS,
        sentence: "Server MUST reject a cursor used with a different variant than the one that minted it",
        does: "Reads the second page of a list with another variant than the first: it is an error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(other_variant_is_refused(probe))),
    },
    Check {
        id: "SV-13/error-of-another-variant",
        level: Level::Must,
        source: source::CURSORS,
        sentence: "If a client provides a cursor from a different variant, the server MUST return: … \"code\": -32602, \"message\": \"Cursor invalid for requested variant\", \"data\": { \"cursorVariant\": …, \"requestedVariant\": … }",
        does: "Reads the second page of a list with another variant than the first: if it is an error, it is this one.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(error_of_another_variant(probe))),
    },
    Check {
        id: "SV-13/unreadable-cursor-names-the-variant",
        level: Level::Should,
        source: source::ERRORS,
        sentence: "Servers SHOULD include `activeVariant` in error `data` for variant-scoped resolution failures (unknown tool/prompt/resource, invalid cursor, invalid subscription context).",
        does: "Reads a list with a cursor that the server never made, in a selected variant: it is an error with `activeVariant`.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(unreadable_cursor_names_the_variant(probe))),
    },
];

/// A list of more than one page in a variant, and another variant.
struct Page<'a> {
    client: Client<'a>,
    kind: &'static Kind,
    cursor: String,
    variant: &'a str,
    other: &'a str,
}

impl Page<'_> {
    fn next_in(&self, variant: &str) -> Value {
        selecting(json!({"cursor": self.cursor}), Some(variant))
    }
}

async fn first_page<'a>(probe: &'a Probe<'a>) -> Result<Page<'a>, Objection> {
    let [one, two] = probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    for kind in KINDS.into_iter().filter(|kind| client.has(kind)) {
        for (variant, other) in [(one, two), (two, one)] {
            let page = client
                .result(kind.method, selecting(json!({}), Some(variant)))
                .await?;
            if let Some(cursor) = text_at(&page, &["nextCursor"]) {
                let cursor = cursor.to_owned();
                return Ok(Page {
                    client,
                    kind,
                    cursor,
                    variant,
                    other,
                });
            }
        }
    }
    not_applicable("every list has one page")
}

async fn other_variant_is_refused(probe: &Probe<'_>) -> Verdict {
    let page = first_page(probe).await?;
    let answer = page
        .client
        .ask(page.kind.method, page.next_in(page.other))
        .await?;
    answer.into_error("a cursor of another variant").map(|_| ())
}

async fn error_of_another_variant(probe: &Probe<'_>) -> Verdict {
    let page = first_page(probe).await?;
    let answer = page
        .client
        .ask(page.kind.method, page.next_in(page.other))
        .await?;
    let Ok(error) = answer.into_error("a cursor") else {
        return not_applicable("the cursor was accepted");
    };
    let is_right = error.code == Some(-32602)
        && error.message == "Cursor invalid for requested variant"
        && text_at(&error.data, &["cursorVariant"]) == Some(page.variant)
        && text_at(&error.data, &["requestedVariant"]) == Some(page.other);
    require(is_right, || {
        format!(
            "a cursor of {:?} used with {:?} was answered with {}",
            page.variant,
            page.other,
            error.describe()
        )
    })
}

async fn unreadable_cursor_names_the_variant(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let kind = any_kind(&client)?;
    let variant = probe.survey().variants().last().copied();
    let params = selecting(json!({"cursor": "mcp-vary-conformance"}), variant);
    let error = client
        .ask(kind.method, params)
        .await?
        .into_error("an unreadable cursor")?;
    require(text_at(&error.data, &["activeVariant"]) == variant, || {
        let variant = variant.unwrap_or_default();
        format!("`activeVariant` is not {variant:?}: {}", error.describe())
    })
}
