//! Reads policy files. Each policy is parsed separately, with its id, tenant and annotations.

use std::collections::BTreeSet;
use std::ops::Range;

use cedar_policy::ffi::DetailedError;
use cedar_policy::{Effect, Policy, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use gateward_core::name::is_name;
use gateward_core::policy::expression;
use gateward_core::policy::hierarchy::{self, Unanswerable, unanswerable};
use serde_json::Value;

use crate::annotations::{self, Annotations, Mistake};
use crate::bounds::{
    MAX_BUNDLE_BYTES, MAX_EXPRESSION_DEPTH, MAX_POLICIES, MAX_POLICY_BYTES, MAX_POLICY_NESTING,
};
use crate::error::PolicyError;
use crate::sources::{SourceFile, VELOCITY_PATH};
use crate::split::{PolicyText, annotation, split};
use crate::velocity::Window;

/// A policy that Cedar parsed.
pub(crate) struct Parsed<'a> {
    pub file: &'a SourceFile,
    pub range: Range<usize>,
    pub tenant: Option<&'a str>,
    /// Its id is described at [`gateward_core::policy::bundle::PolicyRecord::id`].
    pub policy: Policy,
    /// As [`gateward_core::policy::bundle::PolicyRecord::expressions`].
    pub expressions: Vec<u8>,
    pub annotations: Annotations,
}

impl<'a> Parsed<'a> {
    pub(crate) fn id(&self) -> &str {
        self.policy.id().as_ref()
    }

    pub(crate) fn text(&self) -> &'a str {
        self.file.text.get(self.range.clone()).unwrap_or_default()
    }

    pub(crate) fn forbid(&self) -> bool {
        self.policy.effect() == Effect::Forbid
    }
}

/// Returns the policies of all files, sorted by id, and adds every mistake to `errors`. A policy with a
/// mistake is returned too if Cedar can parse it, so that its other mistakes are also reported.
pub(crate) fn read<'a>(files: &'a [SourceFile], errors: &mut Vec<PolicyError>) -> Vec<Parsed<'a>> {
    let mut parsed = Vec::new();
    let mut paths = BTreeSet::new();
    let mut found: usize = 0;
    let mut bytes: usize = 0;
    for file in files {
        let Some((stem, tenant)) = place(&file.path) else {
            let message =
                "policies must be at `base/<name>.cedar` or `tenants/<tenant>/<name>.cedar`, not";
            errors.push(PolicyError::of_file(&file.path, message, &file.path));
            continue;
        };
        if !paths.insert(file.path.as_str()) {
            errors.push(PolicyError::of_file(&file.path, "this path is given twice:", &file.path));
            continue;
        }
        let mut ids = BTreeSet::new();
        for text in split(&file.text) {
            found += 1;
            bytes += text.range.len();
            if found <= MAX_POLICIES && bytes <= MAX_BUNDLE_BYTES {
                parsed.extend(read_policy(file, stem, tenant, text, &mut ids, errors));
            }
        }
    }
    if found > MAX_POLICIES {
        let message = format!("a bundle can have at most {MAX_POLICIES} policies, not");
        errors.push(PolicyError::of_file("base", message, &found.to_string()));
    }
    if bytes > MAX_BUNDLE_BYTES {
        let message =
            format!("a bundle can have at most {MAX_BUNDLE_BYTES} bytes of policies, not");
        errors.push(PolicyError::of_file("base", message, &bytes.to_string()));
    }
    parsed.sort_by(|a, b| a.id().cmp(b.id()));
    parsed
}

/// The part of a policy's id that comes from its file, and the tenant to which the file belongs.
fn place(path: &str) -> Option<(&str, Option<&str>)> {
    let stem = path.strip_suffix(".cedar")?;
    match *stem.split('/').collect::<Vec<_>>() {
        ["base", name] if is_name(name) => Some((stem, None)),
        ["tenants", tenant, name] if is_name(tenant) && is_name(name) => Some((stem, Some(tenant))),
        _ => None,
    }
}

/// `ids` are the ids that the file has used already.
fn read_policy<'a>(
    file: &'a SourceFile,
    stem: &str,
    tenant: Option<&'a str>,
    text: PolicyText,
    ids: &mut BTreeSet<String>,
    errors: &mut Vec<PolicyError>,
) -> Option<Parsed<'a>> {
    let PolicyText { range, annotations: starts, nesting } = text;
    let source = file.text.get(range.clone()).unwrap_or_default();
    if source.len() > MAX_POLICY_BYTES {
        let message = format!("a policy can have at most {MAX_POLICY_BYTES} bytes, not:");
        errors.push(PolicyError::at(file, range, message));
        return None;
    }
    if nesting > MAX_POLICY_NESTING {
        let message = format!(
            "brackets and `if`s of a policy can nest at most {MAX_POLICY_NESTING} levels, not:"
        );
        errors.push(PolicyError::at(file, range, message));
        return None;
    }
    let policy = match Policy::parse(None, source) {
        Ok(policy) => policy,
        Err(found) => {
            let located = found.iter().map(|error| located(file, range.start, &error.into()));
            errors.extend(located);
            return None;
        }
    };
    match policy.to_json() {
        Ok(json) if depth(&json) <= MAX_EXPRESSION_DEPTH => {}
        Ok(_) => {
            let message = format!(
                "a policy can have at most {MAX_EXPRESSION_DEPTH} levels in Cedar's JSON form \
                 (join fewer conditions, or compare with a set), not:"
            );
            errors.push(PolicyError::at(file, range, message));
            return None;
        }
        Err(error) => {
            errors.push(PolicyError::at(file, range, format!("{error}, in")));
            return None;
        }
    }
    let Ok(expressions) = expression::encode(policy.as_ref()) else {
        let message = "Gateward does not know an expression in".to_owned();
        errors.push(PolicyError::at(file, range, message));
        return None;
    };
    for Unanswerable { range: part, why } in unanswerable(policy.as_ref()) {
        let place = part.map_or(range.clone(), |p| range.start + p.start..range.start + p.end);
        errors.push(PolicyError::at(file, place, why));
    }

    let mut mistakes = Vec::new();
    let (id, annotations) = annotations::read(policy.effect(), policy.annotations(), &mut mistakes);
    // A policy without an id is identified by its place, until the mistake stops the build.
    let provisional = PolicyId::new(format!("{stem}:{}", range.start));
    let cedar_id = if id.is_empty() {
        provisional
    } else if ids.insert(id.clone()) {
        PolicyId::new(format!("{stem}#{id}"))
    } else {
        let annotation = Some("id".to_owned());
        mistakes.push(Mistake { annotation, message: "the file uses this id twice:".to_owned() });
        provisional
    };
    for Mistake { annotation: name, message } in mistakes {
        let place = starts
            .iter()
            .map(|start| annotation(&file.text, *start))
            .find(|(found, _)| Some(*found) == name.as_deref())
            .map_or(range.clone(), |(_, place)| place);
        errors.push(PolicyError::at(file, place, message));
    }
    Some(Parsed { file, range, tenant, policy: policy.new_id(cedar_id), expressions, annotations })
}

/// Checks every policy strictly against the schema, and whether the windows that it names exist. Adds mistakes to
/// `errors`. Returns probable mistakes: a policy that can never apply, or text that looks like other text.
pub(crate) fn validate(
    schema: Schema,
    parsed: &[Parsed],
    windows: &[Window],
    errors: &mut Vec<PolicyError>,
) -> Vec<PolicyError> {
    let mut set = PolicySet::new();
    for Parsed { file, range, policy, .. } in parsed {
        if let Err(error) = set.add(policy.clone()) {
            errors.push(PolicyError::at(file, range.clone(), format!("{error}, at")));
        }
    }
    let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
    let located_in = |id: &PolicyId, error: &DetailedError| {
        let at = parsed.binary_search_by(|parsed| parsed.id().cmp(id.as_ref()));
        let parsed = at.ok().and_then(|at| parsed.get(at))?;
        Some(located(parsed.file, parsed.range.start, error))
    };
    let mut found: Vec<PolicyError> = result
        .validation_errors()
        .map(|error| {
            let id = error.policy_id();
            let unplaced = || PolicyError::of_file("base", format!("{error}, in"), id.as_ref());
            located_in(id, &error.into()).unwrap_or_else(unplaced)
        })
        .collect();
    found.extend(parsed.iter().flat_map(|parsed| unknown_windows(parsed, windows)));
    // Cedar reports a mistake once for every action to which the policy applies.
    found.sort();
    found.dedup_by(|a, b| (&a.file, a.line, &a.text) == (&b.file, b.line, &b.text));
    errors.append(&mut found);
    let warnings = result.validation_warnings();
    warnings.filter_map(|warning| located_in(warning.policy_id(), &warning.into())).collect()
}

/// Names of windows that no window has. Cedar reports only those that no `has` guards.
fn unknown_windows<'a>(
    Parsed { file, range, policy, .. }: &'a Parsed<'a>,
    windows: &'a [Window],
) -> impl Iterator<Item = PolicyError> {
    let is_known = |name: &str| windows.iter().any(|window| window.name == name);
    let named = hierarchy::windows(policy.as_ref()).into_iter();
    named.filter(move |(_, name)| !is_known(name)).map(move |(part, name)| {
        let place = part.map_or(range.clone(), |p| range.start + p.start..range.start + p.end);
        PolicyError::at(file, place, format!("`{VELOCITY_PATH}` has no window `{name}`:"))
    })
}

/// Cedar's error about a policy that begins at `start` of its file.
fn located(file: &SourceFile, start: usize, error: &DetailedError) -> PolicyError {
    let label = error.source_locations.first().map_or(0..0, |label| label.loc.start..label.loc.end);
    // Leave out the policy's id: the place is more exact, and the policy may have no id.
    let message = match error.message.split_once("`, ") {
        Some((prefix, message)) if prefix.starts_with("for policy `") => message,
        _ => &error.message,
    };
    let help = error.help.as_deref().map_or(String::new(), |help| format!(" ({help})"));
    let message = format!("{message}{help}, at");
    PolicyError::at(file, start + label.start..start + label.end, message)
}

/// Recursive. [`MAX_POLICY_BYTES`] bounds the depth, because an operator has at least one byte.
fn depth(json: &Value) -> usize {
    let inner = match json {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(values) => values.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}
