//! `vary completions` and `vary man`: bash accepts what is written, and each command has its page.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::program::{file, run};

/// Runs bash with `args`.
fn bash(args: &[&str]) -> Output {
    Command::new("bash").args(args).output().unwrap()
}

#[test]
fn bash_accepts_the_script_and_completes_commands_and_flags() {
    let script = run(&["completions", "bash"]).data(0);
    let path = file("vary.bash", &script);
    let complete = |words: &str, at: usize| {
        let line = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={at}; _vary vary \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{at}-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            path
        );
        let output = bash(&["-c", &line]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("vary conn", 1), "connect");
    assert_eq!(complete("vary connect claude-d", 2), "claude-desktop");
    assert_eq!(complete("vary serve --std", 2), "--stdio");
    assert_eq!(
        complete("vary wea", 1),
        "",
        "a hidden command is not completed"
    );
}

/// The script uses no syntax of zsh that bash lacks, so that bash can read it.
#[test]
fn zsh_gets_a_script_whose_quotes_and_blocks_close() {
    let zsh = run(&["completions", "zsh"]).data(0);
    assert!(zsh.starts_with("#compdef vary\n"), "{zsh}");
    let path = file("vary.zsh", &zsh);
    let output = bash(&["-n", &path]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    let broken = file("vary-broken.zsh", &zsh.replacen("]'", "]", 1));
    let output = bash(&["-n", &broken]);
    assert!(!output.status.success(), "bash finds a quote that is open");
}

/// The quotes and blocks that are open at the end of a script for fish, by its rules: in single quotes a backslash
/// escapes `'` and itself, in double quotes `"`, `$` and itself. <https://fishshell.com/docs/current/language.html>
fn open_at_the_end(script: &str) -> (Option<char>, i32) {
    let (mut quote, mut blocks, mut word) = (None, 0, String::new());
    let mut chars = script.chars().chain(['\n']).peekable();
    let mut is_first = true;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '#') if word.is_empty() => while chars.next_if(|c| *c != '\n').is_some() {},
            (_, '\\') => drop(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, c) if c.is_whitespace() || c == ';' => {
                match word.as_str() {
                    "function" | "if" | "for" | "while" | "switch" | "begin" if is_first => {
                        blocks += 1;
                    }
                    "end" if is_first => blocks -= 1,
                    _ => {}
                }
                is_first = c == '\n' || c == ';' || (is_first && word.is_empty());
                word.clear();
            }
            (None, c) => word.push(c),
        }
    }
    (quote, blocks)
}

#[test]
fn fish_gets_a_script_whose_quotes_and_blocks_close() {
    let fish = run(&["completions", "fish"]).data(0);
    assert!(fish.contains("complete -c vary "), "{fish}");
    assert_eq!(open_at_the_end(&fish), (None, 0));
    assert_eq!(
        open_at_the_end("if true\n  complete -d 'it\\'s'\n"),
        (None, 1)
    );
    assert_eq!(open_at_the_end("complete -d 'it's'").0, Some('\''));
}

#[test]
fn a_shell_without_a_script_is_refused() {
    run(&["completions", "csh"]).refuses(&["invalid value 'csh' for '<SHELL>'", "bash, zsh, fish"]);
}

/// The commands under `## Commands` of each help, which are those that users see.
fn commands(args: &[&str]) -> Vec<String> {
    let help = run(&[args, &["--help"]].concat()).data(0);
    let Some((_, after)) = help.split_once("Commands:\n") else {
        return Vec::new();
    };
    let lines = after.lines().take_while(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("    "));
    names
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn each_command_has_a_man_page() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = std::fs::remove_dir_all(&directory);
    assert_eq!(run(&["man", directory.to_str().unwrap()]).data(0), "");
    let mut expected = BTreeSet::from(["vary.1".to_owned()]);
    for command in commands(&[]) {
        expected.insert(format!("vary-{command}.1"));
        let inner = commands(&[&command]);
        expected.extend(
            inner
                .iter()
                .map(|inner| format!("vary-{command}-{inner}.1")),
        );
    }
    assert!(expected.contains("vary-config-check.1"), "{expected:?}");
    let pages = std::fs::read_dir(&directory).unwrap();
    let pages: BTreeSet<String> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(pages, expected);
    let page = std::fs::read_to_string(directory.join("vary-connect.1")).unwrap();
    for part in [
        ".TH vary-connect 1",
        ".SH SYNOPSIS",
        "claude\\-code",
        "Examples:",
    ] {
        assert!(page.contains(part), "`{part}` is missing in {page}");
    }
}

#[test]
fn a_directory_that_cannot_be_created_is_named() {
    let path = file("man-file", "");
    let run = run(&["man", &format!("{path}/x")]);
    run.refuses(&["man-file/x cannot be written: "]);
}
