//! Reads `shield/<name>.json` and `tenants/<tenant>/shield.json`: the rules of the shield. Each rule is tried on its
//! examples here. If a rule does not match as its examples say, the build fails.

use std::collections::BTreeSet;

use gateward_core::shield::rule::{Alphabet, Check, Detector, Phrase, Rule, Rules, Test, Token};
use gateward_core::shield::{Category, Severity, Shield};
use serde::Deserialize;

use crate::bounds::{MAX_FIELD_BYTES, MAX_REASON_BYTES};
use crate::error::PolicyError;
use crate::sources::SourceFile;

/// Steps of a phrase, and the longest distance between two of them.
const MAX_STEPS: usize = 5;
const MAX_WITHIN: u16 = 256;

/// Bytes of a literal. A shorter literal would be found too often, and each match costs a step of its rules. Two
/// characters of most scripts have six bytes; signs of code have two.
const LITERAL_BYTES: std::ops::RangeInclusive<usize> = 1..=64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    rules: Vec<Source>,
    /// Only in an overlay: rules of the base pack that do not hold for the tenant.
    #[serde(default)]
    disable: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    id: String,
    category: Category,
    severity: Severity,
    /// The severity in documents, if it is lower there.
    in_documents: Option<Severity>,
    sentence: String,
    phrase: Option<Vec<Vec<String>>>,
    within: Option<u16>,
    #[serde(default)]
    value: bool,
    token: Option<TokenSource>,
    detector: Option<Detector>,
    /// Texts in which the rule must be found.
    matches: Vec<String>,
    /// Texts in which it must not.
    passes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenSource {
    prefixes: Vec<String>,
    alphabet: Alphabet,
    min: u16,
    max: u16,
    check: Check,
}

/// A rule's examples and its place.
struct Examples<'f> {
    file: &'f SourceFile,
    rule: &'static Rule,
    matches: Vec<String>,
    passes: Vec<String>,
}

/// Returns the rules, those of the base pack first, and adds every mistake to `errors`.
pub(crate) fn read(files: &[SourceFile], errors: &mut Vec<PolicyError>) -> Rules {
    let mut rules: Vec<Rule> = Vec::new();
    let mut examples = Vec::new();
    let mut disabled: Vec<(&'static str, &'static str)> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut files: Vec<&SourceFile> = files.iter().collect();
    files.sort_by_key(|file| (tenant_of(&file.path).is_some(), &file.path));
    for file in files {
        let wrong = |message: String, text: &str| {
            let offset = file.text.find(&format!("\"{text}\"")).unwrap_or(file.text.len());
            PolicyError::at(file, offset..file.text.len(), message)
        };
        let document: Document = match serde_json::from_str(&file.text) {
            Ok(document) => document,
            Err(error) => {
                let before = file.text.lines().take(error.line().saturating_sub(1));
                let start: usize = before.map(|line| line.len() + 1).sum();
                let message = format!("{error}, in");
                errors.push(PolicyError::at(file, start..file.text.len(), message));
                continue;
            }
        };
        let tenant: Option<&'static str> = tenant_of(&file.path).map(|it| &*it.to_owned().leak());
        for id in document.disable {
            match tenant {
                Some(tenant) if rules.iter().any(|rule| rule.id == id && rule.tenant.is_none()) => {
                    disabled.push((tenant, id.leak()));
                }
                Some(_) => {
                    errors.push(wrong(format!("no rule of the base pack is `{id}`, at"), &id))
                }
                None => errors
                    .push(wrong("only a tenant's overlay can disable rules, at".to_owned(), &id)),
            }
        }
        for mut source in document.rules {
            let id = source.id.clone();
            let (matches, passes) =
                (std::mem::take(&mut source.matches), std::mem::take(&mut source.passes));
            if matches.is_empty() || passes.is_empty() {
                let message =
                    format!("rule `{id}` must have examples in `matches` and in `passes`, at");
                errors.push(wrong(message, &id));
            }
            if !ids.insert(id.clone()) {
                errors.push(wrong("two rules have this id:".to_owned(), &id));
            }
            match rule(source, tenant) {
                Ok(rule) => {
                    examples.push((file, matches, passes));
                    rules.push(rule);
                }
                Err(message) => errors.push(wrong(format!("rule `{id}`: {message}, at"), &id)),
            }
        }
    }
    let rules = Rules { rules: rules.leak(), disabled: disabled.leak() };
    let examples: Vec<Examples<'_>> = examples
        .into_iter()
        .zip(rules.rules)
        .map(|((file, matches, passes), rule)| Examples { file, rule, matches, passes })
        .collect();
    let shield = Shield::new(rules);
    match shield.check_cost() {
        Ok(()) => examples.iter().for_each(|of| of.check(&shield, errors)),
        Err(cost) => {
            errors.push(PolicyError::of_file("shield", "the rules cost too much:", &cost.0))
        }
    }
    rules
}

/// The tenant whose overlay is at a path.
fn tenant_of(path: &str) -> Option<&str> {
    path.strip_prefix("tenants/")?.split('/').next()
}

fn rule(source: Source, tenant: Option<&'static str>) -> Result<Rule, String> {
    let id = &source.id;
    let is_id = id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && id.len() <= MAX_FIELD_BYTES;
    if !is_id {
        return Err("an id must be of `[a-z0-9-]` and begin with a letter".to_owned());
    }
    if source.sentence.is_empty() || source.sentence.len() > MAX_REASON_BYTES {
        return Err(format!("`sentence` must have 1 to {MAX_REASON_BYTES} bytes"));
    }
    let test = match (source.phrase, source.token, source.detector) {
        (Some(steps), None, None) => Test::Phrase(phrase(&steps, source.within, source.value)?),
        (None, Some(of), None) => Test::Token(token(of)?),
        (None, None, Some(detector)) => Test::Detector(detector),
        _ => return Err("it must have one of `phrase`, `token` and `detector`".to_owned()),
    };
    Ok(Rule {
        id: source.id.leak(),
        category: source.category,
        severity: source.severity,
        in_documents: source.in_documents.unwrap_or(source.severity),
        sentence: source.sentence.leak(),
        tenant,
        test,
    })
}

fn phrase(steps: &[Vec<String>], within: Option<u16>, value: bool) -> Result<Phrase, String> {
    if !(1..=MAX_STEPS).contains(&steps.len()) || steps.iter().any(Vec::is_empty) {
        return Err(format!("`phrase` must have 1 to {MAX_STEPS} steps, and each an alternative"));
    }
    let within = within.unwrap_or_default();
    if within > MAX_WITHIN {
        return Err(format!("`within` must be at most {MAX_WITHIN}"));
    }
    let literals = steps.iter().flatten();
    if let Some(literal) =
        literals.clone().find(|it| !LITERAL_BYTES.contains(&it.trim_matches('*').len()))
    {
        let (least, most) = LITERAL_BYTES.into_inner();
        return Err(format!("the literal `{literal}` must have {least} to {most} bytes"));
    }
    let leaked = |step: &Vec<String>| -> &'static [&'static str] {
        step.iter().map(|literal| &*literal.clone().leak()).collect::<Vec<_>>().leak()
    };
    Ok(Phrase { steps: steps.iter().map(leaked).collect::<Vec<_>>().leak(), within, value })
}

fn token(source: TokenSource) -> Result<Token, String> {
    if source.prefixes.is_empty() || source.min == 0 || source.min > source.max {
        return Err("`token` must have a prefix, and `min` must be from 1 to `max`".to_owned());
    }
    Ok(Token {
        prefixes: source.prefixes.into_iter().map(|it| &*it.leak()).collect::<Vec<_>>().leak(),
        alphabet: source.alphabet,
        min: source.min,
        max: source.max,
        check: source.check,
    })
}

impl Examples<'_> {
    fn check(&self, shield: &Shield, errors: &mut Vec<PolicyError>) {
        let Self { file, rule, matches, passes } = self;
        let found = |text: &str| {
            let tenant = rule.tenant.unwrap_or_default();
            shield.matches(tenant, text).iter().any(|it| it.rule == rule.id)
        };
        let mut wrong = |what: &str, text: &str| {
            let quoted = serde_json::to_string(text).unwrap_or_default();
            let offset = file.text.find(&format!("\"{}\"", rule.id)).unwrap_or_default();
            let message = format!("rule `{}` {what} {quoted}, at", rule.id);
            errors.push(PolicyError::at(file, offset..file.text.len(), message));
        };
        matches.iter().filter(|text| !found(text)).for_each(|text| wrong("does not match", text));
        passes.iter().filter(|text| found(text)).for_each(|text| wrong("matches", text));
    }
}

/// The rules as constants.
pub(crate) fn render(rules: &Rules) -> String {
    const PATH: &str = "::gateward_core::shield";
    let rule = |rule: &Rule| {
        let Rule { id, category, severity, in_documents, sentence, tenant, test } = rule;
        let test = match test {
            Test::Phrase(Phrase { steps, within, value }) => format!(
                "Phrase({PATH}::rule::Phrase {{ steps: &[{}], within: {within}, value: {value} }})",
                steps.iter().map(|step| format!("&{step:?}, ")).collect::<String>()
            ),
            Test::Token(Token { prefixes, alphabet, min, max, check }) => format!(
                "Token({PATH}::rule::Token {{ prefixes: &{prefixes:?}, alphabet: {PATH}::rule::Alphabet::{alphabet:?}, \
                 min: {min}, max: {max}, check: {PATH}::rule::Check::{check:?} }})"
            ),
            Test::Detector(detector) => format!("Detector({PATH}::rule::Detector::{detector:?})"),
        };
        format!(
            "{PATH}::Rule {{ id: {id:?}, category: {PATH}::Category::{category:?}, \
             severity: {PATH}::Severity::{severity:?}, in_documents: {PATH}::Severity::{in_documents:?}, \
             sentence: {sentence:?}, tenant: {tenant:?}, \
             test: {PATH}::rule::Test::{test} }},\n"
        )
    };
    let all: String = rules.rules.iter().map(rule).collect();
    format!("{PATH}::Rules {{ rules: &[\n{all}], disabled: &{:?} }}", rules.disabled)
}
