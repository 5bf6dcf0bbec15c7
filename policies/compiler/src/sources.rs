//! Policy sources, as files or in memory.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// The sources of a bundle.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The text of `schema.cedarschema`.
    pub schema: String,
    /// The text of `velocity.json`; empty if there is no such file.
    pub velocity: String,
    /// `shield/<name>.json` and `tenants/<tenant>/shield.json`.
    pub shield: Vec<SourceFile>,
    /// `tools/<server>.json`.
    pub tools: Vec<SourceFile>,
    /// `base/<name>.cedar` and `tenants/<tenant>/<name>.cedar`.
    pub policies: Vec<SourceFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFile {
    /// Relative to `policies/`, with `/` between its parts, such as `base/provenance.cedar`.
    pub path: String,
    pub text: String,
}

/// The schema's path.
pub const SCHEMA_PATH: &str = "schema.cedarschema";

/// The path of the windows that policies read.
pub const VELOCITY_PATH: &str = "velocity.json";

/// The name of a tenant's own rules of the shield, in the tenant's directory.
pub const OVERLAY_NAME: &str = "shield.json";

/// Directories next to the sources that contain no sources.
const OTHER_DIRECTORIES: [&str; 3] = ["cases", "compiler", "src"];

/// Why a directory could not be read as policy sources.
#[derive(Debug)]
pub enum ReadError {
    Io {
        path: PathBuf,
        source: io::Error,
    },
    /// A file or directory that the compiler would ignore. A policy in the wrong place must not be
    /// ignored silently.
    Unexpected {
        path: PathBuf,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "cannot read `{}`: {source}", path.display()),
            Self::Unexpected { path } => {
                write!(
                    f,
                    "`{}` is not where policy sources are read: move or delete it",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Unexpected { .. } => None,
        }
    }
}

/// Reads the sources in `dir`. Each list is sorted by path, so the same files always give the same
/// bundle. A missing directory `tools`, `base` or `tenants` counts as empty.
///
/// # Errors
///
/// A file that cannot be read or is not UTF-8, or that the compiler would ignore: anything except
/// `*.json` in `tools` and `shield`, `*.cedar` in `base` and in the directories of `tenants`, and `shield.json` in the
/// latter; another policy, schema or
/// JSON file directly in `dir`; an unknown directory.
pub fn read_sources(dir: &Path) -> Result<Sources, ReadError> {
    let mut sources = Sources { schema: read(&dir.join(SCHEMA_PATH))?, ..Sources::default() };
    for entry in entries(dir)? {
        match entry.name.as_str() {
            "tools" => sources.tools = read_files(&entry, "tools", "json")?,
            "shield" => sources.shield.extend(read_files(&entry, "shield", "json")?),
            "base" => sources.policies.extend(read_files(&entry, "base", "cedar")?),
            "tenants" => {
                for tenant in entries(&entry.path)? {
                    let prefix = format!("tenants/{}", tenant.name);
                    for file in read_all(&tenant, &prefix, &["cedar", "json"])? {
                        if file.path.ends_with(".cedar") {
                            sources.policies.push(file);
                        } else if file.path == format!("{prefix}/{OVERLAY_NAME}") {
                            sources.shield.push(file);
                        } else {
                            return Err(ReadError::Unexpected { path: dir.join(&file.path) });
                        }
                    }
                }
            }
            SCHEMA_PATH => {}
            VELOCITY_PATH => sources.velocity = read(&entry.path)?,
            name if entry.is_dir && OTHER_DIRECTORIES.contains(&name) => {}
            name if entry.is_dir || name.contains(".cedar") || name.ends_with(".json") => {
                return Err(ReadError::Unexpected { path: entry.path });
            }
            _ => {}
        }
    }
    sources.policies.sort();
    Ok(sources)
}

struct Entry {
    path: PathBuf,
    name: String,
    is_dir: bool,
}

/// Sorted by name.
fn entries(dir: &Path) -> Result<Vec<Entry>, ReadError> {
    let io_error = |source| ReadError::Io { path: dir.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(io_error)? {
        let path = entry.map_err(io_error)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(ReadError::Unexpected { path });
        };
        found.push(Entry { name: name.to_owned(), is_dir: path.is_dir(), path });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The files of a directory that may contain only files with the name `*.<extension>`.
fn read_files(dir: &Entry, prefix: &str, extension: &str) -> Result<Vec<SourceFile>, ReadError> {
    read_all(dir, prefix, &[extension])
}

/// The same with several endings.
fn read_all(dir: &Entry, prefix: &str, extensions: &[&str]) -> Result<Vec<SourceFile>, ReadError> {
    if !dir.is_dir {
        return Err(ReadError::Unexpected { path: dir.path.clone() });
    }
    entries(&dir.path)?
        .into_iter()
        .map(|entry| {
            let extension = entry.path.extension().and_then(|found| found.to_str());
            let expected = extension.is_some_and(|found| extensions.contains(&found));
            if entry.is_dir || !expected {
                return Err(ReadError::Unexpected { path: entry.path });
            }
            Ok(SourceFile { path: format!("{prefix}/{}", entry.name), text: read(&entry.path)? })
        })
        .collect()
}

fn read(path: &Path) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })
}
