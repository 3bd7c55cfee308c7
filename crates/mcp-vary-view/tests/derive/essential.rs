//! What `compact` keeps of the prose in recorded lists, measured with the labelled sentences in `tests/corpus`.

#![expect(clippy::print_stdout, reason = "precision and recall are printed")]

use std::fs;
use std::path::Path;

use mcp_vary_view::derive::compact_tool;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{list, tools, value};

/// A labelled sentence: see `tests/corpus/README.md`.
#[derive(Debug, Deserialize)]
struct Labelled {
    list: String,
    tool: String,
    place: String,
    sentence: String,
    keep: bool,
}

/// How the rules do on one half of the corpus.
#[derive(Debug, Default)]
struct Score {
    sentences: usize,
    essential: usize,
    kept: usize,
    kept_essential: usize,
    lost: Vec<String>,
}

impl Score {
    fn of(half: &str) -> Self {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
        let text = fs::read_to_string(corpus.join(half)).expect("a half of the corpus");
        let labelled: Vec<Labelled> = serde_json::from_str(&text).expect("labelled sentences");
        let mut score = Self::default();
        for item in &labelled {
            let is_kept = is_kept(item);
            score.sentences += 1;
            score.essential += usize::from(item.keep);
            score.kept += usize::from(is_kept);
            score.kept_essential += usize::from(is_kept && item.keep);
            let at = || {
                format!(
                    "{} {} {}: {}",
                    item.list, item.tool, item.place, item.sentence
                )
            };
            // Nobody should read the misses of what is held out.
            let is_shown = !half.ends_with("held-out.json");
            match (item.keep, is_kept) {
                (true, false) => score.lost.push(at()),
                (false, true) if is_shown => println!("kept in vain: {}", at()),
                _ => {}
            }
        }
        println!(
            "{half}: {} sentences, {} essential, precision {:.3}, recall {:.3}",
            score.sentences,
            score.essential,
            score.precision(),
            score.recall()
        );
        score
    }

    fn add(&mut self, other: &Self) {
        self.sentences += other.sentences;
        self.essential += other.essential;
        self.kept += other.kept;
        self.kept_essential += other.kept_essential;
    }

    fn recall(&self) -> f64 {
        self.kept_essential as f64 / self.essential as f64
    }

    fn precision(&self) -> f64 {
        self.kept_essential as f64 / self.kept as f64
    }
}

/// Whether the compact form of the tool has the sentence in its place.
fn is_kept(item: &Labelled) -> bool {
    let tools = tools(&list(&format!("{}.json", item.list)));
    let mut named = tools.iter().filter(|it| value(it)["name"] == *item.tool);
    let compact = value(&compact_tool(named.next().expect("a recorded tool")).expect("a tool"));
    let schema = &compact["inputSchema"];
    let description = match item.place.as_str() {
        "" => compact["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        // The definition is where it is used now.
        place if place.starts_with("/$defs") => schema.to_string().replace("\\\"", "\""),
        place => {
            let described = schema
                .pointer(place)
                .and_then(|it| it["description"].as_str());
            described.unwrap_or_default().to_owned()
        }
    };
    let sentence = item.sentence.trim_start_matches("Note to LLM: ");
    let labelled = sentence
        .strip_prefix("**")
        .and_then(|it| it.split_once(":** "));
    let sentence = labelled.map_or(sentence, |(_label, remaining)| remaining);
    plain(&description).contains(&plain(sentence))
}

/// The words of a text without articles, and without those of its links.
pub(crate) fn plain(text: &str) -> String {
    let mut terms = String::new();
    for (at, part) in text.split("](").enumerate() {
        let part = match at {
            0 => part,
            _ => part.split_once(')').map_or(part, |(_, after)| after),
        };
        let letters = part.split(|c: char| !c.is_alphanumeric());
        for word in letters.filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            if ["a", "an", "the"].contains(&word.as_str()) {
                continue;
            }
            terms.push_str(&word);
            terms.push(' ');
        }
    }
    terms
}

#[test]
fn the_rules_keep_what_callers_need_also_of_sentences_held_out() {
    let mut open = Score::default();
    for part in ["open.json", "new-open.json", "opened.json", "terse.json"] {
        let score = Score::of(part);
        println!("lost: {:#?}", score.lost);
        open.add(&score);
    }
    let held_out = Score::of("held-out.json");
    assert!(open.sentences >= 450 && held_out.sentences >= 75);
    // Two or three words without a cue are lost, so this is a bound, not a promise.
    assert!(Score::of("terse-held-out.json").recall() >= 0.75);
    for score in [open, held_out] {
        let (recall, precision) = (score.recall(), score.precision());
        println!("recall {recall:.3}, precision {precision:.3}");
        assert!(recall >= 0.95 && precision >= 0.8);
    }
}

/// Lists `description` and an argument `a` with this schema as `compact` does: the description of the tool, and of `a`.
fn compacts(description: &str, argument: &Value) -> (String, String) {
    let tool = json!({
        "name": "send", "description": description,
        "inputSchema": {"type": "object", "properties": {"a": argument}},
    });
    let compact = value(&compact_tool(&tool.to_string()).expect("a tool"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let argument = &compact["inputSchema"]["properties"]["a"];
    (
        text(&compact["description"]),
        text(&argument["description"]),
    )
}

#[track_caller]
fn keeps(cases: &[(&str, Value, &str)]) {
    for (description, schema, retained) in cases {
        let mut schema = schema.clone();
        schema["description"] = json!(description);
        assert_eq!(compacts("Sends.", &schema).1, *retained, "of {description}");
    }
}

#[test]
fn of_a_tool_the_first_sentence_and_conditions_stay() {
    for case in [
        "Sends. It is fast. => Sends.",
        "Sends. Call `login` first. => Sends. Call `login` first.",
        "Sends. It is nice. The text is untrusted data. => Sends. Text is untrusted data.",
        "Sends. Exactly one of the two is needed. Returns the id. => Sends. Exactly one of the two is needed.",
        "Sends.\n\nReturns:\n  Only an id.\n\nIt must be open. => Sends. It must be open.",
        "Sends.\n```\nmust\n```\n# Must => Sends.",
        "Sends. Use the [guide](https://example.com/x) only at night. => Sends. Use guide only at night.",
        "Sends. **Paths:** **MUST** be like `**/*.rs`. => Sends. **Paths:** **MUST** be like `**/*.rs`.",
        "Sends. **Paths:** **MUST** be absolute. => Sends. MUST be absolute.",
        "Sends. If in doubt, consult https://example.com/x. => Sends.",
        "Sends. The file must be a `.md`, an \"a la carte\" menu, or a few of the rest. => \
         Sends. The file must be a `.md`, an \"a la carte\" menu, or a few of the rest.",
        "Sends. Only (the name of) an open file, a or b, or a few of the $files. => \
         Sends. Only (name of) open file, a or b, or a few of $files.",
        "Envoie un message. Le fichier existe. => Envoie un message. Le fichier existe.",
        "送信します。ファイルが必要です。 => 送信します。 ファイルが必要です。",
    ] {
        let (description, kept) = case.split_once(" => ").expect("a case");
        assert_eq!(compacts(description, &json!({})).0, kept);
    }
}

#[test]
fn of_an_argument_what_the_schema_lacks_stays() {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    keeps(&[
        ("The text. A JSON string.", text.clone(), "JSON string."),
        (
            "The time to wait, in seconds.",
            number.clone(),
            "Time to wait, in seconds.",
        ),
        ("The number of things.", number.clone(), ""),
        ("One of `x` and `y`.", text.clone(), "One of `x` and `y`."),
        (
            "Either `x` or `y`.",
            json!({"enum": ["x", "y"]}),
            "Either `x` or `y`.",
        ),
        ("The mode is `x` or `y`.", json!({"enum": ["x", "y"]}), ""),
        ("The list has 5 rows.", number.clone(), "List has 5 rows."),
        (
            "The list has 5 rows.",
            json!({"type": "number", "maximum": 5}),
            "",
        ),
        ("Default is css.", json!({"default": "css"}), ""),
        ("Default is css.", text.clone(), "Default is css."),
        (
            "The person who receives parcels.",
            text,
            "Person who receives parcels.",
        ),
        // The name `a` does not say it.
        (
            "The person who receives parcels.",
            number,
            "Person who receives parcels.",
        ),
        (
            "Der Name der Datei.",
            json!({"type": "number"}),
            "Der Name der Datei.",
        ),
    ]);
}

/// A schema of a machine's limits says nothing of those that its server has.
#[test]
fn a_limit_in_a_sentence_stays_beside_the_maximum_of_a_machine() {
    let machine = json!({"type": "integer", "default": 10, "minimum": -9007199254740991i64, "maximum": 9007199254740991i64});
    let told = json!({"type": "integer", "default": 10, "maximum": 1000});
    for text in [
        "The default value is 10, and the maximum value that can be requested is 1000.",
        "Default 10, max: 1000.",
        "Defaults to 10 (at most 1000).",
        "Results, e.g. 5, up to 1000.",
        "Default: 10; limited to 1000.",
    ] {
        let (_, kept) = compacts("Sends.", &with_description(&machine, text));
        assert!(kept.contains("1000"), "{text}: {kept}");
        let (_, kept) = compacts("Sends.", &with_description(&told, "Default is 10."));
        assert_eq!(kept, "");
    }
    keeps(&[
        ("Default is 10.", machine, ""),
        (
            "Default is 2024-01-31.",
            json!({"default": "2024-01-31"}),
            "",
        ),
    ]);
    let (tool, _) = compacts("Sends. Maximum 50 per call.", &json!({}));
    assert_eq!(tool, "Sends. Maximum 50 per call.");
}

fn with_description(schema: &Value, text: &str) -> Value {
    let mut schema = schema.clone();
    schema["description"] = json!(text);
    schema
}

/// The words of the names may all be in view already.
#[test]
fn the_tool_that_gives_a_value_stays() {
    let text = json!({"type": "string", "format": "uuid"});
    for said in [
        "The send (from send-list).",
        "A of send. Get it from `send`.",
        "Send via send_list.",
        "A send, returned by `list-sends`.",
        "Send a from list-sends output.",
        "Call send-list first.",
    ] {
        let (_, kept) = compacts("Sends a list.", &with_description(&text, said));
        assert!(!kept.is_empty(), "{said}");
        let (kept, _) = compacts(&format!("Sends a list. {said}"), &json!({}));
        assert_ne!(kept, "Sends list.", "{said}");
    }
    keeps(&[("The a from third-party sources.", text, "")]);
}

#[test]
fn what_happens_without_a_word_stays() {
    for text in [
        "Silently ignores ids that it does not know.",
        "It ignores ids that it does not know.",
        "Values above are clamped.",
        "This has no effect on groups.",
        "Returns ids; unknown ones are silently skipped.",
    ] {
        let (tool, _) = compacts(&format!("Sends. {text}"), &json!({}));
        assert_eq!(tool, format!("Sends. {text}"));
    }
    let flag = json!({"type": "boolean"});
    keeps(&[
        (
            "true hides it from menus while direct links work.",
            flag.clone(),
            "true hides it from menus while direct links work.",
        ),
        ("True if a.", flag, ""),
    ]);
}

#[test]
fn a_sentence_stays_with_the_one_that_it_speaks_of() {
    let number = json!({"type": "integer"});
    keeps(&[(
        "Count. The server may enforce a lower limit. If this happens, the list is truncated and not valid.",
        number,
        "Count. Server may enforce lower limit. If this happens, list is truncated and not valid.",
    )]);
}

#[test]
fn titles_of_examples_go_with_their_examples() {
    let tool = "Sends.\n\n**Examples:**\n1. Get first 10 steps if there are any\n```json\n{}\n```\nExpected Output: A list with only 10 steps\n\n2. Only JSON is allowed:\n```json\n{}\n```\nIt must be open:\n```\nx\n```\nExample:\n```\nx\n```";
    assert_eq!(
        compacts(tool, &json!({})).0,
        "Sends. Only JSON is allowed. It must be open."
    );
}

#[test]
fn a_list_of_what_a_result_has_goes() {
    for introduction in [
        "Returns complete information including:",
        "The response contains:",
    ] {
        let tool = format!(
            "Sends. {introduction}\n- message_id: the `id` of it\n- state: only if it was sent\n  - sub_state: before that\n\nIt must be open.\n- Call login first."
        );
        assert_eq!(
            compacts(&tool, &json!({})).0,
            "Sends. It must be open. Call login first."
        );
    }
    let needed = "Sends.\nReturns what follows:\n- token: a secret of the user\n- size";
    assert_eq!(
        compacts(needed, &json!({})).0,
        "Sends. Returns what follows: token: secret of user"
    );
}

#[test]
fn sections_about_arguments_become_their_descriptions() {
    let written = "Sends.\n\nArgs:\n  a (str): The text.\n    Only JSON.\n  b: Must stay.\n\nReturns:\n  An id.";
    let (tool, argument) = compacts(written, &json!({"type": "string"}));
    assert_eq!(
        (tool.as_str(), argument.as_str()),
        ("Sends. b: Must stay.", "Only JSON.")
    );
    let (tool, argument) = compacts("Sends.\n:param a: In seconds.", &json!({"type": "number"}));
    assert_eq!(
        (tool.as_str(), argument.as_str()),
        ("Sends.", "In seconds.")
    );
    // A description in the schema is not replaced.
    let own = json!({"type": "number", "description": "In meters."});
    assert_eq!(
        compacts("Sends.\nArgs:\n  a: In feet only.", &own).1,
        "In meters."
    );
}

#[test]
fn sections_about_arguments_are_not_lost_where_a_schema_stays_as_it_is() {
    let tool = json!({
        "name": "send", "description": "Sends.\nArgs:\n  a: In feet only.\n  b: In meters only.",
        "inputSchema": {"$schema": "https://example.com/x", "properties": {"a": {"type": "number"}, "b": true}},
    });
    let compact = value(&compact_tool(&tool.to_string()).expect("a tool"));
    assert_eq!(compact["description"], "Sends. b: In meters only.");
    let argument = &compact["inputSchema"]["properties"]["a"];
    assert_eq!(argument["description"], "In feet only.");
}

#[test]
fn a_choice_describes_the_same_argument_once() {
    let branch = json!({"properties": {
        "x": {"type": "number", "description": "In seconds."}, "y": {"type": "number", "description": "In seconds."},
    }});
    let tool = json!({"name": "send", "inputSchema": {"anyOf": [branch, branch]}});
    let compact = value(&compact_tool(&tool.to_string()).expect("a tool"));
    let at = |path: &str| compact["inputSchema"]["anyOf"].pointer(path).is_some();
    assert!(at("/0/properties/x/description") && at("/0/properties/y/description"));
    assert!(!at("/1/properties/x/description") && at("/1/properties/x"));
}
