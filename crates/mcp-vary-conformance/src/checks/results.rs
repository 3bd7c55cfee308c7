//! The visibility of results: `content` is for the model, `structuredContent` for programs.

use serde_json::{Value, json};

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
        if let (Some(structure), Some(schema)) = (structure, &tool.output_schema) {
            fits(structure, schema)?;
        }
    }
    Ok(())
}

/// Objects if a required member is missing from `structure`, or if a member is not of the type that `schema` names.
fn fits(structure: &Value, schema: &Value) -> Verdict {
    let required = array_at(schema, &["required"]).iter();
    let missing = required.filter_map(Value::as_str);
    let missing: Vec<&str> = missing
        .filter(|name| structure.get(name).is_none())
        .collect();
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
