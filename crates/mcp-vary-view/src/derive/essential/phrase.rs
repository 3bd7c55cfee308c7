//! What a sentence consists of: its words, quoted values, names and numbers.

/// What stands in brackets.
pub(super) fn remarks(sentence: &str) -> impl Iterator<Item = &str> {
    let opened = sentence.split('(').skip(1);
    opened.filter_map(|part| Some(part.split_once(')')?.0))
}

/// Whether a sentence names the ending of a file, such as `.md`.
pub(super) fn has_extension(sentence: &str) -> bool {
    let mut terms = sentence.split_whitespace();
    terms.any(|term| {
        let ending = term.trim_end_matches(['.', ',', ';', ':', ')']);
        let extension = ending.strip_prefix('.').unwrap_or_default();
        extension.len() > 1
            && extension.starts_with(|c: char| c.is_ascii_lowercase())
            && extension.chars().all(|c| c.is_alphanumeric() || c == '_')
    })
}

/// The words of a sentence with single spaces around each.
pub(super) struct Phrase(String);

impl Phrase {
    pub(super) fn of(sentence: &str) -> Self {
        let mut phrase = String::from(" ");
        for word in sentence.split(|c: char| c.is_whitespace() || ",;:()[]\"`*/=—".contains(c)) {
            let bare = word.trim_matches(|c: char| ".!?'’‘“”".contains(c));
            if !bare.is_empty() {
                phrase.push_str(&bare.to_lowercase().replace('’', "'"));
                phrase.push(' ');
            }
        }
        Self(phrase)
    }

    /// The words without these phrases.
    pub(super) fn without(&self, phrases: &[&str]) -> Self {
        let remove = |text: String, it: &&str| text.replace(&format!(" {it} "), " ");
        Self(phrases.iter().fold(self.0.clone(), remove))
    }

    pub(super) fn terms(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|word| !word.is_empty())
    }

    pub(super) fn has(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|it| self.0.contains(&format!(" {it} ")))
    }

    pub(super) fn starts(&self, phrases: &[&str]) -> bool {
        phrases
            .iter()
            .any(|phrase| self.0.starts_with(&format!(" {phrase} ")))
    }
}

/// The quoted parts of a sentence.
pub(super) fn literals(sentence: &str) -> impl Iterator<Item = &str> {
    let quoted = |quote: char| {
        let mut parts = sentence.split(quote);
        let mut before = parts.next().unwrap_or_default();
        let mut is_open = false;
        parts.filter(move |part| {
            // An apostrophe stands within a word.
            let opens = !before.ends_with(char::is_alphanumeric);
            before = *part;
            is_open = !is_open && opens;
            is_open && !part.is_empty()
        })
    };
    let known = |it: &&str| it.len() < sentence.len();
    QUOTES.into_iter().flat_map(quoted).filter(known)
}

/// Names such as `max_results`, `maxResults`, `--flag`, and the name before "tool" if it is joined with hyphens.
pub(super) fn identifiers(sentence: &str) -> impl Iterator<Item = &str> {
    let is_mark = |c: char| c.is_whitespace() || ",;:()[]{}\"'`*/=.!?".contains(c);
    let terms = sentence.split(is_mark).filter(|word| !word.is_empty());
    let next = terms.clone().skip(1).chain([""]);
    terms.zip(next).filter_map(|(word, next)| {
        let is_camel = word.starts_with(char::is_lowercase) && word.contains(char::is_uppercase);
        let is_snake = word.trim_matches('_').contains('_');
        let is_kebab = word.contains('-') && ["tool", "tools"].contains(&next);
        let is_other = word.starts_with('$') || word.starts_with("--");
        (is_camel || is_snake || is_kebab || is_other).then_some(word)
    })
}

/// Whether a sentence says which tool gives a value, or is to be called: `(from list-pages)`.
///
/// A name is joined, or marked as code. Words that are joined with hyphens (`from third-party sources`) are one only
/// where the clause ends.
pub(super) fn names_tool(sentence: &str) -> bool {
    let is_mark = |c: char| ".,;:()\"'`".contains(c);
    let terms: Vec<&str> = sentence.split_whitespace().collect();
    let pairs = terms.iter().zip(terms.iter().skip(1)).enumerate();
    let mut named = pairs.filter(|(_, (before, _))| {
        NAMED_AFTER.contains(&&*before.trim_matches(is_mark).to_lowercase())
    });
    named.any(|(at, (_, term))| {
        let name = term.trim_matches(is_mark);
        let next = terms
            .get(at + 2)
            .map_or("", |next| next.trim_matches(is_mark));
        let ends = next.is_empty() || term.ends_with(is_mark) || NAMED_BEFORE.contains(&next);
        let is_name = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let is_joined = name.trim_matches('_').contains('_') || name.contains('-') && ends;
        is_name && name.len() > 2 && (is_joined || term.contains('`'))
    })
}

/// Whether a sentence has a name such as `crm-list-contacts`. Words such as "up-to-date" are joined by short ones.
pub(super) fn has_long_name(sentence: &str) -> bool {
    let mut terms = sentence.split(|c: char| c != '-' && !c.is_alphanumeric());
    terms.any(|word| word.split('-').count() > 2 && word.split('-').all(|part| part.len() > 2))
}

/// The numbers of a sentence.
pub(super) fn numbers(sentence: &str) -> impl Iterator<Item = &str> {
    let parts = sentence.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let numbers = parts.map(|part| part.trim_matches('.'));
    numbers.filter(|part| !part.is_empty())
}

/// `404: Page not found`
pub(super) fn is_status(sentence: &str) -> bool {
    let code = sentence.split_once(':').map_or("", |(code, _)| code);
    code.len() == 3 && code.chars().all(|c| c.is_ascii_digit())
}

/// After which the name of a tool says where a value comes from, or what to call: `from list-pages`.
const NAMED_AFTER: &[&str] = &["by", "call", "calling", "from", "the", "using", "via"];

/// What may follow the name of a tool.
const NAMED_BEFORE: &[&str] = &["first", "output", "response", "result", "results", "tool"];
/// What a bound on a number is called.
pub(super) const BOUNDS: &[&str] = &[
    "at least", "at most", "max", "maximum", "min", "minimum", "up to",
];
pub(super) const QUOTES: [char; 3] = ['"', '\'', '`'];
