//! Pages of the book: their fenced blocks, and their links to files of the workspace.

use std::fs;

use crate::workspace::Workspace;

/// Behind what a command writes into a page.
pub(crate) const END: &str = "<!-- and ends here -->";

/// A page with a table that `cargo xtask COMMAND --write` prints.
pub(crate) struct WrittenPage {
    pub(crate) path: &'static str,
    pub(crate) command: &'static str,
}

impl WrittenPage {
    fn begin(&self) -> String {
        let command = self.command;
        format!("<!-- what `cargo xtask {command} --write` prints begins here -->")
    }

    /// Puts `table` between the marks.
    ///
    /// # Errors
    ///
    /// When there are none, or the page cannot be read or written.
    pub(crate) fn write(&self, workspace: &Workspace, table: &str) -> Result<(), String> {
        let path = self.path;
        let written = with_table(&workspace.read(path)?, &self.begin(), table);
        let written = written.map_err(|error| format!("{path} {error}"))?;
        fs::write(workspace.path(path), written)
            .map_err(|error| format!("{path} could not be written: {error}"))
    }

    /// Checks that the text of the page has `table` between the marks.
    ///
    /// # Errors
    ///
    /// When it has another one.
    pub(crate) fn is_current(&self, text: &str, table: &str) -> Result<(), String> {
        if with_table(text, &self.begin(), table).as_deref() == Ok(text) {
            return Ok(());
        }
        let Self { path, command } = self;
        Err(format!(
            "{path} does not match the results; run cargo xtask {command} --write\n{table}"
        ))
    }
}

/// The page with `table` between the mark `begin` and [`END`].
pub(crate) fn with_table(page: &str, begin: &str, table: &str) -> Result<String, String> {
    let parts = page
        .split_once(begin)
        .and_then(|(before, after)| Some((before, after.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("lacks `{begin}` or `{END}`"))?;
    Ok(format!("{before}{begin}\n\n{table}{END}{after}"))
}

/// A fenced block: its language and its text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
}

/// The fenced blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut left = page;
    while let Some((_, after)) = left.split_once("\n```") {
        let Some((language, after)) = after.split_once('\n') else {
            break;
        };
        let Some(end) = after.find("\n```\n") else {
            break;
        };
        let (text, after) = after.split_at(end + 1);
        found.push(Block { language, text });
        left = after.trim_start_matches("```");
    }
    found
}

/// The texts of the blocks in `language`.
pub(crate) fn texts<'a>(blocks: &[Block<'a>], language: &str) -> Vec<&'a str> {
    let found = blocks.iter().filter(|block| block.language == language);
    found.map(|block| block.text).collect()
}

/// The words in code and the files of the links to the workspace's own files.
pub(crate) fn links(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut left = text;
    while let Some((before, after)) = left.split_once("`](../../") {
        let name = before.rsplit("[`").next().unwrap_or_default();
        let end = after.find(')').unwrap_or(after.len());
        found.push((name, &after[..end]));
        left = &after[end..];
    }
    found
}
