//! Prints what the shield finds in the project's own corpora and in public ones: recall and false positives.
//!
//! `shield-report [--misses <corpus>] [<folder>]`: the folder is what `scripts/shield-corpora.ts` fetched.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use gateward_core::json::{self, Json};
use gateward_core::provenance::ValueKey;
use gateward_core::shield::detect::secret;
use gateward_core::shield::{Category, Findings, Severity, Shield};
use gateward_policy_compiler::{compile, read_sources};

/// Examples of a corpus that are shown with `--misses`.
const SHOWN: usize = 60;

/// Bytes after the prefix of a token with a checksum.
const CHECKED_BYTES: usize = 36;

/// Digests are not shown.
const KEY: ValueKey = ValueKey::new([0; 16]);

/// Severities from here on are those that `block` acts on.
const BLOCKS: Severity = Severity::High;

#[derive(Default)]
struct Count {
    examples: usize,
    found: usize,
    blocked: usize,
    shown: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (mut misses, mut folder) = (None, None);
    while let Some(argument) = arguments.next() {
        if argument == "--misses" {
            misses = arguments.next();
        } else {
            folder = Some(PathBuf::from(argument));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let compiled = compile(&read_sources(&root.join("policies"))?);
    let compiled = compiled.map_err(|mistakes| {
        mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    })?;
    let shield = Shield::new(compiled.leak().shield);
    println!("tables: {} KB", shield.table_bytes() / 1_000);
    own(&shield, &root.join("tests/shield"), misses.as_deref())?;
    if let Some(folder) = folder {
        let pins = serde_json::from_slice(&fs::read(root.join("tests/shield/public.json"))?)?;
        for part in ["tune", "report"] {
            let texts = folder.join("extracted").join(part);
            public(&shield, &texts, part, &pins, misses.as_deref())?;
        }
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn lines(path: &Path) -> Result<Vec<Json>, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let parsed = text.lines().map(serde_json::from_str::<serde_json::Value>);
    let mut values = Vec::new();
    for value in parsed {
        // A corpus may hold what a body must not, such as a lone surrogate.
        if let Ok(value) = value
            && let Ok(value) = json::parse(value.to_string().as_bytes())
        {
            values.push(value);
        }
    }
    Ok(values)
}

impl Count {
    fn add(&mut self, findings: &Findings, categories: &[String], is_attack: bool, example: &Json) {
        let of = |least: Severity| {
            findings.list.iter().any(|finding| {
                finding.severity >= least
                    && (is_attack == categories.iter().any(|it| it == finding.category.as_str()))
            })
        };
        let (found, blocked) = (of(Severity::Low), of(BLOCKS));
        self.examples += 1;
        self.found += usize::from(found);
        self.blocked += usize::from(blocked);
        if blocked != is_attack {
            let rules: Vec<String> = findings
                .list
                .iter()
                .map(|it| format!("{}@{}", it.rule, it.severity.as_str()))
                .collect();
            let mut text = String::new();
            example.write_canonical(&mut text);
            let text: String = text.chars().take(400).collect();
            self.shown.push(format!("{} {text}", rules.join(",")));
        }
    }

    fn print(&self, name: &str, misses: Option<&str>) {
        let share = |count: usize| 100.0 * count as f64 / self.examples.max(1) as f64;
        println!(
            "{name:58} {:6} {:6.1} % {:6.1} %",
            self.examples,
            share(self.found),
            share(self.blocked)
        );
        if misses.is_some_and(|of| name.contains(of)) {
            let step = self.shown.len().div_ceil(SHOWN).max(1);
            self.shown.iter().step_by(step).for_each(|text| println!("    {text}"));
        }
    }
}

fn own(shield: &Shield, folder: &Path, misses: Option<&str>) -> Result<(), Box<dyn Error>> {
    println!("\n{:58} {:>6} {:>8} {:>8}", "own corpora", "", "found", "high");
    for part in ["attacks", "ordinary"] {
        for path in files(&folder.join(part))? {
            let mut count = Count::default();
            for line in lines(&path)? {
                let finds = line.get("finds").and_then(as_texts).unwrap_or_default();
                let arguments = match (line.get("arguments"), line.get("text")) {
                    (Some(arguments), _) => arguments.clone(),
                    (None, Some(Json::String(text))) => {
                        let bytes = match line.get("prefix_bytes") {
                            Some(Json::Integer(bytes)) => usize::try_from(*bytes)?,
                            _ => 0,
                        };
                        let prefix =
                            "Ordinary text of a ticket, line after line. ".repeat(bytes / 44 + 1);
                        Json::String(prefix + text)
                    }
                    _ => continue,
                };
                count.add(
                    &shield.inspect("", &KEY, ("", &arguments, &Json::Null), None),
                    &finds,
                    part == "attacks",
                    &arguments,
                );
            }
            count.print(&format!("own/{part}/{}", stem(&path)), misses);
        }
    }
    Ok(())
}

fn as_texts(value: &Json) -> Option<Vec<String>> {
    let Json::Array(items) = value else { return None };
    Some(items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
}

fn public(
    shield: &Shield,
    folder: &Path,
    part: &str,
    pins: &serde_json::Value,
    misses: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    println!("\n{:58} {:>6} {:>8} {:>8}", format!("public corpora to {part}"), "", "found", "high");
    let mut sums: BTreeMap<String, Count> = BTreeMap::new();
    let mut kinds: BTreeMap<String, Count> = BTreeMap::new();
    let (mut with_separator, mut with_checksum) = (Count::default(), Count::default());
    for path in files(folder)? {
        let category = stem(&path);
        let is_attack = Category::ALL.iter().any(|known| known.as_str() == category);
        for path in files(&path)? {
            let mut count = Count::default();
            let contains = contains(pins, &stem(&path));
            for line in lines(&path)? {
                let Some(text) = line.get("text") else { continue };
                let categories = if is_attack { vec![category.clone()] } else { contains.clone() };
                let findings = shield.inspect("", &KEY, ("", text, &Json::Null), None);
                count.add(&findings, &categories, is_attack, text);
                if let Some(kind) = line.get("kind").and_then(Json::as_str) {
                    let of_kind = kinds.entry(format!("{category}, {kind}")).or_default();
                    of_kind.add(&findings, &categories, is_attack, text);
                    // A bare command injects nothing: it has nothing that ends a value before it.
                    if category == "command_injection" && kind != "bare" {
                        with_separator.add(&findings, &categories, is_attack, text);
                    }
                }
                if category == "secret" && text.as_str().is_some_and(has_checksum) {
                    with_checksum.add(&findings, &categories, is_attack, text);
                }
            }
            count.print(&format!("{part}/{category}/{}", stem(&path)), misses);
            let sum = sums.entry(category.clone()).or_default();
            sum.examples += count.examples;
            sum.found += count.found;
            sum.blocked += count.blocked;
        }
    }
    println!();
    sums.iter().for_each(|(category, sum)| sum.print(&format!("{part}: {category}"), None));
    kinds.iter().for_each(|(kind, sum)| sum.print(&format!("{part}: {kind}"), None));
    with_separator.print(&format!("{part}: command_injection with a separator"), misses);
    with_checksum.print(&format!("{part}: secret with a checksum"), misses);
    Ok(())
}

/// Whether a text has a token of GitHub or npm whose checksum is right, wherever it stands.
fn has_checksum(text: &str) -> bool {
    ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_"].iter().any(|prefix| {
        text.match_indices(prefix).any(|(at, _)| {
            let token = text.as_bytes().get(at + prefix.len()..).unwrap_or_default();
            token.get(..CHECKED_BYTES).is_some_and(secret::has_checksum)
        })
    })
}

/// The categories that an ordinary corpus rightly shows.
fn contains(pins: &serde_json::Value, name: &str) -> Vec<String> {
    let pins = pins.as_array().into_iter().flatten();
    let of = pins.filter(|pin| pin["name"] == name).flat_map(|pin| pin["contains"].as_array());
    of.flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}
