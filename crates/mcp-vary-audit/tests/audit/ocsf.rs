//! The mapping to OCSF that the page documents.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::support::{docs, validate};

/// The rows of the page's table: the members of OCSF, and those of a record.
fn rows() -> Vec<(String, String)> {
    let page = docs("internals/ocsf.md");
    let rows = page.lines().filter_map(|line| {
        let cells = line.strip_prefix("| `")?.strip_suffix(" |")?;
        let (ocsf, record) = cells.split_once(" | ")?;
        Some((format!("`{ocsf}"), record.to_owned()))
    });
    rows.collect()
}

/// What a text has between backticks.
fn names(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The members of a record, by their paths: an object with members is named by these.
fn members() -> Vec<String> {
    let schema: Value = serde_json::from_str(&docs("audit.schema.json")).unwrap();
    let mut members = Vec::new();
    for (name, member) in schema["properties"].as_object().unwrap() {
        match member["properties"].as_object() {
            Some(inner) => members.extend(inner.keys().map(|inner| format!("{name}.{inner}"))),
            None => members.push(name.clone()),
        }
    }
    members
}

/// A member has a place in OCSF, or is unmapped, by itself or with the object that it is in.
#[test]
fn every_member_of_a_record_has_a_place_in_the_mapping() {
    let rows = rows();
    assert!(rows.len() > 20, "{rows:?}");
    let named: BTreeSet<&str> = rows.iter().flat_map(|(_, record)| names(record)).collect();
    for member in members() {
        let object = member.split('.').next().unwrap();
        assert!(
            named.contains(&*member) || named.contains(object),
            "the table in docs/internals/ocsf.md lacks `{member}`"
        );
    }
}

/// What the table says, as code: each row is a line here, so that a row that says nothing useful would be found.
fn mapped(record: &Value) -> Value {
    let text = |path: &str| record.pointer(path).and_then(Value::as_str);
    let event = text("/event").unwrap();
    let outcome = text("/outcome");
    let is_logon = event.starts_with("auth.");
    let (class, category) = if is_logon { (3002, 3) } else { (6003, 6) };
    let activity = match (is_logon, text("/method"), event) {
        (true, ..) => 1,
        (_, Some("resources/read" | "prompts/get"), _) => 2,
        (_, _, "config.reloaded") => 3,
        _ => 99,
    };
    let id = text("/principal/sub").or(text("/principal/id"));
    let user = json!({"uid": id, "name": text("/principal/name")});
    let code = record.get("code").or(record.get("status"));
    let app = text("/client/name").map(|name| match text("/client/version") {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    });
    let address = match text("/transport") {
        Some("stdio") => json!({"name": "stdio"}),
        _ => json!({"ip": text("/client/address")}),
    };
    let mut event = json!({
        "class_uid": class, "category_uid": category, "activity_id": activity,
        "activity_name": (activity == 99).then(|| text("/method").unwrap_or(event)),
        "type_uid": class * 100 + activity,
        "time": milliseconds(text("/time").unwrap()),
        "status_id": match outcome {
            Some("allowed") => Some(1),
            Some("cancelled") => Some(99),
            outcome => outcome.map(|_| 2),
        },
        "status_code": code.map(Value::to_string), "status_detail": outcome,
        "action_id": if outcome == Some("denied") { 2 } else { 1 },
        "severity_id": match (outcome, event) {
            (_, "audit.lost") => 4,
            (Some("denied"), _) => 2,
            _ => 1,
        },
        "actor": {
            "user": if is_logon { &Value::Null } else { &user }, "idp": {"uid": text("/principal/iss")},
            "app_name": app, "app_uid": text("/principal/client_id"),
            "session": {"uid": text("/session")},
        },
        "user": if is_logon { &user } else { &Value::Null },
        "src_endpoint": address,
        "api": {
            "operation": text("/method").unwrap_or(event), "service": {"name": text("/target/server")},
            "request": {"uid": text("/request_id")}, "response": {"code": record.get("code")},
        },
        "resources": [{"type": text("/target/kind"), "name": text("/target/name")}],
    });
    let remaining = members_without_choice(record);
    event.as_object_mut().unwrap().extend(remaining);
    remove_unknown(&mut event);
    event
}

/// The members of an event that are copied, whatever the event is.
fn members_without_choice(record: &Value) -> Map<String, Value> {
    let text = |path: &str| record.pointer(path).and_then(Value::as_str);
    let (run, seq) = (text("/run").unwrap(), record["seq"].as_u64().unwrap());
    let copied = json!({
        "http_request": {"length": record.get("bytes_in")},
        "http_response": {"length": record.get("bytes_out"), "code": record.get("status")},
        "duration": record["duration_ms"].as_f64().map(|ms| ms as u64),
        "trace": {"uid": text("/trace_id")}, "count": record.get("count"),
        "metadata": {
            "uid": format!("{run}-{seq}"), "sequence": seq, "event_code": text("/event"),
            "log_name": "audit", "log_version": record["v"].to_string(),
            "product": {"name": "Vary"}, "version": "1.5.0",
        },
        "unmapped": {
            "variant": record.get("variant"), "rule": record.get("rule"), "arguments": record.get("arguments"),
            "era": record.get("era"), "transport": record.get("transport"), "config": record.get("config"),
            "replica": record.get("replica"), "lost": record.get("lost"), "refused": record.get("refused"),
            "ranking": record.get("ranking"), "change": record.get("change"),
            "waited_ms": record.get("waited_ms"), "upstream_ms": record.get("upstream_ms"),
            "target": {"upstream_name": text("/target/upstream_name")},
            "principal": {"key": text("/principal/key")},
        },
    });
    copied.as_object().unwrap().clone()
}

/// Removes what is null, and what is empty then.
fn remove_unknown(value: &mut Value) {
    let is_unknown = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty)
    };
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(remove_unknown);
            members.retain(|_, member| !is_unknown(member));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(remove_unknown);
            items.retain(|item| !is_unknown(item));
        }
        _ => {}
    }
}

/// The milliseconds since 1970 at a time in RFC 3339, UTC.
fn milliseconds(time: &str) -> i64 {
    let number = |range: std::ops::Range<usize>| time.get(range).unwrap().parse::<i64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = (year - i64::from(month <= 2), (month + 9) % 12);
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    let seconds = ((days * 24 + number(11..13)) * 60 + number(14..16)) * 60 + number(17..19);
    seconds * 1000 + number(20..23)
}

/// The records of the page, and the event that it shows.
fn examples() -> (Vec<Value>, Value) {
    let read = |text: &str| -> Vec<Value> {
        let blocks = text.split("```json\n").skip(1);
        let blocks = blocks.map(|block| block.split("\n```").next().unwrap());
        blocks
            .map(|block| serde_json::from_str(block).unwrap())
            .collect()
    };
    let [event] = &read(&docs("internals/ocsf.md"))[..] else {
        panic!("one event");
    };
    (read(&docs("reference/audit.md")), event.clone())
}

#[test]
fn the_page_shows_what_its_first_record_becomes() {
    let (records, event) = examples();
    validate(&records[0]);
    assert_eq!(mapped(&records[0]), event);
}

/// Class, status and severity of the other records of the page, and of others that follow the schema.
#[test]
fn refusals_losses_and_credentials_have_classes_of_their_own() {
    let (records, _) = examples();
    let is = |record: &Value, type_uid: u64, status: Value, severity: u64| {
        let event = mapped(record);
        assert_eq!(event["type_uid"], type_uid, "{event}");
        assert_eq!(event["status_id"], status, "{event}");
        assert_eq!(event["severity_id"], severity, "{event}");
    };
    is(&records[1], 600_399, json!(2), 2);
    is(&records[2], 600_399, Value::Null, 4);
    let mut refused = json!({
        "v": 1, "run": "r", "seq": 7, "time": "2024-02-29T23:59:59.999999Z", "event": "auth.refused",
        "outcome": "denied", "status": 401, "transport": "http",
    });
    validate(&refused);
    is(&refused, 300_201, json!(2), 2);
    assert_eq!(mapped(&refused)["time"], 1_709_251_199_999_i64);
    assert_eq!(mapped(&refused)["status_code"], "401");
    refused["event"] = json!("request");
    refused["method"] = json!("resources/read");
    refused["outcome"] = json!("cancelled");
    is(&refused, 600_302, json!(99), 1);
}
