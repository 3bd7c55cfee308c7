//! Reads a JSON Schema into a [`ValueSchema`].
//!
//! Supports drafts 4 to 2020-12. The result accepts at least what the schema accepts, with two exceptions: a schema
//! that constrains values of one kind without naming the kind is read as if it named it, as its author means; and an
//! object without named properties can only be an open object.

mod keywords;
mod kinds;
mod properties;
mod values;

use self::keywords::{all, choices, count, first, is_constraint, text};
use self::kinds::Kinds;
use self::properties::NamedProperties;
use self::values::{boolean, number, string, values};
use super::value_schema::{Array, Choice, Kind, Object, Property, ValueSchema};
use crate::derive::schema::{Reference, find};
use mcp_vary::json::Json;

/// Reads the parts of one schema.
#[derive(Debug)]
pub(super) struct Reader<'j> {
    root: &'j Json<'j>,
    references: References,
    /// How many more schemas are read; the remaining ones are truncated.
    remaining: usize,
    /// The targets of the references that enclose the current schema, outermost first.
    open_references: Vec<*const Json<'j>>,
    definitions: Vec<Definition<'j>>,
}

/// How references are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum References {
    /// The target replaces the reference.
    Inline,
    /// The reference stays, unless a constraint stands beside it.
    Preserve,
}

/// A subschema that references point to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition<'j> {
    pub(super) schema: &'j Json<'j>,
    /// The last token of the pointer.
    pub(super) name: Option<&'j str>,
}

type Members<'j> = &'j [(std::borrow::Cow<'j, str>, Json<'j>)];

/// The lists of choices of which one branch is already chosen.
type ResolvedChoices<'t, 'j> = &'t [*const Json<'j>];

/// The schemas that apply together to one value.
struct Conjunction<'j> {
    schemas: Vec<Members<'j>>,
    /// The number of references that were opened, to be closed again.
    opened_references: usize,
    /// One of the schemas accepts nothing.
    is_never: bool,
    /// The target of a reference that was followed too often.
    truncated_target: Option<Members<'j>>,
}

impl<'j> Reader<'j> {
    pub(super) fn new(root: &'j Json<'j>, references: References) -> Self {
        Self {
            root,
            references,
            remaining: MAX_SCHEMAS,
            open_references: Vec::new(),
            definitions: Vec::new(),
        }
    }

    /// The root schema, as one object: arguments are always an object.
    pub(super) fn root(&mut self) -> (ValueSchema<'j>, Object<'j>) {
        let mut value_schema = self.resolved_schema(&[self.root], 0);
        let object = value_schema.take_single_object().unwrap_or_default();
        (value_schema, object)
    }

    /// A definition that preserved references point to, if it was found by now.
    pub(super) fn definition(&self, number: usize) -> Option<Definition<'j>> {
        self.definitions.get(number).copied()
    }

    /// The schema of a definition.
    pub(super) fn definition_schema(&mut self, schema: &'j Json<'j>) -> ValueSchema<'j> {
        self.resolved_schema(&[schema], 1)
    }

    /// What the schemas together accept.
    fn value_schema(&mut self, schemas: &[&'j Json<'j>], depth: usize) -> ValueSchema<'j> {
        if let References::Preserve = self.references
            && let [schema] = schemas
            && let Some(retained) = self.preserved_reference(schema)
        {
            return retained;
        }
        self.resolved_schema(schemas, depth)
    }

    /// Like [`Self::value_schema`], with a reference at the top replaced by its target.
    fn resolved_schema(&mut self, schemas: &[&'j Json<'j>], depth: usize) -> ValueSchema<'j> {
        if self.remaining == 0 || depth > MAX_DEPTH {
            return ValueSchema {
                is_truncated: true,
                ..ValueSchema::anything()
            };
        }
        let mut all = Conjunction {
            schemas: Vec::new(),
            opened_references: 0,
            is_never: false,
            truncated_target: None,
        };
        for schema in schemas {
            self.collect(schema, &mut all);
        }
        let value_schema = if all.is_never {
            ValueSchema::default()
        } else {
            self.read(&all, &[], depth)
        };
        self.open_references
            .truncate(self.open_references.len() - all.opened_references);
        value_schema
    }

    /// A reference without a constraint beside it.
    fn preserved_reference(&mut self, schema: &'j Json<'j>) -> Option<ValueSchema<'j>> {
        let members = schema.as_object()?;
        let target = self.target(schema.get("$ref")?.as_str()?)?;
        let limits =
            |keyword: &str| !["$ref", "title", "description", "default"].contains(&keyword);
        if members.iter().any(|(keyword, _)| limits(keyword)) {
            return None;
        }
        self.remaining = self.remaining.checked_sub(1)?;
        let known = self
            .definitions
            .iter()
            .position(|definition| std::ptr::eq(definition.schema, target.schema));
        let number = known.unwrap_or(self.definitions.len());
        if number == self.definitions.len() {
            self.definitions.push(target);
        }
        let all = [members];
        Some(ValueSchema {
            title: text(&all, "title"),
            description: text(&all, "description"),
            default: first(&all, "default"),
            choices: vec![Choice::new(Kind::Definition(number))],
            ..ValueSchema::default()
        })
    }

    fn target(&self, reference: &'j str) -> Option<Definition<'j>> {
        let Reference::Pointer(tokens) = Reference::parse(reference)? else {
            return None;
        };
        let schema = find(self.root, &tokens)?;
        let is_of_root = tokens.len() == 2;
        let name = is_of_root.then(|| reference.rsplit('/').next()).flatten();
        Some(Definition { schema, name })
    }

    /// Adds a schema, its `allOf`, and the target of its reference.
    fn collect(&mut self, schema: &'j Json<'j>, all: &mut Conjunction<'j>) {
        let members = match schema {
            Json::Object(members) => members.as_slice(),
            Json::Bool(false) => {
                all.is_never = true;
                return;
            }
            _ => return,
        };
        if all.schemas.len() >= MAX_CONJUNCTION
            || all.schemas.iter().any(|m| std::ptr::eq(*m, members))
        {
            return;
        }
        all.schemas.push(members);
        for part in schema
            .get("allOf")
            .and_then(Json::as_array)
            .unwrap_or_default()
        {
            self.collect(part, all);
        }
        let reference = schema.get("$ref").and_then(Json::as_str);
        if let Some(target) = reference.and_then(|reference| self.target(reference)) {
            let schema = target.schema;
            let followed = self
                .open_references
                .iter()
                .filter(|open| std::ptr::eq(**open, schema));
            if followed.count() >= MAX_RECURSION {
                all.truncated_target = schema.as_object();
                return;
            }
            self.open_references.push(schema);
            all.opened_references += 1;
            self.collect(schema, all);
        }
    }

    /// Reads the schemas, resolving one list of choices after the other.
    fn read(
        &mut self,
        all: &Conjunction<'j>,
        used: ResolvedChoices<'_, 'j>,
        depth: usize,
    ) -> ValueSchema<'j> {
        self.remaining = self.remaining.saturating_sub(1);
        let choice =
            choices(&all.schemas).find(|choice| !used.contains(&std::ptr::from_ref(*choice)));
        let Some(choice) = choice.filter(|_| used.len() < MAX_CHOICE_LISTS && self.remaining > 0)
        else {
            return self.read_without_choices(all, used, depth);
        };
        let mut keywords = all.schemas.iter().flat_map(|members| members.iter());
        let limited = keywords.any(|(keyword, _)| is_constraint(keyword));
        let branches = choice.as_array().unwrap_or_default();
        if limited && branches.len() > MAX_BRANCHES {
            return self.read_without_choices(all, used, depth);
        }
        let mut resolved = used.to_vec();
        resolved.push(std::ptr::from_ref(choice));
        let read = branches.iter().map(|branch| {
            let mut with = Conjunction {
                schemas: all.schemas.clone(),
                opened_references: 0,
                is_never: false,
                truncated_target: all.truncated_target,
            };
            // A description of all branches is written once, above them.
            let before = with.schemas.len();
            self.collect(branch, &mut with);
            let value_schema = if with.is_never {
                ValueSchema::default()
            } else {
                let mut value_schema = self.read(&with, &resolved, depth);
                let native = &with.schemas[before..];
                value_schema.title = text(native, "title");
                value_schema.description = text(native, "description");
                value_schema
            };
            self.open_references
                .truncate(self.open_references.len() - with.opened_references);
            value_schema
        });
        let mut value_schema = ValueSchema::union(read.collect());
        if limited && let Some(object) = value_schema.take_single_object() {
            value_schema.choices.push(Choice::new(Kind::Object(object)));
        }
        value_schema.title = text(&all.schemas, "title").or(value_schema.title);
        value_schema.description = text(&all.schemas, "description").or(value_schema.description);
        value_schema.default = first(&all.schemas, "default").or(value_schema.default);
        value_schema
    }

    /// Reads schemas without unresolved lists of choices.
    fn read_without_choices(
        &mut self,
        all: &Conjunction<'j>,
        used: ResolvedChoices<'_, 'j>,
        depth: usize,
    ) -> ValueSchema<'j> {
        let schemas = &all.schemas;
        let mut value_schema = ValueSchema {
            title: text(schemas, "title"),
            description: text(schemas, "description"),
            default: first(schemas, "default"),
            is_truncated: all.truncated_target.is_some(),
            ..ValueSchema::default()
        };
        let listed = values(schemas);
        let members: Vec<Members<'j>> = schemas
            .iter()
            .chain(&all.truncated_target)
            .copied()
            .collect();
        let kinds = Kinds::new(&members, listed.as_deref());
        value_schema.accepts_any = kinds.allows_all();
        value_schema.nullable =
            kinds.null && listed.as_ref().is_none_or(|all| all.contains(&&Json::Null));
        if value_schema.accepts_any {
            return value_schema;
        }
        let mut add = |kind: Option<Kind<'j>>| value_schema.choices.extend(kind.map(Choice::new));
        add(kinds
            .string
            .then(|| string(schemas, listed.as_deref()))
            .flatten());
        add(kinds
            .allows_numbers()
            .then(|| number(schemas, &kinds, listed.as_deref()))
            .flatten());
        add(kinds.boolean.then(|| boolean(listed.as_deref())).flatten());
        if kinds.array {
            add(Some(Kind::Array(self.array(schemas, depth))));
        }
        if kinds.object {
            add(Some(Kind::Object(self.object(schemas, used, depth))));
        }
        value_schema
    }

    fn array(&mut self, schemas: &[Members<'j>], depth: usize) -> Array<'j> {
        let min_items = count(schemas, "minItems");
        let max_items = count(schemas, "maxItems");
        let written = first(schemas, "prefixItems").or(first(schemas, "items"));
        let listed = written.and_then(Json::as_array);
        let remaining = if first(schemas, "prefixItems").is_some() {
            first(schemas, "items")
        } else {
            first(schemas, "additionalItems")
        };
        let items = match (listed, first(schemas, "items")) {
            (Some(listed), _) => {
                let full = max_items.is_some_and(|most| {
                    most.parse::<usize>().is_ok_and(|most| most <= listed.len())
                });
                let remaining = match remaining {
                    Some(remaining) => Some(remaining),
                    None => (!full).then_some(&Json::Bool(true)),
                };
                let items = listed.iter().chain(remaining);
                let all = items
                    .map(|item| self.value_schema(&[item], depth + 1))
                    .collect();
                ValueSchema::union(all)
            }
            (None, Some(items)) => self.value_schema(&[items], depth + 1),
            (None, None) => ValueSchema::anything(),
        };
        let items = if items.is_never() {
            ValueSchema::anything()
        } else {
            items
        };
        Array {
            items: Box::new(items),
            min_items,
            max_items,
        }
    }

    fn object(
        &mut self,
        schemas: &[Members<'j>],
        used: ResolvedChoices<'_, 'j>,
        depth: usize,
    ) -> Object<'j> {
        let named = NamedProperties::new(schemas, used);
        let mut properties = Vec::new();
        for (name, schemas) in named.properties {
            let value_schema = self.value_schema(&schemas, depth + 1);
            let required = named.required.contains_key(name);
            if !value_schema.is_never() || required {
                properties.push(Property {
                    name,
                    schema: value_schema,
                    required,
                });
            }
        }
        let denies = |keyword: &str| all(schemas, keyword).any(|value| *value == Json::Bool(false));
        let closed = denies("additionalProperties") || denies("unevaluatedProperties");
        Object {
            properties,
            is_closed: closed && first(schemas, "patternProperties").is_none(),
        }
    }
}

/// Subschemas that are read of one schema; more are truncated, since references can expand without bound.
const MAX_SCHEMAS: usize = 5_000;
/// Deeper subschemas are truncated.
const MAX_DEPTH: usize = 32;
/// How often a reference is followed within its own target.
const MAX_RECURSION: usize = 2;
/// Schemas that are read together for one value.
const MAX_CONJUNCTION: usize = 64;
/// Lists of choices that are multiplied with each other.
const MAX_CHOICE_LISTS: usize = 3;
/// Branches that are each read together with the keywords beside them.
const MAX_BRANCHES: usize = 64;
