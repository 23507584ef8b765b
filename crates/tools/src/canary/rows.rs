//! The row of each node, and the exit code. Pure.

use std::fmt::Write as _;
use std::process::ExitCode;

use openstack_ccm_canary::verdict::Verdict;
use serde::Serialize;

use crate::help::EXIT_FOUND;

/// The row of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    /// Its name.
    pub(super) node: String,
    /// The images of the service proxies that run on the node as pods; empty where none is visible.
    pub(super) service_proxy: String,
    /// The version of the kubelet.
    pub(super) kubelet: String,
    /// The measured verdict.
    pub(super) verdict: Verdict,
    /// The reason for the verdict.
    pub(super) reason: String,
}

/// The rows of all nodes, and the verdict on the cluster.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// `fit` where all nodes are fit, `unfit` where one is not, otherwise `unknown`.
    pub(super) verdict: Verdict,
    /// The rows, sorted by name.
    pub(super) nodes: Vec<Row>,
}

impl Report {
    pub(super) fn new(mut nodes: Vec<Row>) -> Self {
        nodes.sort_by(|one, other| one.node.cmp(&other.node));
        let any = |verdict: Verdict| nodes.iter().any(|row| row.verdict == verdict);
        let verdict = if any(Verdict::Unfit) {
            Verdict::Unfit
        } else if any(Verdict::Unknown) || nodes.is_empty() {
            Verdict::Unknown
        } else {
            Verdict::Fit
        };
        Self { verdict, nodes }
    }

    /// Returns the exit code; for its meaning see [`crate::help`].
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.verdict {
            Verdict::Fit => 0,
            Verdict::Unfit => EXIT_FOUND,
            Verdict::Unknown => 1,
        })
    }

    /// Renders a table for users, in the style of kubectl.
    pub(super) fn table(&self) -> String {
        let head = ["NODE", "SERVICE PROXY", "KUBELET", "VERDICT", "REASON"].map(str::to_owned);
        let cell = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let rows = self.nodes.iter().map(|row| {
            [
                cell(&row.node),
                cell(&row.service_proxy),
                cell(&row.kubelet),
                row.verdict.as_str().to_owned(),
                cell(&row.reason),
            ]
        });
        let lines: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
        let width =
            |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
        let widths = [width(0), width(1), width(2), width(3)];
        let mut table = String::new();
        for [node, proxy, kubelet, verdict, reason] in &lines {
            // Writing to a String cannot fail.
            let _ = writeln!(
                table,
                "{node:a$}   {proxy:b$}   {kubelet:c$}   {verdict:d$}   {reason}",
                a = widths[0],
                b = widths[1],
                c = widths[2],
                d = widths[3],
            );
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn row(node: &str, verdict: Verdict) -> Row {
        Row {
            node: node.into(),
            service_proxy: "kube-proxy:v1.36.3".into(),
            kubelet: "v1.36.3".into(),
            verdict,
            reason: "measured".into(),
        }
    }

    #[rstest]
    #[case::all_fit(&[Verdict::Fit, Verdict::Fit], 0)]
    #[case::some_unfit(&[Verdict::Fit, Verdict::Unknown, Verdict::Unfit], 2)]
    #[case::not_known_of_some(&[Verdict::Fit, Verdict::Unknown], 1)]
    #[case::no_nodes(&[], 1)]
    fn the_exit_code_says_what_the_nodes_come_to(#[case] verdicts: &[Verdict], #[case] code: u8) {
        let report = Report::new(verdicts.iter().map(|verdict| row("a", *verdict)).collect());
        assert_eq!(report.exit_code(), ExitCode::from(code));
    }

    #[test]
    fn columns_are_aligned_and_nothing_is_left_empty() {
        let unseen = Row { service_proxy: String::new(), ..row("b", Verdict::Unfit) };
        let report = Report::new(vec![unseen, row("a-long-name", Verdict::Fit)]);
        let expected = "NODE          SERVICE PROXY        KUBELET   VERDICT   REASON\n\
                        a-long-name   kube-proxy:v1.36.3   v1.36.3   fit       measured\n\
                        b             -                    v1.36.3   unfit     measured\n";
        assert_eq!(report.table(), expected);
    }
}
