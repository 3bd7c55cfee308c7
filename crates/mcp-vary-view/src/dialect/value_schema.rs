//! A schema in terms that every dialect can express: which kinds of values it accepts, and their constraints.

use mcp_vary::json::Json;

/// What one position accepts.
///
/// Accepts at least what the original schema accepts; constraints without a counterpart are dropped. A position that
/// accepts nothing has no choices, is not `accepts_any` and not `nullable`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ValueSchema<'j> {
    pub(super) title: Option<&'j str>,
    pub(super) description: Option<&'j str>,
    pub(super) default: Option<&'j Json<'j>>,
    /// Whether `null` is accepted.
    pub(super) nullable: bool,
    /// Whether every value is accepted.
    pub(super) accepts_any: bool,
    /// Whether parts of the original schema are missing.
    pub(super) is_truncated: bool,
    pub(super) choices: Vec<Choice<'j>>,
}

/// One kind of value, with its own title and description.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice<'j> {
    pub(super) title: Option<&'j str>,
    pub(super) description: Option<&'j str>,
    pub(super) kind: Kind<'j>,
}

/// A kind of value and its constraints.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'j> {
    Text(Text<'j>),
    Number(Number<'j>),
    /// Both values, or only this one.
    Boolean(Option<bool>),
    Array(Array<'j>),
    Object(Object<'j>),
    /// A definition, by its number.
    Definition(usize),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text<'j> {
    pub(super) values: Option<Vec<&'j str>>,
    pub(super) format: Option<&'j str>,
    pub(super) pattern: Option<&'j str>,
    pub(super) min_length: Option<&'j str>,
    pub(super) max_length: Option<&'j str>,
}

/// Constraints of a number, each as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Number<'j> {
    pub(super) is_integer: bool,
    pub(super) values: Option<Vec<&'j str>>,
    pub(super) format: Option<&'j str>,
    pub(super) minimum: Option<&'j str>,
    pub(super) maximum: Option<&'j str>,
    pub(super) exclusive_minimum: Option<&'j str>,
    pub(super) exclusive_maximum: Option<&'j str>,
    pub(super) multiple_of: Option<&'j str>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array<'j> {
    pub(super) items: Box<ValueSchema<'j>>,
    pub(super) min_items: Option<&'j str>,
    pub(super) max_items: Option<&'j str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object<'j> {
    pub(super) properties: Vec<Property<'j>>,
    /// Whether other properties are rejected.
    pub(super) is_closed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Property<'j> {
    pub(super) name: &'j str,
    pub(super) schema: ValueSchema<'j>,
    pub(super) required: bool,
}

impl<'j> ValueSchema<'j> {
    /// A schema that accepts everything.
    pub(super) fn anything() -> Self {
        Self {
            accepts_any: true,
            ..Self::default()
        }
    }

    /// The title and description alone, without kinds.
    pub(super) fn annotations(&self) -> Self {
        Self {
            title: self.title,
            description: self.description,
            is_truncated: self.is_truncated,
            ..Self::default()
        }
    }

    /// Whether nothing is accepted.
    pub(super) fn is_never(&self) -> bool {
        !self.accepts_any && !self.nullable && self.choices.is_empty()
    }

    /// Accepts what any of `all` accepts.
    pub(super) fn union(all: Vec<Self>) -> Self {
        let several = all
            .iter()
            .filter(|value_schema| !value_schema.is_never())
            .count()
            > 1;
        let mut one = Self::default();
        for mut value_schema in all {
            one.nullable |= value_schema.nullable;
            one.accepts_any |= value_schema.accepts_any;
            one.is_truncated |= value_schema.is_truncated;
            if several && let [choice] = value_schema.choices.as_mut_slice() {
                choice.title = choice.title.or(value_schema.title);
                choice.description = choice.description.or(value_schema.description);
            } else if !several {
                one.title = one.title.or(value_schema.title);
                one.description = one.description.or(value_schema.description);
                one.default = one.default.or(value_schema.default);
            }
            for choice in value_schema.choices {
                one.add(choice);
            }
        }
        if one.accepts_any {
            one.choices.clear();
        }
        one
    }

    /// Adds a choice. Merges it with the last one if both are plain lists of texts.
    fn add(&mut self, choice: Choice<'j>) {
        if self.choices.len() < MAX_COMPARED_CHOICES && self.choices.contains(&choice) {
            return;
        }
        if let Some(values) = choice.plain_values() {
            let mut texts = self.choices.iter_mut().rev().take(1);
            if let Some(before) = texts
                .next()
                .filter(|before| before.plain_values().is_some())
                && let Kind::Text(Text {
                    values: Some(before),
                    ..
                }) = &mut before.kind
            {
                before.extend(values);
                return;
            }
        }
        self.choices.push(choice);
    }

    /// Takes the choices as one object if all of them are objects.
    pub(super) fn take_single_object(&mut self) -> Option<Object<'j>> {
        let objects: Option<Vec<_>> = self
            .choices
            .iter()
            .map(|choice| match &choice.kind {
                Kind::Object(object) => Some(object),
                _ => None,
            })
            .collect();
        objects.filter(|all| !all.is_empty())?;
        let choices = std::mem::take(&mut self.choices);
        let objects = choices.into_iter().filter_map(|choice| match choice.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        });
        Some(Object::union(objects.collect()))
    }
}

impl<'j> Choice<'j> {
    pub(super) fn new(kind: Kind<'j>) -> Self {
        Self {
            title: None,
            description: None,
            kind,
        }
    }

    /// The values of a choice that is a plain list of texts.
    fn plain_values(&self) -> Option<Vec<&'j str>> {
        match &self.kind {
            Kind::Text(Text {
                values: Some(values),
                format: None,
                pattern: None,
                ..
            }) if self.title.is_none() && self.description.is_none() => Some(values.clone()),
            _ => None,
        }
    }
}

impl<'j> Object<'j> {
    /// The union of objects: all their properties, each required only if all objects require it.
    fn union(all: Vec<Self>) -> Self {
        let count = all.len();
        let is_closed = all.iter().all(|object| object.is_closed);
        let mut order = Vec::new();
        let mut found = std::collections::BTreeMap::<&str, Vec<Property<'j>>>::new();
        for property in all.into_iter().flat_map(|object| object.properties) {
            let same = found.entry(property.name).or_default();
            if same.is_empty() {
                order.push(property.name);
            }
            same.push(property);
        }
        let joined = |name: &'j str| {
            let all = found.remove(name).unwrap_or_default();
            let required = all.len() == count && all.iter().all(|property| property.required);
            let mut all: Vec<ValueSchema<'j>> =
                all.into_iter().map(|property| property.schema).collect();
            all.dedup();
            Property {
                name,
                schema: ValueSchema::union(all),
                required,
            }
        };
        Self {
            properties: order.into_iter().map(joined).collect(),
            is_closed,
        }
    }
}

/// More choices are not compared with the earlier ones, which keeps long lists linear.
const MAX_COMPARED_CHOICES: usize = 64;
