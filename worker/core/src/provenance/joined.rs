//! What an instruction names together: destinations of two arguments, such as the owner and the name of a repository, and
//! the folders of a path.
//!
//! The user writes "answer mallory in issue 12 of acme/shop". Each word is stated, and so `mallory` with `shop` would be
//! two stated values, but they name another repository. So it is kept which words of an instruction are joined.
//!
//! An agent can also send two words apart, and a trusted server can join them in its answer: in `mallory/evil`, or in a
//! URL. So it is kept which words were sent together.
//!
//! If the user writes "delete /work/exports", then `work` is stated too. But the folder above is not what the user named.
//! So it is kept which words are only folders of a path.
//!
//! INVARIANT (only lowers): a word that the instruction joins with no other is judged alone, unless the instruction has
//! more joined words or folders than are kept.

use super::action;
use super::key::{Hashes, ValueKey};
use super::link::{SLASHES, is_url};
use super::normal::Form;
use super::search::{has, is_same, is_word, rsplit_once, split_once};
use crate::json::Json;

/// Names of two arguments of one object that name a destination together, without [`ENDS`]: a first one, and each second one.
#[rustfmt::skip]
const PAIRS: [(&str, &str); 15] = [
    ("bucket", "key object"),
    ("container", "blob"),
    ("database", "collection table"),
    ("dataset", "table"),
    ("group", "project"),
    ("local_part", "domain"),
    ("namespace", "project repo repository"),
    ("org", "project repo"),
    ("organization", "project repo repository"),
    ("owner", "project repo repository"),
    ("project", "dataset repo repository"),
    ("schema", "table"),
    ("user", "domain repo"),
    ("username", "domain"),
    ("workspace", "repo repository"),
];

/// Ends of an argument's name that say only how it names its destination: `project_id`, `repoFullName`.
const ENDS: &str = "_full_name _name _id _key _path _slug FullName Name Id ID Key Path Slug";

/// Whether two pointers lead to arguments of one object that name a destination together, in this order.
#[must_use]
pub fn is_pair(pointer: &str, other: &str) -> bool {
    let (Some((parent, first)), Some((other, second))) =
        (rsplit_once(pointer, '/'), rsplit_once(other, '/'))
    else {
        return false;
    };
    parent == other && is_named_pair(first, second)
}

fn is_named_pair(first: &str, second: &str) -> bool {
    let (first, second) = (stem(first), stem(second));
    let is_pair = |(a, b): &(&str, &str)| is_same(first, a) && is_word(b, second);
    PAIRS.iter().any(is_pair)
}

/// Whether two arguments can name one path apart: `user` and `path`, or `folder` and `name`. A folder in one argument and
/// its entry in any other do not: the tool can take the folder alone for the whole path.
#[must_use]
pub fn can_be_apart(pointer: &str, other: &str) -> bool {
    const FOLDERS: [&str; 4] = ["dir", "directory", "folder", "path"];
    let words = action::words(pointer);
    let is_folder = words.iter().any(|word| FOLDERS.iter().any(|end| word.ends_with(*end)));
    let name = rsplit_once(other, '/').map_or("", |(_, name)| name);
    let is_entry = matches!(name, "file" | "fileName" | "file_name" | "filename" | "name");
    pointer != other && (is_entry || !is_folder)
}

/// Whether a pair has the name as its first or its second one.
fn is_of_pair(argument: &str) -> bool {
    let stem = stem(argument);
    PAIRS.iter().any(|(first, second)| is_same(stem, first) || is_word(second, stem))
}

fn stem(argument: &str) -> &str {
    let stem = ENDS.split(' ').find_map(|end| argument.strip_suffix(end));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(argument)
}

/// The two words of `acme/shop`, if the argument is one whose name a pair has as the second.
#[must_use]
pub fn words<'t>(pointer: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
    let (_, name) = rsplit_once(pointer, '/')?;
    words_of(name, text)
}

fn words_of<'t>(name: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
    let (first, second) = split_once(text, '/')?;
    let name = stem(name);
    let is_second = PAIRS.iter().any(|(_, second)| is_word(second, name));
    let fits = is_second && !first.is_empty() && !second.is_empty() && !has(second, '/');
    fits.then_some((first, second))
}

/// Hashes of one instruction: those of some 40 URLs.
pub const MAX_JOINED: usize = 1_024;

/// Words before a word that are joined with it: `acme` and `web` of `dev.azure.com/acme/shop/_git/web`.
const MAX_BEFORE: usize = 4;

/// The hashes of the words that an instruction joins, and of the folders of its paths. A currency is no folder: "50
/// EUR/month".
#[must_use]
pub(super) fn stated(key: &ValueKey, instruction: &str, currencies: &[&str]) -> Vec<u64> {
    joins(key, instruction).into_iter().chain(folders(key, instruction, currencies)).collect()
}

/// The hashes of the words that an instruction joins with `/`, `@` or another sign of URLs: one for each second word, and
/// one for each pair of it and a word before it. `group/sub` of `group/sub/app` is such a word too. No value has such a
/// hash, because no normal form contains the byte 0xff. At most [`MAX_JOINED`]. If second words are missing, there is one
/// that says that there are [`more`]. A missing pair can only lower levels.
fn joins(key: &ValueKey, instruction: &str) -> Hashes {
    let mut hashes = Hashes::default();
    let is_edge = |letter: char| !letter.is_alphanumeric();
    let tokens = instruction.split(GAPS).map(|token| token.trim_matches(is_edge));
    let tokens = tokens.map(|token| (token, token.split(SIGNS).filter(|word| !word.is_empty())));
    let tokens: Vec<(&str, Vec<&str>)> = tokens.map(|(it, words)| (it, words.collect())).collect();
    for word in tokens.iter().flat_map(|(_, words)| words.iter().skip(1)) {
        if hashes.len() == MAX_JOINED / 2 {
            hashes.insert(more(key));
            break;
        }
        hashes.extend(second(key, word));
    }
    // Neighbours first, so that those of a long instruction fit.
    for distance in 1..=MAX_BEFORE {
        for (token, words) in &tokens {
            for (first, word) in words.iter().zip(words.iter().skip(distance)) {
                for first in [*first, between(token, first, word)] {
                    if hashes.len() < MAX_JOINED {
                        hashes.extend(pair(key, first, word));
                    }
                }
            }
        }
    }
    hashes
}

/// What separates the words of an instruction.
const GAPS: [char; 11] = [' ', '\t', '\n', '\r', ',', ';', '(', ')', '"', '`', '\''];

/// Folders in the paths of one instruction, and words with which its paths end. An instruction has at most 16 KiB, so
/// ordinary ones have fewer.
pub const MAX_FOLDERS: usize = 1_024;

/// The hashes that say which words of an instruction are folders ([`above`]), and with which words its paths end
/// ([`itself`]). If there are more than [`MAX_FOLDERS`], one hash says that each word can be a folder. A URL has none.
fn folders(key: &ValueKey, instruction: &str, currencies: &[&str]) -> Hashes {
    let is_edge = |letter: char| !letter.is_alphanumeric();
    let (paths, words): (Vec<&str>, Vec<&str>) =
        instruction.split(GAPS).partition(|word| word.contains(SLASHES));
    let words: Hashes = words.iter().filter_map(|word| itself(key, word)).collect();
    let (mut folders, mut ends) = (Hashes::default(), Hashes::default());
    // "a@x.com/b@x.com" lists addresses.
    let are_addresses = |path: &str| {
        path.split(SLASHES)
            .all(|word| split_once(word, '@').is_some_and(|(name, _)| !name.is_empty()))
    };
    let paths = paths.iter().map(|path| path.trim_end_matches(is_edge));
    for path in paths.filter(|it| !is_url(it) && !are_addresses(it)) {
        if ends.len() < MAX_FOLDERS {
            ends.extend(itself(key, path));
        }
        // "Give Anna access to Anna/plan.md" names `Anna`. A user who begins paths with a slash writes `/backups`, and
        // "the backups in /backups/old" does not name it.
        let is_relative = !path.starts_with(['/', '\\', '~']);
        let is_named = |folder: &str| {
            let is_word = || itself(key, folder).is_some_and(|it| words.contains(&it));
            is_relative && (currencies.contains(&folder) || is_word())
        };
        for folder in path.rsplit(SLASHES).skip(1).filter(|folder| !is_named(folder)) {
            let is_full = folders.len() >= MAX_FOLDERS;
            folders.extend(if is_full { Some(key.hash(FOLDER)) } else { above(key, folder) });
        }
    }
    folders.extend(ends);
    folders
}

/// What hashes of [`folders`] begin with. Without a word after it, each word can be a folder.
const FOLDER: &[u8] = b"\xff^";

/// Whether an instruction names only something below a path: after "delete /work/exports", `/work` is above it. The last
/// component counts, because a tool can begin its paths elsewhere.
pub fn is_above(key: &ValueKey, path: &str, is_said: &dyn Fn(Option<u64>) -> bool) -> bool {
    (is_said(above(key, path)) || is_said(Some(key.hash(FOLDER)))) && !is_said(itself(key, path))
}

fn above(key: &ValueKey, path: &str) -> Option<u64> {
    of_last(key, FOLDER, path)
}

/// The hash that says that an instruction or an approver names a path itself.
#[must_use]
pub fn itself(key: &ValueKey, path: &str) -> Option<u64> {
    of_last(key, b"\xff$", path)
}

/// A component such as `.` has no normal form.
fn of_last(key: &ValueKey, kind: &[u8], path: &str) -> Option<u64> {
    let mut form = Form::new();
    path.rsplit(SLASHES).find_map(|part| Some(key.of_kind(kind, form.of(part)?)))
}

/// The hashes of the words that a call names together, and that are not known together: neither the instruction joins
/// them, nor does a trusted result have them as one value, nor is each known and joined with nothing. A later result does
/// not raise them ([`is_sent`]). Also returns whether some are missing.
#[must_use]
pub fn sent(
    key: &ValueKey,
    input: &Json,
    is_said: &dyn Fn(Option<u64>) -> bool,
    is_known: &dyn Fn(&str) -> bool,
) -> (Vec<u64>, bool) {
    let (mut sent, mut form) = (Vec::new(), Form::new());
    let more = is_said(Some(more(key)));
    let all = each_pair(input, &mut |first, word| {
        let (pair, whole) = (pair(key, first, word), [first, "/", word].concat());
        let is_alone = || !more && !is_said(second(key, word));
        if !(is_said(pair) || is_known(&whole) || (is_alone() && is_known(first) && is_known(word)))
        {
            sent.extend(pair);
            sent.extend(form.in_any_case(&whole).map(|form| key.hash(form)));
        }
    });
    (sent, !all)
}

/// Arguments of one object that are compared with each other. Ordinary calls have one or two pairs. Without a bound, a body
/// with thousands of spellings of `owner` and `repo` would take minutes.
const MAX_NAMED: usize = 16;

/// Calls `found` with the words of two arguments that name a destination together, and with those of one argument. Returns
/// whether all were read.
fn each_pair<'v>(input: &'v Json, found: &mut dyn FnMut(&'v str, &'v str)) -> bool {
    let (mut named, mut all) = (Vec::new(), true);
    let fields = match input {
        Json::Array(items) => {
            for item in items {
                all &= each_pair(item, found);
            }
            return all;
        }
        Json::Object(fields) => fields,
        _ => return true,
    };
    for (name, field) in fields {
        match field {
            Json::String(text) if is_of_pair(name) => {
                if named.len() < MAX_NAMED {
                    named.push((name.as_str(), text.as_str()));
                } else {
                    all = false;
                }
            }
            Json::String(_) => {}
            other => all &= each_pair(other, found),
        }
    }
    for &(name, text) in &named {
        if let Some((first, second)) = words_of(name, text) {
            found(first, second);
        }
        for (_, other) in named.iter().filter(|(other, _)| is_named_pair(name, other)) {
            found(text, other);
        }
    }
    all
}

/// Whether two words that are neighbours in a path, a URL or a mail address were [`sent`] together.
pub fn is_sent(key: &ValueKey, text: &str, is_low: &dyn Fn(u64) -> bool) -> bool {
    let path = text.split_once("://").map_or(text, |(_, rest)| rest);
    let mut words = path.split(['?', '#']).next().unwrap_or_default().split(['/', '@']);
    let mut first = words.next().unwrap_or_default();
    words.any(|word| {
        let second = word.strip_suffix(".git").unwrap_or(word);
        pair(key, std::mem::replace(&mut first, word), second).is_some_and(is_low)
    })
}

/// What is between the beginning of a word and the sign before another word of the token.
fn between<'t>(token: &'t str, first: &str, word: &str) -> &'t str {
    let at = |word: &str| word.as_ptr().addr() - token.as_ptr().addr();
    token.get(at(first)..at(word)).unwrap_or_default().trim_end_matches(SIGNS)
}

/// What joins words in one token.
const SIGNS: [char; 7] = ['/', '\\', '@', '#', '?', '&', '='];

/// The hash of two words that are joined.
#[must_use]
pub fn pair(key: &ValueKey, first: &str, second: &str) -> Option<u64> {
    let (mut form, mut other) = (Form::new(), Form::new());
    Some(key.hash(&[b"\xff/", form.of(first)?, b"\xff/", other.of(second)?].concat()))
}

/// The hash of a word that is joined with one before it.
#[must_use]
pub fn second(key: &ValueKey, word: &str) -> Option<u64> {
    Some(key.of_kind(b"\xff/", Form::new().of(word)?))
}

/// The hash that says that an instruction has more second words than fit: each word can be one.
#[must_use]
pub fn more(key: &ValueKey) -> u64 {
    key.hash(b"\xff/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ValueKey = ValueKey::new([7; 16]);

    #[test]
    fn words_that_an_instruction_joins_are_known_as_pairs() {
        for (instruction, joined, alone) in [
            ("Answer mallory in issue 12 of acme/shop.", "acme shop", "mallory"),
            ("Look at (https://forge.example/acme/shop/issues/12)?", "acme shop", "mallory"),
            ("Ask ANNA@X.com, please", "anna x.com", "ask"),
            ("Merge https://dev.azure.com/acme/shop/_git/web", "acme web", "merge"),
            ("Merge https://dev.azure.com/acme/shop/_git/web", "shop web", "merge"),
            ("Tag group/sub/app", "group/sub app", "tag"),
            ("Drop (db/schema/t).", "db t", "drop"),
        ] {
            let stated = joins(&KEY, instruction);
            let (first, last) = joined.split_once(' ').unwrap();
            let has = |hash: Option<u64>| stated.contains(&hash.unwrap());
            assert!(has(pair(&KEY, first, last)) && has(second(&KEY, last)), "{instruction}");
            assert!(!has(pair(&KEY, alone, last)) && !has(second(&KEY, alone)), "{instruction}");
        }
        assert!(stated(&KEY, "Close issue 12 in the repo shop of acme.", &[]).is_empty());
    }

    #[test]
    fn the_pairs_of_a_long_instruction_are_bounded() {
        let list = |count: usize| {
            joins(&KEY, &(0..count).map(|at| format!("a{at}/b{at} ")).collect::<String>())
        };
        let (fits, many) = (list(MAX_JOINED / 2 - 1), list(2_000));
        assert!(fits.len() < MAX_JOINED && !fits.contains(&more(&KEY)));
        assert!(fits.contains(&pair(&KEY, "a500", "b500").unwrap()));
        assert!(many.len() == MAX_JOINED && many.contains(&more(&KEY)));
        let long = joins(&KEY, &(0..2_000).map(|at| format!("a{at}/")).collect::<String>());
        assert_eq!(long.len(), MAX_JOINED);
    }

    #[test]
    fn the_pairs_of_a_call_are_bounded() {
        let named = |count: usize| {
            let field = |at: usize| {
                let name = if at.is_multiple_of(2) { "owner" } else { "repo" };
                (name.to_owned(), Json::String(format!("a{at}")))
            };
            let input = Json::Array(vec![Json::Object((0..count).map(field).collect())]);
            sent(&KEY, &input, &|_| false, &|_| false)
        };
        let (of_two, is_incomplete) = named(2);
        assert!(!of_two.is_empty() && !is_incomplete && !named(MAX_NAMED).1);
        let (of_many, is_incomplete) = named(10_000);
        assert!(of_many.len() <= 2 * MAX_NAMED * MAX_NAMED && is_incomplete);
    }

    #[test]
    fn a_pair_is_two_arguments_of_one_object_or_one_that_has_both() {
        for (first, second, expected) in [
            ("/owner", "/repo", true),
            ("/owner", "/project", true),
            ("/to/bucket", "/to/key", true),
            ("/to/bucket", "/key", false),
            ("/repo", "/owner", false),
            ("/title", "/repo", false),
            ("/owner_name", "/repoName", true),
            ("/groupId", "/project_id", true),
            ("/workspace", "/repo_slug", true),
            ("/project", "/repositoryId", true),
            ("/projectKey", "/repositorySlug", true),
            ("/project_key", "/repo", true),
            ("/Bucket", "/Key", true),
            ("/databaseName", "/collectionName", true),
            ("/container", "/blob", true),
        ] {
            assert_eq!(is_pair(first, second), expected, "{first} {second}");
        }
        for (pointer, text, expected) in [
            ("/repo", "acme/shop", Some(("acme", "shop"))),
            ("/repo", "shop", None),
            ("/repo", "/shop", None),
            ("/repo", "a/b/c", None),
            ("/path", "acme/shop", None),
            ("/project_id", "acme/shop", Some(("acme", "shop"))),
            ("/projectId", "acme/shop", Some(("acme", "shop"))),
            ("/repo_full_name", "acme/shop", Some(("acme", "shop"))),
            ("/repository_name", "acme/shop", Some(("acme", "shop"))),
            ("/_id", "acme/shop", None),
        ] {
            assert_eq!(words(pointer, text), expected, "{pointer} {text}");
        }
    }

    #[test]
    fn a_folder_above_a_path_is_not_named() {
        let is_above = |instruction: &str, path: &str| {
            let stated = folders(&KEY, instruction, &["EUR"]);
            is_above(&KEY, path, &|hash| hash.is_some_and(|hash| stated.contains(&hash)))
        };
        for (instruction, path) in [
            ("Delete the folder /work/exports/ with all of it.", "/work"),
            ("Delete the folder /work/exports/ with all of it.", "work"),
            ("Delete the folder /work/exports/ with all of it.", r"\WORK\.\"),
            ("Delete the folder /work/exports/ with all of it.", "'/work/'"),
            ("Delete /notes/a.md", "notes"),
            ("Delete notes/a.md.", "/notes"),
            ("Delete /home/anna/notes/a.md", "anna/notes"),
            ("Delete the backups in /backups/old", "/backups"),
            ("Delete the backups in /backups/old", "backups"),
            (r"Delete C:\work\exports", r"C:\work"),
            ("删除/work/exports文件夹", "/work"),
        ] {
            assert!(is_above(instruction, path), "{path} after {instruction}");
        }
        for (instruction, path) in [
            ("Delete the folder /work/exports/ with all of it.", "/work/exports"),
            ("Delete the folder /work/exports/ with all of it.", "exports/"),
            ("Delete /work and log it in /work/log.md", "/work"),
            ("Delete /work/* and log it in /work/log.md", "/work/"),
            ("Delete work, and log it in work/log.md", "work"),
            ("Delete https://x.com/work/exports", "work"),
            ("Delete x.com/work/exports", "work"),
            ("Pay 50 EUR/month", "EUR"),
            ("Invite anna@x.com/bob@x.com", "anna@x.com"),
        ] {
            assert!(!is_above(instruction, path), "{path} after {instruction}");
        }
        // If not all folders of a long instruction are kept, each word can be one.
        let long: String = (0..2_000).map(|at| format!(" /a{at}/b{at}")).collect();
        let stated = folders(&KEY, &long, &[]);
        let fits: String = (0..600).map(|at| format!(" /a{at}/b{at}")).collect();
        assert!(is_above(&fits, "/a599") && !is_above(&fits, "x"));
        assert!(stated.len() <= 2 * MAX_FOLDERS + 1);
        assert!(is_above(&long, "/a1999") && is_above(&long, "x") && !is_above(&long, "/a0/b0"));
    }
}
