//! The order and the form of the lines.

use super::{Tampering, case};
use crate::exports::line::Line;

pub const TAMPERINGS: &[Tampering] = &[
    case(
        "a checkpoint before its entries",
        |it| it.move_line(16, 12),
        "wrong_size: acme.lane-0, receipts 1 to 4, line 13",
    ),
    case(
        "a checkpoint before its log",
        |it| it.move_line(16, 11),
        "wrong_order: acme.lane-0, line 13",
    ),
    case(
        "a checkpoint after later entries",
        |it| {
            it.move_line(16, 31);
            it.reseal();
        },
        "wrong_size: acme.lane-0, receipt 5, line 32",
    ),
    case("an entry before its log", |it| it.move_line(11, 12), "wrong_order: line 12"),
    case("a log that begins twice", |it| it.copy(12, 13), "wrong_order: acme.lane-0, line 14"),
    case("a head that begins twice", |it| it.copy(2, 13), "wrong_order: acme.head, line 14"),
    case(
        "two last checkpoints of a lane",
        |it| it.copy(85, 85),
        "wrong_order: acme.lane-0, line 86",
    ),
    case("two last checkpoints of the head", |it| it.copy(90, 90), "wrong_order: line 91"),
    case(
        "a last checkpoint of a lane after the head's",
        |it| it.move_line(84, 89),
        "missing_checkpoint: acme.lane-0, line 89",
    ),
    case(
        "a last checkpoint of a log that has not begun",
        |it| it.replace(84, "\"acme.lane-0\"", "\"acme.lane-9\""),
        "wrong_order: line 85",
    ),
    case("no first line", |it| drop(it.remove(0)), "wrong_order: line 1"),
    case("two first lines", |it| it.copy(1, 1), "wrong_order: line 2"),
    case("no end", |it| drop(it.0.pop()), "missing_end: line 91"),
    case("a cut export", |it| it.0.truncate(40), "missing_end: line 41"),
    case("an empty export", |it| it.0.clear(), "missing_end: line 1"),
    case(
        "an export that is cut within a line",
        |it| {
            it.0.truncate(40);
            let text = it.line(40).text();
            *it.line(40) = Line::Raw(text[..100].to_owned());
        },
        "malformed_line: line 40",
    ),
    case("another count", |it| it.replace(90, "74", "73"), "wrong_count: line 91"),
    case("a line after the end", |it| it.copy(91, 91), "after_end: line 92"),
    case(
        "an empty line after the end",
        |it| it.0.push(Line::Raw(String::new())),
        "after_end: line 92",
    ),
    case(
        "an empty line",
        |it| it.0.insert(40, Line::Raw(String::new())),
        "malformed_line: line 41",
    ),
    case(
        "a line that is no object",
        |it| it.0.insert(40, Line::Raw("[]".to_owned())),
        "malformed_line: line 41",
    ),
    case(
        "a line that is too long",
        |it| it.0.insert(40, Line::Raw(" ".repeat(5 << 20))),
        "malformed_line: line 41",
    ),
    case("an unknown type", |it| it.replace(32, "\"entry\"", "\"row\""), "malformed_line: line 33"),
    case(
        "an unknown member",
        |it| it.replace(32, "{", "{\"comment\":\"\","),
        "malformed_line: line 33",
    ),
    case(
        "two members of one name",
        |it| it.replace(32, "{", "{\"index\":5,"),
        "malformed_line: line 33",
    ),
    case(
        "a number as a text",
        |it| it.replace(32, "\"index\":5", "\"index\":\"5\""),
        "malformed_line: line 33",
    ),
    case(
        "an unknown version",
        |it| it.replace(0, "\"version\":1", "\"version\":2"),
        "malformed_line: line 1",
    ),
];
