//! TLS in front of the simulators, as clouds and API servers have it: what comes in pieces of 16 KiB needs other buffers than what
//! comes in one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A certificate for the loopback address, which signs itself.
pub(crate) struct Authority {
    /// It, as PEM.
    pub(crate) certificate: String,
    acceptor: TlsAcceptor,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![Ipv4Addr::LOCALHOST.to_string()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config =
            config.unwrap().with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key);
        Self { certificate: certificate.pem(), acceptor: Arc::new(config.unwrap()).into() }
    }

    /// The URL of a port that hands on to `server` what comes in over TLS, for as long as this process lives.
    pub(crate) async fn in_front_of(&self, server: SocketAddr) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let acceptor = self.acceptor.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(hand_on(acceptor.clone(), stream, server));
            }
        });
        url
    }
}

/// Ends when either side does; what went wrong the program notices.
async fn hand_on(acceptor: TlsAcceptor, client: TcpStream, server: SocketAddr) -> std::io::Result<()> {
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect(server).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}
