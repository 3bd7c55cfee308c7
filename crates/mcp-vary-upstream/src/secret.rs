//! Recognizes values that are probably secret.

/// Whether a value with this `name` is probably secret.
pub fn is_secret(name: &str, value: &str) -> bool {
    let trimmed = value.trim();
    let secret = ["Bearer ", "Basic ", "Token "]
        .iter()
        .find_map(|scheme| trimmed.strip_prefix(scheme))
        .unwrap_or(trimmed);
    if secret.len() < SHORTEST || secret.contains("${") {
        return false;
    }
    is_name_of_secret(name) || STARTS.iter().any(|start| secret.starts_with(start))
}

/// Whether a part of an argument or address is probably secret, as in `--api-key=...` and `?token=...`.
pub fn holds_secret(text: &str) -> bool {
    if text.contains("${") {
        return false;
    }
    let has_user = text.split_once("://").is_some_and(|(_, after)| {
        let authority = after.split(['/', '?']).next().unwrap_or_default();
        authority
            .split_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    });
    let mut parts = text.split(['?', '&', ' ', '/']);
    has_user
        || parts.any(|part| match part.split_once('=') {
            Some((name, value)) => is_secret(name, value),
            None => is_secret("", part),
        })
}

/// The arguments of a program, or the values in them, that are probably secret.
pub fn secret_arguments<'a>(args: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    let mut previous = "";
    for argument in args {
        let (before, value) = argument.split_once('=').unwrap_or((previous, argument));
        let name = if value.starts_with('-') { "" } else { before };
        let is_of_flag = name.starts_with('-') && !value.contains("${");
        let is_secret_flag = is_name_of_secret(name) || FLAGS.contains(&name);
        if is_of_flag && is_secret_flag || is_secret(name, value) {
            found.push(value.to_owned());
        } else if holds_secret(argument) {
            found.push(argument.to_owned());
        }
        let is_flag = argument.starts_with('-') && !argument.contains('=');
        previous = if is_flag { argument } else { "" };
    }
    found
}

/// Whether a value with this `name` is a secret, whatever it looks like.
pub(crate) fn is_name_of_secret(name: &str) -> bool {
    let lowercase = name.to_ascii_lowercase();
    lowercase == "key" || NAMES.iter().any(|part| lowercase.contains(part))
}

/// Parts of names.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "api-key",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "credential",
    "authorization",
    "cookie",
    "-key",
    "_key",
    "_pat",
];

/// Other flags before a password.
const FLAGS: &[&str] = &["-p", "--pass", "--pw", "--pwd"];

/// Prefixes of tokens.
const STARTS: &[&str] = &[
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_",
    "pk_live_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "eyJ",
    "AIza",
    "hf_",
    "npm_",
    "ntn_",
    "lin_api_",
];

/// The minimum length in characters; shorter values are `none`, `test` or a number.
const SHORTEST: usize = 8;
