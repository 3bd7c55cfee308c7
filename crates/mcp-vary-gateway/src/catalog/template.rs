//! Which URIs a URI template may stand for.

/// A URI template (RFC 6570), as far as telling needs it whose URI one is: the literal text between its
/// expressions.
///
/// # Properties
///
/// Matches every URI that the template can produce, and some that it cannot: what an expression's
/// value may look like is the server's to judge.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// What stands before the first expression, between two, and after the last.
    literals: Vec<String>,
}

/// Longer URIs are nobody's: templates may be many, and what is compared is what a client sends.
const LONGEST: usize = 8 << 10;

impl Template {
    pub(crate) fn new(text: &str) -> Self {
        let mut literals = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            // A brace that is never closed is no expression.
            let Some((_, after)) = after.split_once('}') else {
                break;
            };
            literals.push(literal.to_owned());
            rest = after;
        }
        literals.push(rest.to_owned());
        Self { literals }
    }

    /// Whether the template may stand for `uri`. Linear in its length.
    pub(crate) fn matches(&self, uri: &str) -> bool {
        if uri.len() > LONGEST {
            return false;
        }
        let (Some(first), Some(last)) = (self.literals.first(), self.literals.last()) else {
            return false;
        };
        if self.literals.len() == 1 {
            return uri == first;
        }
        let Some(mut rest) = uri.strip_prefix(first.as_str()) else {
            return false;
        };
        for literal in &self.literals[1..self.literals.len() - 1] {
            let Some(at) = rest.find(literal.as_str()) else {
                return false;
            };
            rest = &rest[at + literal.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[track_caller]
    fn stands_for(template: &str, uri: &str, expected: bool) {
        assert_eq!(
            Template::new(template).matches(uri),
            expected,
            "{template} {uri}"
        );
    }

    #[test]
    fn a_template_stands_for_what_it_can_produce() {
        stands_for("place:{name}", "place:bern", true);
        stands_for("place:{name}", "city:bern", false);
        stands_for("repo://{owner}/{name}/issues", "repo://a/b/issues", true);
        stands_for("repo://{owner}/{name}/issues", "repo://a/issues", false);
        stands_for("file://{+path}", "file:///a/b", true);
        stands_for("x:{a}{?b,c}", "x:1?b=2", true);
        stands_for("plain:uri", "plain:uri", true);
        stands_for("plain:uri", "plain:uri2", false);
        stands_for("open:{brace", "open:{brace", true);
        stands_for("{any}", "", true);
    }

    #[test]
    fn literals_do_not_overlap() {
        stands_for("a{x}aa", "aa", false);
        stands_for("a{x}aa", "aaa", true);
        stands_for("{x}-{y}-{z}", "1-2", false);
    }
}
