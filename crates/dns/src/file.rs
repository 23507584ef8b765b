//! `/etc/resolv.conf`, which may change while this program runs, and may be invalid in parts.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::proto::rr::Name;
use resolv_conf::Config;

use crate::{ResolveError, Servers};

/// The file, and the name servers from its last read.
#[derive(Debug)]
pub(crate) struct ConfigurationFile {
    path: PathBuf,
    read: Mutex<Option<Read>>,
}

#[derive(Debug)]
struct Read {
    /// When the file was written, and its length.
    state: Option<(SystemTime, u64)>,
    servers: Arc<Servers>,
}

impl ConfigurationFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// Returns the name servers that the file names now. If it cannot be read any more, the earlier servers stay.
    ///
    /// # Errors
    /// The file could never be read.
    pub(crate) fn servers(&self) -> Result<Arc<Servers>, ResolveError> {
        let state = fs::metadata(&self.path).ok().and_then(|file| Some((file.modified().ok()?, file.len())));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.state == state) {
            return Ok(Arc::clone(&read.servers));
        }
        match (self.read(), read.as_mut()) {
            (Ok(servers), _) => {
                let servers = Arc::new(servers);
                *read = Some(Read { state, servers: Arc::clone(&servers) });
                Ok(servers)
            }
            (Err(error), Some(known)) => {
                tracing::warn!(%error, "the name servers could not be read again; the previous ones are still used");
                known.state = state;
                Ok(Arc::clone(&known.servers))
            }
            (Err(error), None) => Err(error),
        }
    }

    fn read(&self) -> Result<Servers, ResolveError> {
        let text = fs::read(&self.path).map_err(|error| ResolveError::NoServer(error.to_string()))?;
        let (parsed, errors) = Config::parse_with_errors(&text);
        for error in errors {
            tracing::warn!(%error, "a line in /etc/resolv.conf is not understood and is ignored");
        }
        let (config, options) = resolver(&parsed);
        Servers::new(&config, options)
    }
}

/// What the resolver makes of the file. Search domains that are no names are ignored, as the C libraries do.
fn resolver(parsed: &Config) -> (ResolverConfig, ResolverOpts) {
    let name = |domain: &str| {
        let name = Name::from_str_relaxed(domain).ok();
        if name.is_none() {
            tracing::warn!(domain, "a search domain in /etc/resolv.conf is not a valid name and is ignored");
        }
        name
    };
    let domain = parsed.get_system_domain().and_then(|domain| Name::from_str_relaxed(domain).ok());
    let search = parsed.get_last_search_or_domain().filter_map(|domain| name(domain)).collect();
    let server = |address| NameServerConfig::udp_and_tcp(IpAddr::from(address));
    let servers = parsed.nameservers.iter().map(server).collect();
    let mut options = ResolverOpts::default();
    options.ndots = parsed.ndots as usize;
    options.timeout = Duration::from_secs(parsed.timeout.into());
    options.attempts = parsed.attempts as usize;
    options.edns0 = parsed.edns0;
    (ResolverConfig::from_parts(domain, search, servers), options)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::all("search cluster.local svc.cluster.local", &["cluster.local", "svc.cluster.local"])]
    #[case::empty_label("search a..b cluster.local", &["cluster.local"])]
    #[case::none_is_left("search a..b", &[])]
    #[case::domain("domain a..b", &[])]
    #[case::something_else("nameserver 192.0.2.1", &[])]
    fn domains_that_are_no_names_are_left_out(#[case] line: &str, #[case] expected: &[&str]) {
        let (config, _options) = resolver(&Config::parse(line).unwrap());
        let found: Vec<String> = config.search().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_options_of_the_file_are_obeyed() {
        let text = "nameserver 192.0.2.1\noptions ndots:5 timeout:2 attempts:3 edns0\n";
        let (config, options) = resolver(&Config::parse(text).unwrap());
        assert_eq!(config.name_servers()[0].ip, IpAddr::from([192, 0, 2, 1]));
        assert_eq!((options.ndots, options.timeout, options.attempts), (5, Duration::from_secs(2), 3));
        assert!(options.edns0);
    }

    fn count(file: &ConfigurationFile) -> Result<usize, String> {
        file.servers().map(|servers| servers.resolvers.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_is_read_again_after_a_failure_and_after_a_change() {
        let path = std::env::temp_dir().join(format!("resolv-{}.conf", std::process::id()));
        let file = ConfigurationFile::new(path.clone());
        assert!(count(&file).unwrap_err().contains("no name server could be read"));
        fs::write(&path, "search a..b cluster.local\nnameserver 192.0.2.1\n").unwrap();
        assert_eq!(count(&file), Ok(1));
        fs::write(&path, "nameserver 192.0.2.1\nnameserver 192.0.2.2\n").unwrap();
        assert_eq!(count(&file), Ok(2));
        fs::remove_file(&path).unwrap();
        assert_eq!(count(&file), Ok(2), "what was known is better than nothing");
    }
}
