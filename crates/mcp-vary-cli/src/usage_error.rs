//! Command lines that clap cannot parse, and what to write instead.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _, ValueEnum as _};
use mcp_vary_upstream::command_line::shell_word;

use crate::args::Args;
use crate::commands::call::arguments;
use crate::commands::connect::client::ClientName;
use crate::failure::Failure;
use crate::server_target::args::{endpoint, is_target};
use crate::similar::nearest;

mod several_targets;

/// The arguments of this process. Help and the version are printed here, and end the process.
///
/// # Errors
///
/// When the command line cannot be parsed.
pub(crate) fn parse() -> Result<Args, Failure> {
    let mut error = match Args::try_parse() {
        Ok(args) => return Ok(args),
        Err(error) => error,
    };
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let is_about_words = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict | ErrorKind::TooManyValues
    );
    let renamed = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => {
            other_name(&arguments, word)
        }
        _ => None,
    };
    let unknown = renamed
        .or_else(|| client(&error))
        .or_else(|| missing_log(&arguments, &error))
        .or_else(|| other_command(&arguments, &error));
    let advice = || is_about_words.then(|| advice(&arguments)).flatten();
    let tool_argument = || tool_argument(&arguments, &error);
    match unknown.or_else(advice).or_else(tool_argument) {
        Some(text) => Err(Failure::command(text)),
        None => {
            // clap's tip for any unknown option is to pass it to the server's command, which hardly anybody wants.
            error.remove(ContextKind::Suggested);
            if !has_near_value(&error) {
                error.remove(ContextKind::SuggestedValue);
            }
            error.exit()
        }
    }
}

/// Whether the value that clap suggests is spelled like the given one: clap suggests `allowed` for `failed`.
fn has_near_value(error: &clap::Error) -> bool {
    let value = |kind| match error.get(kind) {
        Some(ContextValue::String(value)) => Some(value.as_str()),
        _ => None,
    };
    let given = value(ContextKind::InvalidValue);
    let suggested = value(ContextKind::SuggestedValue);
    given
        .zip(suggested)
        .is_some_and(|(given, suggested)| nearest(given, [suggested]).is_some())
}

/// What to write for the FILE of `vary audit`, if it is missing.
fn missing_log(arguments: &[String], error: &clap::Error) -> Option<String> {
    let command = arguments.get(*positionals("", arguments).first()?)?;
    let is_missing = error.kind() == ErrorKind::MissingRequiredArgument && command == "audit";
    is_missing.then(|| "name the log (`audit.to`): vary audit audit.jsonl".to_owned())
}

/// What to write for `vary up CLIENT`, and to do in place of `vary key delete`.
fn other_command(arguments: &[String], error: &clap::Error) -> Option<String> {
    let command = arguments.get(*positionals("", arguments).first()?)?;
    let typed = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match (command.as_str(), error.kind()) {
        ("up", ErrorKind::UnknownArgument) => {
            let client = typed(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
            Some(format!(
                "`vary up` takes all clients; for one: vary connect {}",
                shell_word(client)
            ))
        }
        ("key", ErrorKind::InvalidSubcommand) => {
            let verb = typed(ContextKind::InvalidSubcommand)?;
            ["delete", "remove", "revoke", "rm"]
                .contains(&verb)
                .then(|| {
                    "to withdraw a key, remove its line from `auth.keys`, then: vary reload"
                        .to_owned()
                })
        }
        _ => None,
    }
}

/// What to write for `<CLIENT>`, if it is missing or not known.
fn client(error: &clap::Error) -> Option<String> {
    let is_client = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(name) => name.ends_with(CLIENT),
        ContextValue::Strings(names) => names.iter().any(|name| name == CLIENT),
        _ => false,
    };
    let given = match (error.kind(), error.get(ContextKind::InvalidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::String(given))) if !given.is_empty() => {
            format!("`{given}` is not one of the clients whose files Vary writes")
        }
        (ErrorKind::MissingRequiredArgument, _) => "CLIENT is missing".to_owned(),
        _ => return None,
    };
    let names: Vec<_> = ClientName::value_variants()
        .iter()
        .map(|name| name.as_str())
        .collect();
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidValue)
        && let Some(meant) = meant_client(given, &names)
        && is_client
    {
        return Some(format!(
            "`{given}` is not the name of a client; did you mean {meant}?"
        ));
    }
    let known: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    is_client.then(|| format!(
        "{given}; write one of {}, or give the address that `vary serve` prints to another client as it asks for it, usually with `url` \
         under `mcpServers`",
        known.join(", ")
    ))
}

/// The clients whose names begin like `given`, or else the one that is spelled like it.
fn meant_client(given: &str, names: &[String]) -> Option<String> {
    let begins = |name: &&String| given.len() > 1 && name.starts_with(&given.to_lowercase());
    let meant: Vec<_> = names
        .iter()
        .filter(begins)
        .map(|name| format!("`{name}`"))
        .collect();
    if !meant.is_empty() {
        return Some(meant.join(" or "));
    }
    let similar = nearest(given, names.iter().map(String::as_str))?;
    Some(format!("`{similar}`"))
}

/// The argument that names a client.
const CLIENT: &str = "<CLIENT>";

/// What to write instead of the option `word`, if other programs call it so.
fn other_name(arguments: &[String], word: &str) -> Option<String> {
    let at = *positionals("", arguments).first()?;
    let command = arguments.get(at)?;
    let flag = word.split('=').next()?;
    let rows = OTHER_NAMES.iter();
    let mut known = rows.filter(|(commands, names, _)| {
        (commands.is_empty() || commands.contains(&command.as_str())) && names.contains(&flag)
    });
    let (_, _, instead) = known.next()?;
    Some(format!("`{flag}` does not exist; write {instead}"))
}

/// What to write for an argument of a tool that looks like an option.
fn tool_argument(arguments: &[String], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let has_similar = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(similar)) => nearest(flag, [similar.as_str()]).is_some(),
        _ => false,
    };
    let command = arguments.get(*positionals("", arguments).first()?)?;
    if command != "call" || has_similar {
        return None;
    }
    let name = flag.strip_prefix("--")?.split('=').next()?;
    let mut left = arguments
        .iter()
        .skip_while(|word| !word.starts_with(flag.as_str()));
    let typed = left.next()?.split_once('=').map(|(_, value)| value);
    let value = typed.or(left.next().map(String::as_str)).unwrap_or("VALUE");
    let argument = shell_word(&format!("{name}={value}"));
    Some(format!(
        "`vary call` has no option `--{name}`; arguments of the tool have no dashes: write {argument}"
    ))
}

/// What to write instead of `words`, the command line after the program's name.
fn advice(arguments: &[String]) -> Option<String> {
    // Global flags may come before the command.
    let at = *positionals("", arguments).first()?;
    let command = arguments.get(at)?;
    if !COMMANDS.contains(&command.as_str()) {
        return None;
    }
    let after = arguments.get(at + 1..)?;
    let until = after.iter().position(|word| word == "--");
    let typed = after.get(..until.unwrap_or(after.len()))?;
    command_without_dashes(command, typed)
}

/// For a server's command that is not after `--`.
fn command_without_dashes(command: &str, arguments: &[String]) -> Option<String> {
    let first = if command == "call" { 1 } else { 0 };
    let positions = positionals(command, arguments);
    let mut candidates = positions.into_iter().skip(first).filter(|at| {
        let word = arguments.get(*at).map_or("", String::as_str);
        !(command == "call" && arguments::is_argument(word))
    });
    let at = candidates.next()?;
    let server = arguments.get(at..)?;
    let program = server.first()?;
    // The word behind an unknown flag is its value.
    if at > 0
        && arguments
            .get(at - 1)
            .is_some_and(|before| before.starts_with("--") && !before.contains('='))
    {
        return None;
    }
    let targets = server.iter().map(String::as_str);
    let several: Vec<&str> = targets.take_while(|word| is_target(word)).collect();
    if several.len() > 1 {
        return Some(several_targets::advice(command, &several));
    }
    if endpoint(program).is_some() || std::path::Path::new(program).is_file() || server.len() < 2 {
        return None;
    }
    if let ("inspect" | "tools", [_, target]) = (command, server)
        && is_target(target)
    {
        return Some(format!(
            "`vary {command}` takes only a target: vary {command} {}",
            shell_word(target)
        ));
    }
    let tool = if command == "call" { " TOOL" } else { "" };
    let quoted: Vec<_> = server.iter().map(|word| shell_word(word)).collect();
    Some(format!(
        "`{program}` is not a URL or a file; to start a server by its command, write it after `--`: `vary \
         {command}{tool} -- {}`",
        quoted.join(" ")
    ))
}

/// The indices of the words that are neither flags nor their values.
fn positionals(command: &str, arguments: &[String]) -> Vec<usize> {
    let all = Args::command();
    let known = all.find_subcommand(command);
    let takes_value = |flag: &str| {
        let known_args = known
            .into_iter()
            .chain([&all])
            .flat_map(|command| command.get_arguments());
        let mut args = known_args.filter(|arg| arg.get_long() == flag.strip_prefix("--"));
        args.next()
            .is_some_and(|arg| arg.get_action().takes_values())
    };
    let mut found = Vec::new();
    let mut is_value = false;
    for (at, word) in arguments.iter().enumerate() {
        if is_value {
            is_value = false;
        } else if word.starts_with('-') {
            is_value = word.starts_with("--") && !word.contains('=') && takes_value(word);
        } else {
            found.push(at);
        }
    }
    found
}

/// A row of [`OTHER_NAMES`]: commands, all if there are none; names; what to write.
type OtherName = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

/// Options as other programs call them.
const OTHER_NAMES: &[OtherName] = &[
    (
        &["serve", "demo"],
        &["--port", "-p", "--host", "--bind", "--address", "--addr"],
        "`--listen HOST:PORT`, or `--listen PORT`",
    ),
    (&["serve"], &["--json"], "`--log-format json`"),
    (
        &["call"],
        &["--arg", "--args", "--arguments"],
        "the arguments after the tool, as NAME=VALUE",
    ),
    (
        &["inspect", "tools", "call"],
        &["--client", "--as"],
        "`--client-name NAME`",
    ),
    (
        &["suggest"],
        &["--client"],
        "the client without a flag: `vary suggest CLIENT`",
    ),
    (&["audit"], &["--user", "--person"], "`--who NAME`"),
    (
        &["key"],
        &["--name"],
        "the name without a flag: `vary key new NAME`",
    ),
    (&[], &["--log-level", "--loglevel"], "`--log LEVEL`"),
    (&[], &["--debug"], "`--log debug`"),
    (
        &["serve", "inspect", "tools", "call", "check"],
        &["-c", "--config", "--url", "--command"],
        "the file or URL alone, or a server's command after `--`",
    ),
    (
        &["serve", "inspect", "tools", "call", "check"],
        &["-H", "--headers"],
        "`--header 'NAME: VALUE'`",
    ),
    (
        &["serve", "inspect", "tools", "call", "check"],
        &["-e", "--env"],
        "the variable before `vary`, or `env` into the server's entry of a file",
    ),
    (
        &["serve", "inspect", "tools", "call", "check", "login"],
        &["-k", "--insecure", "--no-verify", "--skip-verify"],
        "`--ca FILE` with the certificate of the server's authority: Vary always verifies the server",
    ),
];

/// The commands with a TARGET.
const COMMANDS: [&str; 5] = ["serve", "inspect", "tools", "call", "check"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn advises(line: &str, expected: &str) {
        let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(advice(&arguments).unwrap_or_default(), expected, "{line}");
    }

    #[test]
    fn an_option_that_other_programs_have_is_followed_by_what_it_is_called_here() {
        let instead = |line: &str, word: &str| {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            other_name(&arguments, word).unwrap_or_default()
        };
        let listen = "does not exist; write `--listen HOST:PORT`, or `--listen PORT`";
        for (line, word, expected) in [
            ("serve --port 8800", "--port", format!("`--port` {listen}")),
            (
                "-v serve x --host=0",
                "--host",
                format!("`--host` {listen}"),
            ),
            ("inspect --port 8800", "--port", String::new()),
            (
                "audit f.jsonl --user ann",
                "--user",
                "`--user` does not exist; write `--who NAME`".to_owned(),
            ),
            (
                "suggest --client cursor",
                "--client",
                "`--client` does not exist; write the client without a flag: `vary suggest CLIENT`"
                    .to_owned(),
            ),
            (
                "inspect --log-level debug",
                "--log-level",
                "`--log-level` does not exist; write `--log LEVEL`".to_owned(),
            ),
            (
                "check https://localhost:8443/mcp -k",
                "-k",
                "`-k` does not exist; write `--ca FILE` with the certificate of the server's authority: Vary always \
                 verifies the server"
                    .to_owned(),
            ),
        ] {
            assert_eq!(instead(line, word), expected, "{line}");
        }
    }

    #[test]
    fn a_client_is_suggested_by_the_beginning_of_its_name_or_by_its_spelling() {
        let names = ["claude-code", "claude-desktop", "gemini-cli", "vscode"].map(str::to_owned);
        for (given, expected) in [
            ("gemini", Some("`gemini-cli`")),
            ("Gemini", Some("`gemini-cli`")),
            ("claude", Some("`claude-code` or `claude-desktop`")),
            ("vs-code", Some("`vscode`")),
            ("claude-dekstop", Some("`claude-desktop`")),
            ("emacs", None),
            ("c", None),
            ("", None),
        ] {
            assert_eq!(meant_client(given, &names).as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn a_command_without_dashes_is_shown_with_them() {
        let not = |line: &str| {
            format!(
                "`npx` is not a URL or a file; to start a server by its command, write it after `--`: `{line}`"
            )
        };
        advises("serve npx -y foo", &not("vary serve -- npx -y foo"));
        advises(
            "serve --listen 8800 npx -y foo",
            &not("vary serve -- npx -y foo"),
        );
        advises(
            "call a b=1 npx -y foo",
            &not("vary call TOOL -- npx -y foo"),
        );
        advises(
            "tools get_issue 23000",
            "`vary tools` takes only a target: vary tools 23000",
        );
        advises("inspect http://127.0.0.1/mcp -y", "");
        advises("serve --stdo", "");
    }
}
