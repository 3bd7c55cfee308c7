//! `${VAR}`, `${VAR:-default}` and `${env:VAR}` in the texts of a configuration.

/// Returns the value of an environment variable.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces the variables in `text`. `$${` is an escape for `${`.
///
/// # Errors
///
/// The message and the fix. They do not contain the text, since a header may include a secret.
pub(super) fn replace(text: &str, variable: Lookup<'_>) -> Result<String, (String, String)> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        let (inner, after) = after.split_once('}').ok_or_else(|| {
            let what = "has a `${` that is not closed".to_owned();
            (what, "write `}` behind the variable's name".to_owned())
        })?;
        out.push_str(before);
        out.push_str(&look_up(inner, variable)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn look_up(inner: &str, variable: Lookup<'_>) -> Result<String, (String, String)> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        return Err((
            format!("has `${{{name}}}`, which cannot be replaced"),
            "only variables of the environment can; for the characters themselves write `$${`"
                .to_owned(),
        ));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err((
            format!("has a variable inside of the default of `{name}`, where none is replaced"),
            "write the default itself".to_owned(),
        ));
    }
    // As in a shell, `:-` also replaces a variable that is empty.
    let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
    value.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
        (
            format!("needs the variable `{name}`, which the environment does not have"),
            format!("set it, or write `${{{name}:-default}}`"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/data".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[track_caller]
    fn becomes(text: &str, expected: &str) {
        assert_eq!(replace(text, &environment).as_deref(), Ok(expected));
    }

    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        let (what, fix) = replace(text, &environment).unwrap_err();
        assert_eq!(format!("{what}; {fix}"), expected);
    }

    #[test]
    fn variables_are_replaced() {
        becomes("${HOME}/x", "/data/x");
        becomes("${env:HOME}${HOME}", "/data/data");
        becomes("${EMPTY:-d}${NONE:-a:b}${EMPTY}", "da:b");
        becomes("${env:NONE:-}", "");
    }

    #[test]
    fn what_is_no_variable_stays() {
        becomes("costs $5 {a} $HOME $", "costs $5 {a} $HOME $");
        becomes("echo $${HOME} ${HOME}", "echo ${HOME} /data");
    }

    #[test]
    fn what_cannot_be_replaced_is_named() {
        refuses(
            "Bearer typed ${NONE}",
            "needs the variable `NONE`, which the environment does not have; set it, or write `${NONE:-default}`",
        );
        refuses(
            "${input:key}",
            "has `${input:key}`, which cannot be replaced; only variables of the environment can; for the \
             characters themselves write `$${`",
        );
        refuses(
            "${HOME:-${NONE}}",
            "has a variable inside of the default of `HOME`, where none is replaced; write the default itself",
        );
        refuses(
            "Bearer typed ${HOME",
            "has a `${` that is not closed; write `}` behind the variable's name",
        );
    }
}
