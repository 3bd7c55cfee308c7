//! The headers of a server that is reached over HTTP, and where their values come from.

use std::borrow::Cow;
use std::fmt;

use http::HeaderValue;

/// Where the value of a server's header comes from.
///
/// The value is added to every request to the server, in one place: when the connection is opened for a client. Values
/// that change while a connection is open come from a [`CredentialSource`](mcp_vary_http_client::credential_source::CredentialSource).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HeaderSource {
    /// The configuration: the same value for every request.
    Fixed(HeaderValue),
    /// The verified claims of the client that sends the request.
    Claims(HeaderTemplate),
}

/// The value of a header with claims in it, such as `Bearer ${claims.token}`.
///
/// # Properties
///
/// It has at least one claim. The value of a header is visible ASCII (RFC 9110, section 5.5, `VCHAR`), with spaces only
/// inside: no client can end the header, add another one, or send bytes that readers decode differently. A claim that is
/// not one string, number or boolean, or that has other characters, gives no value. `Debug` shows the claims' names only.
///
/// # Examples
///
/// ```
/// use mcp_vary_upstream::{ClaimFault, HeaderTemplate, TemplatePart};
///
/// let parts = [TemplatePart::Text("user ".into()), TemplatePart::Claim("email".into())];
/// let template = HeaderTemplate::new(parts)?;
/// assert_eq!(template.render(|_| Ok("ann@example.com".into()))?, "user ann@example.com");
///
/// // A claim that would begin another header gives no value.
/// let fault = template.render(|_| Ok("ann\r\nX-Admin: 1".into())).unwrap_err();
/// assert_eq!(fault.claim(), "email");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct HeaderTemplate(Box<[TemplatePart]>);

/// A part of a [`HeaderTemplate`].
#[derive(Clone, Eq, PartialEq)]
pub enum TemplatePart {
    /// Text of the configuration, which may be secret.
    Text(Box<str>),
    /// The name of a claim.
    Claim(Box<str>),
}

/// A text cannot be a [`HeaderTemplate`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderTemplateError {
    /// It has no claim.
    #[error("a header template has at least one claim")]
    NoClaim,
    /// It has other characters than visible ASCII and inner spaces, or more than [`MAX_HEADER`] bytes.
    #[error(
        "the text of a header template is visible ASCII, with spaces only inside, of at most {MAX_HEADER} bytes"
    )]
    Text,
}

/// Why a claim gives no value. It contains the claim's name and not its value.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("the claim `{claim}` {problem}")]
pub struct ClaimFault {
    claim: Box<str>,
    problem: ClaimProblem,
}

/// What is wrong with a claim.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum ClaimProblem {
    /// The client does not have it, or it is empty.
    #[error("is missing or empty")]
    Absent,
    /// It is a list or an object.
    #[error("is not one string, number or boolean")]
    NotOneValue,
    /// It has other characters than visible ASCII and inner spaces.
    #[error("has characters that a header cannot have; only visible ASCII is sent")]
    Characters,
    /// The header would have more than [`MAX_HEADER`] bytes.
    #[error("is too long for a header")]
    TooLong,
}

/// The maximum length of the value of a header with claims, in bytes. Most servers refuse longer ones.
pub const MAX_HEADER: usize = 8 << 10;

impl HeaderTemplate {
    /// The template of these parts.
    ///
    /// # Errors
    ///
    /// When no part is a claim, or when the text has characters that are not sent.
    pub fn new(parts: impl IntoIterator<Item = TemplatePart>) -> Result<Self, HeaderTemplateError> {
        let parts: Box<[TemplatePart]> = parts.into_iter().collect();
        let texts = parts.iter().map(|part| match part {
            TemplatePart::Text(text) => &**text,
            // Stands for a value, so that a space beside it is an inner one.
            TemplatePart::Claim(_) => "x",
        });
        let text: String = texts.collect();
        let has_claim = |part: &TemplatePart| matches!(part, TemplatePart::Claim(_));
        match parts.iter().any(has_claim) {
            false => Err(HeaderTemplateError::NoClaim),
            true if !is_sent(&text) || text.len() > MAX_HEADER => Err(HeaderTemplateError::Text),
            true => Ok(Self(parts)),
        }
    }

    /// The names of its claims.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Claim(name) => Some(&**name),
        })
    }

    /// The value for a client, of which `claim` returns the value of a claim.
    ///
    /// # Errors
    ///
    /// The first claim that gives no value.
    pub fn render<'c>(
        &self,
        claim: impl Fn(&str) -> Result<Cow<'c, str>, ClaimProblem>,
    ) -> Result<HeaderValue, ClaimFault> {
        let mut value = String::new();
        let mut last = "";
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => value.push_str(text),
                TemplatePart::Claim(name) => {
                    last = name;
                    let fault = |problem| ClaimFault::new(name, problem);
                    let text = claim(name).map_err(fault)?;
                    match &*text {
                        "" => return Err(fault(ClaimProblem::Absent)),
                        text if !is_sent(text) => return Err(fault(ClaimProblem::Characters)),
                        text if value.len() + text.len() > MAX_HEADER => {
                            return Err(fault(ClaimProblem::TooLong));
                        }
                        text => value.push_str(text),
                    }
                }
            }
        }
        if value.len() > MAX_HEADER {
            return Err(ClaimFault::new(last, ClaimProblem::TooLong));
        }
        let header = HeaderValue::try_from(value);
        let mut value = header.map_err(|_| ClaimFault::new(last, ClaimProblem::Characters))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Whether `text` is visible ASCII, with spaces only inside.
pub(crate) fn is_sent(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim_matches(' ') == text
}

impl fmt::Debug for HeaderTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.claims()).finish()
    }
}

impl fmt::Debug for TemplatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::Claim(name) => f.debug_tuple("Claim").field(name).finish(),
        }
    }
}

impl ClaimFault {
    /// The claim `name` has this problem.
    pub fn new(name: &str, problem: ClaimProblem) -> Self {
        Self {
            claim: name.into(),
            problem,
        }
    }

    /// The name of the claim.
    pub fn claim(&self) -> &str {
        &self.claim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> HeaderTemplate {
        let parts = [
            TemplatePart::Text(text.into()),
            TemplatePart::Claim("email".into()),
        ];
        HeaderTemplate::new(parts).unwrap()
    }

    #[track_caller]
    fn refuses(value: &str, problem: ClaimProblem) {
        let fault = template("").render(|_| Ok(value.into())).unwrap_err();
        assert_eq!(fault, ClaimFault::new("email", problem), "{value:?}");
        let shown = format!("{fault} {fault:?}");
        assert!(value.len() < 3 || !shown.contains(value), "{shown}");
    }

    #[test]
    fn visible_ascii_is_sent_as_it_is() {
        for value in [
            "ann@example.com",
            "Ann Smith",
            "1.5e3",
            "true",
            "a,b;c=\"d\"",
            "~",
            "!",
        ] {
            let sent = template("user ").render(|_| Ok(value.into())).unwrap();
            assert_eq!(sent, format!("user {value}"));
            assert_eq!(format!("{sent:?}"), "Sensitive");
        }
    }

    #[test]
    fn hostile_claims_give_no_header() {
        for value in [
            "ann\r\nX-Admin: 1",
            "ann\nx",
            "ann\rx",
            "ann\0",
            "ann\tx",
            "ann\u{7f}",
            "ann\u{1b}[2J",
            "änn",
            "ann\u{2028}",
            "аnn",
            " ann",
            "ann ",
            " ",
        ] {
            refuses(value, ClaimProblem::Characters);
        }
        refuses("", ClaimProblem::Absent);
        refuses(&"x".repeat(MAX_HEADER + 1), ClaimProblem::TooLong);
        refuses(&"x".repeat(1 << 20), ClaimProblem::TooLong);
        assert!(
            template("")
                .render(|_| Ok("x".repeat(MAX_HEADER).into()))
                .is_ok()
        );
        let fault = template("")
            .render(|_| Err(ClaimProblem::NotOneValue))
            .unwrap_err();
        assert_eq!(
            fault.to_string(),
            "the claim `email` is not one string, number or boolean"
        );
    }

    #[test]
    fn the_text_of_a_template_is_visible_ascii_too() {
        let claim = || TemplatePart::Claim("c".into());
        let text = |text: &str| TemplatePart::Text(text.into());
        let new = |parts: &[TemplatePart]| HeaderTemplate::new(parts.iter().cloned()).err();
        assert_eq!(new(&[text("a")]), Some(HeaderTemplateError::NoClaim));
        assert_eq!(new(&[]), Some(HeaderTemplateError::NoClaim));
        for bad in ["a\n", "ä", " a"] {
            assert_eq!(new(&[text(bad), claim()]), Some(HeaderTemplateError::Text));
        }
        assert_eq!(new(&[claim(), text(" ")]), Some(HeaderTemplateError::Text));
        assert_eq!(new(&[text("a "), claim(), text(" b")]), None);
        let long = "x".repeat(MAX_HEADER);
        assert_eq!(
            new(&[text(&long), claim()]),
            Some(HeaderTemplateError::Text)
        );
        let secret = HeaderTemplate::new([text("TOPSECRET"), claim()]).unwrap();
        assert_eq!(
            format!("{secret:?} {:?}", text("TOPSECRET")),
            r#"["c"] Text(..)"#
        );
    }
}
