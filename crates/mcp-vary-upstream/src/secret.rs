//! Recognizes values that are probably secret.

/// Whether a value with this `name` is probably secret.
pub fn is_secret(name: &str, value: &str) -> bool {
    let trimmed = value.trim();
    let secret = trimmed.strip_prefix(scheme(value)).unwrap_or(trimmed);
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
    let mut parts = text.split(ENDS);
    user_in(text).is_some() || parts.any(|part| secret_in(part).is_some())
}

/// `text`, whose name is `name`, with `reference` of each part that is probably secret in its place; `None` if none is.
pub fn replace_secrets(
    name: &str,
    text: &str,
    mut reference: impl FnMut(&str) -> String,
) -> Option<String> {
    if is_secret(name, text) {
        let start = scheme(text);
        let secret = text.trim().strip_prefix(start).unwrap_or_default();
        return Some(format!("{start}{}", reference(secret)));
    }
    if !holds_secret(text) {
        return None;
    }
    let without_user = match user_in(text) {
        Some(user) => text.replace(&format!("{user}@"), &format!("{}@", reference(user))),
        None => text.to_owned(),
    };
    let parts = without_user.split_inclusive(ENDS).map(|part| {
        let content = part.trim_end_matches(ENDS);
        let Some(secret) = secret_in(content) else {
            return part.to_owned();
        };
        let start = content.strip_suffix(secret).unwrap_or_default();
        let end = part.strip_prefix(content).unwrap_or_default();
        format!("{start}{}{end}", reference(secret))
    });
    Some(parts.collect())
}

/// The scheme before the secret in a header with this `value`; empty if it has none.
fn scheme(value: &str) -> &'static str {
    let mut schemes = ["Bearer ", "Basic ", "Token "].into_iter();
    let known = schemes.find(|scheme| value.trim().starts_with(scheme));
    known.unwrap_or_default()
}

/// The name and password in the first address of `text`.
fn user_in(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("://")?;
    let authority = after.split(['/', '?']).next()?;
    let (user, _) = authority.split_once('@')?;
    user.contains(':').then_some(user)
}

/// What is probably secret in a `part` of an argument or address.
fn secret_in(part: &str) -> Option<&str> {
    let (name, value) = part.split_once('=').unwrap_or(("", part));
    is_secret(name, value).then_some(value)
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
    lowercase == "key"
        || lowercase.ends_with("_pat")
        || NAMES.iter().any(|part| lowercase.contains(part))
}

/// What ends the parts of an argument or address.
const ENDS: [char; 4] = ['?', '&', ' ', '/'];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_secret_is_replaced() {
        for (name, text, expected) in [
            ("TOKEN", "abcdefgh", Some("${X}")),
            ("Authorization", "Bearer abcdefgh", Some("Bearer ${X}")),
            ("", "--api-key=abcdefgh", Some("--api-key=${X}")),
            (
                "url",
                "https://h/mcp?a=1&token=abcdefgh&b=2",
                Some("https://h/mcp?a=1&token=${X}&b=2"),
            ),
            ("DB", "postgres://u:pw@h/db", Some("postgres://${X}@h/db")),
            ("", "https://h/sk-abcdefgh/mcp", Some("https://h/${X}/mcp")),
            ("TOKEN", "${TOKEN_OF_ME}", None),
            ("CONFIG_PATH", "/etc/config.json", None),
        ] {
            let replaced = replace_secrets(name, text, |_| "${X}".to_owned());
            assert_eq!(replaced.as_deref(), expected, "{text}");
        }
        assert!(is_secret("GITHUB_PAT", "abcdefgh"));
        let text = "https://u:pw@h/mcp?token=abcdefgh&key=ijklmnop";
        let named = replace_secrets("", text, |secret| format!("<{secret}>"));
        let expected = "https://<u:pw>@h/mcp?token=<abcdefgh>&key=<ijklmnop>";
        assert_eq!(named.as_deref(), Some(expected));
        let named = replace_secrets("Authorization", " Bearer abcdefgh ", str::to_owned);
        assert_eq!(named.as_deref(), Some("Bearer abcdefgh"));
    }
}
