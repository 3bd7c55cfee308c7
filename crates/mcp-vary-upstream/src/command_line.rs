//! Commands as a person types them into a shell.

use std::fmt;

use crate::secret::{holds_secret, is_secret};

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
            // The shell replaces variables in double quotes.
            if argument.contains("${") && !argument.contains(['"', '`', '\\']) {
                format!("\"{argument}\"")
            } else {
                shell_word(argument)
            }
        });
        Self(shown.collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandLine")
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
