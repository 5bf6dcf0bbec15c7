//! The core and the administration never reach the worker, JavaScript, or a clock.

use std::path::Path;
use std::process::Command;

#[test]
fn they_depend_on_nothing_that_could_reach_outside() {
    let tree = Command::new(env!("CARGO"))
        // It depends on the core.
        .args(["tree", "--package", "gateward-admin", "--edges", "normal", "--prefix", "none"])
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
        assert!(!names.clone().any(|name| name == banned), "gateward-admin depends on {banned}");
    }
}

#[test]
fn they_name_no_clock() {
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut directories = vec![worker.join("core/src"), worker.join("admin/src")];
    while let Some(directory) = directories.pop() {
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
