//! Each scalar of a server's structure is in what the client gets, or behind a link in it.

use std::collections::BTreeSet;

use mcp_vary::json::{Json, Members, elements};

use crate::case::{Case, Told, WHOLE};

/// Fails where a number, string or boolean of the structure is nowhere that the client can read.
#[track_caller]
pub(crate) fn are_reachable(case: &Case, sent: &Told) {
    let Some(value) = &case.served.value else {
        return;
    };
    if case.served.is_error || case.served.is_twice || value == "null" {
        return;
    }
    // What is kept whole is behind the link.
    if sent.whole.as_ref() == Some(value) && sent.result.contains(WHOLE) {
        return;
    }
    let seen = Seen::of(&sent.result, case.policy.text_only && case.shapes_text());
    let value = Json::parse(value).unwrap();
    if let Some(lost) = seen.lacks(&value) {
        panic!(
            "{} is lost for {:?} with {:?}: {} of {}",
            lost.to_json(),
            case.tags,
            case.policy,
            sent.result,
            case.served.result
        );
    }
}

/// What a client can read of a result, without what is mark-up and spacing.
struct Seen {
    /// The letters and digits of its strings and texts.
    letters: String,
    numbers: Vec<f64>,
    booleans: BTreeSet<bool>,
}

impl Seen {
    /// With `text_only`, of `content` alone.
    fn of(result: &str, text_only: bool) -> Self {
        let mut seen = Self {
            letters: String::new(),
            numbers: Vec::new(),
            booleans: BTreeSet::new(),
        };
        let members = Members::parse(result).unwrap();
        for block in elements(members.get("content").unwrap_or("[]")).unwrap() {
            let block = Members::parse(block).unwrap_or_default();
            if let Some(text) = block.get_str("text") {
                seen.add_text(&text);
            }
        }
        if let Some(value) = members.get("structuredContent").filter(|_| !text_only) {
            seen.add(&Json::parse(value).unwrap());
        }
        seen
    }

    fn add(&mut self, value: &Json<'_>) {
        match value {
            Json::Object(members) => members.iter().for_each(|(_, value)| self.add(value)),
            Json::Array(elements) => elements.iter().for_each(|value| self.add(value)),
            Json::String(text) => self.add_text(text),
            Json::Number(spelling) => self.add_text(spelling),
            Json::Bool(says) => drop(self.booleans.insert(*says)),
            Json::Null => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if let Ok(value @ (Json::Object(_) | Json::Array(_) | Json::String(_))) = Json::parse(text)
        {
            self.add(&value);
        }
        self.letters.extend(letters(text));
        self.letters.push('\n');
        let is_outside = |c: char| !(c.is_ascii_alphanumeric() || ".+-−,%".contains(c));
        for token in text.split(is_outside) {
            let token = token.replace('−', "-").replace(',', "");
            let plain = token.trim_end_matches(['.', '%', '-']);
            self.numbers.extend(plain.parse::<f64>());
            // `8°C` ends with its unit, `#12` and `2026-11-01` begin with something else.
            let digits = token.trim_start_matches(|c: char| !c.is_ascii_digit());
            let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.');
            let number = digits[..end.unwrap_or(digits.len())].trim_end_matches('.');
            if let Ok(number) = number.parse::<f64>() {
                self.numbers.extend([number, number / 100.0]);
            }
            for part in token.split(|c: char| !c.is_ascii_digit()) {
                self.numbers.extend(part.parse::<f64>());
            }
        }
        let has = |word: &str| text.to_lowercase().contains(word);
        self.booleans
            .extend((has("true") || has("yes")).then_some(true));
        self.booleans
            .extend((has("false") || has("no")).then_some(false));
    }

    /// The first scalar of `value` that is not there.
    fn lacks<'v, 'a>(&self, value: &'v Json<'a>) -> Option<&'v Json<'a>> {
        match value {
            Json::Object(members) => members.iter().find_map(|(_, value)| self.lacks(value)),
            Json::Array(elements) => elements.iter().find_map(|value| self.lacks(value)),
            scalar => (!self.has(scalar)).then_some(scalar),
        }
    }

    fn has(&self, scalar: &Json<'_>) -> bool {
        let has = |text: &str| {
            let letters: String = letters(text).collect();
            self.letters.contains(&letters)
        };
        match scalar {
            Json::Number(spelling) => {
                let value: f64 = spelling.parse().unwrap();
                let is_same = |reported: &f64| (reported - value).abs() <= value.abs() * 1e-12;
                has(spelling) || self.numbers.iter().any(is_same)
            }
            // A text that is JSON itself is rendered as what it says.
            Json::String(text) => has(text) || self.has_document(text),
            Json::Bool(says) => self.booleans.contains(says),
            _ => true,
        }
    }
}

impl Seen {
    fn has_document(&self, text: &str) -> bool {
        let document = Json::parse(text);
        document
            .is_ok_and(|document| document.as_str().is_none() && self.lacks(&document).is_none())
    }
}

fn letters(text: &str) -> impl Iterator<Item = char> {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase)
}
