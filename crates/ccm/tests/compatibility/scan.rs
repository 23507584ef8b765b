//! Finds the scenarios in the doc comments of tests.

use std::path::Path;

use super::catalog::{Section, Source};

/// One line `Contract: …`, `Framework: …` or `Defect: …` of a test's doc comment.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) source: Source,
    /// For example `F8`.
    pub(crate) id: String,
    /// `same`, or `better: why`.
    pub(crate) verdict: String,
    /// What the test shows, in a sentence.
    pub(crate) what: String,
    /// How to get the former behaviour, where there is a switch.
    pub(crate) switch: Option<String>,
    /// The function's name.
    pub(crate) test: String,
    /// The file, from the crates folder.
    pub(crate) file: String,
}

/// All scenarios of the sources below `folder`, in the order of the file names.
pub(crate) fn folder(folder: &Path) -> Vec<Scenario> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    files
        .iter()
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let file = path.strip_prefix(folder).unwrap().display().to_string();
            source(&text, &file)
        })
        .collect()
}

/// The scenarios of one id.
pub(crate) fn of<'a>(
    scenarios: &'a [Scenario],
    section: &Section,
    id: &str,
) -> impl Iterator<Item = &'a Scenario> {
    let (source, id) = (section.source, id.to_owned());
    scenarios.iter().filter(move |scenario| scenario.source == source && scenario.id == id)
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default();
            // This test's own examples are no scenarios.
            if name != "compatibility" && name != "target" {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The scenarios of one source text.
fn source(text: &str, file: &str) -> Vec<Scenario> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        let Some(end) = doc_end(&lines, start) else {
            start += 1;
            continue;
        };
        let test = lines[end..].iter().find_map(|line| function(line)).unwrap_or_default();
        found.extend(comment(&lines[start..end], &test, file));
        start = end;
    }
    found
}

/// The line after the doc comment that begins at `start`.
fn doc_end(lines: &[&str], start: usize) -> Option<usize> {
    let length = lines[start..].iter().take_while(|line| line.starts_with("///")).count();
    (length > 0).then_some(start + length)
}

fn function(line: &str) -> Option<String> {
    let rest = line.strip_prefix("pub(crate) ").unwrap_or(line);
    let rest = rest.strip_prefix("async ").unwrap_or(rest).strip_prefix("fn ")?;
    Some(rest.split(['(', '<']).next().unwrap_or_default().to_owned())
}

fn comment(lines: &[&str], test: &str, file: &str) -> Vec<Scenario> {
    let mut what = Vec::new();
    let mut found: Vec<Scenario> = Vec::new();
    for line in lines {
        let line = line.trim_start_matches('/').trim();
        if let Some((source, id, verdict)) = claim(line) {
            let what = if what.is_empty() { sentence(test) } else { what.join(" ") };
            found.push(Scenario {
                source,
                id,
                verdict,
                what,
                switch: None,
                test: test.to_owned(),
                file: file.to_owned(),
            });
        } else if let Some(switch) = line.strip_prefix("Switch:") {
            if let Some(last) = found.last_mut() {
                last.switch = Some(switch.trim().to_owned());
            }
        } else if let Some(last) = found.last_mut().filter(|_| !line.is_empty()) {
            // A long reason goes on in the next line.
            let text = last.switch.as_mut().unwrap_or(&mut last.verdict);
            text.push(' ');
            text.push_str(line);
        } else if !line.is_empty() {
            what.push(line.to_owned());
        }
    }
    found
}

/// A test's name is a sentence where its comment says no more.
fn sentence(test: &str) -> String {
    let words = test.replace('_', " ");
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

fn claim(line: &str) -> Option<(Source, String, String)> {
    let (source, rest) = [Source::Contract, Source::Framework, Source::Defect]
        .into_iter()
        .find_map(|source| Some((source, line.strip_prefix(source.line())?.strip_prefix(": ")?)))?;
    let (id, verdict) = rest.split_once(',').unwrap_or((rest.trim_end_matches('.'), ""));
    Some((source, id.trim().to_owned(), verdict.trim().to_owned()))
}
