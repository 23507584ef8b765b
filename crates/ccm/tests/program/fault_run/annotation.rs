//! Annotations of the stories: each key of the provider's table, with right, odd and wrong values.

use fastrand::Rng;
use openstack_ccm_provider_openstack::load_balancer::annotations::{ALL, Annotation, Change, Form};

/// How a value fits its annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// As the table has it.
    Right,
    /// As people write it who do not look it up, or what programs write.
    Odd,
    /// Nonsense.
    Wrong,
}

/// An annotation with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(super) key: &'static str,
    pub(super) value: String,
}

/// Stands for the id of something that a story has; see `Stage::resolve`.
pub(super) const ID: &str = "<id>";

const WRONG: [&str; 10] =
    ["50s", "V2", "FOO", "none", "-7", " ", "99999999999999999999", "not a value!", "null", "{}"];
const UNKNOWN_ID: &str = "00000000-0000-4000-8000-00000000dead";

/// Some annotation with some value. A story gives no load balancer and no class this way: those have edits of their own.
pub(super) fn any(random: &mut Rng) -> Setting {
    loop {
        let annotation = &ALL[random.usize(0..ALL.len())];
        let fit = [Fit::Right, Fit::Odd, Fit::Wrong][random.usize(0..3)];
        let values = values(annotation, fit);
        if let Some(value) = random.choice(&values) {
            return Setting { key: annotation.key, value: value.clone() };
        }
    }
}

/// Some annotations with right values that agree with each other and change nothing but themselves.
pub(super) fn right(random: &mut Rng) -> Vec<Setting> {
    let harmless = |annotation: &&Annotation| match annotation.form {
        Form::Bool => annotation.key.ends_with("enable-health-monitor"),
        Form::Integer { .. } => {
            annotation.key.contains("/timeout-") || annotation.key.ends_with("connection-limit")
        }
        Form::Word(_) => annotation.key.ends_with("lb-method") || annotation.key.ends_with("ip-mode"),
        Form::Uuid(_) => annotation.change == Change::Creation && !annotation.key.ends_with("port-id"),
        Form::Text(_) | Form::Output(_) => false,
    };
    let candidates: Vec<&Annotation> = ALL.iter().filter(harmless).collect();
    (0..random.usize(0..4))
        .filter_map(|_| {
            let annotation = candidates[random.usize(0..candidates.len())];
            let values = values(annotation, Fit::Right);
            Some(Setting { key: annotation.key, value: random.choice(&values)?.clone() })
        })
        .collect()
}

/// Some annotations whose wrong values OCCM passes over, as it reads them: numbers and Booleans.
pub(super) fn passed_over(random: &mut Rng) -> Vec<Setting> {
    let read = |annotation: &&Annotation| {
        let kept = ["port-id", "keep-floatingip", "allow-", "health-monitor"];
        matches!(annotation.form, Form::Bool | Form::Integer { .. })
            && !kept.iter().any(|part| annotation.key.contains(part))
    };
    let candidates: Vec<&Annotation> = ALL.iter().filter(read).collect();
    (0..random.usize(0..4))
        .filter_map(|_| {
            let annotation = candidates[random.usize(0..candidates.len())];
            let fit = if random.bool() { Fit::Odd } else { Fit::Wrong };
            let values = values(annotation, fit);
            // OCCM takes some of the odd numbers as they are meant.
            let values: Vec<String> =
                values.into_iter().filter(|value| value.parse::<i64>().is_err()).collect();
            Some(Setting { key: annotation.key, value: random.choice(&values)?.clone() })
        })
        .collect()
}

/// Whether an annotation asks for tags of what is made for a Service.
pub(super) fn is_of_tags(key: &str) -> bool {
    matches!(key.rsplit('/').next(), Some("tags" | "load-balancer-tags" | "listener-tags" | "pool-tags"))
}

fn values(annotation: &Annotation, fit: Fit) -> Vec<String> {
    let short = annotation.key.rsplit('/').next().unwrap_or_default();
    if matches!(short, "load-balancer-id" | "class") {
        return Vec::new();
    }
    // What outlives its Service depends on how far the program was when the Service went.
    let outlives = match short {
        "keep-floatingip" => Some("false"),
        "reclaim-policy" => Some("delete"),
        _ => None,
    };
    if let Some(value) = outlives {
        return if fit == Fit::Right { vec![value.to_owned()] } else { Vec::new() };
    }
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    match (annotation.form, fit) {
        (_, Fit::Wrong) => texts(&WRONG),
        (Form::Bool, Fit::Right) => texts(&["true", "false"]),
        (Form::Bool, Fit::Odd) => texts(&["True", "TRUE", "yes", "1", "false ", ""]),
        (Form::Integer { min, .. }, Fit::Right) => vec![(min + 1).to_string(), (min + 6).to_string()],
        (Form::Integer { min, max, .. }, Fit::Odd) => {
            let (below, above) = (min.saturating_sub(1), max.saturating_add(1));
            let odd = [max.to_string(), below.to_string(), above.to_string()];
            odd.into_iter().chain(texts(&["+5", "5.0", " 5", "0x10", ""])).collect()
        }
        (Form::Word(words), Fit::Right) => texts(words),
        (Form::Word(words), Fit::Odd) => words.iter().map(|word| swapped(word)).collect(),
        (Form::Uuid(_), Fit::Right) => vec![ID.to_owned()],
        (Form::Uuid(_), Fit::Odd) => texts(&[UNKNOWN_ID, ""]),
        (Form::Text(_), Fit::Right) => texts(right_texts(short)),
        (Form::Text(_), Fit::Odd) => texts(&["story", ",", "a,,b,", "True", ""]),
        (Form::Output(_), Fit::Right) => Vec::new(),
        (Form::Output(_), Fit::Odd) => texts(&["198.19.0.77", UNKNOWN_ID, ""]),
    }
}

/// Upper case for lower case and the reverse.
fn swapped(word: &str) -> String {
    if word.chars().any(|letter| letter.is_ascii_lowercase()) {
        word.to_ascii_uppercase()
    } else {
        word.to_ascii_lowercase()
    }
}

/// Right values of forms of their own. A new annotation has none here, and is given odd and wrong ones.
fn right_texts(key: &str) -> &'static [&'static str] {
    match key {
        "proxy-protocol" => &["true", "v1", "v2", "false", "v2:80,v1:8000"],
        "floating-subnet" => &["public-v4", "~public.*", "!nothing"],
        "load-balancer-source-ranges" => &["192.0.2.0/24,198.18.0.0/16"],
        // One that matches no node keeps the members of before, which depend on the order of things.
        "node-selector" => &["node.kubernetes.io/instance-type"],
        "health-monitor-path" => &["/ready"],
        "health-monitor-expected-codes" => &["200-299"],
        "hostname" => &["web.example.org"],
        "tls-revision" => &["one", "two"],
        _ => &[],
    }
}
