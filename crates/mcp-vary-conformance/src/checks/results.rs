//! The visibility of results: `content` is for the model, `structuredContent` for programs.

use serde_json::{Map, Value, json};

use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("results.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("TR-3/structure-comes-with-content", Test::Survey(structure_comes_with_content)),
    ("TR-2/text-does-not-contradict", Test::Survey(text_does_not_contradict)),
    ("TR-4/schema-means-structure", Test::Survey(schema_means_structure)),
    ("TR-4/structure-fits-the-schema", Test::Survey(structure_fits_the_schema)),
    ("TR-4/shaped-structure-fits-the-schema", server!(shaped_structure_fits_the_schema)),
];

fn structure_comes_with_content(survey: &Survey) -> Verdict {
    let result = &survey.structured_tool()?.result;
    let is_empty = array_at(result, &["content"]).is_empty();
    requires(!is_empty, "`content` is empty:", result)
}

fn text_does_not_contradict(survey: &Survey) -> Verdict {
    let result = &survey.structured_tool()?.result;
    let structure = object_at(result, &["structuredContent"]);
    for block in array_at(result, &["content"]) {
        let text = text_at(block, &["text"]).unwrap_or_default();
        let Ok(Value::Object(members)) = serde_json::from_str(text) else {
            has_the_numbers(text, structure)?;
            continue;
        };
        for (key, value) in members {
            let structured = structure.and_then(|structure| structure.get(&key));
            let contradicts = structured.is_some_and(|structured| structured != &value);
            ensure!(
                !contradicts,
                "{key:?} is {} in the text, and {} in the structure",
                brief(&value),
                brief(&json!(structured))
            );
        }
    }
    Ok(())
}

/// Objects if a text names a member and another number than any of the structure, or has none of its numbers.
fn has_the_numbers(text: &str, structure: Option<&Map<String, Value>>) -> Verdict {
    let Some(structure) = structure else {
        return Ok(());
    };
    let mut known = Vec::new();
    collect_numbers(&structure.clone().into(), &mut known);
    let is_known = |number: &f64| {
        let mut spellings = known
            .iter()
            .flat_map(|value| [*value, value.round(), value * 100.0]);
        spellings.any(|spelling| (spelling - number).abs() < 1e-6)
    };
    let found: Vec<f64> = numbers(text).collect();
    let members = structure
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_f64()?)));
    let lower = text.to_lowercase();
    for (key, value) in members.clone() {
        let word = key.split('_').next().unwrap_or(key).to_lowercase();
        let named = (word.len() > 2).then(|| lower.split_once(&*word)).flatten();
        let line = named.and_then(|(_, after)| after.lines().next());
        let stated = line.and_then(|line| numbers(line).next());
        let contradicts =
            stated.is_some_and(|stated| !is_known(&stated)) && !found.contains(&value.abs());
        ensure!(
            !contradicts,
            "{key:?} is {value} in the structure, and {} in the text",
            json!(stated)
        );
    }
    ensure!(
        found.is_empty() || members.count() == 0 || found.iter().any(is_known),
        "the numbers in the text, {}, are none of the structure",
        json!(found)
    );
    Ok(())
}

/// The numbers in `text`, without signs.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    let parts = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    parts.filter_map(|part| part.trim_matches('.').parse().ok())
}

/// All numbers of a value: also those in its texts, and the lengths of its arrays.
fn collect_numbers(value: &Value, numbers: &mut Vec<f64>) {
    match value {
        Value::Number(number) => numbers.extend(number.as_f64().map(f64::abs)),
        Value::String(text) => numbers.extend(self::numbers(text)),
        Value::Array(elements) => {
            numbers.extend(u32::try_from(elements.len()).map(f64::from));
            elements.iter().for_each(|it| collect_numbers(it, numbers));
        }
        Value::Object(members) => members.values().for_each(|it| collect_numbers(it, numbers)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn schema_means_structure(survey: &Survey) -> Verdict {
    let tool = survey.tool_with_schema()?;
    ensure!(
        tool.has_structure(),
        "{:?} answers {}",
        tool.name,
        brief(&tool.result)
    );
    Ok(())
}

fn structure_fits_the_schema(survey: &Survey) -> Verdict {
    let tool = survey.tool_with_schema()?;
    match (tool.result.get("structuredContent"), &tool.output_schema) {
        (Some(structure), Some(schema)) => fits(structure, schema),
        _ => not_applicable("the result has no structure"),
    }
}

async fn shaped_structure_fits_the_schema(probe: &Probe<'_>) -> Verdict {
    let tool = probe.survey().tool_with_schema()?;
    for features in [
        json!(["agent", "format=json"]),
        json!(["human", "format=markdown"]),
    ] {
        let client = probe.connect_with_features(features.clone()).await?;
        let result = client.result(TOOLS.item_method, tool.params()).await?;
        let structure = result.get("structuredContent");
        ensure!(
            structure.is_some(),
            "with {features}, the result has no structure: {}",
            brief(&result)
        );
        if let Some((structure, schema)) = structure.zip(tool.output_schema.as_ref()) {
            fits(structure, schema)?;
        }
    }
    Ok(())
}

/// Objects if a required member is missing from `structure`, or if a member is not of the type that `schema` names.
fn fits(structure: &Value, schema: &Value) -> Verdict {
    let required = array_at(schema, &["required"]).iter();
    let names = required.filter_map(Value::as_str);
    let missing: Vec<&str> = names.filter(|name| structure.get(name).is_none()).collect();
    ensure!(
        missing.is_empty(),
        "members that the schema requires are missing: {}",
        json!(missing)
    );
    requires(has_type(structure, schema), "the structure is", structure)?;
    for (name, schema) in object_at(schema, &["properties"]).into_iter().flatten() {
        let member = at(structure, &[name]);
        ensure!(
            member.is_none_or(|member| has_type(member, schema)),
            "{name:?} is {}, and its schema {}",
            brief(&json!(member)),
            brief(schema)
        );
    }
    Ok(())
}

/// Whether `value` is of the `type` of `schema`, which may be one name or several.
fn has_type(value: &Value, schema: &Value) -> bool {
    let is_type = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_type),
        Some(name) => is_type(name),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_numbers_of_the_structure() {
        let structure = json!({"location": "Bern", "temperature_c": 8, "precipitation_probability": 0.3, "uv_index": 2,
            "wind": [15, -3.5], "day": "2026-02-22"});
        for right in [
            "Current temperature in Bern: 8°C. A 30% chance of precipitation in the next 2 hours, and up to 12°C by Thursday.",
            "Temperature: will reach 12, now 8.",
            "It is cold in Bern.",
            "2 winds, up to -3.5, on 22 February.",
        ] {
            assert_eq!(
                has_the_numbers(right, structure.as_object()),
                Ok(()),
                "{right}"
            );
        }
        for wrong in [
            "- **temperature_c**: 12\n- **uv_index**: 2",
            "It has 12 degrees.",
            "Temperature 12, UV index 2",
        ] {
            let verdict = has_the_numbers(wrong, structure.as_object());
            assert!(verdict.is_err(), "{wrong}");
        }
        assert_eq!(has_the_numbers("7", json!({"a": "b"}).as_object()), Ok(()));
    }

    #[test]
    fn members_have_the_types_of_their_schema() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "integer"}, "b": {"type": ["string", "null"]}, "c": true}});
        for right in [
            json!({"a": 1}),
            json!({"a": 1.0, "b": null, "c": 7, "d": 8}),
        ] {
            assert_eq!(fits(&right, &schema), Ok(()), "{right}");
        }
        for wrong in [
            json!({}),
            json!({"a": "1"}),
            json!({"a": 1.5}),
            json!({"a": 1, "b": 2}),
            json!([]),
        ] {
            assert!(fits(&wrong, &schema).is_err(), "{wrong}");
        }
    }
}
