//! Configuration files with which clients find the simulator.

use crate::seed::{PASSWORD, PROJECT, USER};
use crate::service::Service;
use crate::sim::Sim;

impl Sim {
    /// A `cloud.conf` for the cloud-controller-manager: user and password, the network of the nodes, the external network.
    pub fn cloud_conf(&self) -> String {
        let seed = self.seed();
        format!(
            "[Global]\n\
             auth-url=\"{}/v3\"\n\
             username=\"{USER}\"\n\
             password=\"{PASSWORD}\"\n\
             tenant-name=\"{PROJECT}\"\n\
             domain-name=\"Default\"\n\
             region=\"RegionOne\"\n\
             \n\
             [LoadBalancer]\n\
             network-id=\"{}\"\n\
             subnet-id=\"{}\"\n\
             floating-network-id=\"{}\"\n",
            self.service_url(Service::Identity),
            seed.network_id,
            seed.subnet_id,
            seed.public_network_id,
        )
    }

    /// A `clouds.yaml` with the clouds `lab` (user demo) and `lab-admin`.
    pub fn clouds_yaml(&self) -> String {
        let url = format!("{}/v3", self.service_url(Service::Identity));
        let cloud = |name: &str, user: &str, project: &str| {
            format!(
                "  {name}:\n    auth:\n      auth_url: {url}\n      username: {user}\n      password: {PASSWORD}\n      \
                 project_name: {project}\n      user_domain_name: Default\n      project_domain_name: Default\n    \
                 region_name: RegionOne\n"
            )
        };
        format!("clouds:\n{}{}", cloud("lab", USER, PROJECT), cloud("lab-admin", "admin", "admin"))
    }
}
