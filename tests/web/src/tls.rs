//! TLS in front of the test web, with a valid certificate or one that has a single fault.
//!
//! The certificates are fixed files, made for this module and trusted by nobody. They name the hosts of the sites
//! `s0.test` to `s99.test` and those of faults and traps, and are valid from 2020 to 2120 unless the fault is the date.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The authority that signed the certificates, as PEM, for clients that must trust it.
pub const AUTHORITY: &str = include_str!("certificates/authority.pem");

/// The private key of all certificates but the authority's: it protects nothing.
const KEY: &str = include_str!("certificates/key.pem");

/// The certificate that a server presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certificate {
    /// Valid for clients that trust [`AUTHORITY`].
    Right,
    /// Expired in 2021.
    Expired,
    /// Issued for another host.
    WrongName,
    /// Signed with its own key.
    SelfSigned,
}

impl Certificate {
    const fn pem(self) -> &'static str {
        match self {
            Self::Right => include_str!("certificates/right.pem"),
            Self::Expired => include_str!("certificates/expired.pem"),
            Self::WrongName => include_str!("certificates/wrong_name.pem"),
            Self::SelfSigned => include_str!("certificates/self_signed.pem"),
        }
    }

    /// The certificate with its key, as PEM, for clients that show it.
    #[must_use]
    pub fn with_key(self) -> String {
        format!("{}{KEY}", self.pem())
    }

    pub(super) fn acceptor(self) -> io::Result<TlsAcceptor> {
        self.acceptor_for(false, &["http/1.1"])
    }

    /// With `is_for_known`, clients have to show the same certificate. Those that offer none of the protocols are refused.
    fn acceptor_for(self, is_for_known: bool, protocols: &[&str]) -> io::Result<TlsAcceptor> {
        let certificate = CertificateDer::from_pem_slice(self.pem().as_bytes()).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let builder = match is_for_known {
            true => builder
                .with_client_cert_verifier(Arc::new(Known { certificate: certificate.clone(), provider })),
            false => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(vec![certificate], key).map_err(io::Error::other)?;
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Lets in clients that show one certificate.
#[derive(Debug)]
struct Known {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Known {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match *shown == self.certificate {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Serves the plain server at `inner` with TLS and the right certificate, until the process ends; with `is_for_known`,
/// only to clients that show that certificate, too. Returns the address.
///
/// # Errors
/// When there is no port or no thread.
pub fn serve_with_tls(inner: SocketAddr, is_for_known: bool) -> io::Result<SocketAddr> {
    serve_behind(Certificate::Right.acceptor_for(is_for_known, &["http/1.1"])?, inner)
}

/// The same for everybody who offers one of these protocols (names of ALPN), the preferred one first.
///
/// # Errors
/// When there is no port or no thread.
pub fn serve_protocols_with_tls(inner: SocketAddr, protocols: &[&str]) -> io::Result<SocketAddr> {
    serve_behind(Certificate::Right.acceptor_for(false, protocols)?, inner)
}

fn serve_behind(acceptor: TlsAcceptor, inner: SocketAddr) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = async move {
        if let Ok(listener) = TcpListener::from_std(listener) {
            relay(listener, acceptor, inner).await;
        }
    };
    std::thread::Builder::new().name("tls".to_owned()).spawn(move || runtime.block_on(serve))?;
    Ok(address)
}

/// Forwards connections to the plain server at `inner` after removing TLS.
pub(super) async fn relay(listener: TcpListener, acceptor: TlsAcceptor, inner: SocketAddr) {
    loop {
        let Ok((outside, _)) = listener.accept().await else {
            tokio::time::sleep(super::server::ACCEPT_PAUSE).await;
            continue;
        };
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let mut outside = acceptor.accept(outside).await?;
            let mut inside = TcpStream::connect(inner).await?;
            tokio::io::copy_bidirectional(&mut outside, &mut inside).await
        });
    }
}
