//! Variables of the environment in place of values.

use super::*;

/// Each form of a variable stands for the text in the place of every text, number, switch and choice.
#[test]
fn a_variable_can_stand_in_every_value() {
    let expected = read("vary.yaml", EVERY_VALUE);
    let shown = |file: &File| {
        let config = shown(file);
        // The places are those of the text.
        let servers = file.servers.iter().map(|server| match &server.target {
            Target::Command { args, env, cwd, .. } => format!("{args:?} {env:?} {cwd:?}"),
            Target::Http { url, headers } => format!("{url} {:?}", headers["c"].to_str()),
            Target::InProcess(_) => unreachable!("no file has one"),
        });
        let servers: Vec<_> = servers.collect();
        (config.split("places: ").next().unwrap().to_owned(), servers)
    };
    for form in ["${V_%}", "${env:V_%}", "${NONE:-%}", "${env:NONE:-%}"] {
        let (text, values) = with_variables(EVERY_VALUE, form);
        assert!(values.len() > 50, "{values:?}");
        let variable = |name: &str| {
            values
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        let file = Source::new("vary.yaml", &text).read(&variable);
        let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        assert_eq!(shown(&file), shown(&expected), "{form}");
    }
}

/// The file with a variable in place of each value, and what the variables stand for.
fn with_variables(plain: &str, form: &str) -> (String, Vec<(String, String)>) {
    let mut values = Vec::new();
    let mut out = String::new();
    let mut word = String::new();
    // A value stands between these; what stands before a colon is a key.
    let is_end = |c: char| matches!(c, '{' | '}' | '[' | ']' | ',' | '\n');
    for c in plain.chars() {
        if c == ':' && !word.contains('\'') {
            out.push_str(&word);
            out.push(c);
            word.clear();
        } else if is_end(c) {
            let value = word.trim();
            if value.is_empty() {
                out.push_str(&word);
            } else {
                let value = value.trim_matches('\'').to_owned();
                let name = format!("{}", values.len());
                let inner = if form.contains(":-") { &value } else { &name };
                out.push_str(&format!(" '{}'", form.replace('%', inner)));
                values.push((format!("V_{name}"), value));
            }
            word.clear();
            out.push(c);
        } else {
            word.push(c);
        }
    }
    (out, values)
}
