//! The verified client certificate of a connection, and the principals that it makes.

use std::sync::Arc;

use mcp_vary_access::{Claims, Principal, PrincipalError};
use mcp_vary_base::lock::ScopedLock;

/// The subject of the verified certificate of a connection; an extension of each of its requests.
///
/// It is the first alternative name that is a URI (`URI:spiffe://acme.example/ci`), else an email address
/// (`email:ann@acme.example`), else a DNS name (`DNS:ci.acme.example`), else the distinguished name as RFC 4514 writes
/// it (`CN=ci,O=Acme`). The forms cannot be mistaken for each other, and a value cannot pass for several.
///
/// # Properties
///
/// The requests of a connection share their principal, by which caches recognise it: that of the certificate, and that
/// of the last credential that came with it. The cache of verified tokens has principals without a certificate only:
/// the same token may come over another connection.
#[derive(Clone)]
pub struct PeerCertificate(Arc<Shared>);

struct Shared {
    subject: Box<str>,
    /// Of requests without another credential.
    principal: Arc<Principal>,
    /// The principal of the last credential, and the same with the certificate.
    last: ScopedLock<Option<Added>>,
}

#[derive(Clone)]
struct Added {
    credential: Arc<Principal>,
    principal: Arc<Principal>,
}

impl PeerCertificate {
    /// A certificate of `subject`.
    ///
    /// # Errors
    ///
    /// When the subject cannot identify a principal: it is empty, too long, or has a control character.
    pub fn of(subject: &str) -> Result<Self, PrincipalError> {
        let principal = Principal::certificate(subject, Claims::default())?;
        Ok(Self(Arc::new(Shared {
            subject: subject.into(),
            principal: Arc::new(principal),
            last: ScopedLock::default(),
        })))
    }

    /// The subject of the certificate.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The principal of requests that present nothing else.
    pub(super) fn principal(&self) -> &Arc<Principal> {
        &self.0.principal
    }

    /// `credential`, the principal of a token or key, with the certificate, so that rules can require it.
    pub(super) fn add_to(&self, credential: &Arc<Principal>) -> Arc<Principal> {
        let last = self.0.last.lock().clone();
        if let Some(last) = last
            && Arc::ptr_eq(&last.credential, credential)
        {
            return last.principal;
        }
        // The subject was checked when the value was created.
        let with_certificate = Principal::clone(credential).with_certificate(&self.0.subject);
        let principal = with_certificate.map_or_else(|_| Arc::clone(credential), Arc::new);
        *self.0.last.lock() = Some(Added {
            credential: Arc::clone(credential),
            principal: Arc::clone(&principal),
        });
        principal
    }
}

// Omits the subject, which may be personal.
mcp_vary_base::debug_by_name!(PeerCertificate);

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> Arc<Principal> {
        Arc::new(Principal::key("ann", Claims::default()).unwrap())
    }

    #[test]
    fn the_requests_of_a_connection_share_their_principal() {
        let certificate = PeerCertificate::of("CN=ci").unwrap();
        let of_other_request = certificate.clone();
        assert!(Arc::ptr_eq(
            certificate.principal(),
            of_other_request.principal()
        ));
        let ann = ann();
        let with_certificate = certificate.add_to(&ann);
        assert_eq!(with_certificate.certificate_subject(), Some("CN=ci"));
        assert_eq!(with_certificate.id(), ann.id());
        assert!(Arc::ptr_eq(
            &with_certificate,
            &of_other_request.add_to(&ann)
        ));
    }

    #[test]
    fn a_principal_gets_the_certificate_of_its_own_connection() {
        let (one, two) = (PeerCertificate::of("CN=one"), PeerCertificate::of("CN=two"));
        let (one, two) = (one.unwrap(), two.unwrap());
        let ann = ann();
        assert_eq!(one.add_to(&ann).certificate_subject(), Some("CN=one"));
        assert_eq!(two.add_to(&ann).certificate_subject(), Some("CN=two"));
        assert_eq!(ann.certificate_subject(), None);
    }

    /// After each refresh of its token a client has another principal value.
    #[test]
    fn the_last_credential_is_remembered_and_no_other() {
        let certificate = PeerCertificate::of("CN=ci").unwrap();
        let (old, new) = (ann(), ann());
        let first = certificate.add_to(&old);
        assert!(!Arc::ptr_eq(&first, &certificate.add_to(&new)));
        assert_eq!(Arc::strong_count(&old), 1, "the old one is forgotten");
    }

    #[test]
    fn a_subject_that_cannot_identify_anybody_is_refused() {
        let long = "x".repeat(mcp_vary_access::MAX_IDENTITY + 1);
        for subject in ["", "CN=a\nb", &long] {
            assert!(PeerCertificate::of(subject).is_err());
        }
        let shown = format!(
            "{:?}",
            PeerCertificate::of("email:ann@acme.example").unwrap()
        );
        assert!(!shown.contains("ann"), "{shown}");
    }
}
