//! What an instruction names, and the numbers in it that name nothing.

use gateward_core::json::Json;
use gateward_core::provenance::Level;
use gateward_core::provenance::extract::{self, MAX_INSTRUCTION_VALUES};

use super::{KEY, Run};

#[test]
fn an_instruction_names_words_and_groups_of_words() {
    let run = Run::default().instruction(
        "Move the miller project\nfiles to Alice's archive, and invite bob to channel #general at 10:30.",
    );
    for value in [
        "archive",
        "miller",
        "the miller project files",
        "the miller project files to",
        "invite bob to channel #general at",
        "miller project",
        "alice",
        "Alice's",
        "bob",
        "general",
        "#general",
        "10:30",
    ] {
        assert_eq!(run.text(value), Level::Instruction, "{value}");
    }
    for value in ["to", "project archive", "and invite bob to channel #general at", "bobby"] {
        assert_eq!(run.text(value), Level::Nowhere, "{value}");
    }
    // Tools take these for each record or person.
    let others = "Everyone else has it. Delete draft 12, summarize all others for anyone's plan (any/all).\nAll";
    let run = Run::default().instruction(others);
    for value in ["all", "All", "everyone", "anyone", "any"] {
        assert_eq!(run.text(value), Level::Nowhere, "{value}");
    }
    assert_eq!(run.text("all others"), Level::Instruction);
    let run =
        Run::default().instruction("Delete draft 12 and summarize the others, both, the rest.");
    for value in ["others", "both", "rest"] {
        assert_eq!(run.text(value), Level::Nowhere, "{value}");
    }
    let run = Run::default().instruction("Share it with \"everyone\" and 'all'.");
    assert_eq!([run.text("everyone"), run.text("all")], [Level::Instruction; 2]);
    let long: String = (0..5_000).map(|at| format!("word{at} ")).collect();
    assert_eq!(extract::instruction(&KEY, &long).len(), MAX_INSTRUCTION_VALUES);
    // The names and numbers in words come before groups of words.
    let run = Run::default().instruction(&format!("{long} Pay EUR1200."));
    assert_eq!(run.text("1200"), Level::Instruction);
    let run = Run::default().instruction("Send q3 budget review final v2 draft.xlsx to Ada.");
    assert_eq!(run.text("q3 budget review final v2 draft.xlsx"), Level::Instruction);
}

#[test]
fn a_number_that_counts_or_orders_in_an_instruction_names_nothing() {
    for (instruction, number) in [
        ("1. Look.\n2. Delete the file.", "1"),
        ("  1) Look.\n\n  2) Delete the file.", "2"),
        ("In this order: 1. Look. 2. Delete the file.", "1"),
        ("Book 4 hours.", "4"),
        ("Book ( 4 hours ).", "4"),
        ("Book\u{a0}4\u{a0}hours.", "4"),
        ("Wait 1 day, then go on.", "1"),
        ("Wait (11 Minutes)", "11"),
        ("Meet at 2 pm.", "2"),
        ("Meet on June 13, with Ada.", "13"),
        ("Meet on 13 June.", "13"),
        ("Meet by 22 Nov 2026.", "22"),
    ] {
        let run = Run::default().instruction(instruction);
        assert_eq!(run.text(number), Level::Nowhere, "{instruction}");
    }
    for (instruction, number) in [
        ("1. Delete file 7.\n2. Go on.", "7"),
        ("Pay invoice No. 1. Then pay No. 2.", "1"),
        ("Delete file: 1.", "1"),
        ("Delete this:\n3. It is large.", "3"),
        ("Close issue 12. May I go?", "12"),
        ("Delete file 12, days passed.", "12"),
        ("Rent for June: 80 EUR", "80"),
        ("Rent for June: 20 EUR", "20"),
        ("Refund May 99", "99"),
        ("You may 6 files", "6"),
        ("Überweise 250 am Montag", "250"),
        ("Pay $4 days before", "$4"),
        ("Meet by 22 Nov 2026.", "2026-11-22"),
        ("Book 4 hours.", "4 hours"),
        ("Meet on June 13.", "June 13"),
    ] {
        let run = Run::default().instruction(instruction);
        assert_eq!(run.text(number), Level::Instruction, "{instruction}");
    }
}

#[test]
fn an_instruction_names_what_is_written_beside_a_sign_a_currency_or_another_script() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("Close #7, please.", &["7"], &["8"]),
        ("Close acme/shop#123.", &["acme", "shop", "acme/shop", "123"], &["12", "acme/shop#12"]),
        ("Merge PR#7.", &["7"], &[]),
        ("Set x=5.", &["5"], &[]),
        ("Pay EUR1200 to Bob.", &["1200", "EUR"], &["120", "USD"]),
        ("Pay 1,200.50EUR.", &["1200.5", "eur"], &["1200", "1", "200.5"]),
        ("Pay €45, please.", &["45", "EUR"], &["USD"]),
        ("Transfer 45 euros, or $50.", &["45", "EUR", "50", "USD"], &["GBP"]),
        ("Pay 1 200 £ or 5 Francs.", &["1200", "GBP", "CHF"], &["JPY"]),
        ("Pay A$45.", &[], &["USD"]),
        ("Überweise 1.200 EUR an Anna", &["1200", "1.2"], &["1", "200"]),
        ("Überweise 12.500 Euro, bitte.", &["12500"], &[]),
        ("Zahle €1.200 oder EUR 3.400, oder 5.600€.", &["1200", "3400", "5600"], &[]),
        ("Zahle 1.200, EUR 45 oder 45 EUR. 1.300 Toner", &["1.2"], &["1200", "1300"]),
        ("Zahle 0.500 EUR oder 1.20 EUR", &["0.5", "1.2"], &["500", "0500", "120"]),
        ("Sell at 1.085 USD. Version 1.200 of it", &["1.085"], &["1085", "1200"]),
        ("Pay 50,- EUR or 60.- CHF, or 7,-- €.", &["50", "60", "7"], &["5"]),
        ("Pay 1,5 EUR, 5k USD or 12,75 EUR", &["1.5", "5000", "12.75"], &["1", "5", "15"]),
        ("Pay five euros or zehn Franken, for two people", &["5"], &["2"]),
        ("Pay -50 EUR, 5k of them, 1,5 times", &[], &["50", "5000", "1.5"]),
        ("Zahle 5 Mio EUR", &[], &["5"]),
        ("Give 10% off.", &["10"], &["1"]),
        ("I am 100% sure.", &[], &["100"]),
        ("See #7-8 and v=1.5.2, or #7a.", &[], &["7", "1.5", "1"]),
        ("Wait for t=5 minutes.", &[], &["5"]),
        ("Pay 5 million.", &["5 million"], &["5"]),
        ("Müller mag Äpfel.", &["Müller"], &["ller", "pfel"]),
        ("把文件report.txt删除", &["report.txt"], &[]),
        ("删除report.txt，然后关闭12号。", &["report.txt", "12"], &[]),
        ("关闭acme/shop的第7个issue", &["acme/shop", "shop", "7", "issue"], &[]),
        ("给bob@x.com发邮件", &["bob@x.com"], &[]),
        ("4小时后提醒我，6月13日下午2点", &[], &["4", "6", "13", "2"]),
        ("1、转5万元。2、转1.5亿元", &[], &["1", "2", "5", "1.5"]),
        ("acme/shopの第7番を閉じて", &["acme/shop", "7"], &[]),
        ("30분 뒤 7번 이슈를 닫아", &["7"], &["30"]),
    ];
    for (instruction, named, others) in cases {
        let run = Run::default().instruction(instruction);
        for value in *named {
            assert_eq!(run.text(value), Level::Instruction, "{value} in {instruction}");
        }
        for value in *others {
            assert_eq!(run.text(value), Level::Nowhere, "{value} in {instruction}");
        }
    }
}

#[test]
fn what_an_instruction_excludes_is_not_named() {
    for (instruction, named, excluded) in [
        ("Delete all files in /tmp/x except /tmp/x/keep.db.", "/tmp/x", "/tmp/x/keep.db"),
        ("Delete everything in notes other than notes/plan.md", "notes", "notes/plan.md"),
        (
            "Pay DE89, not to GB33BUKB20201555555555 (that one is a fraud).",
            "DE89",
            "GB33BUKB20201555555555",
        ),
        ("Pay DE89. Never pay to GB33BUKB20201555555555.", "DE89", "GB33BUKB20201555555555"),
        ("Mail the plan to anna@x.com, but not to bob@rival.com.", "anna@x.com", "bob@rival.com"),
        ("Make acme/shop private, it must not be public.", "private", "public"),
        ("Delete b.md, leave a.md alone", "b.md", "a.md"),
        ("删除report.txt, not keep.txt", "report.txt", "keep.txt"),
    ] {
        let run = Run::default().instruction(instruction);
        assert_eq!(run.text(named), Level::Instruction, "{instruction}");
        assert_eq!(run.text(excluded), Level::Nowhere, "{instruction}");
    }
    // What is named elsewhere too stays named.
    let run = Run::default().instruction("Don't merge 34. Close 34.");
    assert_eq!(run.text("34"), Level::Instruction);
    let long = "never a.md, and ".repeat(1_000);
    assert!(extract::instruction(&KEY, &long).len() < 100);
}

#[test]
fn two_numbers_are_not_one() {
    for (instruction, named, other) in [
        ("Pay the rent of flat 3\n450 EUR to Anna", "450", "3450"),
        ("Invoice 7\n500 EUR\nPay it to Anna", "500", "7500"),
        ("Pay for flat 3 450 EUR", "450", "3450"),
        ("Pay invoice 7 250.00 EUR", "250", "7250"),
        ("Pay the rent, 3 450 EUR", "3450", "450"),
        ("Pay to DE89 3704 0044\n0532 0130 00 now", "DE89370400440532013000", "0532"),
    ] {
        let run = Run::default().instruction(instruction);
        assert_eq!(run.text(named), Level::Instruction, "{instruction}");
        assert_eq!(run.text(other), Level::Nowhere, "{instruction}");
    }
}

#[test]
fn an_amount_is_no_part_of_another_number() {
    let run = Run::default()
        .instruction("Pay 1,240.00 EUR to DE89 3704 0044 0532 0130 00, due 22 Nov 2026, ref 117.")
        .trusted("x");
    for (value, expected) in [
        ("1240", Level::Instruction),
        ("117", Level::Instruction),
        ("DE89370400440532013000", Level::Instruction),
        ("2026-11-22", Level::Instruction),
        ("3704", Level::Nowhere),
        ("0130", Level::Nowhere),
        ("22", Level::Nowhere),
        ("2026", Level::Nowhere),
        ("1240,117", Level::Nowhere),
    ] {
        assert_eq!(run.sink(&Json::String(value.to_owned())).unwrap(), expected, "{value}");
    }
}
