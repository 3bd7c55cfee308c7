//! What a model is told of a schema: what may stand in a place, by kind, in terms that every dialect has.

use mcp_vary::json::Json;

/// What may stand in one place.
///
/// Never less than the schema allows, as far as kinds can say it: what these terms lack is left out. A
/// place where nothing may stand has no choices, is not `any` and not `null`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told<'j> {
    pub(super) title: Option<&'j str>,
    pub(super) description: Option<&'j str>,
    pub(super) default: Option<&'j Json<'j>>,
    /// Whether `null` may stand here.
    pub(super) null: bool,
    /// Whether anything may.
    pub(super) any: bool,
    /// Whether the schema goes on where this does not.
    pub(super) cut: bool,
    pub(super) choices: Vec<Choice<'j>>,
}

/// One kind of value, with what is said of it alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice<'j> {
    pub(super) title: Option<&'j str>,
    pub(super) description: Option<&'j str>,
    pub(super) kind: Kind<'j>,
}

/// A kind of value, and what of them may stand there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'j> {
    Text(Text<'j>),
    Number(Number<'j>),
    /// Either, or just the one.
    Boolean(Option<bool>),
    Array(Array<'j>),
    Object(Object<'j>),
    /// What a definition says, by its number.
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

/// Numbers, each as it is spelled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Number<'j> {
    pub(super) integer: bool,
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
    pub(super) items: Box<Told<'j>>,
    pub(super) min_items: Option<&'j str>,
    pub(super) max_items: Option<&'j str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object<'j> {
    pub(super) properties: Vec<Property<'j>>,
    /// Whether there may be no others.
    pub(super) closed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Property<'j> {
    pub(super) name: &'j str,
    pub(super) told: Told<'j>,
    pub(super) required: bool,
}

impl<'j> Told<'j> {
    /// A place where anything may stand.
    pub(super) fn anything() -> Self {
        Self {
            any: true,
            ..Self::default()
        }
    }

    /// What is said of the place in words, without what may stand there.
    pub(super) fn words(&self) -> Self {
        Self {
            title: self.title,
            description: self.description,
            cut: self.cut,
            ..Self::default()
        }
    }

    /// Whether nothing may stand here.
    pub(super) fn is_never(&self) -> bool {
        !self.any && !self.null && self.choices.is_empty()
    }

    /// What is one of `all`.
    pub(super) fn one_of(all: Vec<Self>) -> Self {
        let several = all.iter().filter(|told| !told.is_never()).count() > 1;
        let mut one = Self::default();
        for mut told in all {
            one.null |= told.null;
            one.any |= told.any;
            one.cut |= told.cut;
            if let ([choice], true) = (told.choices.as_mut_slice(), several) {
                choice.title = choice.title.or(told.title);
                choice.description = choice.description.or(told.description);
            } else if !several {
                one.title = one.title.or(told.title);
                one.description = one.description.or(told.description);
                one.default = one.default.or(told.default);
            }
            for choice in told.choices {
                one.add(choice);
            }
        }
        if one.any {
            one.choices.clear();
        }
        one
    }

    /// Adds a choice, together with an earlier one where both are no more than lists of texts.
    fn add(&mut self, choice: Choice<'j>) {
        if self.choices.len() < COMPARED && self.choices.contains(&choice) {
            return;
        }
        if let Some(values) = choice.only_values() {
            let mut texts = self.choices.iter_mut().rev().take(1);
            if let Some(before) = texts.next().filter(|before| before.only_values().is_some())
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

    /// The objects among the choices as one, if there are only such.
    pub(super) fn as_one_object(&mut self) -> Option<Object<'j>> {
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
        Some(Object::joined(objects.collect()))
    }
}

impl<'j> Choice<'j> {
    pub(super) fn of(kind: Kind<'j>) -> Self {
        Self {
            title: None,
            description: None,
            kind,
        }
    }

    /// The texts of a choice that says nothing else.
    fn only_values(&self) -> Option<Vec<&'j str>> {
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
    /// An object that is one of `all`: what each has, required where all require it.
    fn joined(all: Vec<Self>) -> Self {
        let count = all.len();
        let closed = all.iter().all(|object| object.closed);
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
            let mut all: Vec<Told<'j>> = all.into_iter().map(|property| property.told).collect();
            all.dedup();
            Property {
                name,
                told: Told::one_of(all),
                required,
            }
        };
        Self {
            properties: order.into_iter().map(joined).collect(),
            closed,
        }
    }
}

/// Further choices are not compared with those before: no list takes quadratic time.
const COMPARED: usize = 64;
