//! Categories of findings, their severities, and the mode in which each category is inspected.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::text_enum::text_enum;

text_enum! {
    /// What a finding is.
    #[derive(PartialOrd, Ord, Hash)]
    Category {
        SqlInjection = "sql_injection",
        CrossSiteScripting = "cross_site_scripting",
        CommandInjection = "command_injection",
        PathTraversal = "path_traversal",
        TemplateInjection = "template_injection",
        ServerSideRequestForgery = "server_side_request_forgery",
        PromptInjection = "prompt_injection",
        Secret = "secret",
        PersonalData = "personal_data",
    }
}

impl Category {
    /// Whether its findings are attacks. Findings of the others are values that must not leave, and a marker can replace
    /// them.
    #[must_use]
    pub const fn is_attack(self) -> bool {
        !matches!(self, Self::Secret | Self::PersonalData)
    }
}

text_enum! {
    /// How sure and how grave a finding is, lowest first. Policies see it as a number from 1.
    #[derive(PartialOrd, Ord)]
    Severity {
        Low = "low",
        Medium = "medium",
        High = "high",
        Critical = "critical",
    }
}

impl Severity {
    /// The severity as policies see it.
    #[must_use]
    pub const fn rank(self) -> i64 {
        match self {
            Self::Low => 1,
            Self::Medium => 2,
            Self::High => 3,
            Self::Critical => 4,
        }
    }
}

text_enum! {
    /// What becomes of a finding.
    Mode {
        /// Nothing: policies do not see it.
        Off = "off",
        /// Policies see it.
        Detect = "detect",
        /// Policies see it, and what was found is replaced by a marker. Only for secrets and personal data.
        Redact = "redact",
        /// Policies see it, and one of high or critical severity denies the call, or withholds the answer.
        Block = "block",
    }
}

/// Defines [`Modes`] from the list of its members and their categories. A category without a member does not compile.
macro_rules! modes {
    ($($member:ident: $category:ident,)+) => {
        /// The mode of each category. `None`: as the next wider record says; from the tool to its server, its tenant, and
        /// [`Mode::Detect`].
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        #[schema(as = ShieldModes)]
        pub struct Modes {
            $(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $member: Option<Mode>,
            )+
        }

        impl Modes {
            const fn set(&self, category: Category) -> Option<Mode> {
                match category {
                    $(Category::$category => self.$member,)+
                }
            }

            /// The modes that hold by these records, the narrowest first.
            #[must_use]
            pub fn resolve(records: [Option<&Self>; 3]) -> Self {
                let of =
                    |category| records.into_iter().flatten().find_map(|modes| modes.set(category));
                Self { $($member: of(Category::$category),)+ }
            }
        }
    };
}

// In the order of the names: records are stored in this order.
modes! {
    command_injection: CommandInjection,
    cross_site_scripting: CrossSiteScripting,
    path_traversal: PathTraversal,
    personal_data: PersonalData,
    prompt_injection: PromptInjection,
    secret: Secret,
    server_side_request_forgery: ServerSideRequestForgery,
    sql_injection: SqlInjection,
    template_injection: TemplateInjection,
}

impl Modes {
    /// The mode of a category; [`Mode::Detect`] if none is set.
    #[must_use]
    pub fn of(&self, category: Category) -> Mode {
        self.set(category).unwrap_or(Mode::Detect)
    }

    /// Whether no category is inspected.
    #[must_use]
    pub fn are_off(&self) -> bool {
        Category::ALL.into_iter().all(|category| self.of(category) == Mode::Off)
    }

    /// The first category that is to be redacted and cannot be: its findings are not values that a marker can
    /// replace.
    #[must_use]
    pub fn unredactable(&self) -> Option<Category> {
        let cannot_be =
            |category: &Category| category.is_attack() && self.of(*category) == Mode::Redact;
        Category::ALL.into_iter().find(cannot_be)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(text: &str) -> Modes {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_narrowest_record_that_names_a_category_sets_its_mode() {
        let tool = modes(r#"{"sql_injection":"off"}"#);
        let server = modes(r#"{"sql_injection":"block","secret":"redact"}"#);
        let tenant = modes(r#"{"secret":"block","path_traversal":"block"}"#);
        for (category, expected) in [
            (Category::SqlInjection, Mode::Off),
            (Category::Secret, Mode::Redact),
            (Category::PathTraversal, Mode::Block),
            (Category::PersonalData, Mode::Detect),
        ] {
            let records = [Some(&tool), Some(&server), Some(&tenant)];
            assert_eq!(Modes::resolve(records).of(category), expected, "{category:?}");
        }
    }

    #[test]
    fn every_category_has_a_mode_of_its_name() {
        for category in Category::ALL {
            let modes = modes(&format!("{{\"{}\":\"block\"}}", category.as_str()));
            assert_eq!(modes.of(category), Mode::Block);
        }
        assert!(serde_json::from_str::<Modes>(r#"{"sql":"block"}"#).is_err());
        assert!(serde_json::from_str::<Modes>(r#"{"secret":"on"}"#).is_err());
    }

    #[test]
    fn only_secrets_and_personal_data_can_be_redacted() {
        assert_eq!(modes(r#"{"secret":"redact","personal_data":"redact"}"#).unredactable(), None);
        let mode = modes(r#"{"prompt_injection":"redact"}"#);
        assert_eq!(mode.unredactable(), Some(Category::PromptInjection));
    }
}
