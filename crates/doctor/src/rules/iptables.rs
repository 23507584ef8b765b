//! Parses the output of `iptables-save` and `ip6tables-save`.

use ipnet::IpNet;

use super::RulesError;
use super::ruleset::{Action, Rule, Tables};
use super::target::Transport;

/// Parses a dump.
pub(super) fn parse(text: &str) -> Result<Tables, RulesError> {
    let mut tables = Tables::new();
    // The user may have pasted the lines of one table alone; the rules of a service proxy are mostly in nat.
    let mut table = "nat".to_owned();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        let problem = |problem: &str| RulesError::Line { line: place + 1, problem: problem.to_owned() };
        if let Some(name) = line.strip_prefix('*') {
            table = name.to_owned();
            tables.entry(table.clone()).or_default();
        } else if let Some(chain) = line.strip_prefix(':') {
            let chain = chain.split_whitespace().next().ok_or_else(|| problem("a chain without a name"))?;
            tables.entry(table.clone()).or_default().chains.entry(chain.to_owned()).or_default();
        } else if line.starts_with("-A ") || line.starts_with('[') {
            let words = words(line).ok_or_else(|| problem("a quotation mark is not closed"))?;
            let (chain, rule) = rule(&words).ok_or_else(|| problem("a rule without a chain"))?;
            tables.entry(table.clone()).or_default().chains.entry(chain).or_default().push(rule);
        }
    }
    Ok(tables)
}

/// Splits a line into words; text in quotation marks is one word.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut begun) = (String::new(), false, false);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                quoted = !quoted;
                begun = true;
            }
            '\\' if quoted => word.extend(characters.next()),
            blank if blank.is_whitespace() && !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            other => {
                word.push(other);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    (!quoted).then_some(words)
}

/// Parses a rule with its chain. Counters may precede the rule.
fn rule(words: &[String]) -> Option<(String, Rule)> {
    let start = words.iter().position(|word| word == "-A")?;
    let mut words = words[start + 1..].iter().map(String::as_str);
    let chain = words.next()?.to_owned();
    let mut rule = Rule::new(Action::Other);
    let mut negated = false;
    while let Some(word) = words.next() {
        match word {
            "!" => {
                negated = true;
                rule.conditional = true;
                continue;
            }
            "-d" | "--destination" if !negated => rule.to = words.next().and_then(network),
            "-s" | "--source" if !negated => rule.from.extend(words.next().and_then(network)),
            "-p" | "--protocol" if !negated => rule.transport = words.next().and_then(Transport::parse),
            "--dport" | "--destination-port" if !negated => {
                rule.port = words.next().and_then(|port| port.parse().ok());
            }
            "-d" | "-s" | "-p" | "--dport" => drop(words.next()),
            "--comment" => rule.comment = words.next().map(str::to_owned),
            "-m" | "--match" => {
                let known = matches!(words.next(), Some("comment" | "tcp" | "udp" | "sctp"));
                rule.conditional |= !known;
            }
            "-j" | "--jump" => rule.action = action(words.next()?),
            "-g" | "--goto" => rule.action = Action::Goto(words.next()?.to_owned()),
            "--to-destination" => rule.action = Action::Destinations(vec![words.next()?.to_owned()]),
            _ => {}
        }
        negated = false;
    }
    Some((chain, rule))
}

fn action(target: &str) -> Action {
    match target {
        "DROP" => Action::Drop,
        "REJECT" => Action::Reject,
        "RETURN" => Action::Return,
        "DNAT" | "ACCEPT" | "MASQUERADE" | "MARK" | "LOG" | "SNAT" | "CT" | "NOTRACK" => Action::Other,
        chain => Action::Jump(chain.to_owned()),
    }
}

/// Parses an address or a network.
pub(super) fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from))
}
