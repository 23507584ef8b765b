//! A cluster whose data are replaced below the API server: etcd restored from a snapshot, an address that leads elsewhere.

use crate::failure::Failure;
use crate::kinds::Allocations;
use crate::sim::{Sim, find};
use crate::store::{Backup, Key};

/// All objects of a cluster at one moment.
#[derive(Debug, Clone)]
pub struct ClusterBackup {
    objects: Backup,
    /// Addresses and ports that are given out are in etcd, too.
    allocations: Allocations,
}

impl Sim {
    /// A snapshot of all objects, as of etcd.
    pub fn backup(&self) -> ClusterBackup {
        let state = self.shared.state();
        ClusterBackup { objects: state.store.backup(), allocations: state.allocations.clone() }
    }

    /// Puts all objects back as they were, with the resourceVersions that they had then. What was made since is gone: nobody deleted
    /// it, so no watch shows it. Watches break, and what was known before is too old.
    pub fn restore(&self, backup: &ClusterBackup) {
        {
            let mut state = self.shared.state();
            state.store.restore(&backup.objects);
            state.allocations = backup.allocations.clone();
        }
        self.break_watches();
    }

    /// Copies an object below the API server, under other names and with other uids.
    ///
    /// # Errors
    /// It does not exist, or the resource is not simulated.
    pub fn copy(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Result<(), Failure> {
        let mut object = self.get(resource, namespace, name)?;
        let resource = find(resource)?;
        let mut state = self.shared.state();
        for name in names {
            let uid = state.new_uid();
            let metadata = crate::object::metadata(&mut object);
            metadata.insert("name".to_owned(), name.into());
            metadata.insert("uid".to_owned(), uid.into());
            state.store_object(resource, None, object.clone());
        }
        Ok(())
    }

    /// The same for one object that the snapshot lacks; all others stay as they are.
    ///
    /// # Errors
    /// The resource is not simulated.
    pub fn lose(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Failure> {
        let resource = find(resource)?;
        self.shared.state().store.lose(resource.storage, &Key::new(namespace, name));
        self.break_watches();
        Ok(())
    }

    /// Puts one object back as it was, as [`Self::restore`] does with all of them.
    ///
    /// # Errors
    /// The resource is not simulated.
    pub fn bring_back(
        &self,
        backup: &ClusterBackup,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Failure> {
        let resource = find(resource)?;
        self.shared.state().store.bring_back(&backup.objects, resource.storage, &Key::new(namespace, name));
        self.break_watches();
        Ok(())
    }

    /// Leads the address of this server to another cluster, as it is now. Watches break. They can be resumed where the other cluster's
    /// history reaches back to the resourceVersion of the client: the watch cache compares numbers alone (`getAllEventsSinceLocked` in
    /// the API server's `storage/cacher/watch_cache.go`), and no number says of which etcd it is.
    pub fn lead_to(&self, other: &Self) {
        let theirs = other.shared.state().store.contents();
        self.shared.state().store.become_other(theirs);
        self.break_watches();
    }

    /// Gives the namespace `kube-system` another uid, as it has where the address of the API server leads to another cluster.
    ///
    /// # Errors
    /// Namespaces are not simulated.
    pub fn set_cluster_uid(&self, uid: &str) -> Result<(), Failure> {
        let resource = find("namespaces")?;
        self.shared.state().store.set_uid(resource.storage, &Key::new("", "kube-system"), uid);
        Ok(())
    }
}
