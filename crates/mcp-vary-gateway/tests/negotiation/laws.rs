//! What holds of every result on its whole way through the gateway: of generated ones, from servers of both eras to
//! clients of both, whatever these declare, whichever fields their variant has, and whatever the operator says.

use std::collections::BTreeMap;

use mcp_vary::json::{Json, Members, elements};
use mcp_vary_config::read_results;
use mcp_vary_view::ResultFields;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use mcp_vary::feature::registered_tags;
use mcp_vary_testkit::generate::written::{self, Served, served};

use crate::support::*;

/// What operators say, sensible and not; the last two fail for most results.
const RULES: &[&str] = &[
    "[]",
    "- {project: '.', markdown: '{{ value | markdown }} {{ text }}', hints: ['{{ tool }}']}",
    "- {project: '{id, rows}'}\n- {when: human, markdown: a person}\n- {when: sampling, hints: [look], hints-under: b}",
    "- {project: '[.]', text: '{{ text }}'}",
    "- {project: '.a.b.c[0]', markdown: '{{ id.nothing }}', text: '{{ result }}'}",
];

/// What one client asks for.
#[derive(Clone, Debug)]
struct Ask {
    /// The tool without promises, the one that drives an interface, or the one with the schema of the result.
    tool: &'static str,
    is_modern: bool,
    fields: &'static str,
    tags: Vec<&'static str>,
}

/// Some results with those who ask for them.
type Batch = Vec<(Served, Vec<Ask>)>;

fn batch(tags: impl Strategy<Value = Vec<&'static str>>) -> impl Strategy<Value = Batch> {
    let tool = prop_oneof![1 => Just("free"), 1 => Just("ui"), 2 => Just("bound")];
    let fields = prop::sample::select(&["both", "content", "structured"][..]);
    let ask = (tool, any::<bool>(), fields, tags).prop_map(|(tool, is_modern, fields, tags)| Ask {
        tool,
        is_modern,
        fields,
        tags,
    });
    let asks = prop::collection::vec(ask, 6);
    prop::collection::vec((served(false), asks), 1..12)
}

/// A gateway before a server that answers each call with what it was last told.
struct Told {
    harness: Harness,
    says: Arc<Mutex<String>>,
    sessions: BTreeMap<Vec<&'static str>, LegacyClient>,
    http: RawHttp,
    rules: String,
}

impl Told {
    async fn start(server: Era, rules: &str, batch: &Batch) -> Self {
        let says = Arc::new(Mutex::new(String::new()));
        let tools = tools(batch);
        let reported = Arc::clone(&says);
        let peer = Script::new(server, "laws")
            .declares(json!({"tools": {}}))
            .reply("tools/list", move |seen| seen.answer_text(&tools))
            .reply("tools/call", move |seen| {
                seen.answer_text(&reported.lock().unwrap())
            })
            .start();
        let read = read_results(rules).unwrap();
        let variant = |(id, fields)| {
            let id: &str = id;
            let mut variant = VariantConfig::new(ServerVariant::new(id.parse().unwrap(), "x"));
            variant.style.result = fields;
            variant
        };
        let variants = [
            ("both", ResultFields::Both),
            ("content", ResultFields::Content),
            ("structured", ResultFields::Structured),
        ];
        let harness = Harness::behind_one(peer.await, |mut config| {
            config.results = read;
            config
                .with_variants_of(variants.map(variant).to_vec())
                .unwrap()
        });
        let harness = harness.await;
        Self {
            http: harness.connect().await,
            harness,
            says,
            sessions: BTreeMap::new(),
            rules: rules.to_owned(),
        }
    }

    /// The `result` that the client is sent, byte for byte; of an error its message.
    async fn result(&mut self, ask: &Ask, method: &str, params: Value) -> Result<String, String> {
        let params = under(ask.fields, params);
        let declared = if ask.tags.is_empty() {
            json!({})
        } else {
            features(&ask.tags)
        };
        let response = if ask.is_modern {
            let post = HttpRequest::modern_request_as(method, params, &declared);
            self.http.ask(&post).await
        } else {
            if !self.sessions.contains_key(&ask.tags) {
                let client = LegacyClient::open(&self.harness, "2025-11-25", &declared).await;
                self.sessions.insert(ask.tags.clone(), client);
            }
            let client = self.sessions.get_mut(&ask.tags).unwrap();
            let post = client.post(&request(json!(1), method, params));
            client.http.ask(&post).await
        };
        let text = response.text();
        let before = r#"{"jsonrpc":"2.0","id":1,"result":"#;
        let result = text
            .strip_prefix(before)
            .and_then(|it| it.strip_suffix('}'));
        result.map(str::to_owned).ok_or(text)
    }

    /// What a call brings when the server says `result`.
    async fn call(&mut self, ask: &Ask, at: usize, result: &str) -> String {
        result.clone_into(&mut self.says.lock().unwrap());
        let tool = match ask.tool {
            "bound" => format!("bound-{at}"),
            other => other.to_owned(),
        };
        let params = json!({"name": tool, "arguments": {}});
        self.result(ask, "tools/call", params).await.unwrap()
    }

    /// The schema that the client was given with the tool.
    async fn listed(&mut self, ask: &Ask, at: usize) -> Option<Value> {
        if ask.tool != "bound" {
            return None;
        }
        let list = self.result(ask, "tools/list", json!({})).await.unwrap();
        let list: Value = serde_json::from_str(&list).unwrap();
        let tools = list["tools"].as_array().unwrap();
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == format!("bound-{at}"));
        tool.unwrap().get("outputSchema").cloned()
    }

    /// Reads what `uri` leads to, page by page, and puts it together.
    async fn read(&mut self, ask: &Ask, uri: &str) -> String {
        let mut parts: Vec<(String, String)> = Vec::new();
        let mut next = Some(uri.to_owned());
        while let Some(uri) = next {
            let read = self
                .result(ask, "resources/read", json!({"uri": uri}))
                .await;
            let read: Value = serde_json::from_str(&read.unwrap()).unwrap();
            let text = |at: usize, key: &str| read["contents"][at][key].as_str().map(str::to_owned);
            assert_eq!(text(0, "uri").as_deref(), Some(uri.as_str()));
            parts.push((text(0, "mimeType").unwrap(), text(0, "text").unwrap()));
            next = text(1, "uri");
            assert_ne!(next.as_deref(), Some(uri.as_str()), "the chain ends");
            assert!(parts.len() < 10_000, "the chain ends");
        }
        joined(&parts)
    }
}

/// The value that the parts are together, as JSON.
fn joined(parts: &[(String, String)]) -> String {
    if parts[0].0 == "text/plain" {
        let all: String = parts.iter().map(|(_, text)| text.as_str()).collect();
        return mcp_vary::json::string(&all);
    }
    let all: Vec<_> = parts
        .iter()
        .map(|(_, text)| Json::parse(text).unwrap())
        .collect();
    let whole = all.into_iter().reduce(|all, more| match (all, more) {
        (Json::Array(mut all), Json::Array(more)) => {
            all.extend(more);
            Json::Array(all)
        }
        (Json::Object(mut all), Json::Object(more)) => {
            all.extend(more);
            Json::Object(all)
        }
        (all, more) => panic!("{more:?} follows {all:?}"),
    });
    whole.unwrap().to_json()
}

/// The tools of all results of a batch.
fn tools(batch: &Batch) -> String {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut ui = tool("ui");
    ui["_meta"] = json!({"ui": {"resourceUri": "ui://x"}});
    let mut tools = vec![tool("free"), ui];
    for (at, (served, _)) in batch.iter().enumerate() {
        let mut bound = tool(&format!("bound-{at}"));
        bound["outputSchema"] = served.schema.clone();
        tools.push(bound);
    }
    json!({ "tools": tools }).to_string()
}

/// `result` with what the client's revision requires.
fn required(ask: &Ask, result: &str) -> String {
    if ask.is_modern && !result.starts_with(r#"{"resultType":"#) {
        format!(r#"{{"resultType":"complete",{}"#, &result[1..])
    } else {
        result.to_owned()
    }
}

/// The feature tags of a client.
fn tags() -> impl Strategy<Value = Vec<&'static str>> {
    written::tags(registered_tags())
}

/// Runs `check` for generated batches, before servers of both eras.
fn holds<S>(
    cases: u32,
    rules: &[&str],
    tags: impl Fn() -> S,
    check: impl AsyncFn(&mut Told, &Ask, usize, &Served),
) where
    S: Strategy<Value = Vec<&'static str>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for rules in rules {
        for era in [Era::Legacy, Era::Modern] {
            let mut runner = TestRunner::new(ProptestConfig {
                cases,
                failure_persistence: None,
                max_shrink_iters: 200,
                ..ProptestConfig::default()
            });
            let ran = runner.run(&batch(tags()), |batch| {
                runtime.block_on(async {
                    let mut sent = Told::start(era, rules, &batch).await;
                    for (at, (served, asks)) in batch.iter().enumerate() {
                        for ask in asks {
                            check(&mut sent, ask, at, served).await;
                        }
                    }
                });
                Ok(())
            });
            if let Err(why) = ran {
                panic!("with {rules}, before a server of {era:?}: {why}");
            }
        }
    }
}

/// The blocks of a result that are no text and not the gateway's own link.
fn others(result: &str) -> Vec<String> {
    let members = Members::parse(result).unwrap();
    let blocks = elements(members.get("content").unwrap_or("[]")).unwrap();
    let is_other = |block: &&str| {
        let Ok(members) = Members::parse(block) else {
            return true;
        };
        let uri = members.get_str("uri").unwrap_or_default();
        let is_text = members.get_str("type").as_deref() == Some("text");
        let is_link = uri.starts_with("vary://result/");
        !(is_link || is_text && members.get_str("text").is_some())
    };
    blocks
        .into_iter()
        .filter(is_other)
        .map(str::to_owned)
        .collect()
}

/// The texts of a result that say something of what it is about, not only what is missing.
fn words(result: &str) -> Vec<String> {
    let members = Members::parse(result).unwrap();
    let blocks = elements(members.get("content").unwrap_or("[]")).unwrap();
    let text = |block: &str| {
        let block = Members::parse(block).ok()?;
        let is_text = block.get_str("type").as_deref() == Some("text");
        block.get_str("text").filter(|_| is_text)
    };
    let texts = blocks.into_iter().filter_map(text);
    texts
        .filter(|text| !text.contains("; vary://result/"))
        .collect()
}

/// CN-8, CN-13, TR-3, TR-4, TR-5: whatever becomes of a result, its images, links and errors are there, it says something,
/// and its value meets the schema that this client was given.
#[test]
fn nothing_is_lost_on_the_way() {
    holds(2, RULES, tags, async |told, ask, at, served| {
        let received = told.call(ask, at, &served.result).await;
        let told_of = format!("{ask:?}: {received} of {}", served.result);
        if served.is_twice || served.is_error {
            let is_plain = ask.fields == "both";
            assert!(
                !is_plain || received == required(ask, &served.result),
                "{told_of}"
            );
            return;
        }
        // What says that it is a text and cannot be read goes with the texts.
        let is_no_text = |block: &&String| !block.contains(r#""type":"text""#);
        let is_kept = |block: &&String| ask.fields != "structured" || is_no_text(block);
        let (now, before) = (others(&received), &served.others);
        let now: Vec<_> = now.iter().filter(is_kept).collect();
        let expected = before.iter().filter(is_kept).collect::<Vec<_>>();
        assert_eq!(now, expected, "{told_of}");
        let members = Members::parse(&received).unwrap();
        for (key, value) in &served.unknown {
            assert_eq!(members.get(key), Some(value.as_str()), "{told_of}");
        }
        let value = members.get("structuredContent").filter(|it| *it != "null");
        let said = served.value.is_some() || !served.texts.is_empty();
        let is_said = value.is_some() || !words(&received).is_empty();
        assert!(!said || is_said, "{told_of}");
        // A user interface reads the structure, whatever its model does.
        let is_words = ask.fields == "content" && ask.tool != "ui";
        assert!(!is_words || value.is_none(), "{told_of}");
        let listed = told.listed(ask, at).await;
        let expected = ask.tool == "bound" && ask.fields != "content";
        assert_eq!(listed.is_some(), expected);
        let is_promised = listed.is_some() || ask.tool == "ui";
        assert!(
            !is_promised || served.value.is_none() || value.is_some(),
            "{told_of}"
        );
        if let (Some(schema), Some(value)) = (listed, value) {
            match serde_json::from_str::<Value>(value) {
                Ok(value) => assert!(jsonschema::is_valid(&schema, &value), "{told_of}"),
                Err(_) => assert_eq!(Some(value), served.value.as_deref()),
            }
        }
    });
}

/// CN-13: what is left out is read through the links, and is what the server wrote, in every spelling.
#[test]
fn what_is_left_out_is_read_back() {
    let few = || tags().prop_map(|tags| [vec!["verbosity=compact"], tags].concat());
    holds(3, &RULES[..2], few, async |told, ask, at, served| {
        let received = told.call(ask, at, &served.result).await;
        let links: Vec<&str> = received
            .match_indices("vary://result/")
            .map(|(at, _)| {
                let link = &received[at..];
                let end =
                    link.find(|c: char| !(c.is_ascii_alphanumeric() || "%/?&=:.~_-*".contains(c)));
                &link[..end.unwrap_or(link.len())]
            })
            .filter(|link| link.len() >= 46)
            .collect();
        let Some(first) = links.first() else {
            return;
        };
        let whole = told.read(ask, first.split('?').next().unwrap()).await;
        let json = |text: &String| Json::parse(text).ok().map(|value| value.to_json());
        let texts = served.texts.iter();
        // The whole result, if a text says more than the value.
        let values = served.value.iter().chain([&served.result]);
        let mut written = values.filter_map(json).chain(
            texts.flat_map(|text| json(text).into_iter().chain([mcp_vary::json::string(text)])),
        );
        let is_told = told.rules != RULES[0];
        assert!(
            is_told || written.any(|one| one == whole),
            "{whole} of {}",
            served.result
        );
        for link in links {
            told.read(ask, link).await;
        }
    });
}
