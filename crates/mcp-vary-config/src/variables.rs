//! `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:PATH}`, `${credential:NAME}` and `${claims.NAME}` in the texts of
//! a configuration.

use mcp_vary_access::MAX_CLAIM_NAME;
use mcp_vary_upstream::command_line::shell_word;

use super::secret_files::SecretFiles;

/// Returns the value of an environment variable.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where the values of variables come from.
#[derive(Clone, Copy)]
pub(super) struct Variables<'a> {
    pub(super) environment: Lookup<'a>,
    /// `None` where no files are read.
    pub(super) files: Option<&'a SecretFiles>,
    /// The name of the file, for commands to be run on it.
    pub(super) file: &'a str,
}

impl Variables<'_> {
    /// The command that makes a configuration of the file of a client.
    pub(super) fn import_command(&self) -> String {
        format!("`vary config import {} > vary.yaml`", shell_word(self.file))
    }
}

/// A part of a text whose variables were replaced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Part {
    /// Text, with the values of variables.
    Text(String),
    /// The name of a claim, whose value each request has.
    Claim(String),
}

/// What is wrong with a text. It does not contain the text, since a header may include a secret.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// It needs this variable, which the environment does not have.
    MissingVariable(String),
    /// Anything else, and the fix.
    Other(String, String),
}

impl From<(String, String)> for Fault {
    fn from((what, fix): (String, String)) -> Self {
        Self::Other(what, fix)
    }
}

impl Fault {
    /// What is wrong, and the fix.
    pub(super) fn into_texts(self) -> (String, String) {
        match self {
            Self::MissingVariable(name) => (
                format!("needs the variable `{name}`, which the environment does not have"),
                format!("set it, or write `${{{name}:-default}}`"),
            ),
            Self::Other(what, fix) => (what, fix),
        }
    }
}

/// Replaces the variables in `text`. `$${` is an escape for `${`.
///
/// # Errors
///
/// When a variable has no value, or is a claim.
pub(super) fn replace(text: &str, variables: Variables<'_>) -> Result<String, Fault> {
    let mut out = String::new();
    for part in parts(text, variables)? {
        match part {
            Part::Text(text) => out.push_str(&text),
            Part::Claim(name) => {
                let what =
                    format!("has `${{claims.{name}}}`, which only `headers` of a server can have");
                let fix = "for the characters themselves write `$${`".to_owned();
                return Err(Fault::Other(what, fix));
            }
        }
    }
    Ok(out)
}

/// Replaces the variables in `text`, but for claims. Values are not searched for variables.
///
/// # Errors
///
/// When a variable has no value.
pub(super) fn parts(text: &str, variables: Variables<'_>) -> Result<Vec<Part>, Fault> {
    let mut parts = Vec::new();
    let mut out = String::new();
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            remaining = after;
            continue;
        }
        let (inner, after) = after.split_once('}').ok_or_else(|| {
            let what = "has a `${` that is not closed".to_owned();
            (what, "write `}` behind the variable's name".to_owned())
        })?;
        out.push_str(before);
        match inner.strip_prefix("claims.") {
            Some(name) => {
                parts.push(Part::Text(std::mem::take(&mut out)));
                parts.push(Part::Claim(claim_name(name)?));
            }
            None => out.push_str(&look_up(inner, variables)?),
        }
        remaining = after;
    }
    out.push_str(remaining);
    parts.push(Part::Text(out));
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    Ok(parts)
}

fn claim_name(name: &str) -> Result<String, Fault> {
    let fix = "write `${claims.NAME}` with the name of a claim".to_owned();
    if name.contains(":-") {
        let what = "has a default for a claim, where none is possible".to_owned();
        return Err(Fault::Other(
            what,
            "a request without the claim is refused; leave the default out".to_owned(),
        ));
    }
    if name.is_empty() || name.len() > MAX_CLAIM_NAME || name.chars().any(char::is_control) {
        let what = "has `${claims.}` without a usable name".to_owned();
        return Err(Fault::Other(what, fix));
    }
    Ok(name.to_owned())
}

fn look_up(inner: &str, variables: Variables<'_>) -> Result<String, Fault> {
    // `${file:-x}` is a variable of the environment with a default.
    let is_named = |(_, name): &(&str, &str)| !name.starts_with('-');
    if let Some((kind @ ("file" | "credential"), name)) = inner.split_once(':').filter(is_named) {
        let files = variables.files.ok_or_else(|| {
            let what = format!("has `${{{kind}:...}}`, but no files are read here");
            (what, "write a variable of the environment".to_owned())
        })?;
        let value = match kind {
            "file" => files.file(name),
            _ => files.credential(name, variables.environment),
        };
        return Ok(value?);
    }
    let (written, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let name = written.strip_prefix("env:").unwrap_or(written);
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        if let Some(fault) = of_editor(name, variables) {
            return Err(fault);
        }
        return Err(Fault::Other(
            format!("has `${{{name}}}`, which cannot be replaced"),
            "variables are `${VARIABLE}`, `${file:PATH}` and `${credential:NAME}`; for the characters themselves write \
             `$${`"
                .to_owned(),
        ));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(Fault::Other(
            format!("has a variable inside of the default of `{name}`, where none is replaced"),
            "write the default itself".to_owned(),
        ));
    }
    // As in a shell, `:-` also replaces a variable that is empty.
    let value =
        (variables.environment)(name).filter(|value| default.is_none() || !value.is_empty());
    let missing = || {
        let is_variable = Fault::MissingVariable(name.to_owned());
        of_editor(name, variables).unwrap_or(is_variable)
    };
    let resolved = value.or_else(|| default.map(str::to_owned));
    resolved.ok_or_else(missing)
}

/// Converts the text to a valid name of an environment variable.
pub(crate) fn variable_name(text: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = text.chars().map(letter).collect();
    let strings: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    let name = strings.join("_");
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return name;
    }
    format!("VALUE_{name}")
}

/// The error for a placeholder of editors.
fn of_editor(name: &str, variables: Variables<'_>) -> Option<Fault> {
    let scheme = name.split_once(':').map_or(name, |(scheme, _)| scheme);
    let (_, what) = OF_EDITORS.iter().find(|(key, _)| *key == scheme)?;
    let variable = name
        .strip_prefix("input:")
        .map_or_else(|| "VARIABLE".to_owned(), variable_name);
    let import = variables.import_command();
    let fix = format!(
        "write `${{{variable}}}` and set it; {import} makes a file in which all of them are written so, and names what to set"
    );
    Some(Fault::Other(format!("has `${{{name}}}`, {what}"), fix))
}

/// What editors replace in their files, and Vary cannot.
const OF_EDITORS: &[(&str, &str)] = &[
    ("input", "which VS Code asks its user for"),
    ("workspaceFolder", "the directory that an editor has open"),
    ("workspaceRoot", "the directory that an editor has open"),
    (
        "userHome",
        "which an editor replaces by your home directory",
    ),
    ("pathSeparator", "which an editor replaces"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/data".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${claims.sub}${HOME}".to_owned()),
            _ => None,
        }
    }

    const VARIABLES: Variables<'_> = Variables {
        environment: &environment,
        files: None,
        file: "FILE",
    };

    #[track_caller]
    fn becomes(text: &str, expected: &str) {
        assert_eq!(replace(text, VARIABLES).as_deref(), Ok(expected));
    }

    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        let (what, fix) = replace(text, VARIABLES).unwrap_err().into_texts();
        assert_eq!(format!("{what}; {fix}"), expected);
    }

    #[test]
    fn variables_are_replaced() {
        becomes("${HOME}/x", "/data/x");
        becomes("${env:HOME}${HOME}", "/data/data");
        becomes("${EMPTY:-d}${NONE:-a:b}${EMPTY}", "da:b");
        becomes("${env:NONE:-}", "");
        becomes("${file:-a}${credential:-b}", "ab");
    }

    #[test]
    fn what_is_no_variable_stays() {
        becomes("costs $5 {a} $HOME $", "costs $5 {a} $HOME $");
        becomes("echo $${HOME} ${HOME}", "echo ${HOME} /data");
    }

    #[test]
    fn values_are_not_searched_for_variables() {
        becomes("${TRICK}", "${claims.sub}${HOME}");
    }

    #[test]
    fn claims_stay_apart_from_text() {
        let text = |text: &str| Part::Text(text.to_owned());
        let claim = |name: &str| Part::Claim(name.to_owned());
        let read = |text: &str| parts(text, VARIABLES).unwrap();
        assert_eq!(
            read("a${HOME}${claims.sub}"),
            [text("a/data"), claim("sub")]
        );
        assert_eq!(
            read("${claims.https://acme.example/a b}${TRICK}"),
            [
                claim("https://acme.example/a b"),
                text("${claims.sub}${HOME}")
            ]
        );
        assert_eq!(read("$${claims.sub}"), [text("${claims.sub}")]);
        assert_eq!(read(""), []);
    }

    #[test]
    fn what_cannot_be_replaced_is_named() {
        refuses(
            "Bearer typed ${NONE}",
            "needs the variable `NONE`, which the environment does not have; set it, or write `${NONE:-default}`",
        );
        refuses(
            "${input:key}",
            "has `${input:key}`, which VS Code asks its user for; write `${KEY}` and set it; `vary config import FILE \
             > vary.yaml` makes a file in which all of them are written so, and names what to set",
        );
        refuses(
            "${workspaceFolder}/x",
            "has `${workspaceFolder}`, the directory that an editor has open; write `${VARIABLE}` and set it; `vary config \
             import FILE > vary.yaml` makes a file in which all of them are written so, and names what to set",
        );
        refuses(
            "${a:b}",
            "has `${a:b}`, which cannot be replaced; variables are `${VARIABLE}`, `${file:PATH}` and \
             `${credential:NAME}`; for the characters themselves write `$${`",
        );
        refuses(
            "${HOME:-${NONE}}",
            "has a variable inside of the default of `HOME`, where none is replaced; write the default itself",
        );
        refuses(
            "Bearer typed ${HOME",
            "has a `${` that is not closed; write `}` behind the variable's name",
        );
        refuses(
            "${file:/run/secret}",
            "has `${file:...}`, but no files are read here; write a variable of the environment",
        );
        refuses(
            "${claims.sub}",
            "has `${claims.sub}`, which only `headers` of a server can have; for the characters themselves write `$${`",
        );
        refuses(
            "${claims.sub:-nobody}",
            "has a default for a claim, where none is possible; a request without the claim is refused; leave the default \
             out",
        );
        refuses(
            "${claims.}",
            "has `${claims.}` without a usable name; write `${claims.NAME}` with the name of a claim",
        );
    }
}
