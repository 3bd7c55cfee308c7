//! A result, who asks for it, and how it is told.

use mcp_vary::feature::{Features, Format};
use mcp_vary::render::{Contract, LeftOut, Limits};
use mcp_vary::shape::{
    Alternative, Compaction, OutputSchema, Policy, Shaped, ToolFacts, Whole, compact_tool_result,
    tool_result,
};
use proptest::prelude::*;
use serde_json::Value;

use mcp_vary::feature::registered_tags;
use mcp_vary_testkit::generate::written::{Served, given, served, spacing, tags, word};

/// Where the whole of a result is.
pub(crate) const WHOLE: &str = "vary://result/x";

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) served: Served,
    pub(crate) tags: Vec<&'static str>,
    pub(crate) tool: ToolFacts,
    pub(crate) policy: Policy<'static>,
    pub(crate) limits: Limits,
    /// Whether the client knows links, where there is room to keep the whole.
    pub(crate) kept: Option<bool>,
    /// The operator's words.
    pub(crate) told: Option<Alternative>,
}

/// What a client gets.
pub(crate) struct Told {
    pub(crate) result: String,
    pub(crate) whole: Option<String>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// The schema that the client was given.
struct Listed<'c> {
    schema: &'c Value,
    validator: jsonschema::Validator,
}

impl OutputSchema for Listed<'_> {
    fn schema(&self) -> &Value {
        self.schema
    }

    fn accepts(&self, value: &str) -> bool {
        serde_json::from_str(value).is_ok_and(|value| self.validator.is_valid(&value))
    }
}

impl Case {
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        self.listed().validator.is_valid(value)
    }

    /// Whether a format is chosen, so that what a client cannot read of the structure stands in a text.
    pub(crate) fn shapes_text(&self) -> bool {
        let (features, _) = Features::from_tags(self.tags.iter().copied());
        features.choose_format(&Format::ALL).is_some()
    }

    fn listed(&self) -> Listed<'_> {
        let schema = &self.served.schema;
        let validator = jsonschema::validator_for(schema).unwrap();
        Listed { schema, validator }
    }

    /// The way of a result through a gateway: the operator's words, fewer of them, or the client's format.
    pub(crate) fn tell(&self, result: &str) -> Told {
        let (features, _) = Features::from_tags(self.tags.iter().copied());
        let listed = self.tool.output_schema.then(|| self.listed());
        let terms = |report: bool| {
            let listed = listed.as_ref().map(|it| it as &dyn OutputSchema);
            let policy = Policy {
                report,
                ..self.policy
            };
            let sent = self.told.as_ref()?;
            match sent.apply(result, &features, self.tool, listed, &policy) {
                Shaped::Changed { result, .. } => Some(result),
                Shaped::Unchanged => None,
            }
        };
        let subject = terms(false);
        let subject = subject.as_deref().unwrap_or(result);
        let few = self.in_few_words(subject, &features, listed.as_ref());
        few.or_else(|| Some(Told::all(terms(self.policy.report)?)))
            .unwrap_or_else(
                || match tool_result(result, &features, self.tool, &self.policy) {
                    Shaped::Changed { result, .. } => Told::all(result),
                    Shaped::Unchanged => Told::all(result.to_owned()),
                },
            )
    }

    fn in_few_words(
        &self,
        result: &str,
        features: &Features,
        listed: Option<&Listed<'_>>,
    ) -> Option<Told> {
        let accepts = |value: &Value| listed.is_some_and(|listed| listed.validator.is_valid(value));
        let contract = match listed {
            Some(listed) => Contract::of(listed.schema).accepted_by(&accepts),
            None => Contract::default(),
        };
        let compaction = Compaction {
            limits: self.limits,
            contract,
            whole: self.kept.map(|is_linked| Whole {
                uri: WHOLE,
                is_linked,
            }),
            ..Compaction::default()
        };
        let few = compact_tool_result(result, features, self.tool, &self.policy, &compaction);
        match few.shaped {
            Shaped::Changed { result, applied } if applied.verbosity.is_some() => Some(Told {
                result,
                whole: few.whole,
                left_out: few.left_out,
            }),
            _ => None,
        }
    }
}

impl Told {
    fn all(result: String) -> Self {
        Self {
            result,
            whole: None,
            left_out: Vec::new(),
        }
    }
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    (served(true), asked()).prop_map(|(served, case)| Case { served, ..case })
}

/// Everything but the result.
fn asked() -> impl Strategy<Value = Case> {
    let few = (prop::option::of(any::<bool>()), limits());
    (tags(registered_tags()), any::<[bool; 7]>(), few, sent()).prop_map(
        |(tags, on, (retained, limits), sent)| Case {
            served: Served::default(),
            tags,
            tool: ToolFacts {
                output_schema: on[0],
                ui: on[1],
            },
            policy: Policy {
                always_both: on[2],
                text_only: on[6],
                lift: on[3],
                non_object_structured: on[4],
                report: on[5],
                variant: None,
                whole: None,
            },
            limits,
            kept: retained,
            told: sent,
        },
    )
}

fn limits() -> impl Strategy<Value = Limits> {
    let counts = (0..12_usize, 0..4_usize, 0..4_usize);
    let few = (counts, 0..60_usize, 0..300_usize);
    let few = few.prop_map(|((rows, detailed, elements), text, bytes)| {
        Limits::default()
            .with_rows(rows)
            .with_detailed(detailed)
            .with_detailed_bytes(bytes)
            .with_elements(elements)
            .with_text(text)
            .with_prose(bytes)
    });
    prop_oneof![1 => Just(Limits::default()), 3 => few]
}

/// An operator's words, seldom any that fit.
fn sent() -> impl Strategy<Value = Option<Alternative>> {
    let value = (given(true), spacing()).prop_map(|(given, spacing)| given.value.to_json(spacing));
    let value = prop_oneof![3 => value, 1 => Just("no JSON".to_owned())];
    let maybe = || prop::option::of(word());
    let sent = (
        prop::option::of(value),
        maybe(),
        maybe(),
        prop::collection::vec(word(), 0..3),
        prop::option::of("[a-d]|id|hints"),
    );
    let sent = sent.prop_map(|(value, markdown, text, hints, under)| {
        let mut sent = Alternative::default();
        for hint in hints {
            sent = sent.with_hint(hint);
        }
        sent = match value {
            Some(value) => sent.with_value(value),
            None => sent,
        };
        sent = match markdown {
            Some(markdown) => sent.with_markdown(markdown),
            None => sent,
        };
        sent = match text {
            Some(text) => sent.with_text(text),
            None => sent,
        };
        match under {
            Some(under) => sent.with_hints_under(under),
            None => sent,
        }
    });
    prop::option::of(sent)
}
