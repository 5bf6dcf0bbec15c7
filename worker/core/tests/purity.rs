//! The core never reaches the worker, JavaScript, or a clock.

use std::process::Command;

#[test]
fn core_depends_on_nothing_that_could_reach_outside() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", "gateward-core", "--edges", "normal", "--prefix", "none"])
        .args(["--target", "wasm32-unknown-unknown", "--locked"])
        // It seeds hash maps, as the standard library seeds its own.
        .args(["--prune", "ahash"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    for banned in ["worker", "js-sys", "web-sys", "wasm-bindgen", "tokio", "getrandom"] {
        let names = tree.lines().filter_map(|line| line.split(' ').next());
        assert!(!names.clone().any(|name| name == banned), "gateward-core depends on {banned}");
    }
}

#[test]
fn core_names_no_clock() {
    let mut directories = vec![format!("{}/src", env!("CARGO_MANIFEST_DIR")).into()];
    while let Some(directory) = directories.pop() {
        let directory: std::path::PathBuf = directory;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for banned in ["SystemTime", "Instant", "Timestamp::now", "Zoned::now"] {
                assert!(!text.contains(banned), "{} names {banned}", path.display());
            }
        }
    }
}
