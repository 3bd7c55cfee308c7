//! The measurement itself, without a clock: processes start, and their answers are checked.

use std::process::Command;

/// The exit code and the output of the rows with `only` in their names, with a `vary` that cannot be started.
fn check(scratch: &str, only: &str) -> (Option<i32>, String) {
    let scratch = format!("{}/{scratch}", env!("CARGO_TARGET_TMPDIR"));
    let ended = Command::new(env!("CARGO_BIN_EXE_vary-bench"))
        .args(["run", "--check", "--only", only])
        .args(["--vary", "none", "--scratch", &scratch])
        .output()
        .expect("the program starts");
    let output = String::from_utf8_lossy(&ended.stdout).into_owned();
    (ended.status.code(), output)
}

#[test]
fn every_answer_of_the_rows_that_need_no_other_program_is_right() {
    let (code, output) = check("check", "library");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.ends_with("every answer was right\n"), "{output}");
    let right = output.matches("with 4 variants   right");
    assert_eq!(right.count(), 4, "{output}");

    let (code, output) = check("check-embedded", "embedded");
    assert_eq!(code, Some(0), "{output}");
    let right = output.matches("embedded gateway  right");
    assert_eq!(right.count(), 2, "{output}");
}

#[test]
fn a_program_that_cannot_be_started_is_reported() {
    let (code, output) = check("fault", "call, legacy client, stdio");
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("vary: it does not serve"), "{output}");
}
