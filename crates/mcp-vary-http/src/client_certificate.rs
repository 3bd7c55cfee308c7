//! Whom a verified client certificate belongs to, as text.

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// A certificate whose subject cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the subject of the client certificate cannot be read")]
pub(crate) struct SubjectError;

/// The subject of a certificate that was verified: its first alternative name that is a URI (`URI:…`), else an email
/// address (`email:…`), else a DNS name (`DNS:…`), else the distinguished name as RFC 4514 writes it (`CN=ci,O=Acme`).
pub(crate) fn subject_of(certificate: &CertificateDer<'_>) -> Result<String, SubjectError> {
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| SubjectError)?;
    let extension = certificate.subject_alternative_name();
    let alternatives = extension.map_err(|_| SubjectError)?;
    let names = alternatives.map_or(&[][..], |names| &names.value.general_names);
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::URI(uri) => Some((1, format!("URI:{uri}"))),
        GeneralName::RFC822Name(address) => Some((2, format!("email:{address}"))),
        GeneralName::DNSName(name) => Some((3, format!("DNS:{name}"))),
        _ => None,
    };
    let subject = names.iter().filter_map(text).min_by_key(|(rank, _)| *rank);
    match subject {
        Some((_, subject)) => Ok(subject),
        None => distinguished_name(certificate.subject()),
    }
}

/// The name as RFC 4514 writes it: the most specific part first, with what separates parts escaped.
fn distinguished_name(name: &X509Name<'_>) -> Result<String, SubjectError> {
    let mut out = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for part in parts.into_iter().rev() {
        for (at, attribute) in part.iter().enumerate() {
            match (at, out.is_empty()) {
                (0, true) => {}
                (0, false) => out.push(','),
                _ => out.push('+'),
            }
            write_attribute(&mut out, attribute)?;
        }
    }
    Ok(out)
}

fn write_attribute(
    out: &mut String,
    attribute: &AttributeTypeAndValue<'_>,
) -> Result<(), SubjectError> {
    let kind = attribute.attr_type();
    match oid2abbrev(kind, oid_registry()) {
        Ok(name) => out.push_str(name),
        Err(_) => out.push_str(&kind.to_id_string()),
    }
    out.push('=');
    let value = attribute.as_str().map_err(|_| SubjectError)?;
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let is_special = matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=')
            || (at == 0 && matches!(c, ' ' | '#'))
            || (at == last && c == ' ');
        if is_special {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(names: &[SanType], subject: &[(DnType, &str)]) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names.to_vec();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[track_caller]
    fn is_of(names: &[SanType], subject: &[(DnType, &str)], expected: &str) {
        let read = subject_of(&certificate(names, subject));
        assert_eq!(read.as_deref(), Ok(expected));
    }

    #[test]
    fn an_alternative_name_comes_before_the_distinguished_name() {
        let dns = SanType::DnsName("ci.acme.example".try_into().unwrap());
        let email = SanType::Rfc822Name("ann@acme.example".try_into().unwrap());
        let uri = SanType::URI("spiffe://acme.example/ci".try_into().unwrap());
        let named = [(DnType::CommonName, "ci")];
        is_of(std::slice::from_ref(&dns), &named, "DNS:ci.acme.example");
        is_of(
            &[dns.clone(), email.clone()],
            &named,
            "email:ann@acme.example",
        );
        is_of(&[dns, email, uri], &named, "URI:spiffe://acme.example/ci");
    }

    #[test]
    fn a_value_cannot_pass_for_several() {
        let acme = (DnType::OrganizationName, "Acme");
        is_of(
            &[],
            &[acme.clone(), (DnType::CommonName, "ci")],
            "CN=ci,O=Acme",
        );
        is_of(
            &[],
            &[(DnType::CommonName, "ci,O=Acme")],
            "CN=ci\\,O\\=Acme",
        );
        is_of(&[], &[(DnType::CommonName, " #a ")], "CN=\\ #a\\ ");
        is_of(&[], &[(DnType::CommonName, "DNS:ci")], "CN=DNS:ci");
    }

    #[test]
    fn a_certificate_without_a_subject_has_an_empty_one() {
        let anonymous = certificate(&[], &[]);
        // The gateway accepts no empty subject.
        assert_eq!(subject_of(&anonymous).as_deref(), Ok(""));
        let garbage = CertificateDer::from(vec![0x30, 0x82]);
        assert_eq!(subject_of(&garbage), Err(SubjectError));
    }
}
