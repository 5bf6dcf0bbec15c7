use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use ureq::http::Uri;

use crate::failure::Failure;
use crate::plan::{Plan, SignedRequest};

/// The largest body that the worker accepts.
const BODY_BYTES_MAX: u64 = 256 * 1024;

/// Print the headers of a signed request, with the token, for curl
///
/// The signature is valid for one request that is sent within 5 minutes. It covers method, path,
/// query, body, and every header that is given here. These headers are printed too.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  export GATEWARD_TOKEN_FILE=coder.token GATEWARD_SIGNING_KEY_FILE=coder.key
  gateward sign POST \"$GATEWARD_URL/v1/authorize\" --body call.json \\
      -H 'Content-Type: application/json' |
    curl -H @- --data-binary @call.json \"$GATEWARD_URL/v1/authorize\"")]
pub struct Sign {
    /// The request's method, in upper case
    method: String,
    /// The request's URL, or its path and query
    #[arg(value_name = "URL")]
    target: Uri,
    /// The file with the request's body; `-` is standard input
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// A header of the request, as `Name: value`. Repeat it for more
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = header)]
    headers: Vec<(String, String)>,
}

impl Sign {
    pub fn plan(self) -> Result<Plan, Failure> {
        let mut names: Vec<_> =
            self.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() < self.headers.len() {
            return Err(Failure::Usage("give each header once".to_owned()));
        }
        let body = self.body.as_deref().map(read).transpose()?;
        Ok(Plan::Sign(SignedRequest {
            method: self.method,
            path: self.target.path().to_owned(),
            query: self.target.query().unwrap_or_default().to_owned(),
            headers: self.headers,
            body: body.unwrap_or_default(),
        }))
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header must be written `Name: value`")?;
    let (name, value) = (name.trim(), value.trim());
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err("not the name of a header".to_owned());
    }
    if value.is_empty() || !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("the value must be ASCII text that is not empty".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let name = file.display().to_string();
    let failed = |error: io::Error| Failure::Other(format!("{name}: {error}"));
    let mut body = Vec::new();
    let input: Box<dyn io::Read> = match file == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(file).map_err(failed)?),
    };
    input.take(BODY_BYTES_MAX + 1).read_to_end(&mut body).map_err(failed)?;
    if body.len() as u64 > BODY_BYTES_MAX {
        return Err(Failure::Other(format!("{name}: larger than {BODY_BYTES_MAX} bytes")));
    }
    Ok(body)
}
