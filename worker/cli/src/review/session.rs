//! The questions of a review on a terminal, about one tool at a time.
//!
//! INVARIANT (all of it was shown): a tool can be approved only after its last line was shown. So a
//! server cannot push a part of its definition off the screen.

use std::io::{self, BufRead, Read as _, Write};

use gateward_core::policy::bundle::Risk;
use serde_json::Value;

use super::definition::{Change, shown};
use super::registration::{self, Registration};

/// Lines that are shown before the next question. A definition of 128 KiB can have thousands of
/// lines.
const PAGE_LINES: usize = 60;

/// Characters of a line. A longer line continues in the next one, so that a page keeps its height.
const LINE_CHARACTERS: usize = 160;

/// The beginning of a line that continues the one before.
const CONTINUED: &str = "… ";

/// Bytes of an answer that are kept. The longest valid answer is a risk.
const ANSWER_BYTES_MAX: usize = 16;

/// A person's decision on a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    Approve(Registration),
    Skip,
    /// Skip this tool and all further ones.
    Quit,
}

/// Shows the tool and asks. At the end of the input, it quits.
pub fn ask(
    tool: &Value,
    proposed: Registration,
    title: &str,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<Answer> {
    let text = format!("{title}\n{}", shown(tool));
    let lines: Vec<String> = text.lines().flat_map(wrapped).collect();
    let mut pages = lines.chunks(PAGE_LINES).peekable();
    while let Some(page) = pages.next() {
        for line in page {
            writeln!(output, "{line}")?;
        }
        if pages.peek().is_some() {
            match answer(input, output, "There is more. Enter to continue, [s]kip, [q]uit?")?
                .as_deref()
            {
                None | Some("q" | "quit") => return Ok(Answer::Quit),
                Some("s" | "skip") => return Ok(Answer::Skip),
                Some(_) => {}
            }
        }
    }
    if Change::of(tool) == Change::Unusable {
        writeln!(output, "It cannot be approved.\n")?;
        return Ok(Answer::Skip);
    }
    if registration::says_that_it_writes(tool) {
        writeln!(output, "Its server says that it writes.")?;
    }
    let mut said = proposed;
    loop {
        let question =
            format!("{}. [a]pprove, as a [r]ead, [e]dit, [s]kip, [q]uit?", described(said));
        match answer(input, output, &question)?.as_deref() {
            None | Some("q" | "quit") => return Ok(Answer::Quit),
            Some("s" | "skip") => return Ok(Answer::Skip),
            Some("a" | "approve") => return Ok(Answer::Approve(said)),
            Some("r" | "read") => return Ok(Answer::Approve(said.as_read())),
            Some("e" | "edit") => match edit(said, input, output)? {
                Some(edited) => said = edited,
                None => return Ok(Answer::Quit),
            },
            Some(_) => {}
        }
    }
}

/// What the tool is for policies, in words for people.
fn described(said: Registration) -> String {
    let kind = match said {
        Registration { mutates: true, egress: true, .. } => {
            "changes something and is egress (a write)"
        }
        Registration { mutates: true, .. } => "changes something (a write)",
        Registration { egress: true, .. } => "changes nothing, but is egress (a write)",
        _ => "a read",
    };
    format!("To be registered as: {kind}, risk {}", said.risk.as_str())
}

/// `None` at the end of the input.
fn edit(
    said: Registration,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<Option<Registration>> {
    let yes_no = |value| if value { "yes" } else { "no" };
    let flag = |text: &str| match text {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    };
    let risk = Risk::parse;
    let question = format!("Does it change something (yes or no)? [{}]", yes_no(said.mutates));
    let Some(mutates) = choice(input, output, &question, said.mutates, flag)? else {
        return Ok(None);
    };
    let question = format!(
        "Does it send text out, or fetch an address from its arguments (yes or no)? [{}]",
        yes_no(said.egress)
    );
    let Some(egress) = choice(input, output, &question, said.egress, flag)? else {
        return Ok(None);
    };
    let question = format!("Risk (low, medium, high or critical)? [{}]", said.risk.as_str());
    let Some(risk) = choice(input, output, &question, said.risk, risk)? else {
        return Ok(None);
    };
    Ok(Some(Registration { mutates, egress, risk }))
}

/// Asks until `read` understands the answer. An empty answer means `default`.
fn choice<T: Copy>(
    input: &mut impl BufRead,
    output: &mut impl Write,
    question: &str,
    default: T,
    read: impl Fn(&str) -> Option<T>,
) -> io::Result<Option<T>> {
    loop {
        match answer(input, output, question)?.as_deref() {
            None => return Ok(None),
            Some("") => return Ok(Some(default)),
            Some(text) => {
                if let Some(value) = read(text) {
                    return Ok(Some(value));
                }
            }
        }
    }
}

/// One line in lower case. `None` at the end of the input. The rest of a longer line is dropped, so
/// that it does not answer the next question.
fn answer(
    input: &mut impl BufRead,
    output: &mut impl Write,
    question: &str,
) -> io::Result<Option<String>> {
    write!(output, "{question} ")?;
    output.flush()?;
    let mut line = Vec::new();
    loop {
        let mut part = Vec::new();
        let read = input.by_ref().take(ANSWER_BYTES_MAX as u64).read_until(b'\n', &mut part)?;
        if line.len() < ANSWER_BYTES_MAX {
            line.extend_from_slice(&part);
        }
        if read == 0 && line.is_empty() {
            writeln!(output)?;
            return Ok(None);
        }
        if read == 0 || part.ends_with(b"\n") {
            break;
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).trim().to_ascii_lowercase()))
}

/// A line in parts of [`LINE_CHARACTERS`]. Each part after the first begins with [`CONTINUED`], so
/// that no part of a long text looks like a separate line.
fn wrapped(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    let parts = characters.chunks(LINE_CHARACTERS).map(String::from_iter);
    parts
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { CONTINUED.to_owned() + &part })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PROPOSED: Registration =
        Registration { mutates: true, egress: false, risk: Risk::Medium };

    fn tool(description: &str) -> Value {
        json!({"server": "s", "tool": "t", "status": "pending", "mutates": true, "egress": false,
            "risk": "medium", "definition_sha256": "aa", "approved_definition": null,
            "definition": {"description": description}})
    }

    fn asked(tool: &Value, input: &str) -> (Answer, String) {
        let mut output = Vec::new();
        let answer = ask(tool, PROPOSED, "1 of 1", &mut input.as_bytes(), &mut output).unwrap();
        (answer, String::from_utf8(output).unwrap())
    }

    #[test]
    fn each_answer_does_what_it_says() {
        let said = |mutates, egress, risk| Answer::Approve(Registration { mutates, egress, risk });
        for (input, expected) in [
            ("a\n", Answer::Approve(PROPOSED)),
            ("APPROVE\n", Answer::Approve(PROPOSED)),
            ("r\n", said(false, false, Risk::Low)),
            ("s\n", Answer::Skip),
            ("q\n", Answer::Quit),
            ("", Answer::Quit),
            ("a", Answer::Approve(PROPOSED)),
            // If an answer is not understood, the question is repeated.
            ("\nwhat\ns\n", Answer::Skip),
            ("e\nno\nyes\nhigh\na\n", said(false, true, Risk::High)),
            ("e\n\n\n\na\n", Answer::Approve(PROPOSED)),
            ("e\nmaybe\nno\nno\nnone\nlow\na\n", said(false, false, Risk::Low)),
            ("e\nno\n", Answer::Quit),
        ] {
            assert_eq!(asked(&tool("Reads."), input).0, expected, "{input:?}");
        }
    }

    /// Attack: a definition that is so long that its end is not on the screen.
    #[test]
    fn a_tool_is_approved_only_after_all_of_it_was_shown() {
        let (one_line, many_lines) = ("x ".repeat(20_000), (0..500).collect::<Vec<_>>());
        for hostile in [json!(one_line), json!(many_lines)] {
            let mut tool = tool("");
            tool["definition"]["a"] = hostile;
            tool["definition"]["z"] = json!("the end");
            let (answer, text) = asked(&tool, "a\na\n");
            assert_eq!(answer, Answer::Quit, "`a` only turned the page");
            assert!(!text.contains("the end"));
            let (answer, text) = asked(&tool, &("\n".repeat(100) + "s\n"));
            assert_eq!(answer, Answer::Skip);
            assert!(text.contains("the end"));
        }
    }

    /// Attack: a text that is so long that its end is at the beginning of a line, like an
    /// annotation.
    #[test]
    fn the_rest_of_a_long_line_does_not_pass_for_a_line() {
        let line = "x".repeat(LINE_CHARACTERS) + "readOnlyHint: true";
        let expected = ["x".repeat(LINE_CHARACTERS), "… readOnlyHint: true".to_owned()];
        assert_eq!(wrapped(&line), expected);
        assert_eq!(wrapped("short"), ["short"]);
        assert_eq!(wrapped(""), [""]);
    }

    #[test]
    fn the_rest_of_a_long_answer_answers_nothing() {
        let long = "x".repeat(10 * ANSWER_BYTES_MAX) + "\n";
        assert_eq!(asked(&tool("Reads."), &(long.clone() + "s\n")).0, Answer::Skip);
        assert_eq!(asked(&tool("Reads."), &long).0, Answer::Quit);
    }

    #[test]
    fn a_definition_that_cannot_be_used_is_shown_and_not_asked_about() {
        let mut tool = tool("");
        tool["definition"] = Value::Null;
        let (answer, text) = asked(&tool, "a\n");
        assert_eq!(answer, Answer::Skip);
        assert!(text.contains("cannot be approved"), "{text}");
    }

    #[test]
    fn what_a_server_says_of_itself_is_told() {
        let mut tool = tool("");
        tool["definition"]["annotations"] = json!({"readOnlyHint": false});
        assert!(asked(&tool, "q\n").1.contains("says that it writes"));
    }
}
