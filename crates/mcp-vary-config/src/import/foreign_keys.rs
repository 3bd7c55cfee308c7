//! Keys of other programs that have no equivalent in Vary: why each is left out, and what to do.

/// Why a key is left out, and what to do.
pub(super) fn no_equivalent(key: &str) -> (&'static str, &'static str) {
    let known = WITHOUT_EQUIVALENT
        .iter()
        .find(|(keys, ..)| keys.split(' ').any(|known| known == key));
    known.map_or(
        (
            "has no equivalent, and is left out",
            "see that nothing depends on it",
        ),
        |(_, what, fix)| (*what, *fix),
    )
}

/// Keys of other programs that have no equivalent in Vary, with spaces between them: what they mean, and what to do.
const WITHOUT_EQUIVALENT: &[(&str, &str, &str)] = &[
    (
        "timeout",
        "is left out: some programs mean seconds by it and some milliseconds",
        "write `timeout` with a unit where the default of 10m will not do",
    ),
    (
        "autoApprove alwaysAllow trust approval_mode default_tools_approval_mode tools autoApproveAll",
        "is left out: who may call what without being asked stays with the client",
        "set it there for the tools of Vary",
    ),
    (
        "oauth auth oauth_resource scopes authProviderType authorization",
        "is left out: Vary has logins of its own",
        "log in with `vary login`, or put a token into `headers`",
    ),
    (
        "envFile env_file",
        "is left out: files of variables are not read",
        "load it before the start: `set -a; . FILE; set +a`",
    ),
    (
        "required",
        "is left out: a server that is down stops no other",
        "`vary config check` fails when one is down",
    ),
    (
        "bearer_token",
        "is left out: Codex refuses it, too",
        "put it into a variable, and that into `headers`",
    ),
    (
        "sandbox sandboxEnabled experimental_environment",
        "is left out: the server runs as Vary does",
        "start it in a sandbox by its `command`",
    ),
    (
        "dev gallery version icon iconUrl supports_parallel_tool_calls source",
        "is left out: it configures the program that the file belongs to",
        "nothing needs to be done",
    ),
];
