//! The book: MkDocs builds it without a warning, every link of the documentation leads somewhere, and the pages for users
//! are in plain English.

mod wording;

use std::time::Duration;

use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{npm, process, python};

/// MkDocs, with the versions of all that it needs.
const REQUIREMENTS: &str = "docs/requirements.txt";

/// The environment with MkDocs, and the directory of the built book.
const ENVIRONMENT: &str = "book";

const LIMIT: Duration = Duration::from_secs(5 * 60);

/// The directory with the packages that check links.
const LINKS: &str = "tests/book";

/// Where links are checked.
const PAGES: &[&str] = &[
    "docs",
    "crates",
    "examples",
    "fuzz",
    "spec",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
];

/// Checks the links and the wording, then builds the book.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    Outcome::of_all(&[
        ("links", links(workspace)),
        ("wording", wording::check(workspace)),
        ("mkdocs", build(workspace)),
    ])
}

/// Checks that each relative link leads to a file, and to a heading in it.
fn links(workspace: &Workspace) -> Result<(), String> {
    npm::install_from(workspace, LINKS)?;
    let packages = workspace.path(LINKS).join("node_modules");
    let plugin = packages.join("remark-validate-links/index.js");
    // Without the address of a repository: links to it are links of the web, too.
    let options = format!("{}=repository:false", plugin.display());
    let mut remark = process::command(packages.join(".bin/remark"));
    remark.current_dir(workspace.path(""));
    remark.args([
        "--quiet",
        "--frail",
        "--no-stdout",
        "--no-color",
        "--no-config",
    ]);
    remark.args(["--use", &options]).args(PAGES);
    process::run(&mut remark, &workspace.scratch("book-links.log")?, LIMIT)
}

/// Builds the book into `target/xtask/book/site`; a warning of MkDocs is an error.
fn build(workspace: &Workspace) -> Result<(), String> {
    python::install_into(workspace, ENVIRONMENT, REQUIREMENTS)?;
    let mut mkdocs = process::command(python::program(workspace, ENVIRONMENT, "python")?);
    mkdocs.current_dir(workspace.path(""));
    mkdocs.args(["-m", "mkdocs", "build", "--strict", "--clean", "--quiet"]);
    process::run(&mut mkdocs, &workspace.scratch("book.log")?, LIMIT)
}
