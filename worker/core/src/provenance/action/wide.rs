//! What an instruction in Chinese or Japanese asks for.

use super::table::{Actions, TABLE};

/// The actions of words in Chinese or Japanese. A negation, or what makes the word a past one, is directly before or
/// after it.
pub(super) fn asked(text: &str) -> Actions {
    let orders = orders(text);
    let text = orders.as_str();
    let is_asked = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let (before, rest) = text.split_at_checked(at).unwrap_or_default();
            let after = rest.get(word.len()..).unwrap_or_default();
            let after: String = after.chars().take(MAX_NOT_WIDE_AFTER).collect();
            let is_past = [
                "した",
                "された",
                "済",
                "了",
                "的",
                "履歴",
                "记录",
                "请求",
                "請求",
                "リクエ",
                "する前",
                "前に",
            ]
            .iter()
            .any(|it| after.starts_with(*it));
            let mut near = before.chars().rev().take(MAX_FORBIDDEN_WIDE).enumerate();
            !near.any(|(at, it)| {
                "不别別勿莫禁".contains(it) || (at < MAX_NOT_WIDE_BEFORE && "没未已被".contains(it))
            }) && (!is_past || after.starts_with("したい"))
                && !["ない", "ません", "ずに", "な。", "禁止"]
                    .iter()
                    .any(|not| after.contains(*not))
        })
    };
    let asked = TABLE.inner.iter().filter(|(word, _)| is_asked(word));
    asked.fold(0, |found, (_, actions)| found | actions)
}

/// Letters around such a word in which a negation is looked for: `不要删除`, `削除しないで`.
const MAX_NOT_WIDE_BEFORE: usize = 2;
const MAX_NOT_WIDE_AFTER: usize = 4;
const MAX_FORBIDDEN_WIDE: usize = 8;

/// What may give an order in a Chinese or Japanese text: no question, and nothing after a Chinese word that only reads.
fn orders(text: &str) -> String {
    let mut orders = String::new();
    for sentence in text.split(|letter| ENDS.contains(letter)) {
        let is_question = WIDE_QUESTIONS.iter().any(|it| sentence.contains(it));
        if is_question {
            continue;
        }
        let begin =
            WIDE_LOOKS.iter().filter_map(|it| sentence.find(it).map(|at| at + it.len())).min();
        let (before, read) =
            sentence.split_at_checked(begin.unwrap_or(sentence.len())).unwrap_or_default();
        let mut last = ' ';
        let join = read.find(|letter| {
            std::mem::replace(&mut last, letter) != '合' && "再后後并並".contains(letter)
        });
        orders.extend([before, "\n", join.and_then(|at| read.get(at..)).unwrap_or_default(), "\n"]);
    }
    orders
}

/// What ends a sentence.
const ENDS: &str = "。？！?!\n";

#[rustfmt::skip]
const WIDE_QUESTIONS: [&str; 14] = [
    "是否", "能否", "可否", "吗", "嗎", "怎么", "如何", "为什么", "什么", "かどうか", "ですか", "ますか", "できるか", "べきか",
];
const WIDE_LOOKS: [&str; 9] =
    ["总结", "總結", "概括", "看看", "看一下", "查看", "解释", "解釋", "说明"];
