//! The groups of scenarios, for those who ask what there is.

use anyhow::Result;

use super::docs::recorded;
use crate::scenario::{GROUPS, Group};

/// All groups: name, whether a run without `--only` has it, its recorded cases, and what it is made of.
///
/// # Errors
/// The page of cases cannot be read.
pub(crate) fn list() -> Result<String> {
    let recorded = recorded()?;
    let line = |group: &Group| {
        let cases = recorded
            .get(group.name)
            .map_or_else(|| "none recorded".to_owned(), |(count, date)| format!("{count} cases, {date}"));
        let runs = if group.on_request { "where named" } else { "by default" };
        let parts: Vec<String> = group.parts().iter().map(ToString::to_string).collect();
        let reason = if group.with_kubelet { " (a release build: too long for CI)" } else { "" };
        format!("{:<17} {runs:<12} {cases:<21} {}{reason}", group.name, parts.join(", "))
    };
    Ok(GROUPS.iter().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_says_what_it_needs_and_whether_it_runs_by_default() {
        let list = list().unwrap();
        assert_eq!(list.lines().count(), GROUPS.len());
        let line = |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("ovn").contains("by default") && line("ovn").contains("Octavia's driver for OVN"));
        assert!(line("kubelet").contains("where named") && line("kubelet").ends_with("too long for CI)"));
        assert!(line("life").contains(" cases, "));
        assert!(line("beside-occm").contains("where named") && line("beside-occm").contains("OCCM 1.36"));
    }
}
