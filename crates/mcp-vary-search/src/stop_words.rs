//! Words that say little about what is searched.

/// Whether `word` is one that most sentences have. They are indexed in names only.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Whether `word` says of any tool that it is one. A query ignores them if it has other words.
pub(crate) fn is_about_tools(word: &str) -> bool {
    ABOUT_TOOLS.binary_search(&word).is_ok()
}

/// Sorted.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for",
    "from", "has", "have", "how", "if", "in", "into", "is", "it", "its", "may", "of", "on", "or",
    "other", "should", "that", "the", "their", "then", "there", "these", "this", "to", "use",
    "used", "using", "via", "was", "were", "what", "when", "where", "which", "who", "will", "with",
    "would", "you", "your",
];

/// Sorted.
const ABOUT_TOOLS: &[&str] = &[
    "api",
    "apis",
    "available",
    "capabilities",
    "capability",
    "function",
    "functionality",
    "functions",
    "mcp",
    "operation",
    "operations",
    "platform",
    "platforms",
    "server",
    "servers",
    "service",
    "services",
    "tool",
    "tools",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(ABOUT_TOOLS.is_sorted());
    }
}
