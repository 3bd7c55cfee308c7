//! Estimates what a text costs a model.

/// Estimates the tokens of `text`, rather too high than too low.
///
/// Independent of any model's encoding: words count by their letters, numbers by their digits, other signs in pairs,
/// and characters beyond Latin individually. For real servers' results, the estimate is between 10 % below and 50 %
/// above the encoding o200k. Linear in the text.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::tokens;
///
/// assert_eq!(tokens("The train leaves at 12."), 7);
/// assert_eq!(tokens(""), 0);
/// // Text without spaces has more tokens than its length suggests.
/// assert_eq!(tokens("東京駅"), 3);
/// ```
#[must_use]
pub fn tokens(text: &str) -> usize {
    let mut tokens = 0;
    let mut remaining = text;
    while let Some(first) = remaining.chars().next() {
        let kind = Kind::of(first);
        let mut end = remaining.len();
        let mut before = first;
        for (at, next) in remaining.char_indices().skip(1) {
            // `camelCase` is two words.
            let is_hump = before.is_lowercase() && next.is_uppercase();
            if Kind::of(next) != kind || kind == Kind::Letter && is_hump {
                end = at;
                break;
            }
            before = next;
        }
        let (run, after) = remaining.split_at(end);
        tokens += kind.tokens(run, after);
        remaining = after;
    }
    tokens
}

/// The kind of a run of characters.
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

    /// The tokens of `run`, which is of this kind and is followed by `after`.
    fn tokens(self, run: &str, after: &str) -> usize {
        match self {
            Self::Letter => {
                // Capitals and very long runs are seldom words.
                let capitals = run.bytes().filter(u8::is_ascii_uppercase).count();
                let is_word = capitals < 2 && run.len() <= MAX_WORD;
                run.len().div_ceil(if is_word { 8 } else { 2 })
            }
            Self::Digit => run.len().div_ceil(3),
            Self::Sign => run.len().div_ceil(2),
            // A space before a word belongs to the word.
            Self::Space => {
                let is_word = after.starts_with(|next| Self::of(next) == Self::Letter);
                let is_indented = run.len() > 1 && run.contains('\n') && !run.ends_with('\n');
                usize::from(!(run == " " && is_word)) + usize::from(is_indented)
            }
            Self::Wide => run.chars().count(),
        }
    }
}

/// Letters of a word.
const MAX_WORD: usize = 16;
