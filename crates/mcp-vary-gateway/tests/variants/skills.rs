//! Skills (SEP-2640) of one server and of several: listed together, each with its server in the URI, and never shaped.

use mcp_vary_view::Selection;
use sha2::{Digest as _, Sha256};

use crate::support::*;

const SKILLS: &str = "io.modelcontextprotocol/skills";
/// A file that would be rendered for clients that ask for another format.
const DATA: &str = r#"{"b": 1.10, "a": [ 1 ]}"#;

fn skill(name: &str, frontmatter: Value) -> Value {
    let file = |path: &str| {
        let uri = format!("skill://{name}/{path}");
        json!({"uri": uri, "digest": digest(DATA), "size": DATA.len()})
    };
    json!({
        "uri": format!("skill://{name}/SKILL.md"), "frontmatter": frontmatter,
        "resources": [file("SKILL.md"), file("data.json")],
    })
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Each file of a skill has the digest and the size of what is read of it.
async fn digests_are_true(client: &mut Client, skill: &Value) {
    for file in skill["resources"].as_array().unwrap() {
        let read = client
            .ask("resources/read", json!({"uri": file["uri"]}))
            .await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        let expected = (&json!(digest(text)), &json!(text.len()));
        assert_eq!((&file["digest"], &file["size"]), expected, "{file}");
    }
}

/// A server with the skills `pdf`, which others have, too, and one of its own on a second page.
async fn server(name: &'static str, era: Era) -> ScriptedServer {
    ScriptedServer::start(move |seen| {
        let params = &seen.body["params"];
        let extensions = json!({SKILLS: {"directoryRead": true}});
        let capabilities = json!({"tools": {}, "resources": {}, "extensions": extensions});
        let uri = params["uri"].as_str().unwrap_or_default();
        let of = json!({"name": "pdf", "of": name, "x": 1.10});
        let is_second = params["cursor"] == "2";
        let is_file = ["skill://pdf/SKILL.md", "skill://pdf/data.json"].contains(&uri);
        let result = match (seen.method(), era) {
            ("initialize", Era::Legacy) => introduced(name, capabilities),
            ("server/discover", Era::Modern) => discovered(capabilities),
            ("tools/list", _) => tool_list(&["a"]),
            ("resources/list", _) => {
                json!({"resources": [{"uri": format!("skill://{name}/SKILL.md"), "name": name}]})
            }
            ("resources/templates/list", _) => json!({"resourceTemplates": []}),
            ("skills/list", _) if is_second => json!({"skills": [skill(name, json!({}))]}),
            ("skills/list", _) => json!({"skills": [
                skill("pdf", of), skill("x/../up", json!({})),
            ], "nextCursor": "2"}),
            ("skills/get", _) if uri == "skill://pdf/SKILL.md" => {
                json!({"skill": skill("pdf", of)})
            }
            ("resources/directory/read", _) if uri == "skill://pdf" => json!({"resources": [
                {"uri": "skill://pdf/data.json", "name": "data.json"},
                {"uri": "skill://pdf/more", "name": "more", "mimeType": "inode/directory"},
            ]}),
            ("resources/read", _) if is_file => json!({"contents": [
                {"uri": uri, "mimeType": "application/json", "text": DATA, "of": name},
            ]}),
            _ => return Some(seen.refuse(200, -32602, "no such skill")),
        };
        Some(seen.answer(&result))
    })
    .await
}

fn variants(config: Config) -> Config {
    let mut tools = variant("tools");
    tools.tools = selection(&["none"]);
    let mut resources = variant("resources");
    resources.resources = selection(&["doc:*"]);
    let mut pdf = variant("pdf");
    pdf.skills = selection(&["pdf"]);
    let mut others = variant("others");
    others.skills.exclude = selection(&["pdf"]).include;
    let all = vec![variant("whole"), tools, resources, pdf, others];
    config.with_variants_of(all).unwrap()
}

fn selection(include: &[&str]) -> Selection {
    serde_json::from_value(json!({"include": include})).unwrap()
}

fn uri(params: &str) -> Value {
    json!({"uri": params})
}

/// A client that wants everything as markdown.
fn capabilities() -> Value {
    features(&["format=markdown"])
}

/// The skills of all servers are listed, and read where their URIs lead; nothing else of them changes.
async fn are_merged(era: Era, kind: ClientKind) {
    let one = server("one", era).await;
    let two = server("two", era).await;
    let config = variants(before(&[("one", &one), ("two", &two)]));
    let harness = Harness::behind(one, config).await;
    let introduction = kind.introduction(&harness, &capabilities()).await;
    let advertised = &introduction["capabilities"]["extensions"][SKILLS];
    assert_eq!(*advertised, json!({"directoryRead": true}));
    let mut client = Client::open(&harness, kind, &capabilities()).await;
    for variant in ["whole", "tools"] {
        let listed = client.ask("skills/list", under(variant, json!({}))).await;
        let skills = listed["result"]["skills"].as_array().unwrap();
        let uris: Vec<_> = skills
            .iter()
            .map(|skill| skill["uri"].as_str().unwrap())
            .collect();
        let expected = [
            "skill://one/skill/pdf/SKILL.md",
            "skill://one/skill/one/SKILL.md",
            "skill://two/skill/pdf/SKILL.md",
            "skill://two/skill/two/SKILL.md",
        ];
        assert_eq!(uris, expected, "{era:?} {kind:?} {variant}");
    }
    for name in ["one", "two"] {
        let root = format!("skill://{name}/skill/pdf");
        let got = client
            .ask("skills/get", uri(&format!("{root}/SKILL.md")))
            .await;
        let mut expected = skill("pdf", json!({"name": "pdf", "of": name, "x": 1.10}));
        let text = expected.to_string().replace("skill://pdf", &root);
        expected = serde_json::from_str(&text).unwrap();
        assert_eq!(got["result"]["skill"], expected, "{era:?} {kind:?}");
        digests_are_true(&mut client, &got["result"]["skill"]).await;
        let file = format!("{root}/data.json");
        let read = client.ask("resources/read", uri(&file)).await;
        let content = &read["result"]["contents"][0];
        assert_eq!(content["text"], DATA, "{era:?} {kind:?} {read}");
        assert_eq!(
            (&content["uri"], &content["of"]),
            (&json!(file), &json!(name))
        );
        let children = client.ask("resources/directory/read", uri(&root)).await;
        children.has("/result/resources/1/uri", format!("{root}/more"));
    }
    let unknown = client
        .ask("skills/get", uri("skill://three/skill/pdf/SKILL.md"))
        .await;
    unknown.has("/error/code", -32602);
    let hidden = client
        .ask("skills/list", under("resources", json!({})))
        .await;
    hidden.has("/result/skills", json!([]));
}

/// EXT-8: skills are a third extension, whose lists are merged.
#[tokio::test]
async fn skills_of_several_servers_are_listed_together() {
    for era in [Era::Legacy, Era::Modern] {
        for kind in ClientKind::ALL {
            are_merged(era, kind).await;
        }
    }
}

/// EXT-8: the skills of the only server that has some keep their URIs, and their files are not rendered.
#[tokio::test]
async fn skills_of_one_server_pass_as_they_are() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::behind_one(server("one", era).await, variants).await;
        harness.status().has("/servers/0/skills", true);
        for kind in ClientKind::ALL {
            let mut client = Client::open(&harness, kind, &capabilities()).await;
            let listed = client.ask("skills/list", json!({})).await;
            let expected = skill("pdf", json!({"name": "pdf", "of": "one", "x": 1.10}));
            assert_eq!(listed["result"]["skills"][0], expected, "{era:?} {kind:?}");
            digests_are_true(&mut client, &expected).await;
            listed.has("/result/nextCursor", "2");
            let read = client
                .ask("resources/read", uri("skill://pdf/data.json"))
                .await;
            let text = &read["result"]["contents"][0]["text"];
            assert_eq!(text, DATA, "{era:?} {kind:?}");
        }
    }
}

/// SV-11: a variant shows the skills that it selects, and no file of another.
#[tokio::test]
async fn a_variant_shows_the_skills_that_it_selects() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::behind_one(server("one", era).await, variants).await;
        for kind in ClientKind::ALL {
            let mut client = Client::open(&harness, kind, &capabilities()).await;
            for (variant, shown) in [("pdf", true), ("others", false)] {
                let listed = client.ask("skills/list", under(variant, json!({}))).await;
                let skills = listed["result"]["skills"].as_array().unwrap();
                assert_eq!(skills.len(), usize::from(shown), "{kind:?} {listed}");
                let listed = client
                    .ask("resources/list", under(variant, json!({})))
                    .await;
                let files = listed["result"]["resources"].as_array().unwrap();
                assert_eq!(files.len(), usize::from(!shown), "{kind:?} {listed}");
                for (method, target) in [
                    ("skills/get", "skill://pdf/SKILL.md"),
                    ("resources/directory/read", "skill://pdf"),
                    ("resources/read", "skill://pdf/data.json"),
                ] {
                    let climbing = target.replace("skill://", "skill://one/../");
                    let answer = client.ask(method, under(variant, uri(&climbing))).await;
                    assert!(answer["error"].is_object(), "{kind:?} {answer}");
                    let answer = client.ask(method, under(variant, uri(target))).await;
                    assert_eq!(answer["result"].is_object(), shown, "{kind:?} {answer}");
                }
            }
        }
    }
}

/// The names of the skills that two servers show by these access rules, and the code of the refusal.
async fn allowed(rules: &str) -> (Vec<String>, Value) {
    let one = server("one", Era::Modern).await;
    let two = server("two", Era::Modern).await;
    let config = of_file(&format!(
        "servers: {{one: {{url: \"{}\"}}, two: {{url: \"{}\"}}}}\n\
         access: [{{when: {{anyone: on}}, {rules}}}]\n",
        one.url, two.url
    ));
    let harness = Harness::behind(one, config).await;
    let listed = harness.ask_modern("skills/list", json!({})).await;
    let skills = listed["result"]["skills"].as_array().into_iter().flatten();
    let names = skills.map(|skill| {
        let uri = skill["uri"].as_str().unwrap();
        uri.rsplit('/').nth(1).unwrap().to_owned()
    });
    (names.collect(), listed["error"]["code"].clone())
}

/// SV-20: skills are a kind of item for access rules, and rules for other kinds do not apply to them.
#[tokio::test]
async fn access_rules_name_skills() {
    let all = ["pdf", "one", "pdf", "two"];
    for (rules, expected) in [
        (r#"allow: ["*"]"#, &all[..]),
        (r#"allow: ["*"], deny: [{tools: "*"}]"#, &all),
        (r#"allow: [{tools: "*"}, {skills: pdf}]"#, &["pdf", "pdf"]),
        (r#"allow: [{skills: pdf, server: two}]"#, &["pdf"]),
        (r#"allow: ["*"], deny: [{skills: pdf}]"#, &["one", "two"]),
        (
            r#"allow: ["*"], deny: [{resources: "skill://pdf/*"}]"#,
            &["one", "two"],
        ),
    ] {
        assert_eq!(allowed(rules).await.0, expected, "{rules}");
    }
    let nothing = allowed(r#"allow: [{tools: "*"}, {resources: "*"}]"#).await;
    assert_eq!(nothing, (vec![], json!(-32601)));
}

/// EXT-8: a file of a skill is not shaped, whatever the scheme of its URI.
#[tokio::test]
async fn a_skill_of_any_scheme_is_not_shaped() {
    for era in [Era::Legacy, Era::Modern] {
        let script = Script::new(era, "one")
            .declares(json!({"tools": {}, "resources": {}, "extensions": {SKILLS: {}}}))
            .tools(&["a"])
            .lists(json!({"resources": [], "resourceTemplates": []}))
            .on(
                "skills/list",
                |_| json!({"skills": [{"uri": "https://x.dev/pdf/SKILL.md"}]}),
            )
            .on("resources/read", |params| {
                let content =
                    json!({"uri": params["uri"], "mimeType": "application/json", "text": DATA});
                json!({"contents": [content]})
            });
        let harness = Harness::of_server(script).await;
        for kind in ClientKind::ALL {
            let mut client = Client::open(&harness, kind, &capabilities()).await;
            let listed = client.ask("skills/list", json!({})).await;
            let shown = "skill://peer/https/x.dev/pdf";
            listed.has("/result/skills/0/uri", format!("{shown}/SKILL.md"));
            let file = format!("{shown}/data.json");
            let read = client.ask("resources/read", uri(&file)).await;
            read.has("/result/contents/0/uri", file);
            read.has("/result/contents/0/text", DATA);
        }
        let received = harness.peer.of("resources/read");
        let sent = &received[0].body["params"]["uri"];
        assert_eq!(*sent, "https://x.dev/pdf/data.json", "{era:?}");
    }
}

/// A server with one good skill beside others, a directory that contains itself, and a list without an end.
fn hostile(era: Era) -> Script {
    let page = |params: &Value| {
        let at = params["cursor"].as_str().unwrap_or("0");
        let next = at.parse::<u32>().unwrap() + 1;
        let bad = |files: Vec<Value>| json!({"uri": "skill://bad/SKILL.md", "resources": files});
        let file = json!({"uri": "skill://bad/a", "size": 1});
        let skills = if next > 1 {
            json!([])
        } else {
            json!([
                bad(vec![file; 10_000]),
                bad(vec![json!({"uri": "skill://bad/a", "size": -1})]),
                bad(vec![json!({"uri": "skill://bad/../../etc/passwd"})]),
                skill("good", json!({})),
            ])
        };
        json!({"skills": skills, "nextCursor": next.to_string()})
    };
    Script::new(era, "hostile")
        .declares(json!({"tools": {}, "resources": {}, "extensions": {SKILLS: {}}}))
        .tools(&["a"])
        .lists(json!({"resources": [], "resourceTemplates": []}))
        .on("skills/list", page)
        .on("resources/directory/read", |params| {
            let up = json!({"uri": "skill://bad/../up", "mimeType": "inode/directory"});
            json!({"resources": [{"uri": params["uri"], "mimeType": "inode/directory"}, up]})
        })
}

/// EXT-8: a hostile skill harms no other, and what has no end is read to a bound.
#[tokio::test]
async fn hostile_skills_are_left_out_alone() {
    for era in [Era::Legacy, Era::Modern] {
        let one = hostile(era).start().await;
        let two = server("two", era).await;
        let config = before(&[("one", &one), ("two", &two)]);
        let harness = Harness::behind(one, config).await;
        let listed = harness.ask_modern("skills/list", json!({})).await;
        listed.has("/result/skills/0/uri", "skill://one/skill/good/SKILL.md");
        listed.has("/result/skills/1/uri", "skill://two/skill/pdf/SKILL.md");
        assert_eq!(harness.peer.of("skills/list").len(), 256, "{era:?}");
        let cyclic = uri("skill://one/skill/cyclic");
        let read = harness
            .ask_modern("resources/directory/read", cyclic.clone())
            .await;
        let itself = json!([{"uri": cyclic["uri"], "mimeType": "inode/directory"}]);
        read.has("/result/resources", itself);
        let received = harness.peer.of("resources/directory/read");
        assert_eq!(received.len(), 1, "{era:?}");
    }
}

/// EXT-8: a server that does not answer is named, and hides the skills of no other.
#[tokio::test]
async fn a_server_that_fails_hides_no_skills_of_others() {
    let one = server("one", Era::Modern).await;
    let silent = ScriptedServer::start(|seen| match seen.method() {
        "server/discover" => Some(seen.answer(&discovered(
            json!({"tools": {}, "extensions": {SKILLS: {}}}),
        ))),
        "tools/list" => Some(seen.answer(&tool_list(&["a"]))),
        _ => Some(seen.refuse(200, -32603, "out of order")),
    })
    .await;
    let config = before(&[("one", &one), ("silent", &silent)]);
    let harness = Harness::behind(one, config).await;
    for kind in ClientKind::ALL {
        let listed = harness.ask(kind, "skills/list", json!({})).await;
        listed.has("/result/skills/1/uri", "skill://one/skill/one/SKILL.md");
        listed.has("/result/_meta/vary~1down", json!(["silent"]));
    }
}

/// The list of a server that never ends is read as far as its 256th page.
#[tokio::test]
async fn a_list_of_skills_without_an_end_is_cut() {
    let one = server("one", Era::Modern).await;
    let endless = ScriptedServer::start(|seen| {
        let result = match seen.method() {
            "server/discover" => discovered(json!({"tools": {}, "extensions": {SKILLS: {}}})),
            "tools/list" => tool_list(&["a"]),
            "skills/list" => {
                let cursor = seen.body["params"]["cursor"].as_str().unwrap_or("0");
                let page: usize = cursor.parse().unwrap();
                let skills = [skill(&format!("s{page}"), json!({}))];
                json!({"skills": skills, "nextCursor": (page + 1).to_string()})
            }
            _ => return Some(seen.refuse(200, -32602, "unknown")),
        };
        Some(seen.answer(&result))
    })
    .await;
    let config = before(&[("one", &one), ("endless", &endless)]);
    let harness = Harness::behind(one, config).await;
    let listed = harness.ask_modern("skills/list", json!({})).await;
    let skills = listed["result"]["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 2 + 256);
    assert_eq!(skills[257]["uri"], "skill://endless/skill/s255/SKILL.md");
    assert_eq!(endless.of("skills/list").len(), 256);
}
