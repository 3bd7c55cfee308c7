//! `vary connect --write`: which files are not written.

use crate::connect::Home;
use crate::program::{Run, VARY};

/// Checks that `run` ended with `code`, and that its messages have `part`.
#[track_caller]
fn ends(run: &Run, code: i32, part: &str) {
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    assert!(
        run.stderr.contains(part),
        "`{}` does not say `{part}`",
        run.stderr
    );
}

#[cfg(unix)]
#[test]
fn a_file_that_a_link_leads_out_of_the_project_is_not_written() {
    let home = Home::new("outside");
    let secret = home.write("secret.json", "{}");
    std::fs::create_dir_all(home.path("project/.cursor")).unwrap();
    std::os::unix::fs::symlink(&secret, home.path("project/.cursor/mcp.json")).unwrap();
    let args = ["cursor", "--project", "--write", "--", VARY, "weather"];
    let refused = ".cursor/mcp.json leads out of the project, to ";
    let run = home.connect(&args);
    ends(&run, 2, refused);
    ends(
        &run,
        2,
        "secret.json; remove the link, or leave --project out\n",
    );
    assert_eq!(home.read("secret.json"), "{}");
    let left: Vec<_> = std::fs::read_dir(home.path("project/.cursor"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // A directory, in which the file does not exist yet.
    std::fs::remove_dir_all(home.path("project/.cursor")).unwrap();
    std::fs::create_dir_all(home.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(home.path("elsewhere"), home.path("project/.cursor")).unwrap();
    ends(&home.connect(&args), 2, refused);
    // A link inside of the project stays one.
    std::fs::remove_file(home.path("project/.cursor")).unwrap();
    std::fs::create_dir_all(home.path("project/dotfiles")).unwrap();
    std::os::unix::fs::symlink("dotfiles", home.path("project/.cursor")).unwrap();
    ends(&home.connect(&args), 0, "connected: 2 tools");
    assert!(home.read("project/dotfiles/mcp.json").contains("vary"));
}
