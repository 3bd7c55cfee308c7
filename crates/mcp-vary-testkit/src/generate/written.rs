//! Values as servers write them, each with a schema for which it is valid, and results that contain them.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

/// JSON with its spelling.
#[derive(Clone, Debug)]
pub enum Written {
    /// The text of a number, a string, a boolean or `null`.
    Scalar(String),
    /// The number of its row.
    Number,
    /// Its elements.
    Array(Vec<Self>),
    /// Its members, in order.
    Object(Vec<(String, Self)>),
}

/// The white space between tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spacing {
    /// None.
    None,
    /// A line for each member.
    Lines,
    /// Unusual spacing, unlike that of any program.
    Odd,
}

impl Written {
    /// The text.
    pub fn to_json(&self, spacing: Spacing) -> String {
        let mut out = String::new();
        self.write(&mut out, spacing, 0);
        out
    }

    fn write(&self, out: &mut String, spacing: Spacing, row: usize) {
        match self {
            Self::Scalar(spelled) => out.push_str(spelled),
            Self::Number => out.push_str(&row.to_string()),
            Self::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    space(out, spacing);
                    element.write(out, spacing, at);
                    space(out, spacing);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    space(out, spacing);
                    out.push_str(key);
                    out.push(':');
                    space(out, spacing);
                    value.write(out, spacing, row);
                }
                space(out, spacing);
                out.push('}');
            }
        }
    }
}

fn space(out: &mut String, spacing: Spacing) {
    out.push_str(match spacing {
        Spacing::None => "",
        Spacing::Lines => "\n  ",
        Spacing::Odd => ["", " ", "\t", "\r\n", "  \n"][out.len() % 5],
    });
}

/// Any spacing.
pub fn spacing() -> impl Strategy<Value = Spacing> {
    prop_oneof![
        3 => Just(Spacing::None),
        1 => Just(Spacing::Lines),
        2 => Just(Spacing::Odd),
    ]
}

/// `text` as a JSON string, plain or with escapes.
fn quoted(text: &str, escapes: u8) -> String {
    let plain = json!(text).to_string();
    match escapes {
        0 => {
            let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
            format!("\"{}\"", units.collect::<String>())
        }
        1 => plain.replace('/', "\\/"),
        _ => plain,
    }
}

/// The shape of a value: its schema, and values for which that is valid.
#[derive(Clone, Debug)]
enum Shape {
    Null,
    Bool,
    Integer,
    Number,
    /// A number that most parsers cannot represent.
    Beyond,
    Word,
    Long,
    Key,
    Choice,
    Constant(String),
    Nullable(Box<Self>),
    List(Box<Self>, List),
    Tuple(Vec<Self>),
    /// Its members, in order.
    Object(Vec<(String, Self, bool)>, Option<bool>),
    Map(Box<Self>),
    Either(Box<Self>, Box<Self>),
    Named(Box<Self>),
    Anything(Box<Self>),
}

/// The number of elements that a schema allows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum List {
    Any,
    Some,
    /// As many as there are now.
    Exact(usize),
}

impl Shape {
    /// The schema. Adds the schemas that it refers to to `named`.
    fn schema(&self, named: &mut Map<String, Value>) -> Value {
        match self {
            Self::Null => json!({"type": "null"}),
            Self::Bool => json!({"type": "boolean"}),
            Self::Integer | Self::Key => json!({"type": "integer", "minimum": 0}),
            Self::Number | Self::Beyond => json!({"type": "number"}),
            Self::Word => json!({"type": "string", "maxLength": 40}),
            Self::Long => json!({"type": "string"}),
            Self::Choice => json!({"enum": ["one", "two", null, 3]}),
            Self::Constant(text) => json!({"const": text}),
            Self::Nullable(of) => json!({"anyOf": [of.schema(named), {"type": "null"}]}),
            Self::List(of, list) => {
                let mut schema = json!({"type": "array", "items": of.schema(named)});
                match list {
                    List::Any => {}
                    List::Some => schema["minItems"] = json!(1),
                    List::Exact(count) => {
                        schema["minItems"] = json!(count);
                        schema["maxItems"] = json!(count);
                    }
                }
                schema
            }
            Self::Tuple(all) => {
                let items: Vec<_> = all.iter().map(|one| one.schema(named)).collect();
                json!({"type": "array", "prefixItems": items, "minItems": all.len()})
            }
            Self::Object(members, more) => {
                let properties: Map<_, _> = members
                    .iter()
                    .map(|(key, of, _)| (key.clone(), of.schema(named)))
                    .collect();
                let required = members.iter().filter(|(.., is_required)| *is_required);
                let required: Vec<_> = required.map(|(key, ..)| key).collect();
                let mut schema = json!({"type": "object", "properties": properties});
                if !required.is_empty() {
                    schema["required"] = json!(required);
                }
                if let Some(more) = more {
                    schema["additionalProperties"] = json!(more);
                }
                schema
            }
            Self::Map(of) => json!({"type": "object", "additionalProperties": of.schema(named)}),
            Self::Either(one, other) => {
                json!({"anyOf": [one.schema(named), other.schema(named)]})
            }
            Self::Named(of) => {
                let schema = of.schema(named);
                let name = format!("n{}", named.len());
                let reference = json!({"$ref": format!("#/$defs/{name}")});
                named.insert(name, schema);
                reference
            }
            Self::Anything(_) => json!(true),
        }
    }

    /// Values for which the schema is valid.
    fn value(&self) -> BoxedStrategy<Written> {
        match self {
            Self::Null => scalar(Just("null".to_owned())),
            Self::Bool => scalar(any::<bool>().prop_map(|is| is.to_string())),
            Self::Integer => scalar((0..5000_u32).prop_map(|number| number.to_string())),
            Self::Number => scalar(select(NUMBERS).prop_map(str::to_owned)),
            Self::Beyond => scalar(select(&["1e400", "-1E+999"][..]).prop_map(str::to_owned)),
            Self::Word => string(word()),
            Self::Long => string(long()),
            Self::Key => Just(Written::Number).boxed(),
            Self::Choice => {
                let choices = ["\"one\"", "\"\\u0074wo\"", "null", "3"];
                scalar(select(choices.to_vec()).prop_map(str::to_owned))
            }
            Self::Constant(text) => string(Just(text.clone())),
            Self::Nullable(of) => prop_oneof![2 => of.value(), 1 => Self::Null.value()].boxed(),
            Self::List(of, list) => {
                let count = match list {
                    List::Any => 0..24,
                    List::Some => 1..24,
                    List::Exact(count) => *count..*count + 1,
                };
                vec(of.value(), count).prop_map(Written::Array).boxed()
            }
            Self::Tuple(all) => {
                let all: Vec<_> = all.iter().map(Self::value).collect();
                all.prop_map(Written::Array).boxed()
            }
            Self::Object(members, _) => object(members),
            Self::Map(of) => btree_map("[a-d/~%]{1,2}", of.value(), 0..5)
                .prop_map(|members| {
                    let members = members.into_iter();
                    Written::Object(members.map(|(key, of)| (quoted(&key, 2), of)).collect())
                })
                .boxed(),
            Self::Either(one, other) => prop_oneof![one.value(), other.value()].boxed(),
            Self::Named(of) | Self::Anything(of) => of.value(),
        }
    }
}

fn scalar(spelled: impl Strategy<Value = String> + 'static) -> BoxedStrategy<Written> {
    spelled.prop_map(Written::Scalar).boxed()
}

fn string(text: impl Strategy<Value = String> + 'static) -> BoxedStrategy<Written> {
    let quoted = (text, 0..12_u8).prop_map(|(text, escapes)| quoted(&text, escapes));
    quoted.prop_map(Written::Scalar).boxed()
}

/// An object with members in any order. Optional members are sometimes missing.
fn object(members: &[(String, Shape, bool)]) -> BoxedStrategy<Written> {
    let member = |(key, of, is_required): &(String, Shape, bool)| {
        let (key, is_required) = (key.clone(), *is_required);
        (of.value(), any::<bool>(), 0..12_u8).prop_map(move |(value, is_there, escapes)| {
            (is_there || is_required).then(|| (quoted(&key, escapes), value))
        })
    };
    let members: Vec<_> = members.iter().map(member).collect();
    let members = members.prop_map(|members| members.into_iter().flatten().collect());
    members.prop_map(Written::Object).boxed()
}

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1",
    "1.0",
    "8.50",
    "1e2",
    "1E+2",
    "-1.5e-3",
    "12345678901234567890123",
    "0.1000000000000000055511151231257827",
];

/// Ordinary strings, and strings that are difficult for markdown, tables and terminals.
pub fn word() -> impl Strategy<Value = String> {
    let tricky = [
        "",
        " ",
        "<script>",
        "[x](http://e.test)",
        "https://a.test/b_c?d=1|2",
        "# h",
        "1. x",
        "```\nx\n```",
        "---",
        "a\nb",
        "a|b",
        "null",
        "{\"a\":1}",
        "[1]",
        "5",
        "a, b",
        "\u{2028}",
        "\u{0}",
        "…",
        "vary://result/x",
    ];
    prop_oneof![
        4 => "[a-zA-Z0-9 äß東😀_.-]{0,16}",
        1 => "\\PC{0,8}",
        2 => select(tricky.to_vec()).prop_map(str::to_owned),
    ]
}

fn long() -> impl Strategy<Value = String> {
    let piece = [
        "One sentence of several. ",
        "a line\n",
        "東京都 ",
        "x",
        "https://a.test/b ",
    ];
    (select(piece.to_vec()), 1..400_usize).prop_map(|(piece, times)| piece.repeat(times))
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        1 => Just(Shape::Null),
        1 => Just(Shape::Bool),
        2 => Just(Shape::Integer),
        3 => Just(Shape::Number),
        6 => Just(Shape::Word),
        1 => Just(Shape::Long),
        1 => Just(Shape::Choice),
        1 => word().prop_map(Shape::Constant),
    ];
    leaf.prop_recursive(4, 16, 4, |of| {
        let list = prop_oneof![
            3 => Just(List::Any),
            1 => Just(List::Some),
            1 => (0..12_usize).prop_map(List::Exact),
        ];
        let rows = members(of.clone()).prop_map(|mut members| {
            members.retain(|(key, ..)| key != "id");
            members.insert(0, ("id".to_owned(), Shape::Key, true));
            Shape::Object(members, None)
        });
        let boxed = |of: Shape| Box::new(of);
        prop_oneof![
            2 => (rows, list.clone()).prop_map(move |(of, list)| Shape::List(boxed(of), list)),
            1 => (of.clone(), list).prop_map(move |(of, list)| Shape::List(boxed(of), list)),
            1 => vec(of.clone(), 1..4).prop_map(Shape::Tuple),
            3 => (members(of.clone()), any::<Option<bool>>()).prop_map(|(members, more)| Shape::Object(members, more)),
            1 => of.clone().prop_map(move |of| Shape::Map(boxed(of))),
            1 => of.clone().prop_map(move |of| Shape::Nullable(boxed(of))),
            1 => (of.clone(), of.clone()).prop_map(move |(one, other)| Shape::Either(boxed(one), boxed(other))),
            1 => of.clone().prop_map(move |of| Shape::Named(boxed(of))),
            1 => of.prop_map(move |of| Shape::Anything(boxed(of))),
        ]
    })
}

fn members(of: impl Strategy<Value = Shape>) -> impl Strategy<Value = Vec<(String, Shape, bool)>> {
    btree_map("[a-d/~]|id|result|rows|text", (of, any::<bool>()), 0..5).prop_map(|members| {
        let members = members.into_iter();
        let members = members.map(|(key, (of, is_required))| (key, of, is_required));
        members.collect()
    })
}

/// A value, and a schema for which it is valid.
#[derive(Clone, Debug)]
pub struct Given {
    /// The schema.
    pub schema: Value,
    /// The value.
    pub value: Written,
}

/// An object, which every schema of a tool requires, or a value of any kind if `anything`.
pub fn given(anything: bool) -> impl Strategy<Value = Given> {
    let beyond = prop::option::weighted(0.05, Just(Shape::Beyond));
    let root =
        (members(shape()), any::<Option<bool>>(), beyond).prop_map(|(mut all, more, beyond)| {
            all.retain(|(key, ..)| key != "far");
            all.extend(beyond.map(|of| ("far".to_owned(), of, false)));
            Shape::Object(all, more)
        });
    let root = match anything {
        true => prop_oneof![3 => root, 1 => shape()].boxed(),
        false => root.boxed(),
    };
    root.prop_flat_map(|shape| {
        let mut named = Map::new();
        let mut schema = shape.schema(&mut named);
        if !named.is_empty() && schema.is_object() {
            schema["$defs"] = named.into();
        }
        shape.value().prop_map(move |value| Given {
            schema: schema.clone(),
            value,
        })
    })
}

/// Blocks that are not text, or that cannot be parsed.
const OTHERS: &[&str] = &[
    r#"{"type":"image", "data":"aGk=","mimeType":"image/png"}"#,
    r#"{"type":"audio","data":"aGk=", "mimeType":"audio/wav"}"#,
    r#"{"type":"resource_link","uri":"file:///a","name":"a","size":1.0}"#,
    r#"{"type":"resource_link","uri":"vary://other/x","name":"b"}"#,
    r#"{"type":"resource","resource":{"uri":"file:///a","text":"{\"a\":1}"}}"#,
    r#"{"type":"resource","resource":{"uri":"file:///b","blob":"aGk="}}"#,
    r#"{"type":"hologram","text":"{\"a\": 1}"}"#,
    r#"{"text":"no type"}"#,
    r#"{"type":"text","text":7}"#,
    r#"{"type":"text","type":"text","text":"twice"}"#,
    r#"{"type":"text","text":"\ud800"}"#,
    "null",
];

/// The result of a call as its server writes it, with its expected parts.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// The text of the result.
    pub result: String,
    /// The schema of the structured value.
    pub schema: Value,
    /// The structured value as written; `None` if it is missing or `null`.
    pub value: Option<String>,
    /// The texts that can be read.
    pub texts: Vec<String>,
    /// The blocks that are not text, as written.
    pub others: Vec<String>,
    /// The unknown members, as written.
    pub unknown: Vec<(String, String)>,
    /// Whether the result reports an error.
    pub is_error: bool,
    /// Whether a key occurs twice, so that parsers disagree about the result.
    pub is_twice: bool,
}

/// One block, before the value is known.
#[derive(Clone, Debug)]
enum Block {
    Value(Spacing),
    Text(String),
    Other(&'static str),
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        4 => spacing().prop_map(Block::Value),
        2 => word().prop_map(Block::Text),
        1 => long().prop_map(Block::Text),
        3 => select(OTHERS).prop_map(Block::Other),
    ]
}

/// A result of a tool; with `anything` also one whose structured value is not an object.
pub fn served(anything: bool) -> impl Strategy<Value = Served> {
    let blocks = prop::option::weighted(0.9, vec(block(), 0..4));
    let has = (0..10_u8, 0..10_u8, 0..25_u8);
    let members = subsequence(MEMBERS, 0..MEMBERS.len());
    let order = any::<prop::sample::Index>();
    let all = (given(anything), blocks, has, members, spacing(), order);
    all.prop_map(|(given, blocks, has, members, spacing, order)| {
        Draft::new(given, blocks, has, members).finish(spacing, order)
    })
}

/// Members beside those that are shaped.
const MEMBERS: &[(&str, &str)] = &[
    ("\"x-more\"", "{\"b\":1.10, \"a\":[ 1e400,\"\\u0041\\/\" ]}"),
    ("\"z\"", "null"),
    ("\"\\u00e9\"", "{\"a\":1,\"a\":2}"),
    ("\"_meta\"", "{\"acme/a\":1.0,\"acme/b\" : [] }"),
];

struct Draft {
    served: Served,
    members: Vec<(String, String)>,
}

impl Draft {
    fn new(
        given: Given,
        blocks: Option<Vec<Block>>,
        (structured, error, twice): (u8, u8, u8),
        more: Vec<(&'static str, &'static str)>,
    ) -> Self {
        let value = (structured > 2).then(|| given.value.to_json(Spacing::None));
        let mut members = Vec::new();
        let mut served = Served {
            result: String::new(),
            schema: given.schema,
            value: None,
            texts: Vec::new(),
            others: Vec::new(),
            unknown: Vec::new(),
            is_error: error == 0,
            is_twice: twice == 0,
        };
        let has_blocks = blocks.is_some();
        let blocks = blocks.unwrap_or_default().into_iter().map(|block| {
            let text = match block {
                Block::Value(spacing) => given.value.to_json(spacing),
                Block::Text(text) => text,
                Block::Other(block) => {
                    served.others.push(block.to_owned());
                    return block.to_owned();
                }
            };
            let block = format!("{{\"type\":\"text\", \"text\":{},\"x\":1.10}}", json!(text));
            served.texts.push(text);
            block
        });
        let content = blocks.collect::<Vec<_>>().join(" , ");
        if has_blocks || value.is_none() {
            members.push(("\"content\"".to_owned(), format!("[{content}]")));
        }
        if let Some(value) = value {
            members.push(("\"structuredContent\"".to_owned(), value.clone()));
            served.value = Some(value).filter(|value| value != "null");
        }
        if served.is_error || error == 1 {
            members.push(("\"isError\"".to_owned(), served.is_error.to_string()));
        }
        served.unknown = more
            .iter()
            .filter(|(key, _)| *key != "\"_meta\"")
            .map(|(key, value)| (read(key), (*value).to_owned()))
            .collect();
        let more = more.into_iter();
        members.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
        Self { served, members }
    }

    fn finish(mut self, spacing: Spacing, order: prop::sample::Index) -> Served {
        let first = order.index(self.members.len());
        self.members.rotate_left(first);
        if self.served.is_twice {
            let again = self.members[0].clone();
            self.members.push(again);
        }
        let mut out = "{".to_owned();
        for (at, (key, value)) in self.members.iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            space(&mut out, spacing);
            out.push_str(key);
            space(&mut out, spacing);
            out.push(':');
            space(&mut out, spacing);
            out.push_str(value);
        }
        space(&mut out, spacing);
        out.push('}');
        self.served.result = out;
        self.served
    }
}

fn read(quoted: &str) -> String {
    serde_json::from_str(quoted).unwrap()
}

/// The feature tags of a client: `registered` ones, and some that ask for the opposite.
pub fn tags(
    registered: impl IntoIterator<Item = &'static str>,
) -> impl Strategy<Value = Vec<&'static str>> {
    let mut all: Vec<_> = registered.into_iter().collect();
    all.extend(["!agent", "format=xml", "format!=json"]);
    subsequence(all, 0..5).prop_shuffle()
}
