//! The first sentence of a description.

/// The first sentence of `text`, on one line.
///
/// # Properties
///
/// - At most 300 characters. Text without the end of a sentence is truncated between two words after at most 200
///   characters, and then ends with `…`.
/// - A sentence ends with a terminator of its script before a space, a closing mark or the end; not
///   inside brackets or backticks, not before a lowercase letter, not after an abbreviation.
/// - It also ends at the end of a paragraph, a list, a label (`Args:`) or a short line.
/// - Leading headings, labels and list markers are removed, unless there is nothing else. If a text begins with a label and
///   has a `Purpose:`, the sentence below that one is the first.
/// - Words such as `including:` at the end, which introduce a list, are removed.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::derive::first_sentence;
///
/// assert_eq!(
///     first_sentence("Searches files, e.g. *.rs, with ripgrep v1.2. Hidden ones too."),
///     "Searches files, e.g. *.rs, with ripgrep v1.2.",
/// );
/// assert_eq!(first_sentence("List users\nError Responses:\n400: Bad request"), "List users");
/// ```
pub fn first_sentence(text: &str) -> String {
    let shown = passage(purpose(text).unwrap_or(text));
    match end(&shown) {
        Some(end) if shown[..end].chars().count() <= MAX_SENTENCE => shown[..end].to_owned(),
        None if shown.chars().count() <= MAX_TRUNCATED => without_introduction(&shown).to_owned(),
        _ => truncated(&shown),
    }
}

/// The text below `Purpose:`, if a description begins with a label.
fn purpose(text: &str) -> Option<&str> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    if !is_label(first) {
        return None;
    }
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let name = line
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        if is_label(line) && PURPOSES.contains(&name.as_str()) {
            return text
                .get(at..)
                .filter(|remaining| !remaining.trim().is_empty());
        }
    }
    None
}

/// The passage without the colon at its end and the words that lead to it: it says something without the list that
/// follows.
fn without_introduction(passage: &str) -> &str {
    let Some(sentence) = passage.strip_suffix(':') else {
        return passage;
    };
    let shortened = sentence.strip_suffix(" the following").unwrap_or(sentence);
    let cut = INTRODUCTIONS
        .iter()
        .find_map(|terms| shortened.strip_suffix(terms));
    cut.map_or(passage, |cut| cut.trim_end_matches([',', ' ']))
}

/// The first lines of `text` that continue one another, joined into one line a little longer than the longest
/// sentence.
fn passage(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).peekable();
    let mut passage = String::new();
    let mut heading = "";
    let mut last = loop {
        let Some(line) = lines.next() else {
            push_words(
                &mut passage,
                if heading.is_empty() { text } else { heading },
            );
            return passage;
        };
        let underlined = lines.peek().is_some_and(|next| is_rule(next));
        if line.is_empty() || is_ornament(line) {
        } else if is_heading(line) || is_label(line) || (underlined && !starts_item(line)) {
            heading = if heading.is_empty() {
                line.trim_start_matches('#').trim()
            } else {
                heading
            };
        } else {
            break line;
        }
    };
    push_words(&mut passage, without_marker(last));
    for line in lines {
        if passage.chars().count() > MAX_SENTENCE || !reads_on(last, line) {
            break;
        }
        push_words(&mut passage, line);
        last = line;
    }
    passage
}

/// Appends the words of `line` until the passage is long enough.
fn push_words(passage: &mut String, line: &str) {
    let mut length = passage.chars().count();
    for word in line.split_whitespace() {
        if length > MAX_SENTENCE {
            break;
        }
        if !passage.is_empty() {
            passage.push(' ');
        }
        passage.extend(word.chars().take(MAX_SENTENCE + 1));
        length += 1 + word.chars().take(MAX_SENTENCE + 1).count();
    }
}

/// Whether `line` continues the sentence at the end of `last`.
pub(super) fn reads_on(last: &str, line: &str) -> bool {
    let Some(first) = line.chars().next() else {
        return false;
    };
    if starts_item(line) || is_heading(line) || is_ornament(line) || starts_label(line) {
        return false;
    }
    // A line of at least the usual wrap width was wrapped by an editor; a shorter one was ended by its author.
    first.is_lowercase() || last.ends_with(',') || last.chars().count() >= WRAPPED
}

/// Whether `line` is a heading: only `#` before the first space.
pub(super) fn is_heading(line: &str) -> bool {
    let remaining = line.trim_start_matches('#');
    remaining.is_empty() || remaining.starts_with(' ')
}

/// A rule, an underline or a fence.
pub(super) fn is_ornament(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~") || is_rule(line)
}

/// A horizontal rule, or the underline of a heading.
fn is_rule(line: &str) -> bool {
    line.len() > 1 && line.chars().all(|c| "=-*_#~".contains(c))
}

/// A list item, a quotation or a row of a table.
pub(super) fn starts_item(line: &str) -> bool {
    line.starts_with('|') || without_marker(line).len() < line.len()
}

/// `line` without the bullet, number or quotation mark in front.
pub(super) fn without_marker(line: &str) -> &str {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = if digits.len() < line.len() {
        digits.strip_prefix(['.', ')'])
    } else {
        line.strip_prefix(['-', '*', '+', '•', '·', '–', '—', '>'])
    };
    match after {
        Some(remaining) if remaining.starts_with(char::is_whitespace) => remaining.trim_start(),
        _ => line,
    }
}

/// Whether `line` is a label that says nothing by itself: `Usage Guidance:`, `**Purpose:**`, `🎯 Purpose`.
pub(super) fn is_label(line: &str) -> bool {
    let trimmed = line.trim();
    let label = trimmed.trim_start_matches(|c: char| is_symbol(c) || c.is_whitespace());
    let has_mark = label.len() < trimmed.len() && !label.ends_with(|c| NARROW_ENDS.contains(c));
    let is_marked = has_mark || label.trim_end_matches(['*', '_']).ends_with(':');
    let is_short = label.split_whitespace().count() <= MAX_LABEL;
    is_marked && is_short && !starts_item(trimmed) && without_introduction(label) == label
}

/// Emoji, arrows and the like.
pub(super) fn is_symbol(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

/// `Args:`, `Error Responses:`, `400: Bad request`.
fn starts_label(line: &str) -> bool {
    let Some((label, remaining)) = line.split_once(':') else {
        return false;
    };
    (remaining.is_empty() || remaining.starts_with(' '))
        && !label.starts_with(char::is_lowercase)
        && label.split_whitespace().count() <= 3
}

/// The end of the first sentence of the passage, if it has one.
pub(super) fn end(passage: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = passage[at..].chars().next() {
        let next = at + c.len_utf8();
        at = if let Some(closed) = closed(passage, at, c) {
            closed
        } else if WIDE_ENDS.contains(c) {
            return Some(next + trailing(&passage[next..]));
        } else if NARROW_ENDS.contains(c) {
            let after = next + trailing(&passage[next..]);
            if ends_here(passage, at, after) {
                return Some(after);
            }
            after
        } else {
            next
        };
    }
    None
}

/// The end of the brackets or backticks that open at `at`, if they close.
fn closed(passage: &str, at: usize, open: char) -> Option<usize> {
    let (_, close) = BRACKETS.iter().find(|(opening, _)| *opening == open)?;
    let mut depth = 0;
    for (offset, c) in passage[at..].char_indices() {
        if c == *close && offset > 0 {
            depth -= 1;
        } else if c == open {
            depth += 1;
        }
        if depth == 0 {
            return Some(at + offset + c.len_utf8());
        }
    }
    None
}

/// The length of the terminators and closing marks at the start of `remaining`.
fn trailing(remaining: &str) -> usize {
    let belongs = |c: char| WIDE_ENDS.contains(c) || NARROW_ENDS.contains(c) || CLOSING.contains(c);
    remaining.len() - remaining.trim_start_matches(belongs).len()
}

/// Whether the terminator at `at`, which extends to `after`, ends a sentence.
fn ends_here(passage: &str, at: usize, after: usize) -> bool {
    let remaining = &passage[after..];
    let Some(next) = remaining.trim_start().chars().next() else {
        return true;
    };
    let only_one = after == at + 1;
    let is_sign = passage[..at].ends_with(' ') && passage[at..].starts_with('.')
        || next.is_ascii_punctuation() && !OPENING.contains(next);
    let is_full_stop = only_one && passage[at..].starts_with('.');
    let is_in_word = is_full_stop && is_abbreviated(&passage[..at], next);
    remaining.starts_with(' ') && !next.is_lowercase() && !is_sign && !is_in_word
}

/// Whether the full stop after `text` belongs to its last word; `next` is what follows.
fn is_abbreviated(text: &str, next: char) -> bool {
    let starts = |c: char| c.is_whitespace() || "([{\"'“‘/,".contains(c);
    let word = text.rsplit(starts).next().unwrap_or_default();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let dotted = word.contains('.') && word.split('.').all(|part| part.chars().count() == 1);
    initial
        || (dotted && word.chars().all(|c| c == '.' || c.is_alphabetic()))
        || TITLES.contains(&word)
        || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
        || (next.is_ascii_digit() && BEFORE_NUMBERS.contains(&word.to_lowercase().as_str()))
}

/// The first words of the passage and `…`.
fn truncated(passage: &str) -> String {
    let limit = passage
        .char_indices()
        .nth(MAX_TRUNCATED - 1)
        .map_or(passage.len(), |(at, _)| at);
    let start = &passage[..limit];
    // Scripts without spaces and endless words are cut between two characters.
    let whole = match start.rfind(' ') {
        Some(space) if space > limit / 2 => &start[..space],
        _ => start.trim_end_matches(joins),
    };
    let open = |c: char| c.is_whitespace() || ",;:-–—([{".contains(c);
    format!("{}…", whole.trim_end_matches(open))
}

/// Characters that must not end a truncated text, since they join the character before them.
fn joins(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{0300}'..='\u{036f}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Longer sentences are truncated, in characters.
const MAX_SENTENCE: usize = 300;
/// Characters of a truncated text, `…` included.
const MAX_TRUNCATED: usize = 200;
/// Words of a label.
const MAX_LABEL: usize = 3;
/// A line with fewer characters was not broken by an editor.
const WRAPPED: usize = 60;

/// Terminators after which no space is needed.
const WIDE_ENDS: &str = "。！？｡．।॥။።";
/// Terminators before a space.
const NARROW_ENDS: &str = ".!?…؟۔։";
/// Marks with which a sentence begins; others stand between the signs of a list such as `. * + ? ^`.
const OPENING: &str = "\"'([{<`*_-#@$~";
/// Marks that close after a terminator.
const CLOSING: &str = "\"')]}”’»›*_`）」』】";
/// Labels of what an item is for.
const PURPOSES: [&str; 4] = ["description", "overview", "purpose", "summary"];
/// Words before the colon of a list that can be left out with it.
const INTRODUCTIONS: [&str; 7] = [
    " by",
    " e.g.",
    " for example",
    " including",
    " such as",
    " using",
    " with",
];
const BRACKETS: [(char, char); 7] = [
    ('(', ')'),
    ('[', ']'),
    ('{', '}'),
    ('`', '`'),
    ('（', '）'),
    ('「', '」'),
    ('『', '』'),
];

const TITLES: [&str; 6] = ["Dr", "Mr", "Mrs", "Ms", "Prof", "St"];
const ABBREVIATIONS: [&str; 14] = [
    "al", "approx", "ca", "cf", "e.g", "eg", "esp", "excl", "i.e", "ie", "incl", "resp", "viz",
    "vs",
];
const BEFORE_NUMBERS: [&str; 14] = [
    "art", "ch", "eq", "fig", "max", "min", "no", "nos", "p", "pp", "sec", "v", "ver", "vol",
];

#[cfg(test)]
mod tests;
