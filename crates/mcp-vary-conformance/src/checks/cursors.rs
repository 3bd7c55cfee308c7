//! Server variants: cursors belong to the variant that made them.

use serde_json::json;

use crate::answer::Answer;
use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("cursors.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-13/other-variant-is-refused", server!(other_variant_is_refused)),
    ("SV-13/error-of-another-variant", server!(error_of_another_variant)),
    ("SV-13/unreadable-cursor-names-the-variant", server!(unreadable_cursor_names_the_variant)),
];

/// A list of more than one page in a variant, and another variant.
struct FirstPage<'a> {
    client: Client<'a>,
    kind: &'static ListKind,
    cursor: String,
    variant: &'a str,
    other_variant: &'a str,
}

impl FirstPage<'_> {
    /// Reads the second page in the other variant.
    async fn next_in_other_variant(&self) -> Result<Answer, Objection> {
        let params = selecting(json!({"cursor": self.cursor}), Some(self.other_variant));
        self.client.ask(self.kind.list_method, params).await
    }
}

async fn first_page<'a>(probe: &'a Probe<'a>) -> Result<FirstPage<'a>, Objection> {
    let [one, two] = probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    for kind in client.lists() {
        for (variant, other_variant) in [(one, two), (two, one)] {
            let params = selecting(json!({}), Some(variant));
            let page = client.result(kind.list_method, params).await?;
            if let Some(cursor) = text_at(&page, &["nextCursor"]) {
                return Ok(FirstPage {
                    client,
                    kind,
                    cursor: cursor.to_owned(),
                    variant,
                    other_variant,
                });
            }
        }
    }
    not_applicable("every list has one page")
}

async fn other_variant_is_refused(probe: &Probe<'_>) -> Verdict {
    let page = first_page(probe).await?;
    let answer = page.next_in_other_variant().await?;
    answer.into_error("a cursor of another variant").map(|_| ())
}

async fn error_of_another_variant(probe: &Probe<'_>) -> Verdict {
    let page = first_page(probe).await?;
    let answer = page.next_in_other_variant().await?;
    let Ok(error) = answer.into_error("a cursor") else {
        return not_applicable("the cursor was accepted");
    };
    let is_right = error.code == Some(-32602)
        && error.message == "Cursor invalid for requested variant"
        && text_at(&error.data, &["cursorVariant"]) == Some(page.variant)
        && text_at(&error.data, &["requestedVariant"]) == Some(page.other_variant);
    let request = format!(
        "a cursor of {:?} used with {:?}",
        page.variant, page.other_variant
    );
    error.unless(is_right, &request)
}

async fn unreadable_cursor_names_the_variant(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let method = client.any_list()?.list_method;
    let variant = probe.survey().variants().last().copied();
    let params = selecting(json!({"cursor": "mcp-vary-conformance"}), variant);
    let answer = client.ask(method, params).await?;
    let error = answer.into_error("an unreadable cursor")?;
    ensure!(
        text_at(&error.data, &["activeVariant"]) == variant,
        "`activeVariant` is not {:?}: {}",
        variant.unwrap_or_default(),
        error.describe()
    );
    Ok(())
}
