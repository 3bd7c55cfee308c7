//! Pages whose commands and files are tried: their fenced blocks, in order.

/// A fenced block: its language and its text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
}

/// The fenced blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```") {
        let Some((language, after)) = after.split_once('\n') else {
            break;
        };
        let Some(end) = after.find("\n```\n") else {
            break;
        };
        let (text, after) = after.split_at(end + 1);
        found.push(Block { language, text });
        rest = after.trim_start_matches("```");
    }
    found
}

/// The texts of the blocks in `language`.
pub(crate) fn texts<'a>(blocks: &[Block<'a>], language: &str) -> Vec<&'a str> {
    let found = blocks.iter().filter(|block| block.language == language);
    found.map(|block| block.text).collect()
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
