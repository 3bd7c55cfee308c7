//! Why a connection with TLS failed, in plain words.

use std::error::Error;
use std::io;

use rustls::{CertificateError, InvalidMessage};

/// What TLS found wrong, if it caused `error`.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> Option<String> {
    Some(match find(error)? {
        rustls::Error::InvalidCertificate(why) => describe_certificate(why),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it answered without TLS".to_owned()
        }
        rustls::Error::InvalidMessage(_) => "its answer is not correct TLS".to_owned(),
        rustls::Error::AlertReceived(alert) => {
            format!(
                "it refused the TLS connection ({})",
                words(&format!("{alert:?}"))
            )
        }
        rustls::Error::PeerIncompatible(why) => {
            let why = words(&format!("{why:?}"));
            format!("it and Vary have no TLS version or cipher in common ({why})")
        }
        _ => return None,
    })
}

/// The same without the names of hosts.
pub fn cause(error: &(dyn Error + 'static)) -> Option<String> {
    match find(error)? {
        rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }) => {
            Some("its certificate is for another name".to_owned())
        }
        _ => describe(error),
    }
}

/// The TLS error in the chain of `error`.
pub(crate) fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    std::iter::successors(Some(error), |&error| error.source()).find_map(downcast)
}

fn downcast<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    // `source` of an `io::Error` skips the error that it wraps.
    let wrapped = error.downcast_ref::<io::Error>()?.get_ref()?;
    wrapped.downcast_ref().or_else(|| downcast(wrapped))
}

fn describe_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "its certificate is self-signed, or of an authority that is not trusted".to_owned()
        }
        _ if is_of_other_authority(why) => {
            "its certificate is signed by itself, or by another authority with the name of a trusted one".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet".to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let host = expected.to_str();
            if presented.is_empty() {
                return format!(
                    "its certificate has no subjectAltName, and so is not for {host} (a CN does not count)"
                );
            }
            let names: Vec<_> = presented.iter().map(|name| quoted(name)).collect();
            if names.contains(&&*host) {
                return format!(
                    "its certificate has {host} as the name of a host, and an address needs `subjectAltName=IP:{host}`"
                );
            }
            format!(
                "its certificate is for {}, and not for {host}",
                names.join(", ")
            )
        }
        // This error has no public type.
        _ if is_authority(why) => {
            "its certificate is that of an authority, and not of a server".to_owned()
        }
        _ => {
            let written = format!("{why:?}");
            let outer = written.split('{').next().unwrap_or_default();
            let inner = outer.trim_end_matches([' ', ')']).rsplit('(').next();
            format!(
                "its certificate is refused ({})",
                words(inner.unwrap_or_default())
            )
        }
    }
}

/// Whether the signature is not that of the trusted authority with the name of the issuer; its key may be of another kind.
pub(crate) fn is_of_other_authority(why: &CertificateError) -> bool {
    matches!(
        why,
        CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
    )
}

/// Whether the certificate of an authority is used as a server's.
pub(crate) fn is_authority(why: &CertificateError) -> bool {
    why.to_string().contains("CaUsedAsEndEntity")
}

/// The name in `DnsName("a.example")`, or the address in `IpAddress(10.0.0.1)`.
fn quoted(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

/// `BadCertificate` as `bad certificate`.
fn words(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    let mut was_small = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_small {
            text.push(' ');
        }
        was_small = c.is_ascii_lowercase();
        text.push(c.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{AlertDescription, OtherError, PeerIncompatible};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("CaUsedAsEndEntity")]
    struct CaUsedAsEndEntity;

    #[derive(Debug, thiserror::Error)]
    #[error("UnsupportedCertVersion")]
    struct UnsupportedCertVersion;

    #[test]
    fn what_tls_finds_wrong_is_said_in_plain_words() {
        let other =
            |error: Arc<dyn Error + Send + Sync>| CertificateError::Other(OtherError(error));
        let expected = ServerName::try_from("localhost").unwrap();
        let presented = vec![
            r#"DnsName("a.example")"#.to_owned(),
            "IpAddress(10.0.0.1)".to_owned(),
        ];
        for (why, expected) in [
            (
                CertificateError::UnknownIssuer.into(),
                "its certificate is self-signed, or of an authority that is not trusted",
            ),
            (
                CertificateError::BadSignature.into(),
                "its certificate is signed by itself, or by another authority with the name of a trusted one",
            ),
            (
                CertificateError::Expired.into(),
                "its certificate has expired",
            ),
            (
                CertificateError::NotValidForNameContext {
                    expected,
                    presented,
                }
                .into(),
                "its certificate is for a.example, 10.0.0.1, and not for localhost",
            ),
            (
                other(Arc::new(CaUsedAsEndEntity)).into(),
                "its certificate is that of an authority, and not of a server",
            ),
            (
                other(Arc::new(UnsupportedCertVersion)).into(),
                "its certificate is refused (unsupported cert version)",
            ),
            (
                CertificateError::BadEncoding.into(),
                "its certificate is refused (bad encoding)",
            ),
            (
                InvalidMessage::InvalidContentType.into(),
                "it answered without TLS",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
                "it refused the TLS connection (handshake failure)",
            ),
            (
                PeerIncompatible::NoCipherSuitesInCommon.into(),
                "it and Vary have no TLS version or cipher in common (no cipher suites in common)",
            ),
        ] {
            let why: rustls::Error = why;
            let error = io::Error::other(why);
            assert_eq!(describe(&error).as_deref(), Some(expected));
        }
        assert_eq!(describe(&io::Error::other("refused")), None);
    }

    #[test]
    fn a_certificate_without_the_right_kind_of_name_is_told_from_one_for_another() {
        let found = |host: &'static str, presented: &[&str]| {
            let why = CertificateError::NotValidForNameContext {
                expected: ServerName::try_from(host).unwrap(),
                presented: presented.iter().map(|name| (*name).to_owned()).collect(),
            };
            describe(&io::Error::other(rustls::Error::from(why))).unwrap()
        };
        assert_eq!(
            found("localhost", &[]),
            "its certificate has no subjectAltName, and so is not for localhost (a CN does not count)"
        );
        assert_eq!(
            found("10.0.0.1", &[r#"DnsName("10.0.0.1")"#]),
            "its certificate has 10.0.0.1 as the name of a host, and an address needs `subjectAltName=IP:10.0.0.1`"
        );
    }

    #[test]
    fn an_authority_with_a_key_of_another_kind_is_another_authority() {
        let why = CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: Vec::new(),
            public_key_algorithm_id: Vec::new(),
        };
        let error = io::Error::other(rustls::Error::from(why));
        let expected = io::Error::other(rustls::Error::from(CertificateError::BadSignature));
        assert_eq!(describe(&error), describe(&expected));
        assert_eq!(cause(&error), describe(&error));
    }
}
