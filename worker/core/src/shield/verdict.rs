//! What the modes of the categories do about findings.

use std::collections::BTreeSet;

use super::findings::{Finding, Findings, MAX_FINDINGS, Noted, gravest_first};
use super::mode::{Category, Mode, Modes, Severity};

/// Findings of this severity and above are blocked in the mode `block`, and most taint if they are in an answer.
const GRAVE: Severity = Severity::High;

/// Findings whose category is not `off`, and what is done about them.
#[derive(Debug)]
pub struct Verdict {
    modes: Modes,
    /// The gravest first.
    findings: Vec<Finding>,
    unread: bool,
}

impl Verdict {
    #[must_use]
    pub fn new(modes: Modes, mut found: Findings) -> Self {
        found.list.retain(|finding| modes.of(finding.category) != Mode::Off);
        Self { modes, findings: found.list, unread: found.truncated }
    }

    /// The gravest finding that is blocked.
    #[must_use]
    pub fn blocked(&self) -> Option<&Finding> {
        let blocks = |finding: &&Finding| {
            self.modes.of(finding.category) == Mode::Block && finding.severity >= GRAVE
        };
        self.findings.iter().find(blocks)
    }

    /// Whether a text was not read to its end, so that it may have something that is blocked.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.unread
            && Category::ALL.into_iter().any(|category| self.modes.of(category) == Mode::Block)
    }

    /// The first finding that would have to be redacted outside of the arguments. Nothing is redacted there, because a
    /// resource with a marker in it would be another resource.
    #[must_use]
    pub fn unredactable(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| {
            !finding.pointer.starts_with('/') && self.modes.of(finding.category) == Mode::Redact
        })
    }

    /// The categories whose findings are redacted, and those whose findings may be in a text that was not read.
    #[must_use]
    pub fn redacts(&self) -> Vec<Category> {
        let is_there = |category: &Category| {
            self.modes.of(*category) == Mode::Redact
                && (self.unread || self.findings.iter().any(|it| it.category == *category))
        };
        Category::ALL.into_iter().filter(is_there).collect()
    }

    /// Whether an answer with these findings taints its reader: it may contain an attack, or it was not read to its
    /// end. Secrets and personal data are not attacks. A text aimed at a model taints from medium severity on, because
    /// the reader is a model.
    #[must_use]
    pub fn taints(&self) -> bool {
        let attacks = |finding: &Finding| {
            let least = match finding.category {
                Category::PromptInjection => Severity::Medium,
                _ => GRAVE,
            };
            finding.category.is_attack() && finding.severity >= least
        };
        self.unread || self.findings.iter().any(attacks)
    }

    /// What is reported and stored: the gravest finding of each rule, and further findings as far as there is space.
    #[must_use]
    pub fn noted(self) -> Option<Noted> {
        let redacts = self.redacts();
        let mut rules = BTreeSet::new();
        let (mut findings, others): (Vec<Finding>, Vec<Finding>) =
            self.findings.into_iter().partition(|finding| rules.insert(finding.rule.clone()));
        let truncated = self.unread || findings.len() > MAX_FINDINGS;
        findings.extend(others);
        findings.truncate(MAX_FINDINGS);
        let noted = Noted { findings: gravest_first(findings), redacts, truncated };
        (!noted.is_empty()).then_some(noted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, category: Category, severity: Severity) -> Finding {
        Finding {
            category,
            decodings: Vec::new(),
            digest: String::new(),
            length: 1,
            pointer: "/a".to_owned(),
            rule: rule.to_owned(),
            severity,
        }
    }

    fn verdict(modes: &str, list: Vec<Finding>, truncated: bool) -> Verdict {
        Verdict::new(serde_json::from_str(modes).unwrap(), Findings { list, truncated })
    }

    #[test]
    fn of_each_rule_a_finding_is_kept() {
        let mut list = vec![finding("card", Category::PersonalData, Severity::High); 40];
        list.push(finding("mail", Category::PersonalData, Severity::Low));
        let noted = verdict("{}", list, false).noted().unwrap();
        assert_eq!((noted.findings.len(), noted.truncated), (MAX_FINDINGS, false));
        assert_eq!(noted.findings.last().unwrap().rule, "mail");
        let rules = (0..=MAX_FINDINGS).map(|at| at.to_string());
        let list = rules.map(|rule| finding(&rule, Category::Secret, Severity::Low)).collect();
        assert!(verdict("{}", list, false).noted().unwrap().truncated);
    }

    #[test]
    fn grave_attacks_taint_and_what_is_blocked_is_named() {
        let sql = |severity| vec![finding("union", Category::SqlInjection, severity)];
        let order = |severity| vec![finding("order", Category::PromptInjection, severity)];
        let card = || vec![finding("card", Category::PersonalData, Severity::Critical)];
        for (modes, list, unread, taints, blocked, hides) in [
            ("{}", sql(Severity::High), false, true, false, false),
            ("{}", sql(Severity::Medium), false, false, false, false),
            ("{}", order(Severity::Medium), false, true, false, false),
            ("{}", order(Severity::Low), false, false, false, false),
            (r#"{"prompt_injection":"block"}"#, order(Severity::Medium), false, true, false, false),
            (r#"{"sql_injection":"off"}"#, sql(Severity::High), false, false, false, false),
            (r#"{"sql_injection":"block"}"#, sql(Severity::High), false, true, true, false),
            (r#"{"sql_injection":"block"}"#, sql(Severity::Medium), true, true, false, true),
            (r#"{"personal_data":"block"}"#, card(), false, false, true, false),
            (r#"{"personal_data":"redact"}"#, card(), false, false, false, false),
            ("{}", Vec::new(), true, true, false, false),
        ] {
            let verdict = verdict(modes, list, unread);
            let seen = (verdict.taints(), verdict.blocked().is_some(), verdict.hides());
            assert_eq!(seen, (taints, blocked, hides), "{modes} {verdict:?}");
        }
    }
}
