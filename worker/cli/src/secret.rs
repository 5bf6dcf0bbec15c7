//! Secrets: read from the environment or a file, never from an argument; written once.

use std::env::{self, VarError};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use gateward_core::warrant::key::KEY_BYTES;
use gateward_core::warrant::mint::Secret;

use crate::failure::Failure;

/// A token has about 200 bytes, and a bootstrap secret has at most that. A larger file is the wrong
/// file.
const SECRET_BYTES_MAX: u64 = 4096;

/// The token: `--token-file`, else `GATEWARD_TOKEN`, else the file that `GATEWARD_TOKEN_FILE` names.
pub fn token(file: Option<&Path>) -> Result<String, Failure> {
    configured(file, "GATEWARD_TOKEN", "GATEWARD_TOKEN_FILE")?.ok_or_else(|| {
        Failure::other("no token: set GATEWARD_TOKEN or GATEWARD_TOKEN_FILE, or give --token-file")
    })
}

/// The signing key, if one is configured: `--signing-key-file`, else `GATEWARD_SIGNING_KEY`, else the
/// file that `GATEWARD_SIGNING_KEY_FILE` names.
pub fn signing_key(file: Option<&Path>) -> Result<Option<String>, Failure> {
    configured(file, "GATEWARD_SIGNING_KEY", "GATEWARD_SIGNING_KEY_FILE")
}

fn configured(
    file: Option<&Path>,
    name: &str,
    name_of_file: &str,
) -> Result<Option<String>, Failure> {
    if let Some(file) = file {
        return read(file).map(Some);
    }
    if let Some(secret) = variable(name)? {
        return plain(&secret, name).map(Some);
    }
    variable(name_of_file)?.map(|file| read(Path::new(&file))).transpose()
}

/// The bootstrap secret: `--secret-file`, else `GATEWARD_BOOTSTRAP_SECRET`.
pub fn bootstrap_secret(file: Option<&Path>) -> Result<String, Failure> {
    if let Some(file) = file {
        return read(file);
    }
    match variable("GATEWARD_BOOTSTRAP_SECRET")? {
        Some(secret) => plain(&secret, "GATEWARD_BOOTSTRAP_SECRET"),
        None => Err(Failure::other(
            "no bootstrap secret: set GATEWARD_BOOTSTRAP_SECRET or give --secret-file",
        )),
    }
}

/// An empty variable counts as not set.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Failure::Other(format!("{name} is not valid UTF-8"))),
    }
}

/// The Ed25519 secret key of a file: 64 hex digits.
pub fn warrant_key(file: &Path) -> Result<Secret, Failure> {
    let mut bytes = [0; KEY_BYTES];
    hex::decode_to_slice(read(file)?, &mut bytes).map_err(|_| {
        let name = file.display();
        Failure::Other(format!("{name} does not contain a secret key: 64 hex digits"))
    })?;
    Ok(Secret::new(bytes))
}

fn read(file: &Path) -> Result<String, Failure> {
    let name = file.display().to_string();
    let failed = |error| Failure::Other(format!("{name}: {error}"));
    let mut text = String::new();
    let opened = File::open(file).map_err(failed)?;
    opened.take(SECRET_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    plain(&text, &name)
}

/// Checks that the secret can be sent in a header.
fn plain(text: &str, source: &str) -> Result<String, Failure> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::Other(format!("{source} does not contain a token or a secret")));
    }
    Ok(text.to_owned())
}

/// A file for a secret. It is created before the secret is requested, so that no secret is lost
/// because it cannot be written. If it stays unwritten, it is removed.
pub struct SecretFile {
    path: PathBuf,
    file: Option<File>,
}

impl SecretFile {
    pub fn create(path: PathBuf) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        options.mode(0o600);
        let file = options
            .open(&path)
            .map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
        Ok(Self { path, file: Some(file) })
    }

    pub fn write(mut self, secret: &str) -> Result<(), Failure> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        writeln!(file, "{secret}")
            .and_then(|()| file.sync_all())
            .map_err(|error| Failure::Other(format!("{}: {error}", self.path.display())))
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // The command has already failed and says why. An empty file does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        env::temp_dir().join(format!("gateward-{name}-{}", std::process::id()))
    }

    #[test]
    #[cfg(unix)]
    fn a_secret_is_readable_by_its_owner_alone_and_overwrites_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = path("written");
        SecretFile::create(path.clone()).unwrap().write("gwa_x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), "gwa_x");
        assert!(SecretFile::create(path.clone()).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "gwa_x\n");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_got_no_secret_is_removed() {
        let path = path("unwritten");
        drop(SecretFile::create(path.clone()).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_no_secret() {
        for (text, expected) in
            [(" gwa_x\n", Some("gwa_x")), ("", None), (" \n", None), ("a\nb", None), ("ä", None)]
        {
            assert_eq!(plain(text, "file").ok().as_deref(), expected, "{text:?}");
        }
    }
}
