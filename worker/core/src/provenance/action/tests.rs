mod sentences;

use super::actions::{ACTIONS, PHRASES};
use super::table::is_wide;
use super::vocabulary::*;
use super::*;
use crate::provenance::Hashes;
use crate::provenance::extract::instruction as instruction_values;
use sentences::{CALLS, ORDERS, OTHERS as OTHER_CALLS, READS};

const KEY: ValueKey = ValueKey::new([7; 16]);

fn is_asked(instruction: &str, tool: &str) -> bool {
    is_asked_for(instruction, tool, &[])
}

fn is_asked_for(instruction: &str, tool: &str, values: &[&str]) -> bool {
    let mut known: Hashes = stated(&KEY, instruction).into_iter().collect();
    known.extend(instruction_values(&KEY, instruction));
    let values: Vec<Json> = values.iter().map(|text| Json::String((*text).to_owned())).collect();
    let named = values.iter().map(|value| Named { pointer: "/to", value, declared: true });
    let named: Vec<_> = named.collect();
    asks(&KEY, (tool, ""), &named, &|hash| known.contains(&hash))
}

#[test]
fn a_tool_does_what_its_name_says() {
    for (tool, expected) in [
        ("forge/merge_pull_request", "merge"),
        ("github/mergePullRequest", "merge"),
        ("drive/files.delete", "delete"),
        ("drive/github_delete_file", "delete"),
        ("shop/cancel_order", "cancel"),
        ("shop/order_cancel", "cancel"),
        ("shop/create_order", "order"),
        ("bank/send_money", "send money"),
        ("bank/schedule_payment", "schedule payment"),
        ("bank/create-transfer", "transfer"),
        ("mail/create_forwarding_rule", "create forwarding rule"),
        ("mail/send_email", "email"),
        ("mail/delete_mail", "delete"),
        ("crm/issue_refund", "refund"),
        ("chat/invite_to_workspace", "invite"),
        ("forge/add_collaborator", "add"),
        ("jira/transition_ticket", "transition ticket"),
        ("gitlab/merge_merge_request", "merge"),
        ("gitlab/merge_request_close", "close"),
        ("mail/read_and_delete", "delete"),
        ("bank/cancel_scheduled", "cancel"),
        ("pay", "pay"),
    ] {
        assert_eq!(of_tool(tool), expected, "{tool}");
    }
}

#[test]
fn an_instruction_asks_for_what_its_verbs_say() {
    for (instruction, tool) in [
        ("Merge PR 34.", "forge/merge_pull_request"),
        ("Merge merge request 12", "gitlab/merge_merge_request"),
        ("PR 34 is ready to be merged", "forge/merge_pull_request"),
        ("Check PR 34 — then MERGE it!", "forge/merge_pull_request"),
        ("If the checks aren't red, merge PR 34.", "forge/merge_pull_request"),
        ("Stop it; I'm cancelling order 5", "shop/cancel_order"),
        ("get rid of a.md", "drive/delete_file"),
        ("pay the bill in bill-december.txt", "bank/send_money"),
        ("Set up a recurring payment of 10 USD", "bank/schedule_payment"),
        ("Make a payment to Anna", "bank/send_money"),
        ("The customer gets 89.90 euros back for invoice INV-4", "crm/issue_refund"),
        ("Ada should be able to view plan.md", "drive/share_file"),
        ("ada needs write access", "forge/add_collaborator"),
        ("Lösche bitte die Datei a.md", "drive/delete_file"),
        ("Überweise 50 Euro an Anna", "bank/send_money"),
        ("Supprime le fichier a.md", "drive/delete_file"),
        ("Borra el archivo a.md", "drive/delete_file"),
        ("Apague o arquivo a.md", "drive/delete_file"),
        ("Elimina la cartella a", "drive/delete_folder"),
        ("Verwijder het bestand a.md", "drive/delete_file"),
        ("把文件report.txt删除", "drive/delete_file"),
        ("a.mdを削除してください", "drive/delete_file"),
        ("Transition ticket 5 to done", "jira/transition_ticket"),
    ] {
        assert!(is_asked(instruction, tool), "{instruction}: {tool}");
    }
    for (instruction, tool) in [
        ("", "forge/merge_pull_request"),
        ("Have a look at PR 34 and tell me what you think.", "forge/merge_pull_request"),
        ("Translate /texts/about-us.md", "drive/delete_file"),
        ("Read /notes/delete-list.md and merge/close.txt", "drive/delete_file"),
        ("Do not merge PR 34.", "forge/merge_pull_request"),
        ("Review PR 34, but don’t merge it yet.", "forge/merge_pull_request"),
        ("Bitte PR 34 nicht mergen", "forge/merge_pull_request"),
        ("Lösche die Datei a.md nicht", "drive/delete_file"),
        ("Ne supprime pas a.md", "drive/delete_file"),
        ("不要删除文件", "drive/delete_file"),
        ("a.mdを削除しないでください", "drive/delete_file"),
        ("Let me know what is in plan.md", "drive/share_file"),
        ("Give me a summary of plan.md", "drive/share_file"),
        ("Get back to me about invoice INV-4", "crm/issue_refund"),
        ("What was my last payment to Anna?", "bank/send_money"),
        ("Show the ticket in jira", "jira/transition_ticket"),
        ("Have a look at merge request 12, it has merge conflicts.", "gitlab/merge_merge_request"),
        ("What does refund request INV-4 say?", "crm/issue_refund"),
        ("Read message m-4", "mail/read_and_delete"),
    ] {
        assert!(!is_asked(instruction, tool), "{instruction}: {tool}");
    }
}

#[test]
fn an_order_counts_and_what_only_reads_does_not() {
    let wrong: Vec<_> =
        ORDERS.iter().filter(|(instruction, tool)| !is_asked(instruction, tool)).collect();
    let others: Vec<_> =
        READS.iter().filter(|(instruction, tool)| is_asked(instruction, tool)).collect();
    assert!(wrong.is_empty() && others.is_empty(), "{wrong:#?} {others:#?}");
}

#[test]
fn an_order_is_for_its_object_and_not_for_where_that_is() {
    let is_asked_for = |(instruction, tool, values): &(&str, &str, &str)| {
        is_asked_for(instruction, tool, &values.split(' ').collect::<Vec<_>>())
    };
    let waits: Vec<_> = CALLS.iter().filter(|it| !is_asked_for(it)).collect();
    let passes: Vec<_> = OTHER_CALLS.iter().filter(|it| is_asked_for(it)).collect();
    assert!(waits.is_empty() && passes.is_empty(), "{waits:#?} {passes:#?}");
}

#[test]
fn lists_are_sorted() {
    let lists: [&[&str]; 18] = [
        &super::FROM,
        &ABOUT,
        &BE,
        &MEMBERS,
        &NOT_BESIDE,
        &NUMBERED,
        &CANCELLED,
        &DEEDS,
        &OPENED,
        &PIPELINES,
        &RIGHTS,
        &THINGS,
        &WEAK,
        &DESTROYS,
        &RELATIVES,
        &GRANTS,
        &TEAMS,
        &WIDE,
    ];
    let others = OTHERS.into_iter().flat_map(|(words, nexts)| [words, nexts]);
    for list in lists.into_iter().chain(others) {
        assert!(list.is_sorted(), "{list:?}");
    }
    for (_, laters, actions) in PHRASES {
        assert!(actions.split(' ').all(|action| of_word(action) != 0), "{actions}");
        assert!(laters.split(' ').all(|later| !later.is_empty()), "{laters}");
    }
}

#[test]
fn a_plan_or_an_approver_names_a_tool() {
    let named = [tool(&KEY, "forge/merge_pull_request")];
    assert!(asks(&KEY, ("forge/merge_pull_request", ""), &[], &|hash| named.contains(&hash)));
    assert!(!asks(&KEY, ("forge/close_pull_request", ""), &[], &|hash| named.contains(&hash)));
    // A word of an instruction never has the hash of an action.
    let word = [KEY.hash(b"merge"), KEY.hash(b"#merge")];
    assert!(!asks(&KEY, ("forge/merge_pull_request", ""), &[], &|hash| word.contains(&hash)));
}

#[test]
fn each_word_has_the_form_in_which_it_is_looked_for() {
    for (name, words) in ACTIONS {
        assert_eq!(words.split_whitespace().next(), Some(name));
        for word in words.split_whitespace() {
            assert_eq!(word, word.to_lowercase(), "{name}");
            assert!(word.chars().all(char::is_alphabetic), "{name}: {word}");
            assert!(word.chars().all(is_wide) || !word.chars().any(is_wide), "{name}: {word}");
        }
    }
    for (noun, action) in NOUNS {
        assert_ne!(named(action), 0, "{noun}");
    }
}
