//! Checks that the certificates of a Service exist.

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::barbican::Reference;

use super::Resolver;
use crate::load_balancer::failure;
use crate::load_balancer::settings::{Aspect, Fault, Settings, TlsContainer};

impl Resolver {
    /// Returns faults for the Service's certificates that do not exist.
    pub(crate) async fn certificate_faults(&self, settings: &Settings) -> Result<Vec<Fault>, Failure> {
        let own = settings.tls.iter().map(|tls| (tls, Aspect::Certificate, "default-tls-container-ref"));
        let further = settings.tls_options.sni.iter();
        let further = further.map(|tls| (tls, Aspect::FurtherCertificates, "sni-container-refs"));
        let mut faults = Vec::new();
        for (tls, aspect, key) in own.chain(further).filter(|(_, aspect, _)| !settings.is_unreadable(*aspect))
        {
            match self.verify_certificate(tls, key).await {
                Ok(()) => {}
                Err(failure) if failure.class == FailureClass::UserInput => {
                    faults.push(Fault::new([aspect], failure.message));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(faults)
    }

    /// Checks that the container or secret in the setting `key` exists, if Barbican can be queried.
    ///
    /// Called before a reference is sent to Octavia, not while it stays: an outage of Barbican must not block unrelated changes.
    async fn verify_certificate(&self, tls: &TlsContainer, key: &str) -> Result<(), Failure> {
        let Some(reference) = &tls.barbican else { return Ok(()) };
        let Some(barbican) = &self.openstack.barbican else {
            return Err(Failure::user_input(format!(
                "{key} refers to a certificate in Barbican, but the cloud has no key manager (Barbican): remove {key}, or set \
                 container-store = external in cloud.conf if another store holds the certificate"
            )));
        };
        let check = async {
            match reference {
                Reference::Container(id) => barbican.get_container(id).await.map(drop),
                Reference::Secret(id) => barbican.get_secret(id).await.map(drop),
            }
        };
        let checked = self.certificates.get_or_fetch(&tls.reference, check).await;
        checked.map_err(|error| failure::of_named(&error, "TLS container", &tls.reference, key))
    }
}
