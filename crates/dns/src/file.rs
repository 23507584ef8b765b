//! `/etc/resolv.conf`, which may change while this program runs, and may be invalid in parts.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::parse_resolv_conf;

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
        let no_server = |error: String| ResolveError::NoServer(error);
        let text = fs::read(&self.path).map_err(|error| no_server(error.to_string()))?;
        let usable = usable(&String::from_utf8_lossy(&text));
        let (config, options) = parse_resolv_conf(usable).map_err(|error| no_server(error.to_string()))?;
        Servers::new(&config, options)
    }
}

/// Removes invalid search domains from the text. The C libraries ignore them too; the parser would refuse the whole file.
fn usable(text: &str) -> String {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let Some(keyword @ ("search" | "domain")) = words.next() else { return line.to_owned() };
        let is_name = |word: &&str| {
            let is_name = Name::from_str_relaxed(word).is_ok();
            if !is_name {
                tracing::warn!(
                    domain = word,
                    "a search domain in /etc/resolv.conf is not a valid name and is ignored"
                );
            }
            is_name
        };
        let domains: Vec<&str> = words.filter(is_name).collect();
        if domains.is_empty() { String::new() } else { format!("{keyword} {}", domains.join(" ")) }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::all("search cluster.local svc.cluster.local", "search cluster.local svc.cluster.local")]
    #[case::empty_label("search a..b cluster.local", "search cluster.local")]
    #[case::none_is_left("search a..b", "")]
    #[case::domain("domain a..b", "")]
    #[case::something_else("nameserver 192.0.2.1", "nameserver 192.0.2.1")]
    fn domains_that_are_no_names_are_left_out(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(usable(line), expected);
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
