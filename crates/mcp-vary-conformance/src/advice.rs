//! What the author of a server can do about an objection.

/// The advice for each requirement, in the order of the checks.
#[rustfmt::skip]
const ADVICE: &[(&str, &str)] = &[
    ("EXT-1", "Name the extension `prefix/name` with a domain of yours as the prefix, such as `com.example/name`."),
    ("EXT-2", "Declare extensions as an object: `\"extensions\": {\"com.example/name\": {}}`. Settings are objects, `{}` if there are none."),
    ("EXT-4", "Serve clients that declare no extension as before, or refuse them with an error that names what is missing."),
    ("EXT-5", "Read settings member by member, ignore what has the wrong type, and never fail on what the client declares."),
    ("CN-17", "Declare content negotiation as `{}` or `{\"version\": \"1.0\"}`. Only clients send `features`."),
    ("CN-7", "Change a result only if the client declared a tag that you know. Remember tags for the session (2025-11-25) or the request (2026-07-28), not for the process."),
    ("CN-1", "Parse each tag on its own: `tag`, `!tag`, `key=value`, `key!=value`. Ignore any other, and use those beside it."),
    ("CN-2", "Ignore `features` that are not an array, members that are not strings, and tags over your limit. Do not refuse the client."),
    ("CN-16", "Build lists and capabilities without a look at tags. Tags choose how a result is written, never what exists."),
    ("CN-18", "Keep the tags of `initialize` until the session ends."),
    ("EXT-7", "If the client's version has another major number than yours, treat it as a client without the extension."),
    ("CN-9", "For `agent` and `format=json`, put the value itself into `structuredContent` and leave texts out of `content`."),
    ("CN-10", "For `human` and `format=markdown`, write the result as markdown into `content` and omit `structuredContent`, unless the tool has an output schema."),
    ("CN-4", "Read each tag by itself: `format=json` means a structure, `format=text` words without markup, `verbosity=compact` no more than without it."),
    ("CN-5", "Try `!=` before `=` when you read a tag, and let `format!=xml` take away nothing but that format."),
    ("CN-6", "Look for `format=` first. Other tags and capabilities only choose the format if there is none."),
    ("CN-15", "Keep the MIME type of a resource true to its text, and the content of a prompt's message one block."),
    ("SV-2", "Declare `{\"availableVariants\": [...], \"moreVariantsAvailable\": false}`; omit the list instead of sending an empty one."),
    ("SV-1", "Give each variant an `id` that no other has, a `description`, and if you like `hints` (strings), `status` and `deprecationInfo`."),
    ("SV-3", "Put a stable variant first, whatever the hints; offer a few, and a fallback if there are more."),
    ("SV-7", "Rank by the hints alone, so that the same hints give the same order in every session and replica."),
    ("SV-4", "Accept a hint as a string or an array of strings. Ignore keys and values that you do not know, one by one."),
    ("SV-5", "Rank the stable variants that fit the hints best before the others."),
    ("SV-11", "Declare the union of the capabilities of all variants, to every client."),
    ("SV-8", "Read `_meta[\"io.modelcontextprotocol/server-variant\"]` of each request; without it, use the variant that you offer first. Do not remember it."),
    ("SV-9", "Refuse a selector that you do not offer before anything else is read: error -32602, message `Invalid server variant`, data `{requestedVariant, availableVariants}`."),
    ("SV-10", "Look for the selector even without variants, and refuse it: error -32602, message `Server variants not supported`."),
    ("SV-17", "Send `ttlMs: 0` with lists that depend on the selector."),
    ("SV-12", "Look names and URIs up in the variant of the request only, and put `activeVariant` into the data of the error."),
    ("SV-13", "Bind cursors to their variant, for example with its id inside. Refuse others: error -32602, message `Cursor invalid for requested variant`, data `{cursorVariant, requestedVariant}`."),
    ("SV-14", "Subscribe to resources of the variant of the request only, and accept an unsubscription of what was subscribed."),
    ("SV-18", "If `_meta` and the header `MCP-Server-Variant` both name a variant, use that of `_meta`."),
    ("SV-20", "Decide what a principal may see and use before you look at the selector, and answer for the rest as for what does not exist."),
    ("SV-21", "Refuse a request too many with a JSON-RPC error that has `activeVariant` in its data, over HTTP with status 429."),
    ("TR-3", "Write the result into `content`, too: clients without structure see nothing else."),
    ("TR-2", "Make `content` and `structuredContent` from the same value."),
    ("TR-4", "If a tool has an `outputSchema`, send `structuredContent` that fits it with every result that is not an error, whatever the client's tags."),
];

/// The advice for `requirement`, such as `SV-9`.
pub(crate) fn of(requirement: &str) -> &'static str {
    let row = ADVICE.iter().find(|(of, _)| *of == requirement);
    row.map_or("", |(_, advice)| advice)
}

/// The advice for the authors of clients, in the order of the checks.
#[rustfmt::skip]
const ADVICE_FOR_CLIENTS: &[(&str, &str)] = &[
    ("EXT-1", "Name the extension `prefix/name` with a domain of yours as the prefix, such as `com.example/name`."),
    ("EXT-2", "Declare extensions as an object in `capabilities.extensions`: `{\"com.example/name\": {}}`. Settings are objects, `{}` if there are none."),
    ("CN-17", "Declare content negotiation as `{\"version\": \"1.0\", \"features\": [\"agent\", \"format=json\"]}`, and name your capabilities among the tags."),
    ("CN-1", "Write each tag as `tag`, `!tag`, `key=value` or `key!=value`, without spaces."),
    ("CN-18", "Put the same capabilities into `_meta` of each request: a server of 2026-07-28 remembers nothing."),
    ("SV-4", "Declare hints as `{\"variantHints\": {\"description\": \"…\", \"hints\": {\"contextSize\": [\"compact\", \"standard\"]}}}`."),
    ("SV-2", "Declare `io.modelcontextprotocol/server-variants`, and select a variant only if the server's `availableVariants` has some."),
    ("SV-8", "Put the `id` of a variant on offer into `_meta[\"io.modelcontextprotocol/server-variant\"]` of `params`."),
    ("EXT-4", "Look into the server's `capabilities.extensions` before you use an extension; without it, send what you would have sent before."),
    ("SV-13", "Send `nextCursor` back unchanged, in a request with the same selector. Forget cursors when you change the variant."),
    ("SV-14", "Unsubscribe before you subscribe to the same resource in another variant, and list resources again when they change."),
    ("SV-1", "Read the members that you know of a variant, and ignore all others."),
    ("EXT-5", "Read a server's settings member by member, and treat what has the wrong type as absent."),
    ("CN-7", "Read `content` if there is no `structuredContent`: a server that does not declare content negotiation ignores your tags."),
    ("SV-19", "On error -32602 `Invalid server variant`, send the request once more without a selector, then report the error."),
    ("SV-16", "On `list_changed`, list again in the variant that it names, or in all that you use if it names none."),
    ("TR-1", "Give the model the `content`, or the `structuredContent` if it works with data; one of them is enough."),
];

/// The advice for authors of clients about `requirement`.
pub(crate) fn for_clients(requirement: &str) -> &'static str {
    let mut rows = ADVICE_FOR_CLIENTS.iter();
    let row = rows.find(|(of, _)| *of == requirement);
    row.map_or("", |(_, advice)| advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn each_check_of_clients_has_advice_and_each_advice_a_check() {
        for check in registry::client_checks() {
            assert!(!check.advice().is_empty(), "{}", check.id());
        }
        for (requirement, _) in ADVICE_FOR_CLIENTS {
            let mut checks = registry::client_checks();
            assert!(checks.any(|it| it.matches(requirement)), "{requirement}");
        }
    }

    #[test]
    fn each_check_has_advice_and_each_advice_a_check() {
        for check in registry::checks() {
            assert!(!check.advice().is_empty(), "{}", check.id());
        }
        for (requirement, _) in ADVICE {
            assert!(
                registry::checks().any(|check| check.matches(requirement)),
                "{requirement}"
            );
        }
    }
}
