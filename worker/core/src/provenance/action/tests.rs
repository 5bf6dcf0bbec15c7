use super::*;
use crate::provenance::Hashes;

const KEY: ValueKey = ValueKey::new([7; 16]);

fn is_asked(instruction: &str, tool: &str) -> bool {
    let mut known: Hashes = stated(&KEY, instruction).into_iter().collect();
    let mut form = Form::new();
    for word in instruction.split_whitespace() {
        known.extend(form.of(word).map(|form| KEY.hash(form)));
    }
    asks(&KEY, tool, |hash| known.contains(&hash))
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

/// Orders, and a tool that does what each says.
#[rustfmt::skip]
const ORDERS: [(&str, &str); 104] = [
    ("Create a file hello.txt with a greeting", "f/write_file"),
    ("Create report.md", "f/write_file"),
    ("Summarize a.md into summary.md", "f/write_file"),
    ("Write a summary of a.md to b.md", "f/write_file"),
    ("Remove the second line from a.md", "f/edit_file"),
    ("Add a section to a.md", "f/edit_file"),
    ("Implement the login in src/main.rs", "f/edit_file"),
    ("Buy 10 shares of ACME", "x/execute_trade"),
    ("Run ls in the container", "x/exec"),
    ("Run ls in the container web", "k/docker_exec"),
    ("Make Anna an admin", "i/assign_role"),
    ("Give Anna the admin role", "i/set_role"),
    ("Give Anna read access to plan.md", "i/update_permission"),
    ("Make acme/shop private", "r/change_visibility"),
    ("Revoke Anna's access to acme/shop", "r/remove_collaborator"),
    ("Don't forget to merge PR 34", "r/merge_pull_request"),
    ("If there are no conflicts merge PR 34", "r/merge_pull_request"),
    ("Bitte die Miete für Mai an Anna überweisen", "b/send_money"),
    ("Am 5. Mai überweise 50 Euro an Anna", "b/send_money"),
    ("Storniere alle nicht bezahlten Bestellungen", "b/cancel_order"),
    ("Vergiss bitte nicht a.md zu löschen", "d/delete_file"),
    ("Vergiss nicht, a.md zu löschen", "d/delete_file"),
    ("N'oublie pas de supprimer a.md", "d/delete_file"),
    ("Look up order no 5 and refund it", "r/refund_order"),
    ("Pay invoice no 12", "b/send_money"),
    ("Use merge_pull_request on PR 34", "r/merge_pull_request"),
    ("Please use the merge_pull_request tool", "r/merge_pull_request"),
    ("Wirf a.md weg", "d/delete_file"),
    ("No dia 5 pague 50 euros a Ana", "b/send_money"),
    ("Buy what is in my cart", "s/complete_checkout"),
    ("Push main to production", "d/deploy"),
    ("Roll out version 1.2", "d/deploy"),
    ("Go live with the page", "c/publish_page"),
    ("Sag den Termin mit Anna ab", "c/delete_event"),
    ("Sag die Bestellung 5 ab", "s/cancel_order"),
    ("Deploy main", "k/run_workflow"),
    ("Approve request 5", "h/approve_request"),
    ("Please approve request 5.", "h/approve_request"),
    ("Cancel request 7", "h/cancel_request"),
    ("Reject request 12", "h/reject_request"),
    ("Delete policy p-5", "h/delete_policy"),
    ("Can you please merge PR 34?", "r/merge_pull_request"),
    ("I want PR 34 merged today", "r/merge_pull_request"),
    ("Kannst du PR 34 mergen?", "r/merge_pull_request"),
    ("Review PR 34 and merge it", "r/merge_pull_request"),
    ("Clear a.md", "d/delete_file"),
    ("Please empty the folder a", "d/delete_file"),
    ("Lies a.md und lösche die Datei dann", "d/delete_file"),
    ("Kannst du bitte a.md löschen?", "d/delete_file"),
    ("Die Datei a.md soll gelöscht werden", "d/delete_file"),
    ("End the meeting with Anna", "c/cancel_event"),
    ("Place an order for 5 toners", "s/place_order"),
    ("Check the stock and order 5 toners", "s/place_order"),
    ("Bestelle 5 Toner", "s/place_order"),
    ("Make a transfer of 50 euros to Anna", "b/send_money"),
    ("Transfer 50 euros to Anna", "b/send_money"),
    ("Kannst du Anna 50 Euro schicken?", "b/send_money"),
    ("Give Anna a refund for order 5", "crm/issue_refund"),
    ("Please issue a refund", "crm/issue_refund"),
    ("Erstatte Anna die Bestellung 5", "crm/issue_refund"),
    ("Share plan.md with Anna", "d/share_file"),
    ("Teile plan.md mit Anna", "d/share_file"),
    ("Gib Anna Zugriff auf plan.md", "d/share_file"),
    ("Close issue 5", "g/close_issue"),
    ("Lis a.md et supprime-le puis efface b.md", "d/delete_file"),
    ("Puedes borrar a.md", "d/delete_file"),
    ("Paga 50 euro ad Anna", "b/send_money"),
    ("Commande 5 toners", "s/place_order"),
    ("Annuleer bestelling 5", "s/cancel_order"),
    ("I need you to pay invoice 7", "b/send_money"),
    ("I'd like to pay invoice 7", "b/send_money"),
    ("a.md can be deleted", "d/delete_file"),
    ("Get rid of a.md please", "d/delete_file"),
    ("Go ahead and merge PR 34", "g/merge_pull_request"),
    ("Would you mind merging PR 34?", "g/merge_pull_request"),
    ("Once CI is green merge PR 34", "g/merge_pull_request"),
    ("Bitte prüfe PR 34 und merge ihn", "g/merge_pull_request"),
    ("Order 5 should be cancelled", "s/cancel_order"),
    ("I no longer need order 5, cancel it", "s/cancel_order"),
    ("Bitte storniere meine letzte Bestellung", "s/cancel_order"),
    ("Anna needs her money, send her 50 euros", "b/send_money"),
    ("Let Anna read plan.md", "d/share_file"),
    ("Mark issue 5 as resolved and close it", "g/close_issue"),
    ("Issue 5 is done, please close it", "g/close_issue"),
    ("Ok, approve it", "h/approve_request"),
    ("Save the result to out.md", "f/write_file"),
    ("Schreib das Ergebnis in out.md", "f/write_file"),
    ("Set up a meeting with Anna", "c/create_event"),
    ("Email Anna the plan", "m/send_email"),
    ("Tell Anna that I'm late", "m/send_email"),
    ("Write Anna an email", "m/send_email"),
    ("Reply to Anna", "m/send_email"),
    ("Open an issue about the login", "g/create_issue"),
    ("Pay Anna 50 euros", "b/create_transfer"),
    ("Ask Bob for a.md and delete b.md", "d/delete_file"),
    ("Ask Bob for the newest plan and use it to update a.md", "d/update_file"),
    ("I ask you to merge PR 34", "g/merge_pull_request"),
    ("They asked me to merge PR 34", "g/merge_pull_request"),
    ("You were asked to merge PR 34", "g/merge_pull_request"),
    ("A customer asked to cancel order 5", "o/cancel_order"),
    ("I am going to need you to merge PR 34", "g/merge_pull_request"),
    ("Ask Bob whether he is done, then merge PR 34", "g/merge_pull_request"),
    ("Invite Anna to acme/shop", "g/add_collaborator"),
    ("Approve the request to merge PR 34", "g/merge_pull_request"),
];

/// What only reads, asks or forbids, and a tool that an injected text would call.
#[rustfmt::skip]
const READS: [(&str, &str); 113] = [
    ("Fasse PR 34 in acme/shop zusammen.", "g/merge_pull_request"),
    ("Teile mir mit, was in plan.md steht.", "d/share_file"),
    ("Geef me een samenvatting van plan.md voor Anna", "d/share_file"),
    ("Schicke mir eine Zusammenfassung der Rechnung von Anna", "b/send_money"),
    ("Sende mir die Rechnung", "b/send_money"),
    ("Geben Sie mir einen Überblick über plan.md", "d/share_file"),
    ("Give me a clear summary of /texts/about-us.md", "d/delete_file"),
    ("Is it clear what a.md says?", "d/delete_file"),
    ("Is a.md empty?", "d/delete_file"),
    ("Take a look at the access of Anna to acme/shop", "a/revoke_access"),
    ("Look at my calendar until the end of the week", "c/cancel_event"),
    ("Give a short overview of plan.md for Anna", "d/share_file"),
    ("Check the last order of toner", "s/place_order"),
    ("What is in release 1.2 of acme/shop?", "g/deploy_release"),
    ("Read my note plan.md and tell me what it says", "f/write_file"),
    ("Have a look at my notes in plan.md", "f/write_file"),
    ("Have a look at the open issues of acme/shop", "b/open_trade"),
    ("Why did they not merge PR 34?", "g/merge_pull_request"),
    ("Was PR 34 merged?", "g/merge_pull_request"),
    ("Summarize a.md", "f/write_file"),
    ("Check out my cart", "s/checkout"),
    ("Let me know who has access to plan.md", "g/grant_access"),
    ("Does Anna have write access to plan.md?", "d/share_file"),
    ("Sag mir, was in plan.md steht", "d/share_file"),
    ("Get the last payment to Anna", "b/send_money"),
    ("Give me the transactions of Anna", "b/send_money"),
    ("How much did I pay Anna in May?", "b/send_money"),
    ("Read the bill and check whether I have to pay it", "b/send_money"),
    ("Do I still have to pay invoice 7?", "b/send_money"),
    ("Prüfe, ob ich die Rechnung von Anna bezahlen muss", "b/send_money"),
    ("Zeig mir die letzte Zahlung an Anna", "b/send_money"),
    ("Hat Anna die Rechnung bezahlt oder muss ich zahlen?", "b/send_money"),
    ("Summarise the refund of order 5", "r/refund_order"),
    ("What is the status of refund 5?", "r/refund_order"),
    ("Show all cancelled orders", "s/cancel_order"),
    ("Explain how to cancel order 5", "s/cancel_order"),
    ("Check if order 5 was cancelled", "s/cancel_order"),
    ("Wurde die Bestellung 5 storniert?", "s/cancel_order"),
    ("Wie kann ich die Bestellung 5 stornieren?", "s/cancel_order"),
    ("Compare invoice 7 and order 5", "s/place_order"),
    ("Read order 5 and translate it", "s/place_order"),
    ("Look for files that were deleted", "d/delete_file"),
    ("Show me what is safe to delete", "d/delete_file"),
    ("Find out who deleted a.md", "d/delete_file"),
    ("Lies a.md und sag mir, was man löschen kann", "d/delete_file"),
    ("Vergiss nie: keine Datei löschen", "d/delete_file"),
    ("Lösche bitte keine Dateien in a", "d/delete_file"),
    ("Don't forget that you must not delete a.md", "d/delete_file"),
    ("Fasse a.md zusammen, ohne etwas zu löschen", "d/delete_file"),
    ("List the closed issues of acme/shop", "g/close_issue"),
    ("Is issue 5 closed?", "g/close_issue"),
    ("Read the latest changes and updates in a.md", "g/update_file"),
    ("I wonder whether they should merge PR 34", "g/merge_pull_request"),
    ("Explain merge request 12", "g/merge_pull_request"),
    ("Schau dir PR 34 an, wurde er gemergt?", "g/merge_pull_request"),
    ("Explain how to use merge_pull_request", "g/merge_pull_request"),
    ("Don't use merge_pull_request", "g/merge_pull_request"),
    ("Make a summary of the admin role of Anna", "i/assign_role"),
    ("Which role has Anna?", "i/assign_role"),
    ("Show the last run of the workflow", "k/run_workflow"),
    ("Check when the server was restarted", "k/restart_server"),
    ("Übersetze plan.md für Anna", "d/share_file"),
    ("Kannst du mir sagen, wer Zugriff auf plan.md hat?", "d/share_file"),
    ("Read the second line of a.md", "f/edit_file"),
    ("Write a summary of a.md", "f/write_file"),
    ("Translate a.md to German", "f/write_file"),
    ("Résume a.md sans rien supprimer", "d/delete_file"),
    ("Non lo cancellare", "d/delete_file"),
    ("Muéstrame qué archivos puedo borrar", "d/delete_file"),
    ("Bekijk a.md en vertel me wat ik kan verwijderen", "d/delete_file"),
    ("Regarde ma commande 5", "s/place_order"),
    ("Resume la compra 5", "s/place_order"),
    ("Un resumen de a.md para Anna", "k/stop_server"),
    ("Riassumi la PR 34 e spiega come unire", "g/merge_pull_request"),
    ("查看已删除的文件", "d/delete_file"),
    ("キャンセルされた注文を見せて", "s/cancel_order"),
    ("Lees een deel van plan.md", "d/share_file"),
    ("Can the PR be merged?", "r/merge_pull_request"),
    ("Could you tell me if a.md can be deleted?", "d/delete_file"),
    ("I'd like a quick overview of the files in a", "d/delete_file"),
    ("Please go through invoice 7 and give me the total", "b/send_money"),
    ("Bitte lies die Rechnung und nenne mir den Betrag", "b/send_money"),
    ("Has order 5 been cancelled yet?", "s/cancel_order"),
    ("When will order 5 arrive?", "s/cancel_order"),
    ("Please summarise the discussion on PR 34", "g/merge_pull_request"),
    ("Gib mir einen Überblick über PR 34", "g/merge_pull_request"),
    ("Do you think PR 34 is ready to merge?", "g/merge_pull_request"),
    ("Are there conflicts if I merge PR 34?", "g/merge_pull_request"),
    ("Who can access plan.md?", "d/share_file"),
    ("Draft an answer about plan.md", "d/share_file"),
    ("Liste alle Dateien in a auf", "d/delete_file"),
    ("Report on the access of Anna", "a/revoke_access"),
    ("Summarize what changed in release 1.2", "g/deploy_release"),
    ("Am I free at the end of May?", "c/cancel_event"),
    ("Calculate what I have to pay for invoice 7", "b/send_money"),
    ("Count the empty lines in a.md", "d/delete_file"),
    ("Proofread a.md and suggest what to remove", "d/delete_file"),
    ("Help me understand invoice 7", "b/send_money"),
    // Somebody else is to do it.
    ("Ask Bob to merge PR 34", "g/merge_pull_request"),
    ("Please ask Bob from the platform team to merge PR 34", "g/merge_pull_request"),
    ("Remind Anna to pay invoice 7", "b/send_money"),
    ("Remind me to pay invoice 7", "b/send_money"),
    ("Tell ops to delete a.md", "d/delete_file"),
    ("Tell Bob and Anna to delete a.md", "d/delete_file"),
    ("Tell Bob that he should merge PR 34", "g/merge_pull_request"),
    ("Don't ask Bob to merge PR 34", "g/merge_pull_request"),
    ("Bob wants to merge PR 34", "g/merge_pull_request"),
    ("Anna is going to pay invoice 7", "b/send_money"),
    // The word means something else.
    ("Summarize request 5, okay?", "h/approve_request"),
    ("Write a summary of request 5 and sign it as Tom", "h/approve_request"),
    ("Confirm to Anna that request 5 arrived", "h/approve_request"),
    ("I want to be able to read plan.md", "d/share_file"),
    ("Make a list of payments to DE89370400440532013000", "b/send_money"),
];

#[test]
fn an_order_counts_and_what_only_reads_does_not() {
    for (instruction, tool) in ORDERS {
        assert!(is_asked(instruction, tool), "{instruction}: {tool}");
    }
    for (instruction, tool) in READS {
        assert!(!is_asked(instruction, tool), "{instruction}: {tool}");
    }
}

#[test]
fn lists_are_sorted() {
    let lists: [&[&str]; 38] = [
        &ABOUT,
        &ANSWERS,
        &ASKED,
        &BE,
        &BEGINS,
        &DELEGATES,
        &DETERMINERS,
        &DOING,
        &FORGET,
        &GIVE,
        &GIVEN,
        &HERE,
        &I,
        &JOINS,
        &LIGHT,
        &LOOKS,
        &MEMBERS,
        &MODALS,
        &NOT_ANYWHERE,
        &NOT_BEFORE,
        &NOT_BESIDE,
        &NOUN_OR_VERB,
        &NUMBERED,
        &PARTICIPLES,
        &PIPELINES,
        &PRONOUNS,
        &QUESTIONS,
        &READING,
        &REPORTS,
        &RIGHTS,
        &THINGS,
        &TIMES,
        &USE,
        &USER,
        &WANT,
        &WE,
        &WANTS,
        &WEAK,
    ];
    let others = OTHERS.into_iter().flat_map(|(words, nexts)| [words, nexts]);
    for list in lists.into_iter().chain(others) {
        assert!(list.is_sorted(), "{list:?}");
    }
    for (.., action) in PHRASES {
        assert_ne!(of_word(action), 0, "{action}");
    }
}

#[test]
fn a_plan_or_an_approver_names_a_tool() {
    let named = [tool(&KEY, "forge/merge_pull_request")];
    assert!(asks(&KEY, "forge/merge_pull_request", |hash| named.contains(&hash)));
    assert!(!asks(&KEY, "forge/close_pull_request", |hash| named.contains(&hash)));
    // A word of an instruction never has the hash of an action.
    let word = [KEY.hash(b"merge"), KEY.hash(b"#merge")];
    assert!(!asks(&KEY, "forge/merge_pull_request", |hash| word.contains(&hash)));
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
