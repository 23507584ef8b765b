//! PATCH in three formats.

use serde_json::Value;

use super::create::check_name;
use super::{State, Target, WriteOptions, Written, judge_unknown};
use crate::failure::{Failure, FieldError, Subject};
use crate::go_text;
use crate::patch::{PatchKind, json, strategic};

impl State {
    /// Changes an object as a client asks.
    pub(crate) fn patch(
        &mut self,
        target: &Target,
        kind: PatchKind,
        patch: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        let stored = self.store.get(target.resource.storage, &target.key());
        let stored = stored.ok_or_else(|| target.not_found())?;
        let current = self.show(target.resource, &stored);
        let mut patched = current.clone();
        match (kind, patch) {
            (PatchKind::Json, Value::Array(operations)) => {
                json::apply(&mut patched, operations).map_err(|_| Failure::unprocessable())?;
            }
            (PatchKind::Merge, Value::Object(_)) => json_patch::merge(&mut patched, patch),
            (PatchKind::Strategic, Value::Object(_)) => {
                strategic::merge(&target.resource.schema, &mut patched, patch);
            }
            (PatchKind::Json | PatchKind::Merge | PatchKind::Strategic, _) => {
                return Err(Failure::bad_request(
                    "error decoding patch: json: cannot unmarshal the patch into the type that its format asks for",
                ));
            }
        }
        let quoted = || match kind {
            PatchKind::Strategic => go_text::print(patch),
            PatchKind::Json | PatchKind::Merge => patched.to_string(),
        };
        let (mut object, unknown) = self
            .decode_or_refuse(target.resource, &patched)
            .map_err(|complaint| refused_patch(quoted(), &complaint.0))?;
        // The refusal quotes the patched object, or the patch.
        let refusal = |wrong: &str| refused_patch(quoted(), wrong);
        let warnings = judge_unknown(&unknown, options.field_validation, refusal)?;
        check_name(target, &mut object)?;
        let object = self.update_decoded(target, &stored, object, options)?;
        Ok(Written { object, created: false, warnings })
    }
}

/// A patch whose result is no object of the kind. `quoted` is the patched object, or the patch.
fn refused_patch(quoted: String, rule: &str) -> Failure {
    let problem = FieldError::invalid("patch", &quoted.into(), rule);
    Failure::invalid(Subject { group: "", kind: "", name: "" }, &[problem])
}
