//! Which extension a method or a notification belongs to.

use mcp_vary::json::{Members, edit};

use crate::method_names::is_of_the_protocol;

/// Skills (SEP-2640).
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

/// The extensions whose methods are known, with the beginnings of these methods.
const KNOWN: &[(&str, &[&str])] = &[(SKILLS, &["skills", "resources/directory"])];

/// The extension that is known to have `method`.
pub fn known_extension(method: &str) -> Option<&'static str> {
    let name = without_kind(method);
    let has_it = |(_, starts): &&(_, &[&str])| starts.iter().any(|start| is_below(name, start));
    KNOWN.iter().find(has_it).map(|(id, _)| *id)
}

/// Whether `method` belongs to the extension `id`: it is known to, or begins with the identifier or with the name in it,
/// as `ledger/balance` and `notifications/ledger/changed` of `com.example/ledger` do.
pub fn belongs_to(method: &str, id: &str) -> bool {
    match known_extension(method) {
        Some(known) => known == id,
        None => {
            let method = without_kind(method);
            is_below(method, id) || is_below(method, name_of(id))
        }
    }
}

/// How the methods of the extension `id` begin that other extensions may have as well: with its name, unless that begins
/// those of a known one.
pub fn shared_start(id: &str) -> &str {
    let name = name_of(id);
    if belongs_to(name, id) { name } else { id }
}

/// Whether `capabilities`, JSON text, declare an extension to which `method` belongs. No method of the protocol does.
pub fn declares_extension_of(capabilities: &str, method: &str) -> bool {
    let declared = edit::get(capabilities, "extensions").unwrap_or("{}");
    let declared = Members::parse(declared).unwrap_or_default();
    is_of_an_extension(method) && declared.iter().any(|(id, _)| belongs_to(method, id))
}

/// Whether a method or notification may be of an extension: it is none of the protocol, in any revision.
pub fn is_of_an_extension(method: &str) -> bool {
    const OF_THE_PROTOCOL: [&str; 4] = ["initialized", "cancelled", "progress", "message"];
    match method.strip_prefix("notifications/") {
        Some(name) => {
            let mut known = OF_THE_PROTOCOL.iter();
            !is_of_the_protocol(name) && !known.any(|known| known.eq_ignore_ascii_case(name))
        }
        None => !is_of_the_protocol(method),
    }
}

/// The method without what all notifications begin with.
fn without_kind(method: &str) -> &str {
    method.strip_prefix("notifications/").unwrap_or(method)
}

fn name_of(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

fn is_below(method: &str, start: &str) -> bool {
    let after = method.strip_prefix(start);
    after.is_some_and(|after| after.is_empty() || after.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEDGER: &str = "com.example/ledger";

    /// EXT-8: a method is of one extension, by its name.
    #[test]
    fn a_method_belongs_to_the_extension_that_it_names() {
        for (method, id, belongs) in [
            ("ledger/balance", LEDGER, true),
            ("com.example/ledger/balance", LEDGER, true),
            ("notifications/ledger/changed", LEDGER, true),
            ("ledgers/balance", LEDGER, false),
            ("units/list", LEDGER, false),
            ("skills/list", SKILLS, true),
            ("resources/directory/read", SKILLS, true),
            ("notifications/skills/list_changed", SKILLS, true),
            ("skills/list", "com.example/skills", false),
            ("com.example/skills/list", "com.example/skills", true),
        ] {
            assert_eq!(belongs_to(method, id), belongs, "{method} {id}");
        }
        assert_eq!(shared_start(LEDGER), "ledger");
        assert_eq!(shared_start(SKILLS), "skills");
        assert_eq!(shared_start("com.example/skills"), "com.example/skills");
    }

    #[test]
    fn a_client_that_declares_an_extension_takes_its_requests() {
        let capabilities = r#"{"extensions":{"com.example/ledger":{}}}"#;
        assert!(declares_extension_of(capabilities, "ledger/confirm"));
        assert!(!declares_extension_of(capabilities, "units/confirm"));
        assert!(!declares_extension_of("{}", "ledger/confirm"));
        let imitated = r#"{"extensions":{"com.example/roots":{}}}"#;
        assert!(!declares_extension_of(imitated, "roots/list"));
    }

    #[track_caller]
    fn is_carried(methods: &[&str], expected: bool) {
        for method in methods {
            assert_eq!(is_of_an_extension(method), expected, "{method}");
        }
    }

    #[test]
    fn what_may_be_the_protocols_own_is_not_carried() {
        is_carried(
            &["notifications/ledger/changed", "com.example/changed"],
            true,
        );
        is_carried(
            &[
                "notifications/initialized",
                "notifications/cancelled",
                "notifications/progress",
            ],
            false,
        );
        is_carried(
            &[
                "notifications/tools/list_changed",
                "notifications/tasks",
                "notifications/",
                "tools/call",
                "Tools/call",
                " tools/call",
                "tools\0/call",
                "tool\u{17f}/call",
                "tools:call",
                "./tools/call",
                "x/../tools/call",
                "Notifications/tools/call",
                "notifications/Cancelled",
                "",
            ],
            false,
        );
    }
}
