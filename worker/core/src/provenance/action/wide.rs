//! What an instruction in Chinese or Japanese asks for.

use super::table::{TABLE, is_wide};
use super::words::{Asked, OBJECT, PLACE, UNKNOWN, parts};

/// Adds the actions of words in Chinese or Japanese. They are for all that the instruction names, except for what something
/// is in.
pub(super) fn add(text: &str, asked: &mut Asked) {
    let orders = orders(text);
    let words = TABLE.inner.iter().filter(|(word, _)| is_asked(&orders, word));
    let actions = words.fold(0, |found, (_, actions)| found | actions);
    if actions == 0 {
        return;
    }
    let Some(order) = asked.begin(actions, "") else { return };
    asked.add(OBJECT, order, "");
    asked.add(UNKNOWN, order, "");
    for token in text.split(|letter: char| is_wide(letter) || letter.is_whitespace()) {
        let at = token.as_ptr().addr() - text.as_ptr().addr() + token.len();
        let after = text.get(at..).unwrap_or_default().trim_start();
        if IN.iter().any(|it| after.starts_with(it)) {
            parts(token).into_iter().for_each(|it| asked.add(PLACE, order, it));
        }
    }
}

/// Whether a word gives an order. A negation, or what makes it a noun or a past form, is directly before or after it.
fn is_asked(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, rest) = text.split_at_checked(at).unwrap_or_default();
        let after = rest.get(word.len()..).unwrap_or_default();
        let near: String = after.chars().take(MAX_CLAUSE).collect();
        let clause = near.split(['、', '。', '，', '\n']).next().unwrap_or_default();
        let mut asks = before.chars().rev().take(MAX_CLAUSE);
        let is_done = after.starts_with('了') && asks.any(|it| "请把帮".contains(it));
        let is_noun = NOUNS.iter().any(|it| after.starts_with(it))
            && !is_done
            && !after.starts_with("したい");
        let mut near = before.chars().rev().take(MAX_FORBIDDEN).enumerate();
        let is_forbidden = near.any(|(at, it)| {
            "不别別勿莫禁".contains(it) || (at < MAX_NOT_BEFORE && "没未已被".contains(it))
        });
        !(is_forbidden || is_noun || NOT.iter().any(|it| clause.contains(it)))
    })
}

/// Letters before such a word in which a negation is looked for: `不要删除`.
const MAX_NOT_BEFORE: usize = 2;
const MAX_FORBIDDEN: usize = 8;

/// Letters of a clause before and after it.
const MAX_CLAUSE: usize = 32;

/// What negates a word before it, up to the next comma: `削除しないで`.
const NOT: [&str; 5] = ["ない", "ません", "ずに", "な。", "禁止"];

/// What makes a word before it a noun or a past form: `删除按钮`, `削除ボタン`.
#[rustfmt::skip]
const NOUNS: [&str; 29] = [
    "した", "された", "済", "了", "的", "履歴", "记录", "请求", "請求", "リクエ", "する前", "前に", "按", "钮", "鈕", "键",
    "凭", "历史", "功能", "失败", "率", "家", "方", "宝", "ボタン", "機能", "画面", "確認", "权限",
];

/// What follows the thing in which something is.
const IN: [&str; 6] = ["中", "里", "内", "の", "的", "から"];

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
const WIDE_LOOKS: [&str; 12] = [
    "总结",
    "總結",
    "概括",
    "看看",
    "看一下",
    "查看",
    "解释",
    "解釋",
    "说明",
    "提醒",
    "告诉",
    "告訴",
];
