//! Small servers that stand on the documents alone.

use super::jobs::{Expected, Job, PATIENT, Programs, job};

/// The right ones pass, and each sentence that one of them breaks is found.
pub(super) fn jobs(programs: &Programs<'_>) -> Result<Vec<Job>, String> {
    let script = programs.workspace.path(SMALL_SERVERS);
    let server = programs.start("small", &["python3", &script.display().to_string()])?;
    let address = server.url.clone();
    let run = |default: &str, mutation: &str, expected| {
        let url = format!("{address}/{default}/{mutation}");
        let mut arguments = vec!["--time-limit", PATIENT, "--expect"];
        arguments.push(match mutation {
            "undeclared" => "variants",
            "empty-variants" => "negotiation",
            _ => "variants,negotiation",
        });
        if ["markdown", "text", "swift", "typescript"].contains(&default) {
            arguments.extend([
                "--tool",
                "get_weather",
                "--arguments",
                r#"{"city": "Bern"}"#,
            ]);
        }
        arguments.push(&url);
        job(&format!("small {default} {mutation}"), &arguments, expected)
    };
    let right = RIGHT.iter();
    let mut jobs: Vec<Job> = right
        .map(|(default, mutation, known)| run(default, mutation, Expected::Passes(known)))
        .collect();
    jobs.push(run("tags-only", "json-with-text", Expected::ExitCode(1)));
    jobs.push(run("tags-only", "every-tag-ignored", Expected::ExitCode(1)));
    jobs.push(run("text", "every-tag-ignored", Expected::ExitCode(1)));
    for default in ["structure", "markdown"] {
        let found = FOUND.split(' ');
        let found = found.map(|mutation| run(default, mutation, Expected::ExitCode(1)));
        let passing = PASSING.map(|mutation| run(default, mutation, Expected::ExitCode(0)));
        jobs.extend(found.chain(passing));
    }
    let found = FOUND_BY.iter();
    jobs.extend(found.map(|(mutation, check)| run("structure", mutation, Expected::Fails(check))));
    let warned = WARNED_BY.iter();
    jobs.extend(warned.map(|(mutation, check)| run("structure", mutation, Expected::Warns(check))));
    jobs[0]._servers.push(server);
    Ok(jobs)
}

/// Servers that are right, and what a check objects all the same: what no document decides, and where the documents'
/// reference examples differ from their text. The one in Swift cannot declare that it negotiates.
const RIGHT: [(&str, &str, &[&str]); 10] = [
    ("structure", "right", UNVERSIONED),
    ("markdown", "right", &[]),
    ("word", "right", &[]),
    // Its tools only read, and have a structure for clients that ask for JSON.
    ("tags-only", "right", &[]),
    ("text", "right", &[]),
    ("no-tools", "right", UNVERSIONED),
    ("sessions", "right", UNVERSIONED),
    ("swift", "right", IN_SWIFT),
    (
        "swift",
        "undeclared",
        &["CN-7/undeclared-extension-ignores-tags"],
    ),
    ("typescript", "right", IN_TYPESCRIPT),
];

const IN_SWIFT: &[&str] = &[
    "CN-4/format-json-is-structured",
    "CN-4/format-text-is-plain",
    "CN-6/explicit-format-wins",
];

const IN_TYPESCRIPT: &[&str] = &[
    "CN-4/format-json-is-structured",
    "CN-4/format-text-is-plain",
    "CN-6/explicit-format-wins",
    "CN-9/bare-structure",
    "CN-10/no-null-structure",
];

/// What the small servers break, each alone, and must be found.
const FOUND: &str = "duplicate-id wrong-code wrong-message fallback default-is-the-second foreign-cursor experimental-first \
    unknown-hints-refused capability-by-hint lone-variant invisible-id selector-ignored-in-call \
    ids-not-scoped unsubscribe-refused tools-by-tag structure-for-all json-without-structure json-with-text \
    markdown-as-json markdown-with-structure capability-by-tag every-tag-ignored";

/// The documents say SHOULD of the first, do not decide the second, and let a server ignore a format that it does not have.
const PASSING: [&str; 3] = [
    "invalid-tag-refused",
    "not-agent-ignored",
    "json-alone-ignored",
];

/// What breaks a MUST, and the check that finds it.
const FOUND_BY: [(&str, &str); 22] = [
    ("version-a-number", "CN-17/version-is-text"),
    ("bare-identifier", "EXT-1/prefixed-identifiers"),
    ("deprecated-first", "SV-3/first-is-stable"),
    ("no-description", "SV-1/descriptions-are-text"),
    ("hint-a-list", "SV-1/hints-are-texts"),
    ("no-message", "SV-1/deprecation-info"),
    ("read-outside", "SV-12/resources-of-another-variant"),
    ("subscribe-outside", "SV-14/subscribe-to-unknown"),
    ("more-as-text", "SV-2/more-variants-is-boolean"),
    ("unknown-status", "SV-1/known-status"),
    ("set-shrinks", "SV-8/tools-in-every-variant"),
    (
        "selector-ignored-in-get",
        "SV-9/unknown-variant-in-prompts-get",
    ),
    (
        "selector-ignored-in-modern",
        "SV-9/unknown-variant-in-tools-list",
    ),
    ("tags-remembered", "CN-7/undeclared-gets-the-default"),
    ("complete-outside", "SV-12/completions-of-another-variant"),
    (
        "unknown-value-empties",
        "CN-7/unknown-values-are-the-default",
    ),
    ("hints-required", "SV-4/hints-are-optional"),
    ("unknown-replacement", "SV-1/replacement-exists"),
    ("markdown-resource-as-json", "CN-15/json-resources-are-json"),
    ("json-resource-as-text", "CN-15/json-resources-are-json"),
    ("other-uri", "CN-15/contents-have-the-uri"),
    ("prompt-content-a-list", "CN-15/prompt-content-is-one-block"),
];

/// What breaks a SHOULD, and the check that finds it.
const WARNED_BY: [(&str, &str); 4] = [
    ("empty-variants", "SV-2/no-empty-list"),
    ("unreadable-date", "SV-1/removal-date"),
    ("features-declared", "CN-17/no-features-of-the-server"),
    ("text-contradicts", "TR-2/text-does-not-contradict"),
];

const SMALL_SERVERS: &str = "crates/mcp-vary-conformance/tests/servers/small.py";

/// No document says what a version means, and the small servers read none.
const UNVERSIONED: &[&str] = &["EXT-7/unknown-versions-are-the-default"];
