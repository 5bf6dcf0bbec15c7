//! Files do not import each other in a circle, and neither do top-level folders.
//!
//! A file imports another when it names a path that leads into it: in a `use`, in code, or in the
//! arguments of a macro. A `mod` declaration is not an import; a re-export (`pub use`) is. Modules under
//! `#[cfg(test)]` are left out.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree};

/// The sources to check, from the root of the repository.
const CRATES: &[&str] = &[
    "worker/core/src",
    "worker/admin/src",
    "worker/edge/src",
    "worker/cli/src",
    "policies/compiler/src",
    "bench/core/src",
];

/// Crates whose top-level folders must not import each other in a circle either.
const LAYERED_CRATES: &[&str] = &["worker/core/src", "worker/admin/src", "worker/edge/src"];

/// A module's path, from the root of its crate; empty for the root itself.
type Module = Vec<String>;

/// The files of a crate: path of the file, and its text.
type Sources = BTreeMap<String, String>;

#[test]
fn no_crate_has_an_import_cycle() {
    let found =
        CRATES.iter().map(|root| in_crate(root, imports(&sources(root)))).collect::<String>();
    assert!(found.is_empty(), "files import each other:\n{found}");
}

#[test]
fn no_crate_has_a_cycle_of_folders() {
    let found = LAYERED_CRATES.iter().map(|root| {
        let by_folder = imports(&sources(root)).into_iter().filter_map(|import| {
            let import =
                Import { from: folder(&import.from), to: folder(&import.to), path: import.path };
            (import.from != import.to).then_some(import)
        });
        in_crate(root, by_folder.collect())
    });
    let found: String = found.collect();
    assert!(found.is_empty(), "folders import each other:\n{found}");
}

/// What `all.rs` does not name is not compiled.
#[test]
fn the_program_of_a_crates_tests_has_each_file() {
    for root in ["worker/core/tests", "worker/admin/tests"] {
        let sources = sources(root);
        let files = sources.keys().filter_map(|file| file.strip_suffix(".rs"));
        let missing = files
            .filter(|file| !file.contains('/') && *file != "all")
            .find(|file| !sources["all.rs"].contains(&format!("\nmod {file};\n")));
        assert_eq!(missing, None, "a file of {root} that its all.rs does not name");
    }
}

/// The cycles of a crate, below its name; empty if there are none.
fn in_crate(root: &str, imports: BTreeSet<Import>) -> String {
    let cycles = cycles(&imports);
    if cycles.is_empty() { cycles } else { format!("{root}: {cycles}") }
}

/// The top-level folder of a file, or the file itself if it is in none.
fn folder(file: &str) -> String {
    file.split('/').next().unwrap_or(file).to_owned()
}

fn sources(root: &str) -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(root);
    let mut sources = Sources::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                sources.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    assert!(!sources.is_empty(), "{} has no sources", root.display());
    sources
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    from: String,
    to: String,
    /// As it is resolved, from the root of the crate.
    path: String,
}

/// All imports between files of a crate.
fn imports(sources: &Sources) -> BTreeSet<Import> {
    let mut files = BTreeMap::new();
    let mut tests = BTreeSet::new();
    for (file, text) in sources {
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let module = module(file);
        for item in &parsed.items {
            if let Item::Mod(ItemMod { attrs, ident, .. }) = item
                && is_test(attrs)
            {
                tests.insert([module.as_slice(), &[ident.to_string()]].concat());
            }
        }
        files.insert(module, (file, parsed));
    }
    files.retain(|module, _| !tests.contains(module));
    let modules = files.keys().cloned().collect();
    let mut imports = BTreeSet::new();
    for (module, (file, parsed)) in &files {
        let mut paths = Paths::new(module, &modules);
        // Names first: a path in code may begin with a name that a later `use` imports.
        paths.only_names = true;
        paths.visit_file(parsed);
        paths.only_names = false;
        paths.visit_file(parsed);
        for path in paths.found {
            let target =
                (0..=path.len()).rev().find_map(|length| files.get_key_value(&path[..length]));
            // A longer path that leads to no file begins at an item of the root.
            let Some((to, (target, _))) = target else { continue };
            if to != module {
                let path = path.join("::");
                imports.insert(Import { from: (*file).clone(), to: (*target).clone(), path });
            }
        }
    }
    imports
}

/// The module of a file.
fn module(file: &str) -> Module {
    let mut module: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// Collects the paths into the crate that one file names.
struct Paths<'a> {
    /// The module that is visited: the file's, or one inside it.
    module: Module,
    modules: &'a BTreeSet<Module>,
    /// What each imported name means.
    names: BTreeMap<String, Module>,
    only_names: bool,
    found: BTreeSet<Module>,
}

impl<'a> Paths<'a> {
    fn new(module: &Module, modules: &'a BTreeSet<Module>) -> Self {
        Self {
            module: module.clone(),
            modules,
            names: BTreeMap::new(),
            only_names: false,
            found: BTreeSet::new(),
        }
    }

    /// The path from the crate's root; `None` if it leads out of the crate.
    fn resolve(&self, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" => self.module.split_last()?.1.to_vec(),
            name => {
                let child = [self.module.as_slice(), &[name.to_owned()]].concat();
                if self.modules.contains(&child) { child } else { self.names.get(name)?.clone() }
            }
        };
        for segment in rest {
            match segment.as_str() {
                "super" => drop(base.pop()),
                "self" => {}
                name => base.push(name.to_owned()),
            }
        }
        Some(base)
    }

    fn import(&mut self, prefix: &[String], tree: &UseTree) {
        let (path, name) = match tree {
            UseTree::Path(tree) => {
                let prefix = [prefix, &[tree.ident.to_string()]].concat();
                return self.import(&prefix, &tree.tree);
            }
            UseTree::Group(tree) => {
                return tree.items.iter().for_each(|tree| self.import(prefix, tree));
            }
            UseTree::Glob(_) => (prefix.to_vec(), None),
            UseTree::Name(tree) if tree.ident == "self" => {
                (prefix.to_vec(), prefix.last().cloned())
            }
            UseTree::Name(tree) => {
                let name = tree.ident.to_string();
                ([prefix, std::slice::from_ref(&name)].concat(), Some(name))
            }
            UseTree::Rename(tree) => {
                let own = tree.ident != "self";
                let last = own.then(|| tree.ident.to_string());
                (prefix.iter().cloned().chain(last).collect(), Some(tree.rename.to_string()))
            }
        };
        let Some(path) = self.resolve(&path) else { return };
        if let Some(name) = name {
            self.names.insert(name, path.clone());
        }
        self.find(path);
    }

    fn find(&mut self, path: Module) {
        if !self.only_names {
            self.found.insert(path);
        }
    }
}

impl Visit<'_> for Paths<'_> {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        if !is_test(&item.attrs) && item.content.is_some() {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        if !is_test(&item.attrs) {
            self.import(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // A single segment is a local name, or one whose import is counted already.
        if segments.len() > 1
            && let Some(path) = self.resolve(&segments)
        {
            self.find(path);
        }
        visit::visit_path(self, path);
    }

    /// The arguments of a macro are any tokens, so their text is searched.
    fn visit_macro(&mut self, item: &Macro) {
        let text = item.tokens.to_string().replace(" :: ", "::").replace(":: ", "::");
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        for word in text.split(|c| !is_path(c)).filter(|word| word.contains("::")) {
            let segments: Vec<String> =
                word.split("::").filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
            if let Some(path) = self.resolve(&segments) {
                self.find(path);
            }
        }
        visit::visit_macro(self, item);
    }
}

/// The imports that are part of a cycle, one per line; empty if there are none.
fn cycles(imports: &BTreeSet<Import>) -> String {
    let mut graph = DiGraph::<&str, ()>::new();
    let mut nodes = BTreeMap::new();
    for import in imports {
        let [from, to] = [&import.from, &import.to]
            .map(|file| *nodes.entry(file.as_str()).or_insert_with(|| graph.add_node(file)));
        graph.update_edge(from, to, ());
    }
    let mut lines = String::new();
    for cycle in tarjan_scc(&graph).iter().filter(|cycle| cycle.len() > 1) {
        let files: BTreeSet<&str> = cycle.iter().map(|node| graph[*node]).collect();
        lines.push_str(&format!("a cycle of {}:\n", files.len()));
        let mut last = None;
        for Import { from, to, path } in imports {
            // The first path is enough to find the import.
            if files.contains(from.as_str())
                && files.contains(to.as_str())
                && last.replace((from, to)) != Some((from, to))
            {
                lines.push_str(&format!("  {from} → {to} ({path})\n"));
            }
        }
    }
    lines
}

/// What a case shows, the files of a crate, and the cycles that are found in them.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn a_cycle_is_found_however_a_file_names_another() {
    let cases: &[Case] = &[
        ("a tree", &[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")], ""),
        (
            "a use on both sides",
            &[("a.rs", "use crate::{b::B, c::C};"), ("b.rs", "use super::a;"), ("c.rs", "")],
            "a cycle of 2:\n  a.rs → b.rs (b::B)\n  b.rs → a.rs (a)\n",
        ),
        (
            "a path in code, and one in a macro",
            &[
                ("a.rs", "fn f() { crate::b::f() }"),
                ("b.rs", "fn f() { format!(\"{}\", crate::a::f()) }"),
            ],
            "a cycle of 2:\n  a.rs → b.rs (b::f)\n  b.rs → a.rs (a::f)\n",
        ),
        (
            "a path that begins with an imported folder",
            &[
                ("a.rs", "use crate::d as folder; fn f() { folder::b::f() }"),
                ("d/mod.rs", "mod b;"),
                ("d/b.rs", "use crate::a;"),
            ],
            "a cycle of 2:\n  a.rs → d/b.rs (d::b::f)\n  d/b.rs → a.rs (a)\n",
        ),
        (
            "a re-export, taken by the file that it comes from",
            &[("d/mod.rs", "mod b; pub use b::B; struct D;"), ("d/b.rs", "use super::D;")],
            "a cycle of 2:\n  d/b.rs → d/mod.rs (d::D)\n  d/mod.rs → d/b.rs (d::b::B)\n",
        ),
        (
            "three files",
            &[("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")],
            "a cycle of 3:\n  a.rs → b.rs (b)\n  b.rs → c.rs (c)\n  c.rs → a.rs (a)\n",
        ),
        (
            "a module inside a file",
            &[("a.rs", "mod inner { use super::super::b; }"), ("b.rs", "use crate::a::inner;")],
            "a cycle of 2:\n  a.rs → b.rs (b)\n  b.rs → a.rs (a::inner)\n",
        ),
        (
            "tests are left out",
            &[
                ("a.rs", "#[cfg(test)] mod tests { use crate::b; }"),
                ("b.rs", "use crate::a; #[cfg(test)] mod tests;"),
                ("b/tests.rs", "use crate::b;"),
            ],
            "",
        ),
        (
            "names of other crates",
            &[("a.rs", "use b::B; fn f() { b::f() }"), ("b.rs", "use crate::a;")],
            "",
        ),
    ];
    for (what, files, expected) in cases {
        let sources: Sources =
            files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        assert_eq!(cycles(&imports(&sources)), *expected, "{what}");
    }
}
