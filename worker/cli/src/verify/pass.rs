//! One pass over the lines of an export.

use std::io::{self, BufRead};

use super::fault::Fault;
use super::identity::Trust;
use super::read::{self, Read};
use super::report::Report;
use super::signatures::{self, Checks};
use super::verifier::Verifier;

/// Verifies an export in one pass.
///
/// # Errors
///
/// The export cannot be read. What is wrong with it is in the report.
pub fn verify(mut export: impl BufRead, trust: &Trust) -> io::Result<Report> {
    let mut verifier = Verifier::new(trust);
    let (fault, signature) =
        signatures::check(|checks| take_all(&mut export, &mut verifier, checks))?;
    let first = match signature {
        // Its line was taken without a fault. How many lines were taken after it depends on the threads.
        Some(signature) => {
            verifier.forget_after(signature.line);
            Some(signature)
        }
        None => fault?,
    };
    Ok(match first {
        Some(fault) => verifier.fail(fault),
        None => verifier.finish(),
    })
}

/// Takes lines to the end, or to the first fault that is not in a signature.
fn take_all(
    export: &mut impl BufRead,
    verifier: &mut Verifier<'_>,
    checks: &Checks<'_>,
) -> io::Result<Option<Fault>> {
    let mut line = Vec::new();
    // Later lines make no difference once a signature does not hold.
    while !checks.found() {
        let taken = match read::line(export, &mut line)? {
            Read::Line => verifier.take(&line),
            Read::TooLong => Err(verifier.too_long()),
            Read::End => return Ok(verifier.cut()),
        };
        match taken {
            Ok(check) => check.into_iter().for_each(|check| checks.send(check)),
            Err(fault) => return Ok(Some(fault)),
        }
    }
    Ok(None)
}
