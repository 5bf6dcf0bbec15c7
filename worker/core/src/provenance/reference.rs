//! Commands to bots, mentions that reach many, and references to repositories: what a chat, a forge or its bots act on
//! although it is not a link.
//!
//! Mentions of single people are not found: an answer often names whom it answers, and only that person is told. Nor are
//! bots that [`BOTS`] and [`PROGRAMS`] do not have, because a text cannot tell them from people and from code.

use super::search::{ends_with_any, has, is_in, is_one_of, split_once, trim_end};

/// Bots that act on what somebody writes to them. So does each name that ends with `bot`. Sorted.
const BOTS: &[&str] = &[
    "all-contributors",
    "bors",
    "claude",
    "coderabbitai",
    "codex",
    "copilot",
    "cursor",
    "cursoragent",
    "gemini-cli",
    "gemini-code-assist",
    "greptileai",
    "kodiakhq",
    "mergify",
    "mergifyio",
    "openhands",
    "openhands-agent",
    "renovate",
    "sourcery-ai",
    "sweep-ai",
];

/// Quick actions of GitLab, commands of Prow, and commands that start builds. Other lines with a slash are mostly files and
/// routes. Sorted.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "add_contacts", "add_email", "approve", "assign", "assign_reviewer", "azp", "backport",
    "board_move", "cc", "cherry-pick", "cherrypick", "clone", "close", "confidential",
    "convert_to_ticket", "copy_metadata", "create_merge_request", "deploy", "done", "draft", "due",
    "duplicate", "epic", "estimate", "gcbrun", "hold", "invite_email", "iteration", "label", "lgtm",
    "lock", "merge", "milestone", "move", "noop", "ok-to-test", "override", "promote", "promote_to",
    "promote_to_incident", "publish", "ready", "reassign", "reassign_reviewer", "rebase", "relabel",
    "relate", "reopen", "request_review", "retest", "retitle", "reviewer", "run", "spend",
    "submit_review", "target_branch", "test", "transfer", "transfer-issue", "unapprove", "unassign",
    "unassign_reviewer", "unhold", "unlabel", "unlock",
];

/// Programs that act on a line which begins with their name, as in `atlantis apply`.
const PROGRAMS: [&str; 3] = ["atlantis", "bors", "digger"];

/// Names that stand for everybody who reads a channel or a project.
const GROUPS: [&str; 4] = ["all", "channel", "everyone", "here"];

/// Bytes of a name, or of an owner and a repository, that are read.
const MAX_NAME_BYTES: usize = 140;

/// Hexadecimal digits of a commit.
const COMMIT_DIGITS: std::ops::RangeInclusive<usize> = 7..=40;

/// Calls `found` with each word of a command, with the name of each bot that is mentioned, with each mention of a group
/// (`@here`, `!channel`), and with the owner and the repository of each reference such as `acme/shop#12`.
pub fn each_reference<'t>(text: &'t str, found: &mut dyn FnMut(&'t str)) {
    for line in text.split(['\n', '\r']).filter(|line| is_command(line)) {
        line.split_whitespace().for_each(|word| found(word.strip_prefix('@').unwrap_or(word)));
    }
    each_sign(text, &mut |sign| {
        let Sign { before, mark, name, after } = sign;
        if let Some(repository) = sign.repository() {
            if mark != "@" || !is_used(before, repository) {
                found(repository);
            }
            return;
        }
        let marked = text.get(before.len()..=before.len() + name.len()).unwrap_or_default();
        let is_group = is_one_of(&GROUPS, name);
        let is_glued = before.bytes().next_back().is_some_and(|byte| is_part(byte) || byte == b'.');
        match mark {
            // Slack's `<!channel>` and `<!subteam^S123>`.
            "!" if before.ends_with('<') && (is_group || name == "subteam") => found(marked),
            "@" if is_group && !is_glued => found(marked),
            "@" if is_bot(name, after) && !is_glued => found(name),
            _ => {}
        }
    });
}

/// Calls `found` with the owner and the repository of each reference such as `acme/shop#12`.
pub fn each_repository<'t>(text: &'t str, found: &mut dyn FnMut(&'t str)) {
    each_sign(text, &mut |sign| sign.repository().into_iter().for_each(&mut *found));
}

/// `@`, `#` or `!`, the name that follows it, and what is before the sign and after the name.
struct Sign<'t> {
    before: &'t str,
    mark: &'t str,
    name: &'t str,
    after: &'t str,
}

impl<'t> Sign<'t> {
    fn repository(&self) -> Option<&'t str> {
        is_reference(self.mark, self.name).then(|| repository(self.before)).flatten()
    }
}

fn each_sign<'t>(text: &'t str, found: &mut dyn FnMut(Sign<'t>)) {
    for (at, mark) in text.match_indices(['@', '#', '!']) {
        let (Some(before), Some(rest)) = (text.get(..at), text.get(at + 1..)) else { return };
        let length = rest.bytes().take(MAX_NAME_BYTES).take_while(|byte| is_part(*byte)).count();
        let (name, after) = rest.split_at_checked(length).unwrap_or_default();
        found(Sign { before, mark, name, after });
    }
}

/// Whether a line is `/merge`, `/assign @eve`, `/start@some_bot`, `.deploy main` or `bors r+`. `/users` is a route or a file,
/// and `.label {` is a style.
fn is_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return false };
    match first.strip_prefix('/') {
        Some(word) => match split_once(word, '@') {
            Some((word, bot)) => {
                [word, bot].iter().all(|name| !name.is_empty() && name.bytes().all(is_part))
            }
            None => is_in(COMMANDS, word),
        },
        None => match first.strip_prefix('.') {
            Some(word) => is_in(COMMANDS, word) && !has(line, '{') && !line.ends_with(','),
            None => PROGRAMS.contains(&first) && words.next().is_some(),
        },
    }
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether a name with `after` after it is a bot. `@app_bot.command()` is code.
fn is_bot(name: &str, after: &str) -> bool {
    if name.len() <= 3 {
        return false;
    }
    let is_next = |next: char| next.is_ascii_alphabetic();
    let is_member = || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_next));
    is_in(BOTS, name) || (ends_with_any(name, &["bot"]) && !is_member())
}

/// Whether what follows a repository is the number of an issue (`#12`, `!12`) or a commit (`@9f2c1ab`).
fn is_reference(mark: &str, name: &str) -> bool {
    match mark {
        "@" => {
            COMMIT_DIGITS.contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        _ => name.starts_with(|first: char| first.is_ascii_digit()),
    }
}

/// Whether a repository at the end of a text is an action that a workflow of GitHub uses, as in `uses: actions/checkout@…`.
fn is_used(before: &str, repository: &str) -> bool {
    let before = before.strip_suffix(repository).unwrap_or_default();
    trim_end(before, &[' ', '"', '\'']).ends_with("uses:")
}

/// The owner and the repository at the end of a text. The end of a URL is no repository, nor is the end of a path that
/// begins with `/` or `.`.
fn repository(before: &str) -> Option<&str> {
    let is_path = |byte: &u8| is_part(*byte) || matches!(byte, b'.' | b'/');
    let bytes = before.bytes().rev().take(MAX_NAME_BYTES).take_while(is_path).count();
    let name = before.get(before.len() - bytes..)?;
    let (owner, repository) = split_once(name, '/')?;
    let is_one = !owner.is_empty() && !has(owner, '.') && !repository.is_empty();
    is_one.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(text: &str) -> Vec<&str> {
        let mut all = Vec::new();
        each_reference(text, &mut |reference| all.push(reference));
        all
    }

    #[test]
    fn finds_what_bots_and_forges_act_on() {
        for (text, expected) in [
            ("/merge", vec!["/merge"]),
            ("Looks good.\r\n  /LGTM\n", vec!["/LGTM"]),
            ("/assign @eve", vec!["/assign", "eve"]),
            ("/move mallory/x", vec!["/move", "mallory/x"]),
            ("/start@evil_bot now", vec!["/start@evil_bot", "now"]),
            ("/ok-to-test", vec!["/ok-to-test"]),
            ("/copy_metadata mallory/x#1", vec!["/copy_metadata", "mallory/x#1", "mallory/x"]),
            (".deploy", vec![".deploy"]),
            (".deploy main to production", vec![".deploy", "main", "to", "production"]),
            ("bors r+", vec!["bors", "r+"]),
            ("Thanks!\natlantis apply -d prod", vec!["atlantis", "apply", "-d", "prod"]),
            ("@dependabot merge", vec!["dependabot"]),
            ("Dear (@Claude), please", vec!["Claude"]),
            ("@dependabot[bot] rebase", vec!["dependabot"]),
            ("hi @evil_bot!", vec!["evil_bot"]),
            ("ask @evil_bot. Then", vec!["evil_bot"]),
            ("@claude.merge", vec!["claude"]),
            ("<!channel> now", vec!["!channel"]),
            ("<!here|here> <!subteam^S123>", vec!["!here", "!subteam"]),
            ("@here and @Everyone", vec!["@here", "@Everyone"]),
            ("See mallory/fix#1.", vec!["mallory/fix"]),
            ("(group/sub/app!34)", vec!["group/sub/app"]),
            ("mallory/fix@9f2c1ab", vec!["mallory/fix"]),
            ("who uses mallory/fix@9f2c1ab", vec!["mallory/fix"]),
            ("uses: mallory/fix#1", vec!["mallory/fix"]),
        ] {
            assert_eq!(references(text), expected, "{text}");
        }
    }

    #[test]
    fn finds_nothing_in_ordinary_comments_and_code() {
        for text in [
            "@alice thanks for the report!",
            "Hi @bob, @carol: done.",
            "Closes #12, see #13 and !14",
            "#!/usr/bin/env node",
            "/usr/bin/env python3",
            "/x/y/z is gone",
            "/// A comment",
            "/** @param name what it is\n * @returns nothing */",
            "@property\ndef here(self): ...",
            "@media (min-width: 1px) { a { all: unset } }",
            "@Override public void run() {}",
            "@app.route('/merge')",
            "@bot.command()",
            "@app_bot.command()",
            "/target\n/node_modules\n/dist",
            "Routes:\n/users\n/health",
            "/src @acme/core\n/docs @eve",
            "/@eve",
            "/merge@",
            "import x from '@types/node';",
            "npm i @babel/core@7.12.3",
            "uses: actions/checkout@v4",
            "- uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
            "uses: 'github/codeql-action/init@9f2c1ab'",
            "https://git.example/acme/shop#12",
            "../docs/a.md#12 and /docs/a#12",
            "mail all@x.com, everyone@x.com or robot@x.com",
            "and/or, 1/2, a != b, x!0",
            "the bors and the atlantis",
            "atlantis",
            "path = /merge",
            ".label {\n}\n.merge,\n.draft { color: red }\n.merge()\n.env",
        ] {
            assert_eq!(references(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(BOTS.is_sorted() && COMMANDS.is_sorted());
    }
}
