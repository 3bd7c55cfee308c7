//! The book: MkDocs builds it without a warning, every link of the documentation leads somewhere, and the pages for users
//! are in plain English.

mod links;
mod wording;

use std::time::Duration;

use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{process, python};

/// MkDocs, with the versions of all that it needs.
const REQUIREMENTS: &str = "docs/requirements.txt";

/// The environment with MkDocs, and the directory of the built book.
const ENVIRONMENT: &str = "book";

const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Checks the links and the wording, then builds the book.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    Outcome::of_all(&[
        ("links", links::check(workspace)),
        ("wording", wording::check(workspace)),
        ("mkdocs", build(workspace)),
    ])
}

/// Builds the book into `target/xtask/book/site`; a warning of MkDocs is an error.
fn build(workspace: &Workspace) -> Result<(), String> {
    python::install_into(workspace, ENVIRONMENT, REQUIREMENTS)?;
    let mut mkdocs = process::command(python::program(workspace, ENVIRONMENT, "python")?);
    mkdocs.current_dir(workspace.path(""));
    mkdocs.args(["-m", "mkdocs", "build", "--strict", "--clean", "--quiet"]);
    process::run(&mut mkdocs, &workspace.scratch("book.log")?, LIMIT)
}
