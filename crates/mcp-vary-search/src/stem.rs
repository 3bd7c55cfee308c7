//! The stem of an English word, by a few suffixes.

/// Removes the plural and one of the common suffixes from `word`, if it consists of lowercase ASCII letters.
///
/// The rule is lighter than Porter's: it joins `files`, `file` and `filing`, and leaves `server` and `serve` apart. Words
/// of other languages stay as they are, unless they look like English.
pub(crate) fn stem(word: &mut String) {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    remove_plural(word);
    let suffix = SUFFIXES
        .iter()
        .find(|suffix| word.len() >= suffix.len() + SHORTEST && word.ends_with(**suffix));
    if let Some(suffix) = suffix {
        word.truncate(word.len() - suffix.len());
        let mut last = word.bytes().rev();
        let last = (last.next(), last.next());
        if last.0 == last.1 && !matches!(last.0, Some(b'l' | b's')) {
            word.pop();
        }
    }
}

fn remove_plural(word: &mut String) {
    let length = word.len();
    if length > 4 && word.ends_with("ies") {
        word.truncate(length - 3);
        word.push('y');
    } else if length > 4 && SIBILANTS.iter().any(|end| word.ends_with(end)) {
        word.truncate(length - 2);
    } else if length > 3 && word.ends_with('s') && !NOT_PLURAL.iter().any(|end| word.ends_with(end))
    {
        word.truncate(length - 1);
    }
}

/// Longer ones first, where one ends with another.
const SUFFIXES: &[&str] = &["ation", "ing", "ion", "ed", "e"];
const SIBILANTS: &[&str] = &["sses", "shes", "ches", "xes", "zes"];
const NOT_PLURAL: &[&str] = &["ss", "us", "is"];
/// The letters that a suffix leaves at least: `king` and `red` have none.
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn one_stem(words: &[&str], expected: &str) {
        for word in words {
            let mut stemmed = (*word).to_owned();
            stem(&mut stemmed);
            assert_eq!(stemmed, expected, "{word}");
        }
    }

    #[test]
    fn inflections_have_one_stem() {
        one_stem(&["file", "files"], "file");
        one_stem(
            &["create", "creates", "created", "creating", "creation"],
            "creat",
        );
        one_stem(&["planned", "planning"], "plan");
        one_stem(&["query", "queries"], "query");
        one_stem(&["search", "searches", "searching"], "search");
        one_stem(
            &["install", "installing", "installed", "installation"],
            "install",
        );
    }

    #[test]
    fn short_words_and_other_scripts_stay() {
        for word in [
            "king",
            "red",
            "status",
            "class",
            "is",
            "s",
            "",
            "файлы",
            "naïves",
            "mp3s",
        ] {
            one_stem(&[word], word);
        }
    }
}
