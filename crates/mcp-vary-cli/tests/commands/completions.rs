//! `vary completions` and `vary man`: shells and `man` accept what is written.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::program::{file, run};

/// Runs `shell` with `args`; `None` if it is not installed.
fn shell(shell: &str, args: &[&str]) -> Option<Output> {
    Command::new(shell).args(args).output().ok()
}

#[test]
fn bash_accepts_the_script_and_completes_commands_and_flags() {
    let script = run(&["completions", "bash"]).data(0);
    let path = file("vary.bash", &script);
    let complete = |words: &str, at: usize| {
        let line = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={at}; _vary vary \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{at}-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            path.display()
        );
        let output = shell("bash", &["-c", &line]).unwrap();
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

#[test]
fn other_shells_get_scripts_of_their_own() {
    let zsh = run(&["completions", "zsh"]).data(0);
    assert!(zsh.starts_with("#compdef vary\n"), "{zsh}");
    let fish = run(&["completions", "fish"]).data(0);
    assert!(fish.contains("complete -c vary "), "{fish}");
    for (name, check, script) in [("zsh", "-n", &zsh), ("fish", "--no-execute", &fish)] {
        let path = file(&format!("vary.{name}"), script);
        if let Some(output) = shell(name, &[check, path.to_str().unwrap()]) {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    run(&["completions", "csh"]).refuses(&["invalid value 'csh' for '<SHELL>'", "bash, zsh, fish"]);
}

/// The commands under `## Commands` of each help, which are those that users see.
fn commands(args: &[&str]) -> Vec<String> {
    let help = run(&[args, &["--help"]].concat()).data(0);
    let Some((_, rest)) = help.split_once("Commands:\n") else {
        return Vec::new();
    };
    let lines = rest.lines().take_while(|line| line.starts_with("  "));
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
    if let Some(output) = shell(
        "man",
        &[
            "--warnings",
            "-l",
            directory.join("vary-connect.1").to_str().unwrap(),
        ],
    ) {
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn a_directory_that_cannot_be_created_is_named() {
    let path = file("man-file", "");
    let run = run(&["man", path.join("x").to_str().unwrap()]);
    run.refuses(&["man-file/x cannot be written: "]);
}
