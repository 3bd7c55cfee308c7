//! Views whose schemas are on demand: what is listed and described, and how calls are checked.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicUsize;

use crate::prelude::*;
use crate::variants::{said, variant};
use mcp_vary_rmcp::view::{ArgumentCheck, SchemaStyle};

/// Returns the arguments that it received, and counts how often its tools are listed.
#[derive(Clone)]
struct Notes(Arc<Mutex<Vec<Tool>>>, Arc<AtomicUsize>);

impl Notes {
    fn new(tools: Vec<Tool>) -> Self {
        Self(Arc::new(Mutex::new(tools)), Arc::default())
    }
}

fn tool(definition: Value) -> Tool {
    serde_json::from_value(definition).unwrap()
}

fn notes() -> Notes {
    let write = json!({
        "name": "write",
        "description": "Writes a note. The path must end in `.md`.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "pattern": "[.]md$", "title": "Path"},
                "lines": {"type": "integer", "minimum": 1},
                "owner": {"type": "string"},
            },
            "required": ["path", "owner"],
        },
        "annotations": {"title": "Write", "destructiveHint": false},
    });
    let wipe = json!({
        "name": "wipe",
        "description": "Deletes all notes. There is no way back.",
        "inputSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]},
        "annotations": {"destructiveHint": true},
    });
    let find = json!({
        "name": "find",
        "description": "Finds notes. Best first.",
        "inputSchema": {"type": "object", "properties": {"q": {"type": "string", "minLength": 2}}},
    });
    Notes::new([write, wipe, find].map(tool).into())
}

impl ServerHandler for Notes {
    async fn list_tools(&self, _: PageParams, _: Context) -> McpResult<ListToolsResult> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(ListToolsResult::with_all_items(
            self.0.lock().unwrap().clone(),
        ))
    }

    async fn call_tool(&self, request: CallParams, _: Context) -> CallResult {
        let text = json!({&*request.name: request.arguments}).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// The variants `all` and `directory`, in which `write` is `note` and its owner is fixed.
fn server_with(view: View) -> VaryServer {
    let notes = VariantHandler::new(notes());
    let view = view.with_tool(
        "write",
        ToolView::new()
            .with_name("note")
            .with_argument("owner", json!("ada")),
    );
    VaryServer::builder()
        .with_variant(variant("all"), notes.clone())
        .with_variant(variant("directory"), notes.with_view(view))
        .build()
        .unwrap()
}

/// A view whose schemas are read on demand.
fn on_demand() -> View {
    View::new().with_schemas(SchemaStyle::OnDemand)
}

/// The variant `directory` alone.
fn directory(notes: Notes, view: View) -> Builder {
    let handler = VariantHandler::new(notes).with_view(view);
    VaryServer::builder().with_variant(variant("directory"), handler)
}

fn server() -> VaryServer {
    server_with(on_demand())
}

async fn describe(client: &Client, names: Value) -> Value {
    let described = client
        .call("directory", "describe_tools", json!({"names": names}))
        .await;
    assert_eq!(described["isError"], false, "{described}");
    said(&described)
}

/// SV-11: names, first sentences and types are listed, also of what may destroy.
#[tokio::test]
async fn a_directory_lists_names_and_types() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let list = client.result("directory", "tools/list", json!({})).await;
        let tools = list["tools"].as_array().unwrap();
        let open = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
        });
        let note = json!({
            "name": "note",
            "description": "Writes a note.",
            "inputSchema": open,
            "annotations": {"destructiveHint": false},
        });
        assert_eq!(tools[0], note);
        let open = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
        assert_eq!(tools[1]["inputSchema"], open);
        assert_eq!(tools[3]["name"], "describe_tools");
        assert_eq!(tools[3]["annotations"]["readOnlyHint"], true);
        assert_eq!(tools.len(), 4);
        let all = client.names("all", "tools").await;
        let expected = ["write", "wipe", "find"];
        assert_eq!(all, expected, "no other variant has the tool");
    }
}

/// SV-11: a description is whole, in the view's names, and unknown names are named.
#[tokio::test]
async fn a_client_reads_whole_descriptions() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let described = describe(&client, json!(["note", "write", "nothing"])).await;
        assert_eq!(described["unknown"], json!(["write", "nothing"]));
        let note = &described["tools"][0];
        let expected = "Writes a note. The path must end in `.md`.";
        assert_eq!(note["description"], expected);
        assert_eq!(note["inputSchema"]["required"], json!(["path"]));
        let properties = &note["inputSchema"]["properties"];
        assert_eq!(properties["path"]["pattern"], "[.]md$");
        assert_eq!(properties.get("owner"), None);
        let wrong = client
            .call("directory", "describe_tools", json!({"name": "note"}))
            .await;
        assert_eq!(wrong["isError"], true);
        let text = &wrong["content"][0]["text"];
        assert_eq!(text, "there are no other arguments than `names`");
    }
}

/// SV-11: a call that does not fit gets the schema, and the handler does not receive it.
#[tokio::test]
async fn a_call_is_checked_before_the_handler() {
    for way in each(WAYS) {
        let client = connect(&server(), way).await;
        let good = json!({"path": "a.md", "lines": 2});
        let answer = client.call("directory", "note", good).await;
        let received = json!({"write": {"path": "a.md", "lines": 2, "owner": "ada"}});
        assert_eq!(said(&answer), received);
        for (arguments, wrong) in [
            (json!({"lines": 0, "path": "a.md"}), "`/lines`"),
            (json!({"pth": "a.md"}), "did you mean `path`"),
            (json!({"path": "a.md", "owner": "eve"}), "`owner`"),
            (json!({"path": "a.md", "lines": "2"}), "`/lines`"),
            (json!({}), "`path`"),
        ] {
            let refused = client.call("directory", "note", arguments).await;
            assert_eq!(refused["isError"], true, "{refused}");
            let text = refused["content"][0]["text"].as_str().unwrap();
            assert!(text.starts_with("invalid arguments: "), "{text}");
            assert!(text.contains(wrong), "{wrong}: {text}");
            let schema = text.split("its arguments: ").nth(1).unwrap();
            let schema: Value = serde_json::from_str(schema).unwrap();
            assert_eq!(schema["required"], json!(["path"]), "{text}");
        }
        // The same call in a variant with whole schemas is the handler's business.
        client.call("all", "write", json!({"pth": "a.md"})).await;
    }
}

/// SV-11: a lenient check accepts scalars that are written as text; without a check all is accepted.
#[tokio::test]
async fn a_view_may_check_less() {
    let text = json!({"path": "a.md", "lines": "2"});
    let wrong = json!({"path": "a.txt"});
    for (check, of_text, of_wrong) in [
        (ArgumentCheck::On, true, true),
        (ArgumentCheck::TypesOff, false, true),
        (ArgumentCheck::Off, false, false),
    ] {
        let client = connect(
            &server_with(on_demand().with_argument_check(check)),
            WAYS[2],
        )
        .await;
        for (arguments, is_refused) in [(&text, of_text), (&wrong, of_wrong)] {
            let answer = client.call("directory", "note", arguments.clone()).await;
            assert_eq!(answer["isError"], is_refused, "{check:?} {answer}");
        }
    }
}

/// SV-11: kept schemas are compact, and `compact` alone adds no tool and checks nothing.
#[tokio::test]
async fn a_view_keeps_schemas_and_may_be_compact() {
    let keeping = on_demand().with_kept_schemas(["find"]);
    let client = connect(&server_with(keeping), WAYS[2]).await;
    let list = client.result("directory", "tools/list", json!({})).await;
    assert_eq!(
        list["tools"][2]["inputSchema"]["properties"]["q"]["minLength"],
        2
    );

    let compact = View::new().with_schemas(SchemaStyle::Compact);
    let client = connect(&server_with(compact), WAYS[2]).await;
    let list = client.result("directory", "tools/list", json!({})).await;
    let tools = list["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 3);
    let found = tools[0]["inputSchema"]["properties"]["path"].get("title");
    assert_eq!(found, None);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["path"]));
    client.call("directory", "note", json!({"pth": 1})).await;
}

/// SV-11: a long list has a search, in the view's names and over what the client sees.
#[tokio::test]
async fn a_long_list_has_a_search() {
    for way in each(WAYS) {
        let client = connect(&server_with(on_demand().with_search_above(2)), way).await;
        let names = client.names("directory", "tools").await;
        assert_eq!(names[3..], ["describe_tools", "search_tools"]);
        let query = json!({"query": "write something down", "limit": 1});
        let found = client.call("directory", "search_tools", query).await;
        let expected = json!({"tools": [{"name": "note", "description": "Writes a note."}]});
        assert_eq!(said(&found), expected);
        let wrong = client
            .call("directory", "search_tools", json!({"limit": 1}))
            .await;
        let text = &wrong["content"][0]["text"];
        let expected = "`query` must be a text: what the tool should do, in a few words";
        assert_eq!((&wrong["isError"], text), (&json!(true), &json!(expected)));

        let client = connect(&server_with(on_demand().with_search_above(3)), way).await;
        assert_eq!(client.names("directory", "tools").await.len(), 4);
        let call = json!({"name": "search_tools", "arguments": {"query": "note"}});
        let error = client.error("directory", "tools/call", call).await;
        data_of(error, -32602, "Unknown tool: search_tools");
    }
}

/// SV-11: the tools that Vary adds are named by the list that they are added to, whatever the handler lists next.
#[tokio::test]
async fn a_handler_lists_its_tools_once_for_each_list() {
    for way in each(WAYS) {
        let notes = notes();
        let server = directory(notes.clone(), on_demand().with_search_above(2));
        let server = server.build().unwrap();
        let client = connect(&server, way).await;
        let listed = async || {
            let before = notes.1.load(Ordering::Relaxed);
            let names = client.names("directory", "tools").await;
            (names, notes.1.load(Ordering::Relaxed) - before)
        };
        let (names, lists) = listed().await;
        assert_eq!(names[3..], ["describe_tools", "search_tools"]);
        assert_eq!(lists, 1);

        let own = json!({"name": "describe_tools", "inputSchema": {"type": "object"}});
        notes.0.lock().unwrap().push(tool(own));
        let (names, lists) = listed().await;
        let expected = ["describe_tools", "vary_describe_tools", "search_tools"];
        assert_eq!(names[3..], expected);
        assert_eq!(lists, 1);
    }
}

/// A handler with pages of its own: a tool on each.
#[derive(Clone)]
struct PagedNotes(Notes);

impl ServerHandler for PagedNotes {
    async fn list_tools(&self, params: PageParams, context: Context) -> McpResult<ListToolsResult> {
        let cursor = params.and_then(|params| params.cursor);
        let at: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let mut list = self.0.list_tools(None, context).await?;
        list.next_cursor = (at + 1 < list.tools.len()).then(|| (at + 1).to_string());
        list.tools = list.tools.into_iter().skip(at).take(1).collect();
        Ok(list)
    }
}

/// SV-11: the names of the tools that Vary adds depend on all pages, and the handler lists none of them twice for one
/// request.
#[tokio::test]
async fn a_handler_lists_each_page_once_for_each_request() {
    let own = json!({"name": "describe_tools", "inputSchema": {"type": "object"}});
    for (size, pages, lists_of_last) in [(None, 4, 4), (Some(1), 4, 1), (Some(3), 2, 1)] {
        let notes = notes();
        notes.0.lock().unwrap().insert(0, tool(own.clone()));
        let view = on_demand().with_search_above(3);
        let handler = match size {
            None => VariantHandler::new(PagedNotes(notes.clone())),
            Some(_) => VariantHandler::new(notes.clone()),
        };
        let mut server =
            VaryServer::builder().with_variant(variant("directory"), handler.with_view(view));
        if let Some(size) = size {
            server = server.with_page_size(NonZeroUsize::new(size).unwrap());
        }
        let client = connect(&server.build().unwrap(), WAYS[0]).await;
        let mut names = Vec::new();
        let mut params = json!({});
        for page in 1..=pages {
            let before = notes.1.load(Ordering::Relaxed);
            let list = client.under("directory", "tools/list", params).await;
            let list = list.unwrap();
            let lists = notes.1.load(Ordering::Relaxed) - before;
            let expected = if page == pages { lists_of_last } else { 1 };
            assert_eq!(lists, expected, "page {page} of size {size:?}");
            names.extend(crate::support::names(&list["tools"]));
            params = json!({"cursor": list["nextCursor"]});
        }
        assert_eq!(params["cursor"], Value::Null);
        let expected = [
            "describe_tools",
            "write",
            "wipe",
            "find",
            "vary_describe_tools",
            "search_tools",
        ];
        assert_eq!(names, expected, "{size:?}");
    }
}

/// SV-11: a search finds what the handler lists at that moment.
#[tokio::test]
async fn a_search_follows_the_handlers_list() {
    let notes = notes();
    let server = directory(notes.clone(), on_demand().with_search_above(2));
    let server = server.build().unwrap();
    let client = connect(&server, WAYS[2]).await;
    let found = async |query: &str| {
        let query = json!({"query": query});
        let found = client.call("directory", "search_tools", query).await;
        said(&found)["tools"].clone()
    };
    let finds = json!([{"name": "find", "description": "Finds notes."}]);
    assert_eq!(found("find").await, finds);
    assert_eq!(found("pictures").await, json!([]));

    let find =
        json!({"name": "find", "description": "Finds pictures. Best first.", "inputSchema": {}});
    let copy = json!({"name": "copy", "description": "Copies pictures.", "inputSchema": {}});
    {
        let mut tools = notes.0.lock().unwrap();
        tools.retain(|tool| tool.name != "wipe");
        tools[1] = tool(find);
        tools.push(tool(copy));
    }
    let mut pictures = found("pictures").await;
    let pictures = pictures.as_array_mut().unwrap();
    pictures.sort_by_key(|tool| tool["name"].to_string());
    assert_eq!(
        *pictures,
        [
            json!({"name": "copy", "description": "Copies pictures."}),
            json!({"name": "find", "description": "Finds pictures."}),
        ]
    );
    assert_eq!(found("delete").await, json!([]));
}

/// SV-11: a clone of a view lists in its own style, whichever is listed first.
#[tokio::test]
async fn a_cloned_view_has_its_own_style() {
    let handler = VariantHandler::new(notes());
    let directory = on_demand();
    let compact = directory.clone().with_schemas(SchemaStyle::Compact);
    let keeping = directory.clone().with_kept_schemas(["find"]);
    let server = VaryServer::builder()
        .with_variant(variant("directory"), handler.clone().with_view(directory))
        .with_variant(variant("compact"), handler.clone().with_view(compact))
        .with_variant(variant("keeping"), handler.with_view(keeping))
        .build()
        .unwrap();
    let client = connect(&server, WAYS[2]).await;
    for (selected, length) in [
        ("directory", Value::Null),
        ("compact", json!(2)),
        ("keeping", json!(2)),
    ] {
        let list = client.under(selected, "tools/list", json!({})).await;
        let find = &list.unwrap()["tools"][2]["inputSchema"]["properties"]["q"];
        assert_eq!(find["minLength"], length, "{selected}");
    }
}

/// SV-11: hidden tools are neither listed nor described, and wrong arguments reveal none.
#[tokio::test]
async fn a_hidden_tool_is_not_described() {
    let find = ItemPattern::tools(serde_json::from_str(r#""find""#).unwrap());
    let rule = AccessRule::new(When::anyone()).with_allow([find]);
    let server = directory(notes(), on_demand())
        .with_access(AccessPolicy::new([rule]).unwrap())
        .build()
        .unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let expected = ["find", "describe_tools"];
        assert_eq!(client.names("directory", "tools").await, expected);
        let described = describe(&client, json!(["wipe", "find", "none"])).await;
        assert_eq!(described["unknown"], json!(["wipe", "none"]));
        let call = json!({"name": "wipe", "arguments": {"wrong": 1}});
        let error = client.error("directory", "tools/call", call).await;
        data_of(error, -32602, "Unknown tool: wipe");
    }
}

/// SV-11: a tool of the handler keeps the name `describe_tools`; pages end with the added one.
#[tokio::test]
async fn the_added_tool_gives_way() {
    let tools = notes();
    tools.0.lock().unwrap().push(tool(
        json!({"name": "describe_tools", "inputSchema": {"type": "object"}}),
    ));
    let server = directory(tools, on_demand())
        .with_page_size(NonZeroUsize::new(3).unwrap())
        .build()
        .unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let first = client.result("directory", "tools/list", json!({})).await;
        assert_eq!(first["tools"].as_array().unwrap().len(), 3);
        let next = json!({"cursor": first["nextCursor"]});
        let last = client.result("directory", "tools/list", next).await;
        let names = names(&last["tools"]);
        assert_eq!(names, ["describe_tools", "vary_describe_tools"]);
        let own = client.call("directory", "describe_tools", json!({})).await;
        assert_eq!(said(&own), json!({"describe_tools": {}}));
        let names = json!({"names": ["find"]});
        let described = client.call("directory", "vary_describe_tools", names).await;
        assert_eq!(said(&described)["tools"][0]["name"], "find");
    }
}
