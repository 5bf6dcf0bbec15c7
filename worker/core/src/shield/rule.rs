//! Rules: what is looked for. They are data of the bundle, in `policies/shield/` and in tenants' overlays.

use super::mode::{Category, Severity};
use crate::text_enum::text_enum;

/// The rules of a bundle.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Those of the base pack first. Ids are unique.
    pub rules: &'static [Rule],
    /// Tenants, and the rules of the base pack that do not hold for them.
    pub disabled: &'static [(&'static str, &'static str)],
}

#[derive(Debug)]
pub struct Rule {
    /// `sql-union`, for example.
    pub id: &'static str,
    pub category: Category,
    pub severity: Severity,
    /// The severity in a document: a long text, or a sentence. Documents talk about attacks.
    pub in_documents: Severity,
    /// What it means if the rule matches.
    pub sentence: &'static str,
    /// The tenant whose overlay has the rule; `None` for all tenants.
    pub tenant: Option<&'static str>,
    pub test: Test,
}

/// When a rule matches.
#[derive(Debug)]
pub enum Test {
    Phrase(Phrase),
    Token(Token),
    Detector(Detector),
}

/// Literals one after the other. Case is ignored. A literal that begins or ends with a letter or a digit matches whole
/// words there, unless it has a `*` at that end.
#[derive(Debug)]
pub struct Phrase {
    /// For each step its alternatives.
    pub steps: &'static [&'static [&'static str]],
    /// Bytes between two steps.
    pub within: u16,
    /// Whether the text must be a single value: without whitespace, and short.
    pub value: bool,
}

/// A prefix, and characters of an alphabet after it.
#[derive(Debug)]
pub struct Token {
    /// Case counts.
    pub prefixes: &'static [&'static str],
    pub alphabet: Alphabet,
    /// Characters after the prefix.
    pub min: u16,
    pub max: u16,
    pub check: Check,
}

text_enum! {
    /// The characters of a token.
    Alphabet {
        Digits = "digits",
        LowerHexadecimal = "lower_hexadecimal",
        UpperAlphanumeric = "upper_alphanumeric",
        LowerAlphanumeric = "lower_alphanumeric",
        /// Letters and digits.
        Alphanumeric = "alphanumeric",
        /// Letters, digits, `_` and `-`.
        Base64Url = "base64url",
        /// Letters, digits, `+`, `/` and `=`.
        Base64 = "base64",
        /// Letters, digits, `_`, `-` and `.`.
        Dotted = "dotted",
    }
}

impl Alphabet {
    #[must_use]
    pub const fn has(self, byte: u8) -> bool {
        match self {
            Self::Digits => byte.is_ascii_digit(),
            Self::LowerHexadecimal => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::UpperAlphanumeric => matches!(byte, b'0'..=b'9' | b'A'..=b'Z'),
            Self::LowerAlphanumeric => matches!(byte, b'0'..=b'9' | b'a'..=b'z'),
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Base64Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        }
    }
}

text_enum! {
    /// What must hold for the characters of a token, so that a placeholder does not match.
    Check {
        /// They are not all alike.
        None = "none",
        /// They look random.
        Random = "random",
        /// The last six characters are the CRC-32 of those before, in base 62.
        Crc32Base62 = "crc32_base62",
    }
}

text_enum! {
    /// What a detector looks for. The rules give the severity.
    #[derive(Hash)]
    Detector {
        AddressMetadata = "address_metadata",
        AddressInternal = "address_internal",
        AddressDisguised = "address_disguised",
        AddressMentioned = "address_mentioned",
        HtmlBreakout = "html_breakout",
        HtmlElement = "html_element",
        HtmlEvent = "html_event",
        HtmlEventCode = "html_event_code",
        HtmlScript = "html_script",
        HtmlScriptCode = "html_script_code",
        ScriptBreakout = "script_breakout",
        ScriptUrl = "script_url",
        PathDeep = "path_deep",
        PathEncoded = "path_encoded",
        ShellCommand = "shell_command",
        ShellMentioned = "shell_mentioned",
        SqlBreakout = "sql_breakout",
        SqlFunction = "sql_function",
        SqlStacked = "sql_stacked",
        SqlTautology = "sql_tautology",
        SqlUnion = "sql_union",
        TextBidirectional = "text_bidirectional",
        TextHidden = "text_hidden",
        TextTags = "text_tags",
        ImageWithData = "image_with_data",
        SecretAssigned = "secret_assigned",
        SecretInUrl = "secret_in_url",
        SecretPrivateKey = "secret_private_key",
        SecretWebToken = "secret_web_token",
        TemplateConstant = "template_constant",
        PersonalCard = "personal_card",
        PersonalCardNumber = "personal_card_number",
        PersonalEmail = "personal_email",
        PersonalIban = "personal_iban",
        PersonalSocialSecurity = "personal_social_security",
        PersonalTelephone = "personal_telephone",
    }
}
