//! From a JSON Schema to what a model is told of it.
//!
//! Drafts 4 to 2020-12. What is read is never less than the schema allows, but for two things: a schema
//! that limits values of one kind and names no kind is read as if it named it, since that is what its
//! author means; and what no property is named for can only be told as an open object.

mod keywords;
mod kinds;
mod properties;
mod values;

use self::keywords::{all, choices, count, first, limits, text};
use self::kinds::Kinds;
use self::properties::Named;
use self::values::{boolean, number, string, values};
use super::told::{Array, Choice, Kind, Object, Property, Told};
use crate::derive::schema::{Reference, find};
use mcp_vary::json::Json;

/// Reads the parts of one schema.
#[derive(Debug)]
pub(super) struct Reader<'j> {
    root: &'j Json<'j>,
    references: References,
    /// How many more places are read; what is left after that is cut.
    left: usize,
    /// What the references that lead here point to, from the root on.
    open: Vec<*const Json<'j>>,
    definitions: Vec<Definition<'j>>,
}

/// What becomes of a reference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum References {
    /// What it points to takes its place.
    Inline,
    /// It stays, where nothing stands beside it that limits values.
    Keep,
}

/// A part of the schema that references point to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition<'j> {
    pub(super) schema: &'j Json<'j>,
    /// The last token of the pointer.
    pub(super) name: Option<&'j str>,
}

type Members<'j> = &'j [(std::borrow::Cow<'j, str>, Json<'j>)];

/// The lists of choices of which one is read.
type Taken<'t, 'j> = &'t [*const Json<'j>];

/// The schemas that all have to hold in one place.
struct All<'j> {
    schemas: Vec<Members<'j>>,
    /// What references led to, to be closed again.
    opened: usize,
    /// One of them allows nothing.
    never: bool,
    /// What a reference leads to that was followed often enough.
    cut: Option<Members<'j>>,
}

impl<'j> Reader<'j> {
    pub(super) fn new(root: &'j Json<'j>, references: References) -> Self {
        Self {
            root,
            references,
            left: MOST_PLACES,
            open: Vec::new(),
            definitions: Vec::new(),
        }
    }

    /// The whole schema as one object, which is what arguments are.
    pub(super) fn root(&mut self) -> (Told<'j>, Object<'j>) {
        let mut told = self.following(&[self.root], 0);
        let object = told.as_one_object().unwrap_or_default();
        (told, object)
    }

    /// The parts that references were kept to, as far as they are known by now.
    pub(super) fn definition(&self, number: usize) -> Option<Definition<'j>> {
        self.definitions.get(number).copied()
    }

    /// A part that references point to.
    pub(super) fn defined(&mut self, schema: &'j Json<'j>) -> Told<'j> {
        self.following(&[schema], 1)
    }

    /// What the schemas together allow.
    fn told(&mut self, schemas: &[&'j Json<'j>], depth: usize) -> Told<'j> {
        if let ([schema], References::Keep) = (schemas, self.references)
            && let Some(kept) = self.kept(schema)
        {
            return kept;
        }
        self.following(schemas, depth)
    }

    /// As [`Self::told`], with what a reference at the top points to.
    fn following(&mut self, schemas: &[&'j Json<'j>], depth: usize) -> Told<'j> {
        if self.left == 0 || depth > DEEPEST {
            return Told {
                cut: true,
                ..Told::anything()
            };
        }
        let mut all = All {
            schemas: Vec::new(),
            opened: 0,
            never: false,
            cut: None,
        };
        for schema in schemas {
            self.gather(schema, &mut all);
        }
        let told = if all.never {
            Told::default()
        } else {
            self.read(&all, &[], depth)
        };
        self.open.truncate(self.open.len() - all.opened);
        told
    }

    /// A reference with nothing beside it that limits values.
    fn kept(&mut self, schema: &'j Json<'j>) -> Option<Told<'j>> {
        let members = schema.as_object()?;
        let target = self.target(schema.get("$ref")?.as_str()?)?;
        let limits =
            |keyword: &str| !["$ref", "title", "description", "default"].contains(&keyword);
        if members.iter().any(|(keyword, _)| limits(keyword)) {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        let known = self
            .definitions
            .iter()
            .position(|definition| std::ptr::eq(definition.schema, target.schema));
        let number = known.unwrap_or(self.definitions.len());
        if number == self.definitions.len() {
            self.definitions.push(target);
        }
        let all = [members];
        Some(Told {
            title: text(&all, "title"),
            description: text(&all, "description"),
            default: first(&all, "default"),
            choices: vec![Choice::of(Kind::Definition(number))],
            ..Told::default()
        })
    }

    fn target(&self, reference: &'j str) -> Option<Definition<'j>> {
        let Reference::Pointer(tokens) = Reference::parse(reference)? else {
            return None;
        };
        let schema = find(self.root, &tokens)?;
        let name = reference.rsplit('/').next().filter(|_| tokens.len() == 2);
        Some(Definition { schema, name })
    }

    /// Adds a schema and what it includes: `allOf`, and what its reference points to.
    fn gather(&mut self, schema: &'j Json<'j>, all: &mut All<'j>) {
        let members = match schema {
            Json::Object(members) => members.as_slice(),
            Json::Bool(false) => {
                all.never = true;
                return;
            }
            _ => return,
        };
        if all.schemas.len() >= MOST_TOGETHER
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
            self.gather(part, all);
        }
        let reference = schema.get("$ref").and_then(Json::as_str);
        if let Some(target) = reference.and_then(|reference| self.target(reference)) {
            let target = target.schema;
            let followed = self.open.iter().filter(|open| std::ptr::eq(**open, target));
            if followed.count() >= FOLLOWED {
                all.cut = target.as_object();
                return;
            }
            self.open.push(target);
            all.opened += 1;
            self.gather(target, all);
        }
    }

    /// Reads the schemas, one choice after the other of those that they leave.
    fn read(&mut self, all: &All<'j>, taken: Taken<'_, 'j>, depth: usize) -> Told<'j> {
        self.left = self.left.saturating_sub(1);
        let choice =
            choices(&all.schemas).find(|choice| !taken.contains(&std::ptr::from_ref(*choice)));
        let Some(choice) = choice.filter(|_| taken.len() < MOST_CHOICES && self.left > 0) else {
            return self.plain(all, taken, depth);
        };
        let limited = all.schemas.iter().flat_map(|members| members.iter());
        let limited = limited.filter(|(keyword, _)| limits(keyword)).count() > 0;
        let branches = choice.as_array().unwrap_or_default();
        if limited && branches.len() > MOST_BRANCHES {
            return self.plain(all, taken, depth);
        }
        let mut taken = taken.to_vec();
        taken.push(std::ptr::from_ref(choice));
        let read = branches.iter().map(|branch| {
            let mut with = All {
                schemas: all.schemas.clone(),
                opened: 0,
                never: false,
                cut: all.cut,
            };
            // What is said of all branches is said once, above them.
            let before = with.schemas.len();
            self.gather(branch, &mut with);
            let told = if with.never {
                Told::default()
            } else {
                let mut told = self.read(&with, &taken, depth);
                let own = &with.schemas[before..];
                told.title = text(own, "title");
                told.description = text(own, "description");
                told
            };
            self.open.truncate(self.open.len() - with.opened);
            told
        });
        let mut told = Told::one_of(read.collect());
        if limited && let Some(object) = told.as_one_object() {
            told.choices.push(Choice::of(Kind::Object(object)));
        }
        told.title = text(&all.schemas, "title").or(told.title);
        told.description = text(&all.schemas, "description").or(told.description);
        told.default = first(&all.schemas, "default").or(told.default);
        told
    }

    /// Reads schemas that leave no choice but of kinds.
    fn plain(&mut self, all: &All<'j>, taken: Taken<'_, 'j>, depth: usize) -> Told<'j> {
        let schemas = &all.schemas;
        let mut told = Told {
            title: text(schemas, "title"),
            description: text(schemas, "description"),
            default: first(schemas, "default"),
            cut: all.cut.is_some(),
            ..Told::default()
        };
        let values = values(schemas);
        let said: Vec<Members<'j>> = schemas.iter().chain(&all.cut).copied().collect();
        let kinds = Kinds::of(&said, values.as_deref());
        told.any = kinds.all();
        told.null = kinds.null && values.as_ref().is_none_or(|all| all.contains(&&Json::Null));
        if told.any {
            return told;
        }
        let mut add = |kind: Option<Kind<'j>>| told.choices.extend(kind.map(Choice::of));
        add(kinds
            .string
            .then(|| string(schemas, values.as_deref()))
            .flatten());
        add(kinds
            .number()
            .then(|| number(schemas, &kinds, values.as_deref()))
            .flatten());
        add(kinds.boolean.then(|| boolean(values.as_deref())).flatten());
        if kinds.array {
            add(Some(Kind::Array(self.array(schemas, depth))));
        }
        if kinds.object {
            add(Some(Kind::Object(self.object(schemas, taken, depth))));
        }
        told
    }

    fn array(&mut self, schemas: &[Members<'j>], depth: usize) -> Array<'j> {
        let min_items = count(schemas, "minItems");
        let max_items = count(schemas, "maxItems");
        let listed = first(schemas, "prefixItems").or(first(schemas, "items"));
        let listed = listed.and_then(Json::as_array);
        let rest = if first(schemas, "prefixItems").is_some() {
            first(schemas, "items")
        } else {
            first(schemas, "additionalItems")
        };
        let items = match (listed, first(schemas, "items")) {
            (Some(listed), _) => {
                let full = max_items.is_some_and(|most| {
                    most.parse::<usize>().is_ok_and(|most| most <= listed.len())
                });
                let rest = match rest {
                    Some(rest) => Some(rest),
                    None => Some(&Json::Bool(true)).filter(|_| !full),
                };
                let all = listed.iter().chain(rest);
                let all = all.map(|item| self.told(&[item], depth + 1)).collect();
                Told::one_of(all)
            }
            (None, Some(items)) => self.told(&[items], depth + 1),
            (None, None) => Told::anything(),
        };
        let items = if items.is_never() {
            Told::anything()
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
        taken: Taken<'_, 'j>,
        depth: usize,
    ) -> Object<'j> {
        let named = Named::of(schemas, taken);
        let mut properties = Vec::new();
        for (name, schemas) in named.properties {
            let told = self.told(&schemas, depth + 1);
            let required = named.required.contains_key(name);
            if !told.is_never() || required {
                properties.push(Property {
                    name,
                    told,
                    required,
                });
            }
        }
        let denies = |keyword: &str| all(schemas, keyword).any(|value| *value == Json::Bool(false));
        let closed = denies("additionalProperties") || denies("unevaluatedProperties");
        Object {
            properties,
            closed: closed && first(schemas, "patternProperties").is_none(),
        }
    }
}

/// What a schema has more of is cut, since references make it long.
const MOST_PLACES: usize = 5_000;
/// As is what is deeper.
const DEEPEST: usize = 32;
/// How often a reference is followed within what it points to.
const FOLLOWED: usize = 2;
/// How many schemas are read together for one place.
const MOST_TOGETHER: usize = 64;
/// How many lists of choices are multiplied with each other.
const MOST_CHOICES: usize = 3;
/// How many choices are read each together with what stands beside them.
const MOST_BRANCHES: usize = 64;
