//! TLS in front of the test web, with a valid certificate or one that has a single fault.
//!
//! The certificates are fixed files, made for this module and trusted by nobody. They name the hosts of the sites
//! `s0.test` to `s99.test` and those of faults and traps, and are valid from 2020 to 2120 unless the fault is the date.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
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

    pub(super) fn acceptor(self) -> io::Result<TlsAcceptor> {
        let certificate = CertificateDer::from_pem_slice(self.pem().as_bytes()).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate], key))
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
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
