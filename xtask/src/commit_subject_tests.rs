//! The hook `.githooks/commit-msg` accepts subjects in the imperative after the crate's short name.

use std::fs;
use std::process::Command;

use crate::workspace::Workspace;

#[track_caller]
fn is_accepted(subject: &str, expected: bool) {
    let workspace = Workspace::here();
    let name = format!(
        "commit-{}",
        subject.replace(|c: char| !c.is_alphabetic(), "-")
    );
    let message = workspace.scratch(&name).unwrap();
    fs::write(&message, format!("{subject}\n\nBody.\n# comment\n")).unwrap();
    let mut hook = Command::new("sh");
    hook.current_dir(workspace.path(""))
        .arg(".githooks/commit-msg");
    let output = hook.arg(&message).output().unwrap();
    fs::remove_file(&message).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.success(), expected, "{subject}: {error}");
    assert_eq!(error.contains(subject), !expected, "{error}");
}

#[test]
fn a_subject_is_a_crate_and_a_verb_in_the_imperative() {
    for subject in [
        "gateway: keep unknown fields in results",
        "cli, upstream: split the connection into values",
        "docs: pass the path",
        "ci: embed the version",
        "Merge branch 'x'",
    ] {
        is_accepted(subject, true);
    }
}

#[test]
fn other_subjects_are_refused() {
    for subject in [
        "keep unknown fields in results",
        "gatewy: keep unknown fields",
        "gateway: Keep unknown fields",
        "gateway: kept unknown fields",
        "gateway: keeps unknown fields",
        "gateway: removed unknown fields",
        "gateway: keeping unknown fields",
        "gateway: a mark that does not arrive is no difference",
        "gateway:keep unknown fields",
    ] {
        is_accepted(subject, false);
    }
}
