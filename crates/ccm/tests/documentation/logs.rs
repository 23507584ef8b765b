//! Commands that read a log: they show what the page says they show.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::pages::{Block, pages};

/// What nginx writes when a pod and a client that speaks TLS come without the header: it quotes the bytes as they came.
const LOG: &[u8] = b"10.0.0.7 - - [22/Nov/2026:10:15:01 +0000] \"GET / HTTP/1.1\" 200 12\n\
    2026/11/22 10:15:02 [error] 31#31: *42 broken header: \"GET / HTTP/1.1\r\nHost: www.example.org\r\nAccept: */*\r\n\r\n\" while \
    reading PROXY protocol, client: 10.244.1.17, server: 0.0.0.0:80\n\
    2026/11/22 10:15:03 [error] 31#31: *43 broken header: \"\x16\x03\x01\xff\n\x00\" while reading PROXY protocol, client: 10.244.1.17, \
    server: 0.0.0.0:443\n\
    2026/11/22 10:15:04 [error] 31#31: *44 broken header: \"GET /a HTTP/1.1\r\n\r\n\" while reading PROXY protocol, client: 10.244.2.9, \
    server: 0.0.0.0:80\n";

/// Runs the block on a machine whose kubectl answers with the log.
fn output(block: &Block) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log"), LOG).unwrap();
    let kubectl = folder.path().join("kubectl");
    std::fs::write(&kubectl, "#!/bin/sh\nexec cat \"$(dirname \"$0\")/log\"\n").unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    let output = command.args(["-euo", "pipefail", "-c", &block.text]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_clients_that_sent_no_header_are_counted_though_nginx_writes_over_several_lines() {
    let pages = pages();
    let page = pages.iter().find(|page| page.path == "docs/guides/broken-header.md").unwrap();
    let outputs: Vec<String> = page.blocks.iter().filter(|block| block.is("run=log")).map(output).collect();
    let [clients, beginnings] = outputs.as_slice() else { panic!("{outputs:?}") };
    let counted: Vec<Vec<&str>> =
        clients.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let by_client = |line: &Vec<&str>| (line[0].to_owned(), (*line.last().unwrap()).to_owned());
    let expected = [("2", "10.244.1.17"), ("1", "10.244.2.9")];
    assert_eq!(
        counted.iter().map(by_client).collect::<Vec<_>>(),
        expected.map(|(count, client)| (count.to_owned(), client.to_owned()))
    );
    assert!(beginnings.contains("broken header: \"GET / HTTP/1.1"), "{beginnings}");
    assert_eq!(beginnings.lines().count(), 3, "{beginnings}");
}
