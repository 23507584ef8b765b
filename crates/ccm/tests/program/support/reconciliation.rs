//! Which reconciliation of which Service a call is made for: the spans of the program show it.

use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Span, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::log;
use super::trace::moment;

/// Has the spans of reconciliations noted from here on, and the log kept of those who want it. One subscriber serves all threads for ever: with
/// several that come and go, a place that logs for the first time in one thread may stay mute in another.
pub(crate) fn follow() {
    static ONCE: Once = Once::new();
    let is_reconciliation = |metadata: &Metadata<'_>| metadata.is_span() && metadata.name() == "reconcile";
    ONCE.call_once(|| {
        let wanted = filter_fn(is_reconciliation).with_max_level_hint(LevelFilter::INFO);
        let followed = Followed.with_filter(wanted);
        let all = Registry::default().with(followed).with(log::layer());
        // Beside the others, so that who looks for a fault has the rules held as well.
        let _ = match std::env::var_os("RUST_LOG") {
            Some(_) => all.with(log::shown()).try_init(),
            None => all.try_init(),
        };
    });
}

/// The reconciliation that goes on.
pub(crate) fn current() -> Option<Reconciliation> {
    tracing::dispatcher::get_default(|dispatch| {
        let span = dispatch.downcast_ref::<Registry>()?.span(&Span::current().id()?)?;
        span.scope().find_map(|span| span.extensions().get::<Reconciliation>().cloned())
    })
}

/// One reconciliation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reconciliation {
    /// The field `service` of its span: `default/web`.
    pub(crate) service: String,
    pub(crate) number: usize,
}

struct Followed;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Followed {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut run = Reconciliation { service: String::new(), number: moment() };
        attributes.record(&mut run);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(run);
        }
    }
}

impl Visit for Reconciliation {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "service" {
            self.service = format!("{value:?}");
        }
    }
}
