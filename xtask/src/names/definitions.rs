//! The names that Rust source defines: items, fields, variants, configuration keys and log fields.

use crate::rust::{Token, after_brackets, text_at};

/// A name at the place where it is defined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Definition<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'static str,
    pub(super) line: usize,
}

/// All definitions in `tokens`, from the top.
pub(super) fn definitions<'a>(tokens: &[Token<'a>]) -> Vec<Definition<'a>> {
    let mut definitions = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        if tokens[index].text == "#" {
            index = after_attribute(tokens, index);
            continue;
        }
        if let Some(definition) = item(tokens, index) {
            definitions.push(definition);
            if matches!(definition.kind, "struct" | "enum" | "union") {
                members(tokens, index, &mut definitions);
            }
        }
        if is_log_macro(tokens, index) {
            log_fields(tokens, index + 2, &mut definitions);
        }
        definitions.extend(configuration_key(tokens, index));
        index += 1;
    }
    definitions
}

/// The item whose keyword is at `index`.
fn item<'a>(tokens: &[Token<'a>], index: usize) -> Option<Definition<'a>> {
    let kind = match tokens[index].text {
        "fn" => "function",
        "struct" => "struct",
        "enum" => "enum",
        "union" => "union",
        "trait" => "trait",
        "type" => "type",
        "const" => "constant",
        "static" => "static",
        "mod" => "module",
        _ => return None,
    };
    let is_mutable = kind == "static" && text_at(tokens, index + 1) == "mut";
    let name = tokens.get(index + 1 + usize::from(is_mutable))?;
    let before = index.checked_sub(1).map_or("", |at| tokens[at].text);
    // `const fn`, `*const T`, and fields or calls that are named like a soft keyword are not items.
    let is_item = name.is_word() && name.text != "_" && !matches!(before, "*" | "." | "&");
    let is_keyword = matches!(name.text, "fn" | "unsafe" | "async" | "extern");
    (is_item && !is_keyword).then_some(Definition {
        name: name.text,
        kind,
        line: name.line,
    })
}

/// The fields and variants of the type whose keyword is at `index`.
fn members<'a>(tokens: &[Token<'a>], index: usize, definitions: &mut Vec<Definition<'a>>) {
    let is_enum = tokens[index].text == "enum";
    let rest = tokens[index..].iter();
    let Some(open) = rest
        .map(|token| token.text)
        .position(|text| matches!(text, "{" | ";"))
    else {
        return;
    };
    let open = index + open;
    if tokens[open].text == ";" {
        return;
    }
    let end = after_brackets(tokens, open);
    let mut at = open + 1;
    let mut depth = 1;
    while at < end {
        match tokens[at].text {
            "#" => {
                at = after_attribute(tokens, at);
                continue;
            }
            "(" | "[" => {
                at = after_brackets(tokens, at);
                continue;
            }
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => definitions.extend(member(tokens, at, is_enum && depth == 1)),
        }
        at += 1;
    }
}

fn member<'a>(tokens: &[Token<'a>], at: usize, is_variant: bool) -> Option<Definition<'a>> {
    let token = tokens[at];
    let starts = matches!(tokens[at - 1].text, "{" | "," | "]" | ")" | "pub");
    let after = text_at(tokens, at + 1);
    let kind = match is_variant {
        true if matches!(after, "," | "}" | "(" | "{" | "=") => "variant",
        false if after == ":" => "field",
        _ => return None,
    };
    (starts && token.is_word()).then_some(Definition {
        name: token.text,
        kind,
        line: token.line,
    })
}

fn is_log_macro(tokens: &[Token<'_>], index: usize) -> bool {
    let is_macro = matches!(
        tokens[index].text,
        "trace" | "debug" | "info" | "warn" | "error" | "event" | "span"
    ) || tokens[index].text.ends_with("_span");
    is_macro && text_at(tokens, index + 1) == "!" && text_at(tokens, index + 2) == "("
}

/// The fields of the log macro whose bracket is at `open`: `name = value`, `%name`, `?name` and `name`.
fn log_fields<'a>(tokens: &[Token<'a>], open: usize, definitions: &mut Vec<Definition<'a>>) {
    let end = after_brackets(tokens, open);
    let mut starts = true;
    let mut at = open + 1;
    while at + 1 < end {
        let after = text_at(tokens, at + 1);
        match tokens[at].text {
            "," => starts = true,
            "%" | "?" if starts => {}
            "(" | "[" | "{" => {
                starts = false;
                at = after_brackets(tokens, at);
                continue;
            }
            name if starts && tokens[at].is_word() && matches!(after, "=" | "," | ")") => {
                definitions.push(Definition {
                    name,
                    kind: "log field",
                    line: tokens[at].line,
                });
                starts = false;
            }
            _ => starts = false,
        }
        at += 1;
    }
}

/// The name in `key: "name"`, the form in the tables of the configuration.
fn configuration_key<'a>(tokens: &[Token<'a>], index: usize) -> Option<Definition<'a>> {
    if tokens[index].text != "key" || text_at(tokens, index + 1) != ":" {
        return None;
    }
    let value = tokens.get(index + 2)?;
    Some(Definition {
        name: value.as_string()?,
        kind: "key",
        line: value.line,
    })
}

fn after_attribute(tokens: &[Token<'_>], index: usize) -> usize {
    let is_inner = text_at(tokens, index + 1) == "!";
    let open = index + 1 + usize::from(is_inner);
    if text_at(tokens, open) == "[" {
        after_brackets(tokens, open)
    } else {
        index + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust;

    #[track_caller]
    fn defines(text: &str, expected: &[&str]) {
        let tokens = rust::production_tokens(text);
        let found: Vec<String> = definitions(&tokens)
            .iter()
            .map(|it| format!("{} {}", it.kind, it.name))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn items_are_definitions() {
        defines(
            "mod a; pub(crate) const fn b(c: *const u8) -> fn(u8) {} const D: u8 = 1; static mut E: u8 = 1; trait F { \
             type G; async fn h(); }",
            &[
                "module a",
                "function b",
                "constant D",
                "static E",
                "trait F",
                "type G",
                "function h",
            ],
        );
    }

    #[test]
    fn fields_and_variants_are_definitions() {
        defines(
            "struct A<T: B> where T: C { #[d(e = f)] g: H<I, J>, pub(crate) k: fn(l: M), pub n: O::P }",
            &["struct A", "field g", "field k", "field n"],
        );
        defines(
            "enum A { B, #[c] D(E), F { g: H }, I = 1 } struct J(K); struct L;",
            &[
                "enum A",
                "variant B",
                "variant D",
                "variant F",
                "field g",
                "variant I",
                "struct J",
                "struct L",
            ],
        );
    }

    #[test]
    fn locals_uses_comments_and_tests_are_not() {
        defines(
            "use a::told; fn f() { let told = told.told(Told { told: 1 }); } // fn told()\n\
             #[cfg(test)] mod tests { fn told() {} }",
            &["function f"],
        );
    }

    #[test]
    fn log_fields_and_keys_are_definitions() {
        defines(
            "debug!(a = %b, %c, ?d, e, f(g), \"text {h}\"); Setting { key: \"i-j\" }",
            &[
                "log field a",
                "log field c",
                "log field d",
                "log field e",
                "key i-j",
            ],
        );
    }
}
