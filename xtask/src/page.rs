//! Pages of the book: their fenced blocks, and their links to files of the workspace.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_their_languages() {
        let page = "a\n```sh\none\ntwo\n```\n\n```json\n{}\n```\n\n```sh\nthree\n```\n";
        let found = blocks(page);
        let json = Block {
            language: "json",
            text: "{}\n",
        };
        assert_eq!(found[1], json);
        assert_eq!(texts(&found, "sh"), ["one\ntwo\n", "three\n"]);
    }
}
