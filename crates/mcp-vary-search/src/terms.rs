//! How a text is split into words, and a word into terms.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::stem::stem;

/// The longest word that is indexed, in characters. Longer ones are cut: they are data, and nobody types them.
pub const MAX_WORD: usize = 40;

/// The terms of `text`, in its order.
///
/// # Properties
///
/// - Words are those of UAX 29. They are split at `_`, `-`, `.`, `/` and other signs, at changes of case, and between
///   letters and digits. A word that is split at case or digits is also a term as a whole.
/// - Scripts that write no spaces (Han, Kana, Thai, Lao, Khmer, Burmese) give pairs of neighbouring characters.
/// - Case, width and the accents of letters do not matter; English words are stemmed.
///
/// # Examples
///
/// ```
/// use mcp_vary_search::terms;
///
/// assert_eq!(terms("Lists HTMLTabs"), ["list", "html", "tab", "htmltab"]);
/// assert_eq!(terms("搜索引擎"), ["搜索", "索引", "引擎"]);
/// ```
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for_each_word(text, &mut |word| {
        stem(word);
        terms.push(word.clone());
    });
    terms
}

/// Calls `visit` with each folded word of `text`, which it may change.
pub(crate) fn for_each_word(text: &str, visit: &mut impl FnMut(&mut String)) {
    let mut buffer = String::new();
    if text.is_ascii() {
        // What UAX 29 divides in ASCII is divided at signs in any case.
        split(text, &mut buffer, visit);
        return;
    }
    let text = without_accents(text);
    let mut start = 0;
    let mut unspaced = false;
    for (at, c) in text.char_indices() {
        let belongs = is_unspaced(c) || (unspaced && is_combining_mark(c));
        if belongs != unspaced {
            run(&text, start..at, unspaced, &mut buffer, visit);
            start = at;
            unspaced = belongs;
        }
    }
    run(&text, start..text.len(), unspaced, &mut buffer, visit);
}

/// Normal form KC, without the accents that Unicode lists as combining diacritical marks.
fn without_accents(text: &str) -> String {
    let is_accent = |c: &char| ('\u{300}'..='\u{36f}').contains(c);
    text.nfkd().filter(|c| !is_accent(c)).nfc().collect()
}

/// Visits the words of a part of `text` that is of one kind.
fn run(
    text: &str,
    range: std::ops::Range<usize>,
    unspaced: bool,
    buffer: &mut String,
    visit: &mut impl FnMut(&mut String),
) {
    let part = text.get(range).unwrap_or_default();
    if unspaced {
        pairs(part, buffer, visit);
    } else {
        for word in part.unicode_words() {
            split(word, buffer, visit);
        }
    }
}

/// Visits the pairs of neighbouring characters of `part`, or its only character.
fn pairs(part: &str, buffer: &mut String, visit: &mut impl FnMut(&mut String)) {
    let mut chars = part.chars();
    let Some(mut last) = chars.next() else { return };
    let mut is_single = true;
    for c in chars {
        buffer.clear();
        buffer.extend([last, c]);
        visit(buffer);
        last = c;
        is_single = false;
    }
    if is_single {
        buffer.clear();
        buffer.push(last);
        visit(buffer);
    }
}

/// Visits the pieces between the signs in `text`.
fn split(text: &str, buffer: &mut String, visit: &mut impl FnMut(&mut String)) {
    for piece in text.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c)) {
        if !piece.is_empty() {
            split_at_changes(piece, buffer, visit);
        }
    }
}

/// Visits the parts of `piece` between changes of case and kind, and then the whole if there are several.
fn split_at_changes(piece: &str, buffer: &mut String, visit: &mut impl FnMut(&mut String)) {
    let mut start = 0;
    let mut previous: Option<(usize, Kind)> = None;
    let mut in_capitals = false;
    for (at, c) in piece.char_indices() {
        let Some(kind) = Kind::of(c) else { continue };
        if let Some((previous_at, previous_kind)) = previous {
            let boundary = match (previous_kind, kind) {
                (Kind::Upper, Kind::Lower) if in_capitals => Some(previous_at),
                (Kind::Lower, Kind::Upper) => Some(at),
                (Kind::Digit, other) | (other, Kind::Digit) if other != Kind::Digit => Some(at),
                _ => None,
            };
            if let Some(boundary) = boundary {
                emit(
                    piece.get(start..boundary).unwrap_or_default(),
                    buffer,
                    visit,
                );
                start = boundary;
            }
            in_capitals = previous_kind == Kind::Upper && kind == Kind::Upper;
        }
        previous = Some((at, kind));
    }
    emit(piece.get(start..).unwrap_or_default(), buffer, visit);
    if start > 0 {
        emit(piece, buffer, visit);
    }
}

fn emit(word: &str, buffer: &mut String, visit: &mut impl FnMut(&mut String)) {
    buffer.clear();
    if word.is_ascii() {
        buffer.extend(word.chars().take(MAX_WORD).map(|c| c.to_ascii_lowercase()));
    } else {
        buffer.extend(word.chars().take(MAX_WORD).flat_map(fold));
    }
    if !buffer.is_empty() {
        visit(buffer);
    }
}

/// `c` without case. Uppercase comes first, because `ß`, `ς` and `ı` differ from their other forms in lowercase.
fn fold(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase().flat_map(char::to_lowercase)
}

/// What a change between two neighbouring characters of a word is judged by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Letter,
}

impl Kind {
    /// Marks have none: they belong to the letter before them.
    fn of(c: char) -> Option<Self> {
        if c.is_lowercase() {
            Some(Self::Lower)
        } else if c.is_uppercase() {
            Some(Self::Upper)
        } else if c.is_numeric() {
            Some(Self::Digit)
        } else if c.is_alphabetic() && !is_combining_mark(c) {
            Some(Self::Letter)
        } else {
            None
        }
    }
}

/// Whether `c` is of a script that writes no spaces between words.
fn is_unspaced(c: char) -> bool {
    c >= FIRST_UNSPACED && UNSPACED.iter().any(|range| range.contains(&c)) && c.is_alphanumeric()
}

const FIRST_UNSPACED: char = '\u{e00}';
/// The blocks of such scripts.
const UNSPACED: &[std::ops::RangeInclusive<char>] = &[
    '\u{e00}'..='\u{eff}',     // Thai, Lao
    '\u{1000}'..='\u{109f}',   // Burmese
    '\u{1780}'..='\u{17ff}',   // Khmer
    '\u{3005}'..='\u{3007}',   // Han: iteration, closing and zero marks
    '\u{3040}'..='\u{30ff}',   // Hiragana, Katakana
    '\u{31f0}'..='\u{31ff}',   // Katakana, phonetic extensions
    '\u{3400}'..='\u{4dbf}',   // Han, extension A
    '\u{4e00}'..='\u{9fff}',   // Han
    '\u{f900}'..='\u{faff}',   // Han, compatibility
    '\u{20000}'..='\u{3ffff}', // Han, the other extensions
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn splits(text: &str, expected: &[&str]) {
        assert_eq!(terms(text), expected, "{text}");
    }

    #[test]
    fn names_are_split_at_signs_case_and_digits() {
        splits("read_file", &["read", "file"]);
        splits("get-crypto.rate/usd", &["get", "crypto", "rate", "usd"]);
        splits("readFile", &["read", "file", "readfil"]);
        splits("HTTPServer", &["http", "server", "httpserver"]);
        splits("GitHub", &["git", "hub", "github"]);
        splits("sha256", &["sha", "256", "sha256"]);
        splits("v1.2", &["v", "1", "v1", "2"]);
        splits("URL", &["url"]);
        splits("A", &["a"]);
        splits("__--..", &[]);
        splits("", &[]);
    }

    #[test]
    fn case_width_and_accents_do_not_matter() {
        splits("ＦＩＬＥ", &["file"]);
        splits("Café CAFE\u{301}", &["cafe", "cafe"]);
        splits("Straße STRASSE", &["strass", "strass"]);
        splits("ΣΟΦΟΣ σοφος", &["σοφοσ", "σοφοσ"]);
        splits("ФАЙЛ файл", &["фаил", "фаил"]);
        splits("ĳ ﬁle", &["ij", "file"]);
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        splits("搜索引擎", &["搜索", "索引", "引擎"]);
        splits("我", &["我"]);
        splits("用PDF转换", &["用", "pdf", "转换"]);
        splits("ファイル検索", &["ファ", "ァイ", "イル", "ル検", "検索"]);
        splits("ガ", &["ガ"]);
        splits("ｶﾞｶﾞ", &["ガガ"]);
    }

    #[test]
    fn scripts_with_spaces_give_words() {
        splits("파일 검색", &["파일", "검색"]);
        splits("फ़ाइल खोजें", &["फ़ाइल", "खोजें"]);
        splits("ابحث عن ملف", &["ابحث", "عن", "ملف"]);
        splits("tìm tập tin", &["tim", "tap", "tin"]);
    }

    #[test]
    fn long_words_are_cut() {
        let word = "x".repeat(MAX_WORD + 1);
        splits(&word, &[&word[..MAX_WORD]]);
    }
}
