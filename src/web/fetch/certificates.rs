//! Certificates of servers: they are verified, and what is wrong with one is remembered, so that it is said, or taken all
//! the same where the user said so.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use archive_storage::Digest;
use archive_storage::digest::hex;
use lru::LruCache;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError as Fault, DigitallySignedStruct, Error, SignatureScheme};

/// Maximum number of hosts whose certificates' faults are remembered.
const HOSTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// A certificate that is taken although it cannot be verified: `HOST`, or `HOST=SHA256` for no other than that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedCertificate {
    /// Name or address of the host, or `*` for all.
    pub host: String,
    /// SHA-256 of the certificate, in lower-case hexadecimal digits; `None` for any.
    pub sha256: Option<String>,
}

impl AcceptedCertificate {
    /// Any certificate of any host.
    #[must_use]
    pub fn any() -> Self {
        Self { host: "*".to_owned(), sha256: None }
    }

    fn takes(&self, host: &str, sha256: &str) -> bool {
        let is_host = self.host == "*" || self.host.eq_ignore_ascii_case(host);
        is_host && self.sha256.as_deref().is_none_or(|own| own == sha256)
    }
}

impl FromStr for AcceptedCertificate {
    type Err = &'static str;

    /// The digest may have colons between its bytes and capital letters, as other programs print it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, digest) = text.split_once('=').map_or((text, None), |(host, digest)| (host, Some(digest)));
        let sha256 = digest.map(|digest| digest.replace(':', "").to_ascii_lowercase());
        if sha256
            .as_ref()
            .is_some_and(|hex| hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            return Err("a SHA-256 has 64 hexadecimal digits");
        }
        if host.is_empty() || host.contains(['/', ' ']) {
            return Err("it has to be a host, or a host and a SHA-256: www.example.org=30:AF:…");
        }
        Ok(Self { host: host.trim_matches(['[', ']']).to_owned(), sha256 })
    }
}

/// What is wrong with a host's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFault {
    /// The host.
    pub host: String,
    /// What is wrong, beginning with "it".
    pub fault: String,
    /// SHA-256 of the certificate, in hexadecimal digits.
    pub sha256: String,
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, fault, sha256 } = self;
        write!(
            f,
            "the certificate of {host} is refused: {fault}; --accept-certificate {host}={sha256} takes it"
        )
    }
}

/// Facts of a secure connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// Name of the cipher suite, as registered with IANA.
    pub cipher_suite: String,
    /// Digest of the certificates that the server sent, in their order, end to end.
    pub chain: Digest,
    /// What is wrong with the first of them, which was taken all the same.
    pub accepted: Option<CertificateFault>,
}

/// Verifies certificates, and takes those that the user named.
#[derive(Debug)]
pub(super) struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    accepted: Vec<AcceptedCertificate>,
    faults: Mutex<LruCache<String, CertificateFault>>,
}

impl Verifier {
    pub(super) fn new(inner: Arc<WebPkiServerVerifier>, accepted: Vec<AcceptedCertificate>) -> Self {
        Self { inner, accepted, faults: Mutex::new(LruCache::new(HOSTS_MAX)) }
    }

    /// What was wrong with the last certificate of a host.
    pub(super) fn fault(&self, host: &ServerName<'_>) -> Option<CertificateFault> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).get(&*host.to_str()).cloned()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(certificate, others, name, ocsp, now);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let Err(Error::InvalidCertificate(fault)) = &verified else {
            faults.pop(&*name.to_str());
            return verified;
        };
        let host = name.to_str().into_owned();
        let sha256 = hex(Digest::sha256(certificate).as_bytes());
        let is_accepted = self.accepted.iter().any(|accepted| accepted.takes(&host, &sha256));
        let fault = CertificateFault { fault: in_words(fault), sha256, host: host.clone() };
        faults.put(host, fault);
        if is_accepted { Ok(ServerCertVerified::assertion()) } else { verified }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// What is wrong with a certificate, in words that do not vary between attempts.
fn in_words(fault: &Fault) -> String {
    match fault {
        Fault::Expired | Fault::ExpiredContext { .. } => "it has expired".to_owned(),
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => "it is for another host".to_owned(),
        Fault::UnknownIssuer => "it is not signed by a trusted authority (--cacert)".to_owned(),
        fault => format!("it has a fault: {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::AcceptedCertificate;

    #[test]
    fn a_certificate_is_named_as_other_programs_print_it() {
        let digest = "0a".repeat(32);
        let printed = ["0A"; 32].join(":");
        let accepted: AcceptedCertificate = format!("A.test={printed}").parse().unwrap();
        assert!(accepted.takes("a.test", &digest) && !accepted.takes("b.test", &digest));
        assert!(!accepted.takes("a.test", &"0b".repeat(32)));
        let any: AcceptedCertificate = "[::1]".parse().unwrap();
        assert!(any.takes("::1", "") && AcceptedCertificate::any().takes("x.test", ""));
        for wrong in
            ["", "=", "a.test=", "a.test=0a", "https://a.test", &format!("a.test={}", "0g".repeat(32))]
        {
            assert!(wrong.parse::<AcceptedCertificate>().is_err(), "{wrong}");
        }
    }
}
