//! Commands as a person types them into a shell.

use std::fmt;

use crate::secret::{holds_secret, is_name_of_secret, is_secret};

/// The command of a server for a POSIX shell, for an error. `Debug` does not show it.
///
/// # Properties
///
/// Arguments that are probably secret are left out, and variables keep their names.
#[derive(Clone)]
pub struct CommandLine(String);

impl CommandLine {
    /// The `command`, a program and its arguments, as the operator wrote it.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_upstream::command_line::CommandLine;
    ///
    /// let words = ["run", "a b", "--dir=${HOME}/x", "--token", "0123456789"].map(str::to_owned);
    /// let line = CommandLine::new(&words);
    /// assert_eq!(line.to_string(), r#"run 'a b' "--dir=${HOME}/x" --token ..."#);
    /// ```
    pub fn new(command: &[String]) -> Self {
        let mut before = "";
        let shown = command.iter().map(|argument| {
            let option = std::mem::replace(&mut before, argument);
            if holds_secret(argument) || option.starts_with('-') && is_secret(option, argument) {
                return "...".to_owned();
            }
            shown_word(argument)
        });
        Self(shown.collect::<Vec<_>>().join(" "))
    }

    /// Writes `variables` (name and value) of its environment before it. Long values, and those that may be secret, are left
    /// out, and so are variables with a name that a shell does not take.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_upstream::command_line::CommandLine;
    ///
    /// let line = CommandLine::new(&["run".to_owned()]);
    /// let line = line.with_variables([("MODE", "a b"), ("API_KEY", "0123456789"), ("a;b", "c")].into_iter());
    /// assert_eq!(line.to_string(), "MODE='a b' API_KEY=... run");
    /// ```
    #[must_use]
    pub fn with_variables<'a>(self, variables: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let is_name = |name: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        let assignable = variables.filter(|(name, _)| is_name(name));
        let shown = assignable.map(|(name, value)| {
            let is_shown =
                value.contains("${") || value.len() <= LONGEST_SHOWN && !is_name_of_secret(name);
            if !is_shown || is_secret(name, value) || holds_secret(value) {
                return format!("{name}=... ");
            }
            format!("{name}={} ", shown_word(value))
        });
        Self(shown.collect::<String>() + &self.0)
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

mcp_vary_base::debug_by_name!(CommandLine);

/// The bytes of a value of a variable that is shown; keys are longer.
const LONGEST_SHOWN: usize = 15;

/// `word` as a POSIX shell reads it, with its variables.
fn shown_word(word: &str) -> String {
    // The shell replaces variables in double quotes.
    if word.contains("${") && !word.contains(['"', '`', '\\']) {
        format!("\"{word}\"")
    } else {
        shell_word(word)
    }
}

/// `word` as a POSIX shell reads it.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
