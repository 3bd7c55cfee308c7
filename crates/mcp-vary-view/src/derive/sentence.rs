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
/// - Leading headings and list markers are removed, unless there is nothing else.
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
#[must_use]
pub fn first_sentence(text: &str) -> String {
    let passage = passage(text);
    match end(&passage) {
        Some(end) if passage[..end].chars().count() <= MAX_SENTENCE => passage[..end].to_owned(),
        None if passage.chars().count() <= MAX_TRUNCATED => passage,
        _ => truncated(&passage),
    }
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
        } else if is_heading(line) || (underlined && !starts_item(line)) {
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
fn reads_on(last: &str, line: &str) -> bool {
    let Some(first) = line.chars().next() else {
        return false;
    };
    if starts_item(line) || is_heading(line) || is_ornament(line) || is_label(line) {
        return false;
    }
    // A line of at least the usual wrap width was wrapped by an editor; a shorter one was ended by its author.
    first.is_lowercase() || last.ends_with(',') || last.chars().count() >= WRAPPED
}

/// Whether `line` is a heading: only `#` before the first space.
fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    rest.is_empty() || rest.starts_with(' ')
}

/// A rule, an underline or a fence.
fn is_ornament(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~") || is_rule(line)
}

/// A horizontal rule, or the underline of a heading.
fn is_rule(line: &str) -> bool {
    line.len() > 1 && line.chars().all(|c| "=-*_#~".contains(c))
}

/// A list item, a quotation or a row of a table.
fn starts_item(line: &str) -> bool {
    line.starts_with('|') || without_marker(line).len() < line.len()
}

/// `line` without the bullet, number or quotation mark in front.
fn without_marker(line: &str) -> &str {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = if digits.len() < line.len() {
        digits.strip_prefix(['.', ')'])
    } else {
        line.strip_prefix(['-', '*', '+', '•', '·', '–', '—', '>'])
    };
    match after {
        Some(rest) if rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => line,
    }
}

/// `Args:`, `Error Responses:`, `400: Bad request`.
fn is_label(line: &str) -> bool {
    let Some((label, rest)) = line.split_once(':') else {
        return false;
    };
    (rest.is_empty() || rest.starts_with(' '))
        && !label.starts_with(char::is_lowercase)
        && label.split_whitespace().count() <= 3
}

/// The end of the first sentence of the passage, if it has one.
fn end(passage: &str) -> Option<usize> {
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

/// The length of the terminators and closing marks at the start of `rest`.
fn trailing(rest: &str) -> usize {
    let belongs = |c: char| WIDE_ENDS.contains(c) || NARROW_ENDS.contains(c) || CLOSING.contains(c);
    rest.len() - rest.trim_start_matches(belongs).len()
}

/// Whether the terminator at `at`, which extends to `after`, ends a sentence.
fn ends_here(passage: &str, at: usize, after: usize) -> bool {
    let rest = &passage[after..];
    let Some(next) = rest.trim_start().chars().next() else {
        return true;
    };
    let only_one = after == at + 1;
    rest.starts_with(' ')
        && !next.is_lowercase()
        && !(only_one && passage[at..].starts_with('.') && is_abbreviated(&passage[..at], next))
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
/// A line with fewer characters was not broken by an editor.
const WRAPPED: usize = 60;

/// Terminators after which no space is needed.
const WIDE_ENDS: &str = "。！？｡．।॥။።";
/// Terminators before a space.
const NARROW_ENDS: &str = ".!?…؟۔։";
/// Marks that close after a terminator.
const CLOSING: &str = "\"')]}”’»›*_`）」』】";
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
mod tests {
    use super::*;

    #[track_caller]
    fn sentences(cases: &[(&str, &str)]) {
        for (text, first) in cases {
            assert_eq!(first_sentence(text), *first, "of {text:?}");
        }
    }

    #[test]
    fn a_sentence_ends_before_a_space() {
        sentences(&[
            (
                "Echoes back the input string",
                "Echoes back the input string",
            ),
            ("Reads a file. Then stops.", "Reads a file."),
            ("Why? Because.", "Why?"),
            ("Run it!! Now.", "Run it!!"),
            ("He said \"stop.\" Then left.", "He said \"stop.\""),
            ("**Reads a file.** Then stops.", "**Reads a file.**"),
            ("Wait... Then stop.", "Wait..."),
            ("Wait... then stop. Now.", "Wait... then stop."),
            ("Ends.\tTabbed.", "Ends."),
            ("  Leading space. More.", "Leading space."),
            ("", ""),
            (" \n\t\r\n ", ""),
            (".", "."),
        ]);
    }

    #[test]
    fn a_full_stop_inside_a_word_ends_nothing() {
        sentences(&[
            (
                "Pi is 3.14 in v1.2 of Node.js here. More.",
                "Pi is 3.14 in v1.2 of Node.js here.",
            ),
            (
                "See https://example.com/a.b?c=d.e for more. More.",
                "See https://example.com/a.b?c=d.e for more.",
            ),
            (
                "Uses db.count() and query. More.",
                "Uses db.count() and query.",
            ),
            (
                "Finds *.ext, ../a and .env files. More.",
                "Finds *.ext, ../a and .env files.",
            ),
            ("See https://example.com. More.", "See https://example.com."),
            ("Runs v1. Then v2.", "Runs v1."),
        ]);
    }

    #[test]
    fn abbreviations_end_nothing() {
        sentences(&[
            (
                "Finds, e.g. Rust files, i.e. *.rs. More.",
                "Finds, e.g. Rust files, i.e. *.rs.",
            ),
            (
                "Files, dirs, etc. are listed. More.",
                "Files, dirs, etc. are listed.",
            ),
            (
                "Lists files, dirs, etc. Sorts them.",
                "Lists files, dirs, etc.",
            ),
            (
                "Lists a vs. B (approx. 5). More.",
                "Lists a vs. B (approx. 5).",
            ),
            (
                "Asks Dr. Who and J. Smith of the U.S. Treasury. More.",
                "Asks Dr. Who and J. Smith of the U.S. Treasury.",
            ),
            ("Takes max. 10 of fig. 3. More.", "Takes max. 10 of fig. 3."),
            ("Takes the max. Returns it.", "Takes the max."),
            ("Ends with e.g.", "Ends with e.g."),
        ]);
    }

    #[test]
    fn brackets_and_code_hold_together() {
        sentences(&[
            (
                "Reads (see docs. Really.) a file. More.",
                "Reads (see docs. Really.) a file.",
            ),
            ("Runs `a. B` now. More.", "Runs `a. B` now."),
            ("Smiles :( a lot. More.", "Smiles :( a lot."),
            ("Reads a file (slow.) More.", "Reads a file (slow.) More."),
        ]);
    }

    #[test]
    fn lines_read_on_only_where_they_were_wrapped() {
        sentences(&[
            (
                "Notion | List users\nError Responses:\n400: Bad",
                "Notion | List users",
            ),
            ("Reads a file\nfrom disk. More.", "Reads a file from disk."),
            (
                "Reads the complete contents of a file that was stored with the\nGitHub API. More.",
                "Reads the complete contents of a file that was stored with the GitHub API.",
            ),
            ("Reads a file\n\nfrom disk.", "Reads a file"),
            ("Reads a file\r\n\r\nfrom disk.", "Reads a file"),
            ("Does:\n- one\n- two", "Does:"),
            ("Does\n  1. one\n  2. two", "Does"),
            ("Does a thing\n```\ncode. X\n```", "Does a thing"),
        ]);
    }

    #[test]
    fn what_is_no_sentence_ends_the_one_before() {
        sentences(&[
            (
                "Does a thing\n```\nlet a = 1;\nlet b = 2;\n```",
                "Does a thing",
            ),
            ("Reads,\n```rust\ncode", "Reads,"),
            ("Reads,\n~~~rust\ncode", "Reads,"),
            (
                "Reads,\nthen writes,\n----\nthen stops.",
                "Reads, then writes,",
            ),
            (
                "Reads,\nthen writes,\n-\nthen stops.",
                "Reads, then writes, - then stops.",
            ),
            ("Reads,\n# Notes\nthen stops.", "Reads,"),
            ("Reads,\n#notes, then stops.", "Reads, #notes, then stops."),
            ("Reads,\n- one", "Reads,"),
            ("Reads,\n> one", "Reads,"),
            ("Reads,\n| one | two |", "Reads,"),
            ("Reads,\n2024 was the year.", "Reads, 2024 was the year."),
            ("Reads,\nArgs:\nfile", "Reads,"),
            ("Reads,\nError Codes: 400", "Reads,"),
            ("Reads,\npath: the file.", "Reads, path: the file."),
            (
                "Reads,\nHttp://example.com too.",
                "Reads, Http://example.com too.",
            ),
            (
                "Reads,\nOne Or Two Files: those.",
                "Reads, One Or Two Files: those.",
            ),
        ]);
    }

    #[test]
    fn a_sentence_of_300_characters_is_kept_whole() {
        let words = |last: &str| format!("{}{last} More.", "word ".repeat(59));
        assert_eq!(first_sentence(&words("word.")).chars().count(), 300);
        assert_eq!(first_sentence(&words("words.")).chars().count(), 195);
        let unbroken = format!("{}。次。", "字".repeat(299));
        assert_eq!(first_sentence(&unbroken).chars().count(), 300);
    }

    #[test]
    fn headings_and_markers_in_front_are_left_out() {
        sentences(&[
            ("# Read\n\nReads a file. More.", "Reads a file."),
            ("Read\n====\nReads a file. More.", "Reads a file."),
            ("## Read a file", "Read a file"),
            ("#hashtag search. More.", "#hashtag search."),
            ("- Reads a file. More.\n- Writes", "Reads a file."),
            ("1. Reads a file. More.", "Reads a file."),
            ("-5 is a number. More.", "-5 is a number."),
        ]);
    }

    #[test]
    fn other_scripts_have_their_own_terminators() {
        sentences(&[
            ("ファイルを読む。次に書く。", "ファイルを読む。"),
            ("读取文件！然后写。", "读取文件！"),
            ("读取文件！！然后写。", "读取文件！！"),
            ("「読む。」と言う。次。", "「読む。」と言う。"),
            ("फ़ाइल पढ़ता है। फिर लिखता है।", "फ़ाइल पढ़ता है।"),
            ("هل يقرأ؟ نعم.", "هل يقرأ؟"),
            ("Читает файл. Потом пишет.", "Читает файл."),
            ("Überprüft z.B. Éric. Ähnlich.", "Überprüft z.B. Éric."),
            ("🚀 Starts. 🛑 Stops.", "🚀 Starts."),
        ]);
    }

    #[test]
    fn what_does_not_end_is_cut_between_words() {
        let endless = "word ".repeat(100);
        let cut = first_sentence(&endless);
        assert!(
            cut.ends_with("word…") && cut.chars().count() <= MAX_TRUNCATED,
            "{cut}"
        );

        let sentence = format!("{}end. More.", "word ".repeat(50));
        assert!(first_sentence(&sentence).ends_with("word end."));

        let unbroken = first_sentence(&"字".repeat(1000));
        assert_eq!(unbroken.chars().count(), MAX_TRUNCATED);
        let family = first_sentence(&"👩\u{200d}👩\u{200d}👧".repeat(1000));
        assert!(
            family.ends_with("👧…") || family.ends_with("👩…"),
            "{family}"
        );
    }

    #[test]
    fn a_cut_falls_between_words_in_its_second_half_only() {
        let length = |words: &str| {
            let cut = first_sentence(&format!("{words}{}", "b".repeat(MAX_SENTENCE)));
            assert!(cut.ends_with('…') && !cut.contains(['b', ',']) || cut.ends_with("b…"));
            cut.chars().count()
        };
        assert_eq!(length("aa "), MAX_TRUNCATED);
        assert_eq!(length(&format!("{} ", "a".repeat(99))), MAX_TRUNCATED);
        assert_eq!(length(&format!("{} ", "a".repeat(100))), 101);
        assert_eq!(length(&format!("{}, ", "a".repeat(120))), 121);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_bounded_sentence_on_one_line(
            text in "(\\PC|[ \n\r.!?()`#*:,-]|e\\.g\\.|\n\n){0,400}",
        ) {
            let first = first_sentence(&text);
            assert!(first.chars().count() <= MAX_SENTENCE);
            assert!(!first.contains('\n'));
            assert_eq!(first.is_empty(), text.trim().is_empty());
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(first.trim_end_matches('…')), "{first:?} of {words:?}");
        }
    }
}
