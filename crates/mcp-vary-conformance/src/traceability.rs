//! Which sentences of the documents are checked, and why the others are not.

use std::fmt::Write as _;

use crate::check::Level;
use crate::registry;

/// A document whose sentences are checked.
#[derive(Debug)]
pub struct Document {
    file: &'static str,
    sep: &'static str,
    url: &'static str,
    /// How the sources of its checks begin.
    source: &'static str,
    /// Sentences that no check has, each with the reason.
    excluded: &'static [(&'static str, &'static str)],
}

/// The documents, each with the sentences with MUST or SHOULD that are about the protocol.
pub fn documents() -> impl Iterator<Item = &'static Document> {
    DOCUMENTS.iter()
}

impl Document {
    /// The name of its file, such as `sep-2053.yaml`.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// The mapping of its sentences to checks, or to the reason why there is none, in the form that SEP-2484 requires:
    /// YAML with `sep`, `spec_url` and `requirements`, each with `check` and `text`, or with `text` and `excluded`.
    ///
    /// Decisions (`MUST*`) are no sentences of a document, and are left out.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut yaml = format!(
            "# Written by `cargo run -p mcp-vary-conformance --example pages`; a test keeps it up to date.\n\
             sep: {}\nspec_url: {}\nrequirements:\n",
            self.sep, self.url
        );
        let checks = registry::checks().chain(registry::client_checks());
        let checks = checks.filter(|check| check.source().starts_with(self.source));
        for check in checks.filter(|check| check.level() != Level::Decision) {
            _ = writeln!(yaml, "  - check: {}", check.id());
            _ = writeln!(yaml, "    text: {}", quoted(check.sentence()));
        }
        for (text, reason) in self.excluded {
            _ = writeln!(yaml, "  - text: {}", quoted(text));
            _ = writeln!(yaml, "    excluded: {}", quoted(reason));
        }
        yaml
    }
}

/// `text` as a scalar in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

const IN_CLIENTS: &str = "A matter inside the client; nothing on the wire shows it";
const FORWARDED: &str = "What a client gives its model is not on the wire; TR-1/client-forwards-one-field looks at what it prints";
const OF_CHANGES: &str =
    "Needs a change of the server's lists during a run, which the checks do not cause";
const OF_PRINCIPALS: &str =
    "Only the server knows what a principal may see; SV-20 compares two principals";
const OF_MEANING: &str = "What a text means needs a reader";
const INSIDE: &str = "A matter inside the server; nothing on the wire shows it";
const OF_AUTHORS: &str = "A requirement of authors, SDKs or documentation, not of a message";

#[rustfmt::skip]
const DOCUMENTS: &[Document] = &[
    Document {
        file: "sep-2053.yaml",
        sep: "2053",
        url: "https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2053",
        source: "SEP-2053,",
        excluded: &[
            ("If `removalDate` is present, servers SHOULD continue to support the variant until that date.", "Needs a wait until the date"),
            ("If the server returns a subset while more exist for the principal, it SHOULD set `moreVariantsAvailable: true`.", "A client cannot know of variants that are not returned"),
            ("Any variants returned MUST be visible to the authenticated principal.", OF_PRINCIPALS),
            ("If the principal is not allowed to enumerate variants, the server SHOULD omit `availableVariants` from error data.", OF_PRINCIPALS),
            ("Servers MUST treat the returned `availableVariants` set as stable for the lifetime of a connection/session.", "Capabilities are received once for a session; that selectors work throughout is checked by SV-8"),
            ("If a server needs to change the variant set, it SHOULD require clients to re-initialize (or reconnect), rather than mutating the set mid-session.", OF_CHANGES),
            ("Record the active variant as part of the subscription state", OF_CHANGES),
            ("Only send `notifications/resources/updated` for subscriptions where the resource exists in that variant at the time of update dispatch", OF_CHANGES),
            ("Server SHOULD send `notifications/resources/list_changed` with the affected variant in `params._meta`.", OF_CHANGES),
            ("After list change, the server SHOULD stop sending updates for subscriptions that no longer resolve in that variant.", OF_CHANGES),
            ("Server MUST mint cursors that are cryptographically or structurally bound to the active variant (opaque encoding is fine)", "What follows from it is checked: a cursor of another variant is refused"),
            ("Both servers and clients SHOULD cache selection-related computations", INSIDE),
            ("Servers SHOULD prefer descriptive names over version-shaped identifiers to reduce confusion.", OF_AUTHORS),
            ("Servers MUST enforce authorization independently of variant selection", OF_PRINCIPALS),
            ("Variants that appear to restrict capabilities (e.g., \"read-only\") MUST still have backend authorization checks", INSIDE),
            ("Servers SHOULD cache capability lists per variant and MAY rate-limit rapid variant switching per principal/session.", INSIDE),
            ("Servers SHOULD precompute and cache `tools/list`, `resources/list`, and `prompts/list` responses per variant per principal (or per auth scope) to avoid recomputing on every request.", INSIDE),
            ("description: string; SHOULD include: Target use case or model family; Key characteristics or optimizations; Trade-offs compared to other variants", OF_MEANING),
            ("Clients SHOULD cache list results per variant and refresh on `list_changed` notifications scoped to that variant.", "What a client keeps is not on the wire; that it lists again after a change is checked by SV-16"),
            ("Implementations MAY use these keys, and SHOULD ignore unknown keys.", "SV-4/unknown-hints-are-ignored checks the MUST of the same matter"),
            ("Servers SHOULD reject mismatched cursors with `-32602` and include `cursorVariant` and `requestedVariant` as shown above.", "SV-13/error-of-another-variant checks the MUST of the same matter"),
        ],
    },
    Document {
        file: "sep-2133.yaml",
        sep: "2133",
        url: "https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2133",
        source: "SEP-2133,",
        excluded: &[
            ("Extensions SHOULD have an associated working group or interest group to guide their development and gather community input.", OF_AUTHORS),
            ("Where implemented, extensions MUST be disabled by default and require explicit opt-in.", OF_AUTHORS),
            ("SDK documentation SHOULD list supported extensions.", OF_AUTHORS),
            ("Servers SHOULD check client capabilities before offering extension-specific features", "What follows from it is checked: a client without an extension is served as before (EXT-4, CN-7)"),
            ("Extensions SHOULD be versioned", OF_AUTHORS),
            ("individual extensions may have their own compatibility considerations and MUST consider backwards compatibility", OF_AUTHORS),
            ("Breaking changes MUST use a new identifier", OF_AUTHORS),
            ("Extensions SHOULD document their expected fallback behavior.", OF_AUTHORS),
            ("Extensions MUST implement all related security best practices in the area that they extend.", OF_AUTHORS),
        ],
    },
    Document {
        file: "content-negotiation.yaml",
        sep: "content-negotiation",
        url: "https://github.com/modelcontextprotocol/ext-content-negotiation",
        source: "Content Negotiation SEP,",
        excluded: &[
            ("Servers MUST NOT use feature tags to bypass user consent", "Needs a tool that asks its user; the checks declare no `elicitation`, so that no tool asks"),
            ("Include this tag → MUST honor the associated behavior … `interactive` / `!interactive` … Gate elicitation-style guidance; no \"choose from list\" prompts", OF_MEANING),
            ("Include this tag → MUST honor the associated behavior … `mcp-capable`, `sampling`, `elicitation`, `roots`, `tasks` … Server may …", "What a server may do, and need not"),
            ("Feature tags MUST NOT be used for: Authentication; Authorization; Trust decisions; Rate limiting", "That no list or capability depends on them is checked (CN-16); decisions inside the server are not on the wire"),
            ("MUST Validate Feature Syntax: Servers SHOULD validate that feature tags are well-formed (presence, equality, or negation).", "What follows from it is checked (CN-1): invalid tags have no effect"),
            ("SDKs implementing this extension SHOULD: Disable the extension by default; Document supported extension features; Provide helper functions; Consider packaging the extension separately", OF_AUTHORS),
            ("Breaking changes MUST use a new extension identifier", OF_AUTHORS),
            ("Feature tag semantics SHOULD be documented per-server", OF_AUTHORS),
            ("Clients SHOULD test actual server behavior, not assume standard meaning", IN_CLIENTS),
            ("Servers SHOULD ignore unknown tags and log warnings for unsupported features.", "That they are ignored is checked (CN-1, CN-7); a server's log is not on the wire"),
        ],
    },
    Document {
        file: "tool-result-visibility.yaml",
        sep: "tool-result-visibility",
        url: "https://github.com/modelcontextprotocol/modelcontextprotocol",
        source: "Tool Result Visibility SEP,",
        excluded: &[
            ("When both `content` and `structuredContent` are present, they SHOULD be semantically equivalent (same information, different presentation).", "That a text which is JSON does not contradict is checked by TR-2; what other texts mean needs a reader"),
            ("Clients SHOULD choose the field that best matches their experience", IN_CLIENTS),
            ("Clients SHOULD NOT forward both fields verbatim to the model as separate inputs.", FORWARDED),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_of_these_documents_is_in_one_file() {
        let checks = registry::checks().chain(registry::client_checks());
        for check in checks.filter(|check| check.level() != Level::Decision) {
            let files = documents().filter(|document| check.source().starts_with(document.source));
            // The core specification is another document.
            let expected = usize::from(!check.source().starts_with("MCP "));
            assert_eq!(files.count(), expected, "{}", check.id());
        }
    }

    #[test]
    fn an_apostrophe_does_not_end_a_scalar() {
        assert_eq!(quoted("a's: b"), "'a''s: b'");
    }
}
