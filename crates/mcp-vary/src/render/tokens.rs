//! What a text costs a model, about.

/// About how many tokens `text` has for a model: rather too many than too few.
///
/// No model's own encoding is asked: words count by their letters, numbers by their digits, the other
/// signs by twos, and characters beyond Latin one by one. For results of servers in use that is between a tenth
/// less and a half more than the encoding o200k makes of them. Linear in the text.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::tokens;
///
/// assert_eq!(tokens("The train leaves at 12."), 7);
/// assert_eq!(tokens(""), 0);
/// // What is no word has more than its length promises.
/// assert_eq!(tokens("東京駅"), 3);
/// ```
#[must_use]
pub fn tokens(text: &str) -> usize {
    let mut tokens = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = Kind::of(first);
        let mut end = rest.len();
        let mut before = first;
        for (at, next) in rest.char_indices().skip(1) {
            // `camelCase` is two words.
            let is_hump = before.is_lowercase() && next.is_uppercase();
            if Kind::of(next) != kind || kind == Kind::Letter && is_hump {
                end = at;
                break;
            }
            before = next;
        }
        let (run, after) = rest.split_at(end);
        tokens += kind.tokens(run, after);
        rest = after;
    }
    tokens
}

/// What runs of characters are made of.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    Letter,
    Digit,
    Space,
    Sign,
    Wide,
}

impl Kind {
    fn of(one: char) -> Self {
        match one {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' | '\t' | '\n' | '\r' => Self::Space,
            '\0'..='\u{7f}' => Self::Sign,
            _ => Self::Wide,
        }
    }

    /// What `run`, all of this kind, costs before `after`.
    fn tokens(self, run: &str, after: &str) -> usize {
        match self {
            Self::Letter => {
                // Capitals are seldom a word, and so is what has no end.
                let capitals = run.bytes().filter(u8::is_ascii_uppercase).count();
                let is_word = capitals < 2 && run.len() <= LONGEST_WORD;
                run.len().div_ceil(if is_word { 8 } else { 2 })
            }
            Self::Digit => run.len().div_ceil(3),
            Self::Sign => run.len().div_ceil(2),
            // The space before a word is part of it.
            Self::Space => {
                let is_word = after.starts_with(|next| Self::of(next) == Self::Letter);
                let is_indented = run.len() > 1 && run.contains('\n') && !run.ends_with('\n');
                usize::from(!(run == " " && is_word)) + usize::from(is_indented)
            }
            Self::Wide => run.chars().count(),
        }
    }
}

/// Longer runs of letters are no words.
const LONGEST_WORD: usize = 16;
