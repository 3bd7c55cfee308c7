//! Calls from the tests and documentation of servers: none of them is refused where schemas are on demand.

use std::collections::BTreeSet;

use mcp_vary_view::{DIRECTORY, ListedArguments, PreparedTool, Style, ToolOverride};

use super::wrong_calls::{definition, fixture};

/// Each call is from the file of the server's repository in `source`. What a later version of the server requires is
/// added: `connectionId` of `mongo`, `pageId` of `chrome-devtools`.
#[test]
fn sixty_documented_calls_of_twelve_servers_reach_them_as_they_are() {
    let calls = fixture("documented-calls.json");
    let calls = calls.as_array().unwrap();
    let servers: BTreeSet<&str> = calls.iter().filter_map(|it| it["list"].as_str()).collect();
    assert!(calls.len() >= 60 && servers.len() >= 12);
    for call in calls {
        let text = |key: &str| call[key].as_str().expect(key);
        let definition = definition(text("list"), text("tool"));
        let given = call["arguments"].to_string();
        for arguments in [ListedArguments::All, ListedArguments::Required] {
            let style = Style {
                arguments,
                ..DIRECTORY
            };
            let change = ToolOverride::default();
            let (tool, _) = PreparedTool::new(&definition, &change, style).unwrap();
            let (compact, _) = PreparedTool::compact(&definition, &change, style).unwrap();
            for prepared in [tool, compact] {
                assert_eq!(prepared.arguments(&given).unwrap(), given, "{call}");
            }
        }
    }
}
