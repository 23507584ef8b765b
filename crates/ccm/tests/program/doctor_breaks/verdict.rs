//! What doctor says of a world, and whether it agrees with what packets did.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use clap::{Args as _, FromArgMatches as _};
use ipnet::IpNet;
use openstack_ccm_doctor::facts::Host;
use openstack_ccm_doctor::output::{FailOn, Outcome, json};
use openstack_ccm_kube_sim::Stop;
use openstack_ccm_openstack_sim::Loss;
use openstack_ccm_tools::doctor::args::WalkArgs;
use openstack_ccm_tools::doctor::look_knowing;
use serde_json::Value;

use super::breaks::{Break, Sight};
use super::packets::{Flow, Moment, Origin, Place, Sent};
use super::stage::Stage;

/// What disagrees with what, and of which packets: equal ones are told once.
pub(super) type Disagreements = BTreeMap<String, Vec<String>>;

/// What doctor says, as programs read it.
///
/// # Errors
/// It cannot look.
pub(super) async fn diagnose(stage: &Stage) -> Result<Value, String> {
    match look(stage.command_line()).await {
        Ok(outcome) => Ok(json::object(&outcome, FailOn::Error)),
        Err(error) => Err(format!("doctor cannot look: {error:#}")),
    }
}

/// What doctor finds with these words of a command line.
///
/// # Errors
/// It cannot look.
pub(super) async fn look(words: Vec<String>) -> anyhow::Result<Outcome> {
    let command = WalkArgs::augment_args(clap::Command::new("doctor"));
    let arguments = command.try_get_matches_from(words).unwrap();
    let arguments = WalkArgs::from_arg_matches(&arguments).unwrap();
    let names = |name: &str| {
        Some(match Stage::resolve(name) {
            Some(address) => Host::Is(vec![address]),
            None => Host::IsNot("there is no such name".to_owned()),
        })
    };
    look_knowing(&arguments, &names).await
}

/// What each of several breaks does alone.
#[derive(Default)]
pub(super) struct Alone {
    /// The hops at which packets end.
    hops: BTreeSet<u64>,
    /// The flows of which nothing arrives with one of them.
    lost: BTreeSet<String>,
    /// Those of which something is lost with one of them, and with either.
    harmed: BTreeSet<String>,
    harmed_by_each: BTreeSet<String>,
}

impl Alone {
    /// Adds what is broken now.
    pub(super) fn note(&mut self, stage: &Stage) {
        let moment = Moment::of(stage);
        for flow in moment.flows() {
            for origin in Origin::ALL {
                let sent = moment.send(origin, &flow, &[], |_| true);
                self.hops.extend(hops(&flow, &sent));
                let of = format!("{origin} to {flow}");
                if sent.arrived == 0 {
                    self.lost.insert(of.clone());
                }
                if (sent.arrived == 0 || !sent.lost.is_empty()) && !self.harmed.insert(of.clone()) {
                    self.harmed_by_each.insert(of);
                }
            }
        }
    }
}

/// The hops at which packets of a flow end.
fn hops(flow: &Flow, sent: &Sent) -> BTreeSet<u64> {
    let mut hops = sent.hops();
    if is_name(flow) && sent.lost.contains(&Place::Cloud(Loss::Address)) {
        // The name leads elsewhere.
        hops.insert(1);
    }
    hops
}

fn is_name(flow: &Flow) -> bool {
    flow.to.parse::<IpAddr>().is_err()
}

/// Sends packets, asks doctor, and compares. `done` is what was done; `alone` is what each of two breaks does by itself.
pub(super) async fn compare(stage: &Stage, done: &[&Break], alone: Option<&Alone>) -> Disagreements {
    let mut found = Disagreements::new();
    let report = match diagnose(stage).await {
        Ok(report) => report,
        Err(text) => return Disagreements::from([(text, Vec::new())]),
    };
    let moment = Moment::of(stage);
    let flows = moment.flows();
    let service = &report["services"][0];
    for origin in Origin::ALL {
        let mut all = service["conclusion"].as_array().into_iter().flatten();
        let Some(conclusion) = all.find(|one| one["from"] == origin.as_str()) else {
            return Disagreements::from([(format!("no conclusion: {service}"), Vec::new())]);
        };
        let mut note = |text: String, of: String| found.entry(text).or_default().push(of);
        let is_unpublished =
            conclusion["verdict"] == "ends" && (conclusion["hop"] == 0 || conclusion["hop"] == 2);
        // Octavia has lost a change of a young Service that has no address: objects show the same while one is made.
        let may_be_made =
            conclusion["verdict"] == "not-known" && done.iter().any(|one| one.sight == Sight::Hidden);
        if flows.is_empty() && !is_unpublished && !may_be_made {
            note(format!("nothing is published, and doctor says {}", conclusion["text"]), origin.to_string());
        }
        for flow in &flows {
            let of = format!("{origin} to {flow}");
            match said(conclusion, flow) {
                None => note("nothing is said".to_owned(), of),
                Some(said) => {
                    if let Some(text) = disagreement(&moment, origin, flow, said, done, alone) {
                        note(text, of);
                    }
                }
            }
        }
    }
    if found.is_empty() {
        let told = codes(&report);
        if let [one] = done {
            let codes = if (one.told_in)(stage.kind) { one.codes } else { &[] };
            let is_told = codes.iter().any(|code| told.iter().any(|text| text.starts_with(code)));
            let is_right = if codes.is_empty() { told.is_empty() } else { is_told };
            if !is_right {
                found.insert(format!("the row has {codes:?}, and doctor says {told:?}"), Vec::new());
            }
        }
        for (hop, text) in unseen(service) {
            if !stage.kind.unseen().contains(&hop) && !done.iter().any(|one| one.unseen.contains(&hop)) {
                found.insert(format!("hop {hop} is not seen: {text}"), Vec::new());
            }
        }
    }
    if found.is_empty() {
        found.extend(wrong_exit_code(service, &report).map(|text| (text, Vec::new())));
    }
    found
}

/// What doctor says that it has not seen.
fn unseen(service: &Value) -> BTreeMap<u64, String> {
    let conclusions = service["conclusion"].as_array().into_iter().flatten();
    let flows = conclusions.flat_map(|conclusion| conclusion["flows"].as_array().into_iter().flatten());
    let all = flows.flat_map(|flow| flow["notSeen"].as_array().into_iter().flatten());
    all.filter_map(|one| Some((one["hop"].as_u64()?, one["text"].to_string()))).collect()
}

fn said<'a>(conclusion: &'a Value, flow: &Flow) -> Option<&'a Value> {
    let mut flows = conclusion["flows"].as_array()?.iter();
    flows.find(|one| one["to"] == *flow.to && one["port"] == flow.port && one["protocol"] == *flow.protocol)
}

fn disagreement(
    moment: &Moment<'_>,
    origin: Origin,
    flow: &Flow,
    said: &Value,
    done: &[&Break],
    alone: Option<&Alone>,
) -> Option<String> {
    let ranges: Vec<IpNet> = said["onlyFrom"].as_array().map_or_else(Vec::new, |ranges| {
        ranges.iter().filter_map(Value::as_str).map(|range| range.parse().unwrap()).collect()
    });
    let is_let_in = |client: IpAddr| ranges.is_empty() || ranges.iter().any(|range| range.contains(&client));
    let others_arrive = moment.send(origin, flow, &[], |client| !is_let_in(client)).arrived > 0;
    if !ranges.is_empty() && origin == Origin::Outside && others_arrive {
        return Some(format!("doctor says only from {}, and packets of others arrived", said["onlyFrom"]));
    }
    let meant = moment.send(origin, flow, &ranges, is_let_in);
    let all = moment.send(origin, flow, &ranges, |_| true);
    let sights: Vec<Sight> = done.iter().map(|one| one.sight).collect();
    let guessed: Vec<u64> = done.iter().flat_map(|one| one.unseen).copied().collect();
    let case = Case { moment, origin, flow, said, sights: &sights, guessed: &guessed, alone };
    // What is said of a flow is about those who are let in, unless it is that some are not.
    let agrees = case.agrees(&meant) || (said["verdict"] != "no-fault-found" && case.agrees(&all));
    (!agrees).then(|| {
        let arrived = if all.arrived > 0 { "some arrived" } else { "none arrived" };
        format!(
            "doctor says {} at hop {} ({}); of the packets {arrived}, and were lost: {:?}",
            said["verdict"],
            said["hop"],
            said["reason"].as_str().unwrap_or("no reason"),
            all.lost
        )
    })
}

/// What doctor says of one flow from one origin, and what it could know.
struct Case<'a> {
    moment: &'a Moment<'a>,
    origin: Origin,
    flow: &'a Flow,
    said: &'a Value,
    sights: &'a [Sight],
    /// The hops of which something may be unseen.
    guessed: &'a [u64],
    alone: Option<&'a Alone>,
}

impl Case<'_> {
    fn agrees(&self, sent: &Sent) -> bool {
        let Self { moment, origin, flow, said, sights, guessed, alone } = self;
        let (some, none) = (sent.arrived > 0, sent.arrived == 0 && !sent.lost.is_empty());
        let mut hops = hops(flow, sent);
        hops.extend(alone.iter().flat_map(|alone| &alone.hops));
        let is_right_hop = said["hop"].as_u64().is_some_and(|hop| hops.contains(&hop));
        let is_spare = sights.contains(&Sight::Spare);
        // Nobody here knows the load balancer of another cloud, and from where it sends; nor what pods and nodes make of a name.
        let is_out_of_sight = !moment.kind().is_in_cloud() || (is_name(flow) && *origin != Origin::Outside);
        match said["verdict"].as_str().unwrap_or_default() {
            "no-fault-found" => {
                let unseen = said["notSeen"].as_array().unwrap().iter();
                let unseen: Vec<u64> = unseen.filter_map(|one| one["hop"].as_u64()).collect();
                let is_said = |place: &Place| {
                    (matches!(place, Place::Egress | Place::Cluster(Stop::Policy))
                        && said["notFrom"].is_array())
                        || place.hops().iter().any(|hop| unseen.contains(hop))
                };
                sent.lost.iter().all(is_said)
            }
            "ends" => {
                // A header that nobody reads and that, around the load balancer, nobody sends: each of the two is a fault.
                let of = format!("{origin} to {flow}");
                let undone =
                    alone.is_some_and(|alone| alone.lost.contains(&of) && alone.harmed_by_each.contains(&of));
                (none || undone) && is_right_hop
            }
            "may-end" if sent.lost.is_empty() => {
                // Of two breaks one may undo the other by what objects do not show.
                is_spare || (sights.contains(&Sight::Doubt) && is_right_hop)
            }
            "may-end" => {
                // Two breaks that each stop some may stop all.
                let is_sum = alone.is_some_and(|alone| !alone.lost.contains(&format!("{origin} to {flow}")));
                // What one break hides may stop the rest of another; where a proxy is not seen, its version is a guess.
                let is_guessed = |hop: &u64| alone.is_some() && guessed.contains(hop);
                let may_be_all =
                    sent.hops().iter().any(is_guessed) || said["hop"].as_u64().iter().any(is_guessed);
                let may = some || is_sum || may_be_all || is_out_of_sight || sights.contains(&Sight::Doubt);
                // What may stop packets is named before it, where something else does.
                may && (is_right_hop || (is_spare && alone.is_some()))
            }
            "not-known" => {
                let is_doubtful = sights.iter().any(|sight| matches!(sight, Sight::Hidden | Sight::Doubt));
                // A wrong value beside another break may keep from the controller, and so from doctor, which load balancer it is.
                is_doubtful || is_out_of_sight || (is_spare && alone.is_some())
            }
            // Nobody sent a packet for doctor.
            _ => false,
        }
    }
}

/// A gate goes by the exit code: it is green only where no fault was found.
fn wrong_exit_code(service: &Value, report: &Value) -> Option<String> {
    let conclusions = service["conclusion"].as_array().into_iter().flatten();
    let is_green = conclusions.clone().all(|one| one["verdict"] == "no-fault-found");
    let ends = conclusions.clone().any(|one| one["verdict"] == "ends");
    let code = report["exitCode"].as_u64();
    let wrong = (code == Some(0) && !is_green) || (ends && code != Some(2));
    wrong.then(|| format!("the exit code is {code:?}: {}", service["sentence"]))
}

/// The codes of what doctor found, for messages.
pub(super) fn codes(report: &Value) -> Vec<String> {
    let categories = report["services"][0]["categories"].as_array().into_iter().flatten();
    let checks = categories.flat_map(|category| category["checks"].as_array().into_iter().flatten());
    checks
        .filter(|check| check["result"] == "error" || check["result"] == "warning")
        .map(|check| {
            format!(
                "{} {}",
                check["code"].as_str().unwrap_or_default(),
                check["description"].as_str().unwrap_or_default()
            )
        })
        .collect()
}
