//! The top-level settings for content negotiation.

use mcp_vary_catalog::selection::client_rule::JsonContent;

use super::settings::PartialFile;
use crate::key_spec::{KeySpec, ValueKind};
use crate::{clients, require};

/// Whether content is negotiated, and how.
pub(super) const SETTINGS: &[KeySpec<PartialFile>] = &[
    KeySpec {
        key: "negotiation",
        about: "whether content is negotiated",
        default: "on",
        takes: ValueKind::Switch(|draft| &mut draft.config.negotiation),
    },
    KeySpec {
        key: "json-content",
        about: "where JSON goes for clients that declare `agent` and `format=json`. `strict`: into \
`structuredContent` alone. `both`: into `content` as text, too, for clients that read only that field",
        default: "strict",
        takes: ValueKind::Other(
            |schema| schema.choice(clients::JSON_CONTENTS),
            |reader, field, draft| {
                let mut content = JsonContent::default();
                reader.choice(field, clients::JSON_CONTENTS, &mut content);
                draft.config.always_both = content == JsonContent::Both;
            },
        ),
    },
    KeySpec {
        key: "lift-json-text",
        about: "whether a text that is exactly one JSON document becomes the structured value for clients that \
declare `format=json`, where the tool has no `outputSchema`",
        default: "on",
        takes: ValueKind::Switch(|draft| &mut draft.config.lift_json_text),
    },
    KeySpec {
        key: "require",
        about: "extensions without which no client is served: `negotiation`, `variants`, or the identifier of \
another one",
        default: "",
        takes: ValueKind::Other(require::shape, |reader, field, draft| {
            draft.required = require::read(reader, field)
        }),
    },
    KeySpec {
        key: "read-result",
        about: "whether clients have the tool `read_result`, which reads what was left out of results, for models that cannot read resources",
        default: "off",
        takes: ValueKind::Switch(|draft| &mut draft.config.read_result),
    },
];
