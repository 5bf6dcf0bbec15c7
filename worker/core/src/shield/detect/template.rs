//! Templates that compute with constants. Attackers send them to find out whether templates are evaluated. An ordinary
//! template names its values.
//!
//! This file finds where an expression begins. `expression` reads it.

mod expression;

use self::expression::{Expression, Kind};
use super::{Found, before, is_word};
use crate::shield::left::EXPRESSION;
use crate::shield::rule::Detector;
use crate::shield::signs::{Signed, Signs};

/// Bytes of a value that is read as a whole.
const MAX_WHOLE_BYTES: usize = 128;

/// Products that are sent as a whole value after `=`. Any other product is a cell of a spreadsheet.
const PROBES: [&str; 6] = ["7*7", "7 * 7", "7*'7'", "7*\"7\"", "1337*1337", "13*37"];

/// Members that a format string walks to.
const WALKED: [&str; 5] = ["__class__", "__init__", "__globals__", "__dict__", "__mro__"];

/// Reports expressions of constants between delimiters of templates.
pub fn find(signed: Signed<'_>, found: Found<'_>) {
    let text = signed.text;
    if is_whole(text) {
        found(Detector::TemplateConstant, 0..text.len());
    }
    let bytes = text.as_bytes();
    // A program with template strings computes in them.
    let string = text.find('`').unwrap_or(text.len());
    let mut at = 0;
    while let Some(begin) = signed.next(at, Signs::BRACE | Signs::ANGLE | Signs::AT) {
        at = begin + 1;
        let Some((start, kind)) = delimiter(bytes, begin) else { continue };
        if begin > string && before(bytes, begin) == Some(b'$') {
            continue;
        }
        if !signed.work.take(EXPRESSION) {
            return;
        }
        let mut expression = Expression::new(bytes, start, kind);
        expression.skip_opening();
        // A delimiter among the skipped bytes would begin the same expression, except the last one: `{{%`.
        if !matches!(kind, Kind::Bracket | Kind::Quote) {
            at = at.max(expression.at - 1);
        }
        if let Some(end) = expression.computes() {
            found(Detector::TemplateConstant, begin..end);
        }
    }
}

/// Where the expression begins whose delimiter has this byte in it.
fn delimiter(bytes: &[u8], at: usize) -> Option<(usize, Kind)> {
    let prior = before(bytes, at);
    let follows = |text: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(text));
    Some(match (bytes.get(at)?, bytes.get(at + 1)?) {
        (b'{', b'{') => {
            let formula = prior.is_some_and(|it| is_word(it) || matches!(it, b'^' | b'}' | b'\\'));
            (at + 2, if formula { Kind::Formula } else { Kind::Brace })
        }
        (b'{', b'%' | b'=' | b'@' | b'#' | b'!') => (at + 2, Kind::Brace),
        (b'{', next) => match prior {
            Some(b'$') => (at + 1, Kind::Dollar),
            Some(b'#') => (at + 1, Kind::Brace),
            Some(b'@' | b'~' | b'%' | b'!') => (at + 1, Kind::Sign),
            // Commands of LaTeX end with a star.
            Some(b'*') if !before(bytes, at - 1).is_some_and(is_word) => (at + 1, Kind::Sign),
            _ if matches!(next, b'\'' | b'"') => (at + 1, Kind::Quote),
            _ => return None,
        },
        (b'<', b'%') => (at + 2, Kind::Brace),
        (b'[', b'%') if !bytes.get(at + 2).copied().is_some_and(is_word) => (at + 2, Kind::Brace),
        (b'<', b'?') if follows(b"<?=") => (at + 3, Kind::Brace),
        (b'<' | b'[', b'#') => (at + 2, Kind::Tag),
        (b'@', b'(') => (at + 2, Kind::Sign),
        (b'[', b'[' | b'=') => (at + 2, Kind::Bracket),
        (b'#', b's') if follows(b"#set") => (at + 4, Kind::Sign),
        (b'#', b'i') if follows(b"#if(") => (at + 4, Kind::Sign),
        (b'#', b'e') if follows(b"#elseif(") => (at + 8, Kind::Sign),
        _ => return None,
    })
}

/// Whether a value as a whole is an expression. Within a text, its delimiters mean something else.
fn is_whole(text: &str) -> bool {
    let value = text.trim();
    if value.len() > MAX_WHOLE_BYTES {
        return false;
    }
    if let Some(rest) = value.strip_prefix('=') {
        return PROBES.contains(&rest.trim());
    }
    let Some(inner) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return false;
    };
    let mut expression = Expression::new(inner.as_bytes(), 0, Kind::Value);
    expression.skip_opening();
    expression.computes().is_some() || is_walk(inner)
}

/// Whether a field of a format string walks to a class: `user.__class__`.
fn is_walk(field: &str) -> bool {
    let mut steps = field.split(['.', '[']);
    let begins = steps.next().is_some_and(|it| !it.is_empty() && it.bytes().all(is_word));
    begins && steps.any(|step| WALKED.contains(&step.trim_end_matches(']')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> bool {
        let mut any = false;
        find(text.into(), &mut |_, _| any = true);
        any
    }

    #[test]
    fn a_template_that_computes_with_constants_is_found() {
        for text in [
            "{{7*7}}",
            "{{ 13*'3' }}",
            "${ 13 + 29 }",
            "#{3*3}",
            "*{7*7}",
            "@(6+5)",
            "%{7*7}",
            "<%= 13 ** 3 %>",
            "{{ 1337 - 1 }}",
            "{% set x = 7*7 %}",
            "#set($x = 7*7)",
            "/help/${(111+111)}/index.action",
            "{{'a'.toUpperCase()}}",
            "{{ [].class.base }}",
            "${\"\".getClass()}",
            "{{ ''['class'] }}",
            "{{ ''[request.args.a] }}",
            "{{ 'abc'[1] }}",
            "{{ add 7 7 }}",
            "{{ if eq 1 1 }}a{{ end }}",
            "{{ 7 and 7 }}",
            "{{ [1, 2]|join }}",
            "{{ 'a' in 'abc' }}",
            "{{ \"a\" ~ 7 }}",
            "{{'ab'.length}}",
        ] {
            assert!(finds(text), "{text}");
        }
        for text in [
            "{{ quantity * 2 }}",
            "{{ ', '.join(names) }}",
            "${1+\"$@\"}",
            "${1-80}",
            "[[2026-11-23]]",
            "{{2026-11-23}}",
            "\\section*{7*7}",
            "{{ price|round(2) }}",
            "${a + 1}",
            "{{- 2 }}",
            "user@(7)",
            "const a = `${b} and ${72 + 1}`;",
        ] {
            assert!(!finds(text), "{text}");
        }
    }

    #[test]
    fn white_space_does_not_hide_an_expression() {
        let spaces = " ".repeat(70);
        for text in [
            ["{{", &spaces, "13*37}}"].concat(),
            ["{{13", &spaces, "*", &spaces, "37", &spaces, "}}"].concat(),
            "{{\t13\n*\r\n37\t}}".to_owned(),
            ["<%=", &spaces, "puts", &spaces, "13*37 %>"].concat(),
        ] {
            assert!(finds(&text), "{text}");
        }
    }

    #[test]
    fn each_delimiter_and_opening_is_known() {
        for text in [
            "{7*7}",
            " {7*7}\n",
            "[=7*7]",
            "[[7*7]]",
            "[[${7*7}]]",
            "<#assign x=7*7>",
            "[#assign x = 7*7]",
            "!{7*7}",
            "$!{7*7}",
            "#if(7*7==49)",
            "#elseif(7*7==49)",
            "=7*7",
            "= 7 * 7",
            "[% 7*7 %]",
            "<?= 7*7 ?>",
            "@{7*7}",
            "~{7*7}",
            "__${7*7}__::.x",
            "{{=7*7}}",
            "<%- 13*37 %>",
            "<%- 13*37 -%>",
            "{{- 13*37 -}}",
            "{{~13*37~}}",
            "{{!13*37}}",
            "{{&13*37}}",
            "<%: 13*37 %>",
            "{% if 13*37==481 %}",
            "{%- if 13*37 == 481 -%}",
            "{% print 13*37 %}",
            "<% puts 13*37 %>",
            "<% return(13*37) %>",
            "{{ return 13*37 }}",
            "{{{%7*7%}",
            "{!! 7*7 !!}",
            "{!!'a'.length!!}",
            "{{println \"ab\"}}",
        ] {
            assert!(finds(text), "{text}");
        }
    }

    #[test]
    fn each_operator_and_operand_is_known() {
        for text in [
            "{{7==7}}",
            "${7 == 7}",
            "{{7!=8}}",
            "{{7<8}}",
            "{{7>=6}}",
            "{{7^7}}",
            "{{7//2}}",
            "{{'a'..'b'}}",
            "{{7 div 7}}",
            "${7 mod 3}",
            "{{7 eq 7}}",
            "{{1 gt 0}}",
            "{{1337-1}}",
            "{{ 7 | times: 7 }}",
            "{{'a'|upper}}",
            "${7?c}",
            "${\"a\"?upper_case}",
            "{{1.5*7}}",
            "{{0x7*7}}",
            "{{7*-7}}",
            "{{7*(7)}}",
            "{{(7)*(7)}}",
            "{{7n*7n}}",
            "{{[7]*7}}",
            "{{'a b'*3}}",
            "{{-7*7}}",
            "{{'a'~'b'}}",
            "{{'a'+'b'}}",
        ] {
            assert!(finds(text), "{text}");
        }
    }

    #[test]
    fn a_member_or_a_filter_of_a_literal_is_found() {
        for text in [
            "{{() | attr(request.args.c)}}",
            "{{''|attr('x')}}",
            "{'id'|system}",
            "Dear {\"cat /etc/passwd\"|shell_exec}",
            "{{7.constructor}}",
            "#{7.class}",
            "${\"cat /etc/passwd\".execute()}",
            "{user.__class__}",
            "{0.__init__.__globals__[KEY]}",
        ] {
            assert!(finds(text), "{text}");
        }
    }

    #[test]
    fn ordinary_text_with_delimiters_is_not_found() {
        for text in [
            // Templates
            "{{- printf \"%s-%s\" .Release.Name .Chart.Name | trunc 63 -}}",
            "{{ .Values.replicas | default 2 }}",
            "{{ \"Chart notes\" | upper | quote }}",
            "{{ \"x\" | quote }}",
            "{{ 'menu.title' | translate }}",
            "{{ 5 | int }}",
            "{{ price | currency:'EUR':'symbol':'1.2-2' }}",
            "{{ 'now' | date: '%Y' }}",
            "{{ 'style.css' | asset_url }}",
            "{{ '-' * 40 }}",
            "{{ 'page ' ~ n }}",
            "{{ 'dir' ~ '/' ~ name }}",
            "{{ ' '.join(words) }}",
            "{{ \", \".concat(a) }}",
            "{% if count > 20 %}",
            "{% if count == 20 %}",
            "{% for i in 1..5 %}",
            "{% for i in range(1, 5) %}",
            "{% cycle 'odd', 'even' %}",
            "{% print \"hello\" %}",
            "<% print \"hello\" %>",
            "<%= link_to 'Home', root_path %>",
            "{{#if count}}{{count}}{{/if}}",
            "{{ ok ? 'yes' : 'no' }}",
            "{{ 1 ? 'yes' : 'no' }}",
            "{{ eq .A 1 }}",
            "{{ add 1 .Count }}",
            "{{ name or 'x' }}",
            "{{ items|join(', ') }}",
            "{{ [a, b]|join }}",
            "{{ 'a' in names }}",
            "{{convert|5|km}}",
            "{{1|2}}",
            "{{1..10}}",
            "{{2026-1}}",
            "{{2024-2026}}",
            "<#list 1..3 as i>",
            "<#if count > 3>",
            "#if ($count == 1)",
            "${{ matrix.node == 18 }}",
            "${{ github.run_number }}",
            "=SUM(A1:A7)",
            "=12*12",
            "=100*1.21",
            "Hello {name}, you owe {amount:.2f}",
            "{0} of {1}",
            "{self.name}",
            "f\"{self.__class__.__name__}({self.id})\"",
            "{'text'|escape}",
            // Code
            "a = [[0]*3 for _ in range(3)]",
            "[[1, 2], [3, 4]]",
            "[[ $a == 1 && 2 -gt 1 ]]",
            "[[Page|text]]",
            "[[wiki/7*7]]",
            "[=[ a long text ]=]",
            "int a[2][2] = {{1, 2}, {3, 4}};",
            "flags = {{1 << 0}, {1 << 3}};",
            "#if (__GNUC__ > 3)",
            "#if defined(A)",
            "#include <stdio.h>",
            "style={{ width: 10, height: 20 }}",
            "{\"a\": 1, \"b\": [1, 2]}",
            "{\"a\":\"b|system\"}",
            "type T = {'a' | 'b'};",
            "@{Name = \"x\"; Count = 2}",
            "@(1, 2, 3)",
            "@(\"a\" + \"b\")",
            "%{http_code}",
            "%{\"a\" => 1}",
            "x = ${1%.*}",
            "${1//2}",
            "${1:-80}",
            "${VAR:-7}",
            "${1^^}",
            "echo ${#a[@]}",
            ".a { width: calc(100% - #{$gap * 2}); }",
            "a{2,3}b{4}",
            "^[a-z]{1,3}$",
            "{1,2}",
            "{1-2}",
            "{a*b}",
            "x^{{2^3}}",
            "\\frac{{a}}{{b}}",
            "<%d items>",
            "[%s = 1 + 1]",
            "<?php echo $a; ?>",
        ] {
            assert!(!finds(text), "{text}");
        }
    }
}
