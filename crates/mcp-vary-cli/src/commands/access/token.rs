//! `vary access explain --token`: verifies an access token as the gateway does, and says what is wrong with it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use mcp_vary::variant::Date;
use mcp_vary_access::Principal;
use mcp_vary_auth::token::{LEEWAY, TokenError, TokenVerifier, UnverifiedToken};
use mcp_vary_base::io_error;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_gateway::try_token;

use crate::commands::status::duration;
use crate::environment::environment;
use crate::failure::Failure;
use crate::log::time_of_day;

/// The longest file that is read. A token has at most half of it.
const MAX_TOKEN: u64 = 16 << 10;

/// A token that the gateway accepts.
pub(super) struct AcceptedToken {
    pub(super) principal: Principal,
    /// What it is, in a line.
    pub(super) summary: String,
}

/// Verifies the token in the file at `path`; `-` is standard input.
pub(super) async fn verify(
    path: &Path,
    authentication: Option<&Authentication>,
) -> Result<AcceptedToken, Failure> {
    let verifier =
        authentication.and_then(|settings| Some((settings, settings.authenticator.tokens()?)));
    let Some((settings, verifier)) = verifier else {
        return Err(Failure::command(
            "--token: the configuration has no `auth.issuers`; see docs/how-to/identity-providers.md",
        ));
    };
    let text = read(path).map_err(|error| {
        let name = path.display();
        if UnverifiedToken::parse(&name.to_string()).is_ok() {
            // It is not shown, since it is a secret.
            return Failure::command(
                "--token takes the name of a file, and this is a token; write it into a file, or use `--token -` and standard input",
            );
        }
        if error.kind() == io::ErrorKind::NotFound {
            // What was given may be an opaque token.
            return Failure::command(
                "--token takes the name of a file with the token, and there is none of the given name; `--token -` reads standard input",
            );
        }
        Failure::command(format!("--token: {name}: {}", io_error::describe(&error)))
    })?;
    let written = text.trim();
    if written.is_empty() {
        let name = path.display();
        return Err(Failure::command(format!("--token: {name} is empty")));
    }
    let token = written.strip_prefix("Bearer ").unwrap_or(written).trim();
    if token.starts_with(['"', '\'']) {
        let name = path.display();
        return Err(Failure::command(format!(
            "--token: the token in {name} is in quotes, and a client would send them; write it without quotes"
        )));
    }
    if token.contains(char::is_whitespace) {
        let name = path.display();
        return Err(Failure::command(format!(
            "--token: {name} has more than a token; write the token alone into it"
        )));
    }
    let system = environment()?;
    let now = (system.now)();
    let tried = try_token(settings, system, token).await;
    let admission =
        tried.map_err(|reason| Failure::looked_at(refusal(&reason, token, verifier, now)))?;
    let principal = Principal::clone(&admission.principal);
    let subject = principal.subject().unwrap_or_default();
    let issuer = principal.issuer().unwrap_or_default();
    let left = admission.expires_at.unwrap_or(now).saturating_sub(now) / 60;
    let summary =
        format!("the token is accepted: `{subject}` of {issuer}, for {left} more minutes");
    Ok(AcceptedToken { principal, summary })
}

fn read(path: &Path) -> io::Result<String> {
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    let mut text = String::new();
    input.take(MAX_TOKEN).read_to_string(&mut text)?;
    Ok(text)
}

/// How a reason begins that is about the keys of the issuer, and not about the token.
const UNVERIFIABLE: &str = "tokens cannot be verified at the moment; try again later";

/// What to do if the keys of the issuer did not come, for the reason `why`, which has the URL.
fn unreachable_provider(why: &str) -> String {
    let why = match why {
        "" => "its issuer did not send its keys in time",
        why => why,
    };
    format!(
        "the token cannot be checked: {why}\nsee that this machine can reach that address (a proxy is named in `HTTPS_PROXY`), and that \
         `issuer` and `jwks` are right; until then Vary answers every token of this issuer with 503"
    )
}

/// The `reason`, and what of the token differs from the configuration. Issuer and audiences are no secrets.
fn refusal(reason: &str, token: &str, verifier: &TokenVerifier, now: u64) -> String {
    let first = match reason.strip_prefix(UNVERIFIABLE) {
        Some(why) => unreachable_provider(why.trim_start_matches("; ")),
        None => format!("the token is refused: {reason}"),
    };
    let Ok(token) = UnverifiedToken::parse(token) else {
        return first;
    };
    let hint = difference(&token, verifier).unwrap_or_default();
    let end = token.expires_at();
    if end.saturating_add(LEEWAY) > now {
        return first + &hint;
    }
    let expired = format!(
        "it has expired: its `exp` is {} {}, {} ago by this machine's clock; get another token",
        Date::from_unix(end),
        time_of_day(end),
        duration(now - end)
    );
    // Whatever cannot be verified, this token is of no use.
    let is_all = reason == TokenError::Expired.to_string() || reason.starts_with(UNVERIFIABLE);
    if is_all {
        format!("the token is refused: {expired}{hint}")
    } else {
        format!("{first}{hint}\nand {expired}")
    }
}

/// The claim of the token that the configuration does not have so, and what to do: lines after a reason.
fn difference(token: &UnverifiedToken<'_>, verifier: &TokenVerifier) -> Option<String> {
    let Ok(index) = verifier.find_issuer(token) else {
        let issuers = verifier.issuers().iter().map(|known| known.issuer.as_str());
        let known: Vec<_> = issuers.collect();
        return Some(format!(
            "\n  its `iss`: {}\n  `issuer` in the configuration: {}\nif that is your provider, write its `iss` into `issuer` exactly as it is; if not, get a token of your provider",
            token.issuer(),
            known.join(", ")
        ));
    };
    let mut accepted = vec![verifier.audience_of_server()];
    accepted.extend(verifier.issuer(index)?.audiences.iter().cloned());
    let is_for_it = |audience: &_| accepted.contains(audience);
    if token.audiences().iter().any(is_for_it) {
        return None;
    }
    Some(format!(
        "\n  its `aud`: {}\n  accepted: {}\nlet the provider write the first of these into `aud`, or add the token's \
         to `audiences` of the issuer if the provider gives it to no other service",
        token.audiences().join(", "),
        accepted.join(", ")
    ))
}
