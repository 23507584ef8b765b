//! The account of one test: whether all that the program did is what was planned before. Tests of scenarios of the
//! compatibility page are held to what the repository says about them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use openstack_ccm_core::lock::lock;

use super::{planned, scan};

/// Why something that the program did was not compared with a plan, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Escape {
    Other,
    Idle,
    Refused,
    Fault,
    Unreadable,
    Pending,
    Broken,
    Translated,
    Aside,
    Killed,
    Overtaken,
    Unfinished,
}

impl Escape {
    fn text(self) -> &'static str {
        match self {
            Self::Other => "other calls are made than planned",
            Self::Idle => "nothing is waited for",
            Self::Refused => "a call is refused on the way",
            Self::Fault => "something is made to fail",
            Self::Unreadable => "what is there cannot be read",
            Self::Pending => "the cloud is at work when the plan is made",
            Self::Broken => "a load balancer in ERROR is replaced, minutes after the start of the program",
            Self::Translated => "objects are changed on their way to the program",
            Self::Aside => "something is done beside what is planned",
            Self::Killed => "the program is killed before all is done",
            Self::Overtaken => "the test goes on before all is done",
            Self::Unfinished => "the test ends before all is done",
        }
    }
}

thread_local! {
    static ACCOUNT: RefCell<Account> = RefCell::default();
}

/// The test framework has a thread for each test.
#[derive(Default)]
struct Account {
    /// Ledgers that are open.
    open: usize,
    /// Whether the account was settled already.
    is_settled: bool,
    /// Plans that were carried out to their end.
    compared: usize,
    escapes: BTreeSet<Escape>,
    /// What was planned, and what was done instead.
    surprises: String,
}

impl Account {
    fn outcome(&self) -> String {
        let escapes: Vec<&str> = match (self.compared, self.escapes.is_empty()) {
            (0, true) => vec![Escape::Idle.text()],
            (_, true) => return planned::COMPARED.to_owned(),
            (_, false) => self.escapes.iter().map(|escape| escape.text()).collect(),
        };
        escapes.join(planned::BETWEEN)
    }
}

/// An entry in the account of this test. The account is settled when the last one goes: who makes one world after the other
/// holds another ledger meanwhile.
pub(crate) struct Ledger(());

impl Ledger {
    pub(crate) fn open() -> Self {
        ACCOUNT.with_borrow_mut(|account| {
            let late = account.is_settled && row().is_some();
            assert!(!late, "one world after the other: hold a ledger over all of them");
            account.open += 1;
        });
        Self(())
    }

    /// A plan was carried out to its end.
    pub(crate) fn compared(&self) {
        ACCOUNT.with_borrow_mut(|account| account.compared += 1);
    }

    /// Other calls were made than planned: an outcome only of a test whose outcome is kept.
    pub(crate) fn surprised(&self, surprise: &str) {
        assert!(row().is_some(), "other than planned: {surprise}");
        self.escaped(Escape::Other);
        ACCOUNT.with_borrow_mut(|account| account.surprises.push_str(surprise));
    }

    pub(crate) fn escaped(&self, escape: Escape) {
        ACCOUNT.with_borrow_mut(|account| account.escapes.insert(escape));
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let outcome = ACCOUNT.with_borrow_mut(|account| {
            account.open -= 1;
            let is_last = account.open == 0 && !std::thread::panicking();
            account.is_settled |= is_last;
            is_last.then(|| (account.outcome(), std::mem::take(&mut account.surprises)))
        });
        if let (Some((outcome, surprises)), Some(name)) = (outcome, row()) {
            settle(&name, &outcome, &surprises);
        }
    }
}

/// Whether this test shows a scenario of the page.
pub(crate) fn shows_a_scenario() -> bool {
    row().is_some()
}

/// The name of this test, if it shows a scenario of the page.
fn row() -> Option<String> {
    let name = std::thread::current().name()?.to_owned();
    is_row(&name).then_some(name)
}

fn is_row(name: &str) -> bool {
    static ROWS: OnceLock<BTreeSet<String>> = OnceLock::new();
    ROWS.get_or_init(rows).iter().any(|row| planned::is_case_of(name, row))
}

fn rows() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program");
    let scenarios = scan::folder(&folder).into_iter();
    scenarios.map(|scenario| planned::test_name(&scenario.file, &scenario.test)).collect()
}

/// Holds what a test did against what is kept, or keeps it. Whether a test went on before all was done may depend on how busy the machine is;
/// whether something else was done than planned does not, and is never kept without somebody's writing it there.
fn settle(name: &str, outcome: &str, surprises: &str) {
    static KEPT: Mutex<Option<BTreeMap<String, String>>> = Mutex::new(None);
    let mut kept = lock(&KEPT);
    let kept = kept.get_or_insert_with(planned::kept);
    let expected = kept.get(name).map_or("", String::as_str);
    let may_differ = expected.split(planned::BETWEEN).any(|escape| escape == Escape::Other.text());
    assert!(may_differ || surprises.is_empty(), "other than planned: {surprises}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        kept.retain(|test, _| is_row(test));
        kept.insert(name.to_owned(), outcome.to_owned());
        planned::keep(kept);
    }
    assert!(
        kept.contains_key(name),
        "tests/compatibility/planned.txt does not have it; `make docs` writes it there: {outcome}"
    );
}
