//! The measurement itself, without a clock: processes start, and their answers are checked.

use std::process::Command;

#[test]
fn every_answer_of_the_rows_that_need_no_other_program_is_right() {
    let scratch = concat!(env!("CARGO_TARGET_TMPDIR"), "/check");
    let ended = Command::new(env!("CARGO_BIN_EXE_vary-bench"))
        .args([
            "run",
            "--check",
            "--only",
            "library",
            "--vary",
            "none",
            "--scratch",
            scratch,
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}");
    assert!(said.ends_with("every answer was right\n"), "{said}");
    assert_eq!(said.matches("with 4 variants   right").count(), 4, "{said}");
}

#[test]
fn a_program_that_cannot_be_started_is_said_to_be_at_fault() {
    let scratch = concat!(env!("CARGO_TARGET_TMPDIR"), "/fault");
    let ended = Command::new(env!("CARGO_BIN_EXE_vary-bench"))
        .args([
            "run",
            "--check",
            "--only",
            "call, legacy client, stdio",
            "--vary",
            "none",
            "--scratch",
            scratch,
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("vary: it does not serve"), "{said}");
}
