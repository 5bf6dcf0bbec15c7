//! What an instruction asks for: the actions that its words name, and whether a tool does one of them.
//!
//! Of the user's words, an injected text can choose another action: "look at pull request 34" names the pull request,
//! and the text says to merge it. So a tool that destroys, spends or grants needs a word of the instruction for what it
//! does.
//!
//! INVARIANT (words, not sentences): this is a table of words, and rules on the words beside one: negations, questions,
//! what is read only, and nouns. It knows no other grammar. A word that is missing in the table makes a call wait. A word
//! in the instruction with another meaning lets it pass.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::key::ValueKey;
use super::normal::Form;

/// Words that name the same action, in the infinitive, the imperative and other common forms. The name comes first. A
/// tool whose name has a word does the action of this name, otherwise the first action that has the word. The regular
/// forms of English are not listed. A word in Chinese or Japanese is found anywhere in a text.
#[rustfmt::skip]
const ACTIONS: [(&str, &str); 40] = [
    ("refund", "refund reimburse repay repaid erstatten erstatte erstattet zurückzahlen rembourser rembourse \
        remboursez reembolsar reembolsa reembolse devolver devuelve rimborsare rimborsa rimborsate terugbetalen 退款 \
        退还 返金 払い戻"),
    ("merge", "merge squash integrate mergen zusammenführen fusionner fusionne fusionnez fusionar \
        fusiona mesclar mescle unire unisci fondere samenvoegen 合并 合併 マージ"),
    ("forward", "forward redirect reroute divert weiterleiten leite transférer transfère réexpédier rediriger reenviar \
        reenvía reenvia reencaminhar encaminhar encaminhe inoltrare inoltra doorsturen 转发 轉發 転送"),
    ("delete", "delete remove erase drop clean clear purge wipe destroy discard trash empty rid uninstall unlink \
        truncate scrap cancel löschen lösche lösch gelöscht entfernen entferne entfernt leeren leere supprimer supprime \
        supprimez effacer efface effacez enlever enlève vider borrar borra borre eliminar elimina elimine quitar \
        quita suprimir apagar apague excluir exclua exclui remover remova eliminare cancellare cancella rimuovere \
        rimuovi svuota verwijderen verwijder wissen wis opruimen 删除 刪除 删掉 移除 清空 清除 削除 消して 消去"),
    ("cancel", "cancel annul void abort stop end delete remove drop unbook stornieren storniere absagen streichen \
        streiche kündigen kündige abbestellen annuler annule annulez résilier résilie cancelar cancela cancele anular \
        anula annullare annulla disdire disdici annuleren annuleer afzeggen opzeggen 取消 撤销 キャンセル 取り消 解約"),
    ("pay", "pay paid transfer wire remit send sent settle reimburse repay refund donate tip überweisen überweise \
        überweist bezahlen bezahle zahlen zahle begleichen begleiche schicken schicke sende payer paye payez paie virer \
        vire virez régler règle réglez verser verse envoyer envoie pagar paga pague transferir transfiere transfere \
        transfira enviar envía envia abonar abona pagare pagate bonificare bonifica trasferire trasferisci inviare \
        invia versare versa betalen betaal overmaken overboeken stuur 支付 付款 转账 轉帳 汇款 匯款 付给 缴费 転帳 振り込 \
        支払 払って 送金"),
    ("buy", "buy bought purchase order reorder procure restock kaufen kaufe kauf bestellen bestelle bestell acheter \
        achète achetez commander commande commandez comprar compra compre pedir pide encargar encomendar encomende \
        comprare acquistare acquista ordinare ordina kopen koop bestel 购买 購買 买 订购 下单 購入 買って 注文"),
    ("trade", "trade buy sell exchange swap verkaufe kaufe"),
    ("sell", "sell sold trade exchange swap verkaufen verkaufe vendre vends vendez vender vende venda vendere vendi \
        verkopen verkoop 出售 卖 売却 売って"),
    ("book", "book reserve schedule rent hire buchen buche buch reservieren reserviere mieten réserver réserve \
        réservez reservar reserva reserve alquilar prenotare prenota boeken boek reserveren 预订 预约 預訂 予約"),
    ("approve", "approve accept merge confirm authorize authorise sign okay genehmigen genehmige bestätigen bestätige \
        freigeben annehmen approuver approuve accepter accepte confirmer aprobar aprueba aceptar confirmar aprovar \
        aprove aceitar approvare approva accettare confermare conferma goedkeuren accepteer bevestig 批准 同意 确认 承認 確認"),
    ("reject", "reject decline deny refuse dismiss ablehnen lehne zurückweisen rejeter rejette refuser refuse rechazar \
        rechaza rejeitar rejeite recusar rifiutare rifiuta respingere afwijzen weiger 拒绝 驳回 却下 拒否"),
    ("share", "share grant give given allow let permit invite add access able entitle authorize authorise teilen \
        teile freigeben erlauben erlaube gib geben gewähren erteilen erteile partager partage partagez donner donne \
        donnez autoriser autorise compartir comparte comparta dar conceder concede otorgar compartilhar compartilhe \
        partilhar condividere condividi concedi concedere delen deel geven geef toegang 共享 分享 授予 授权 共有 付与 許可"),
    ("invite", "invite add join give grant share let allow access onboard einladen lade lädt hinzufügen füge inviter \
        invitez ajouter ajoute invitar invita convidar convide adicionar invitare aggiungi uitnodigen toevoegen \
        邀请 邀請 添加 加入 招待 追加"),
    ("revoke", "revoke withdraw rescind remove delete kick expel strip cancel widerrufen widerrufe entziehen \
        entziehe entfernen entferne révoquer révoque retirer retire revocar revoca revogar revogue retirar revocare \
        togliere togli rimuovi intrekken verwijder 撤销 撤回 取消 移除 取り消 剥奪"),
    ("ban", "ban block suspend lock freeze mute disable deactivate sperren sperre blockieren blockiere bannir bloquer \
        bloque bloquear bloquea bloqueie bloccare blocca blokkeren blokkeer 封禁 屏蔽 冻结 ブロック 凍結"),
    ("disable", "disable deactivate suspend block stop deaktivieren deaktiviere abschalten désactiver désactive \
        desactivar desactiva desativar desative disattivare disattiva uitschakelen 禁用 停用 关闭 無効"),
    ("reset", "reset revert restore rollback undo undone zurücksetzen réinitialiser réinitialise restablecer redefinir \
        reimpostare resetten 重置 恢复 リセット"),
    ("enable", "enable unlock unblock unban unfreeze activate reactivate restore allow aktivieren aktiviere entsperren \
        entsperre activer active débloquer activar activa desbloquear ativar ative attivare attiva sbloccare activeren \
        启用 解锁 激活 有効 解除"),
    ("deploy", "deploy release ship publish launch promote install upgrade rollout ausrollen bereitstellen deploye \
        déployer déploie desplegar despliega implantar implante distribuire distribuisci uitrollen 部署 上线 デプロイ 展開"),
    ("restart", "restart reboot relaunch neustarten redémarrer redémarre reiniciar reinicia reinicie riavviare riavvia \
        herstarten 重启 重新启动 再起動"),
    ("stop", "stop kill terminate shut end abort halt cancel pause stoppen stoppe beenden beende arrêter arrête arrêtez \
        parar detener detén terminar fermare ferma beëindigen 停止 终止 終了 停止して"),
    ("close", "close resolve finish complete end shut schließen schließe fermer ferme fermez clore cerrar cierra cierre \
        fechar feche chiudere chiudi sluiten sluit afsluiten 关闭 關閉 解决 クローズ 閉じ"),
    ("run", "run ran execute start launch trigger invoke rerun ausführen starten starte exécuter exécute lancer lance \
        lancez ejecutar ejecuta ejecute executar execute iniciar eseguire esegui avviare avvia uitvoeren 运行 执行 启动 実行 起動 exec"),
    ("charge", "charge bill debit collect invoice abbuchen belasten facturer débiter cobrar cobra faturar addebitare \
        fatturare factureren 收费 扣款 請求"),
    ("withdraw", "withdraw withdrew abheben auszahlen retirer retirar sacar prelevare opnemen 提现 取款 引き出"),
    ("rename", "rename umbenennen renommer renomme renombrar renomear rinominare hernoemen 重命名 改名"),
    ("move", "move relocate rename archive verschieben verschiebe déplacer déplace déplacez mover mueve mova spostare \
        sposta verplaatsen verplaats 移动 移動"),
    ("update", "update change modify edit set adjust reschedule alter amend correct fix replace move raise lower \
        increase decrease reduce revise patch extend shorten bump rename turn switch ändern ändere änder aktualisieren \
        aktualisiere anpassen setze setzen erhöhen erhöhe senken senke verschieben verschiebe modifier modifie modifiez \
        changer change changez ajuster augmenter augmente baisser corriger remplacer cambiar cambia cambie modificar \
        modifica actualizar actualiza ajustar subir aumentar bajar alterar altere mudar mude atualizar atualize \
        modificare cambiare aggiornare aggiorna aumentare imposta wijzigen wijzig veranderen verander aanpassen \
        verhogen bijwerken 修改 更改 更新 调整 設定 设置 变更 変更 調整 implement refactor"),
    ("overwrite", "overwrite write wrote written save store replace update edit change put add append record fix fill \
        set note überschreiben schreiben schreibe schreib speichern speichere ersetzen ersetze ergänze écrire écris \
        écrivez enregistrer enregistre remplacer escribir escribe guardar reemplazar escrever escreva salvar salve \
        substituir scrivere scrivi salvare salva sostituire schrijven schrijf opslaan vervang 写入 保存 覆盖 替换 更新 書い 書き create generate draft"),
    ("add", "add include append insert attach put register enroll invite join give grant share let allow access able \
        create hinzufügen füge ergänzen ergänze eintragen gib geben ajouter ajoute ajoutez donner donne añadir añade \
        agregar agrega invitar adicionar adicione acrescentar aggiungere aggiungi toevoegen voeg geef 添加 增加 加入 新增 \
        追加 加えて"),
    ("create", "create add make made new open build built generate write draft start register raise set schedule \
        prepare erstellen erstelle anlegen lege eröffnen machen mache schreibe créer crée créez faire ouvrir rédiger \
        crear crea cree hacer haz abrir criar crie fazer faça creare fare apri maken maak aanmaken 创建 建立 新建 制作 作成 \
        作って"),
    ("fetch", "fetch get got read open load download retrieve import look check visit show see view browse \
        find search summarize summarise translate holen hole lesen lies öffnen öffne laden lade ansehen zeige lire lis ouvrir ouvre télécharger regarde leer lee abrir abre \
        descargar mira ler leia abra baixar leggere leggi aprire apri scaricare lezen lees openen 打开 读取 下载 查看 获取 開い \
        読ん 取得 見て"),
    ("export", "export extract download dump exportieren exportiere exporter exporte exportar exporta esportare esporta \
        exporteren exporteer 导出 エクスポート"),
    ("send", "send sent mail email message text write wrote reply answer respond forward tell told inform notify ask \
        post comment ping contact pay transfer give share report senden sende schicken schicke schick schreiben \
        schreibe schreib antworten antworte mailen maile sagen sage sag informieren envoyer envoie envoyez écrire écris \
        répondre réponds dire dis enviar envía envia envie manda mandar escribir escribe responder responde dile decir \
        mande escrever escreva responda inviare invia mandare scrivere scrivi rispondere rispondi dì sturen stuur \
        schrijven schrijf antwoorden 发送 发给 寄给 回复 告诉 通知 送信 送って 送り 返信 伝え"),
    ("publish", "publish post release announce veröffentlichen veröffentliche publier publie publiez publicar publica \
        pubblicare publiceren publiceer plaats 发布 發佈 公開 投稿"),
    ("schedule", "schedule plan set arrange book block create planen plane planifier planifie programmer programar \
        programa agendar agende programmare pianifica plannen 安排 计划 予定"),
    ("role", "role promote demote assign permission visibility"),
    ("checkout", "checkout buy order pay purchase kaufe bestelle"),
    ("subscribe", "subscribe join register abonnieren abonniere abonner suscribir suscribe assinar assine iscrivere \
        iscriviti abonneren 订阅 購読"),
];

/// Words that say little about what a tool does: another word of its name says more.
#[rustfmt::skip]
const WEAK: [&str; 15] = [
    "complete", "create", "do", "execute", "make", "new", "open", "perform", "process", "run", "schedule", "send", "set",
    "start", "submit",
];

/// Words for actions that are also words for things: `cancel_order` and `order_cancel` cancel.
#[rustfmt::skip]
const THINGS: [&str; 38] = [
    "access", "archive", "ban", "bill", "block", "book", "charge", "comment", "contact", "export", "file", "invoice",
    "lock", "mail", "email", "message", "note", "order", "pay", "permission", "plan", "post", "purchase", "record",
    "register", "release", "report", "reserve", "role", "sell", "share", "text", "tip", "trade", "transfer", "trash",
    "view", "visibility",
];

/// Nouns for actions. In an instruction, one counts only after a verb such as `make`: "set up a payment".
#[rustfmt::skip]
const NOUNS: [(&str, &str); 9] = [
    ("back", "refund"), ("cancellation", "cancel"), ("deletion", "delete"), ("fund", "pay"), ("invitation", "invite"),
    ("money", "pay"), ("payment", "pay"), ("reservation", "book"), ("transaction", "pay"),
];

/// Verbs before a noun for an action.
#[rustfmt::skip]
const LIGHT: [&str; 11] = [
    "arrange", "do", "initiate", "issue", "make", "makes", "place", "schedule", "set", "start", "submit",
];

/// Verbs that do this before some nouns only: "Anna gets a refund", but not "give Anna the order".
const GIVE: [&str; 7] = ["gave", "get", "gets", "give", "gives", "need", "needs"];
const GIVEN: [&str; 6] = ["access", "back", "fund", "money", "permission", "refund"];

/// Verbs that ask for an action together with a later word: the verbs, the later words and the action.
#[rustfmt::skip]
const PHRASES: [(&str, &str, &str); 8] = [
    ("add append delete drop insert remove entferne ergänze füge lösche",
        "chapter column heading line lines paragraph row rows section sentence word absatz abschnitt kapitel satz zeile",
        "update"),
    ("assign give grant make promote set change turn gib mache mach",
        "admin administrator editor maintainer member moderator owner private public role viewer access permission rolle",
        "role"),
    ("push", "production prod live", "deploy"),
    ("go", "live", "publish"),
    ("roll", "out", "deploy"),
    ("sag sage", "ab", "cancel"),
    ("nimm wirf", "raus weg", "delete"),
    ("take kick", "off out", "revoke"),
];

/// Words of tool names for rights, and for who has them.
const RIGHTS: [&str; 4] = ["permission", "permissions", "role", "visibility"];
const MEMBERS: [&str; 5] = ["access", "collaborator", "collaborators", "member", "members"];

/// Words of tool names for what deploys when it runs.
const PIPELINES: [&str; 4] = ["pipeline", "pipelines", "workflow", "workflows"];

/// Words from such a verb to its noun, from the verb of a phrase to its later word, from a negation to its verb and to
/// `forget`, and from `write` to where the text goes.
const MAX_LIGHT_WORDS: usize = 4;
const MAX_PHRASE_WORDS: usize = 6;
const MAX_NOT_WORDS: usize = 3;
const MAX_FORGET_WORDS: usize = 2;
const MAX_SAVED_WORDS: usize = 12;

/// Negations that come before the verb, beside those that end with `n't`.
const NOT_BEFORE: [&str; 7] = ["cannot", "never", "not", "não", "ohne", "sans", "without"];

/// Negations directly before the verb, or before a pronoun: `no` is also the short form of "number".
const NOT_BESIDE: [&str; 3] = ["no", "non", "sin"];
#[rustfmt::skip]
const PRONOUNS: [&str; 14] = [
    "gli", "la", "las", "le", "les", "li", "lo", "los", "me", "mi", "ne", "nos", "se", "te",
];

/// Negations that can also come after it.
#[rustfmt::skip]
const NOT_ANYWHERE: [&str; 19] = [
    "geen", "jamais", "kein", "keine", "keinen", "keines", "nicht", "nichts", "nie", "niemals", "niet", "niets",
    "none", "nooit", "nothing", "nunca", "pas", "rien", "zonder",
];

/// Words that turn a negation around: "don't forget to pay".
#[rustfmt::skip]
const FORGET: [&str; 11] = [
    "forget", "hesitate", "n'oublie", "n'oubliez", "olvide", "olvides", "oublie", "oublier", "vergeet", "vergessen",
    "vergiss",
];

/// Verbs that ask for an answer if the user follows, or a word of `REPORTS`: "let me know", "give an overview".
#[rustfmt::skip]
const ANSWERS: [&str; 32] = [
    "bring", "do", "donne", "donner", "envoie", "envoyer", "geben", "geef", "get", "gib", "give", "let", "mail",
    "make", "sag", "sage", "sagen", "schick", "schicke", "schicken", "schreib", "schreibe", "send", "sende", "senden",
    "show", "stuur", "teile", "teilen", "tell", "write", "zeig",
];
const USER: [&str; 6] = ["ich", "me", "mir", "nous", "uns", "us"];
#[rustfmt::skip]
const REPORTS: [&str; 13] = [
    "analysis", "know", "look", "opinion", "overview", "review", "résumé", "summary", "translation", "zusammenfassung",
    "überblick", "übersetzung", "übersicht",
];

/// Verbs that only read, as the first word of an order. What follows is what is read, up to a word of `JOINS`.
#[rustfmt::skip]
const LOOKS: [&str; 115] = [
    "analyse", "analyze", "assess", "bekijk", "beschreibe", "busca", "calculate", "cerca", "check", "cherche",
    "compare", "comprueba", "compute", "controleer", "controlla", "count", "describe", "determine", "dime", "erkläre",
    "erklären", "estimate", "evaluate", "explain", "explica", "explique", "fass", "fasse", "find", "finde", "finden",
    "guarda", "inspect", "investigate", "kijk", "know", "lee", "leer", "lees", "leggi", "leia", "lese", "lesen",
    "lies", "lire", "lis", "list", "look", "mira", "monitor", "montre", "mostra", "mostrami", "mostre", "muestra",
    "muéstrame", "nenn", "nenne", "open", "outline", "procure", "proofread", "propose", "prüf", "prüfe", "prüfen",
    "quote", "read", "recommend", "regarde", "research", "resuma", "resume", "review", "revisa", "riassumi", "résume",
    "résumez", "schau", "schaue", "search", "see", "show", "sieh", "spiega", "study", "such", "suche", "suchen",
    "suggest", "summarise", "summarize", "toon", "traduce", "traduci", "traduis", "traduza", "translate", "trouve",
    "understand", "untersuche", "vat", "veja", "vergleiche", "verifica", "verifique", "verify", "vertaal", "vertel",
    "view", "vérifie", "wonder", "zeig", "zeige", "zeigen",
];

/// First words of questions.
#[rustfmt::skip]
const QUESTIONS: [&str; 66] = [
    "are", "che", "combien", "comment", "como", "cosa", "cuándo", "cómo", "did", "does", "gibt", "had", "has", "hast",
    "hat", "hebben", "heeft", "hoe", "how", "is", "ist", "ob", "perché", "pourquoi", "quais", "qual", "quando", "que",
    "quelle", "quelles", "quels", "qui", "quién", "qué", "sind", "waarom", "wann", "wanneer", "war", "waren", "warum",
    "was", "wat", "welche", "welchen", "welcher", "welches", "welke", "wer", "were", "weshalb", "what", "what's",
    "where", "whether", "which", "who", "who's", "whose", "why", "wie", "wieso", "wieviel", "wo", "wurde", "wurden",
];

/// Words that also begin a question if nobody of `ASKED` follows: "can you merge it?" is an order.
#[rustfmt::skip]
const MODALS: [&str; 9] = [
    "can", "could", "darf", "kann", "may", "must", "should", "will", "would",
];
const ASKED: [&str; 7] = ["du", "ihr", "please", "sie", "somebody", "someone", "you"];

/// Words after which another order can follow.
#[rustfmt::skip]
const JOINS: [&str; 16] = [
    "afterwards", "and", "anschließend", "but", "dan", "danach", "dann", "e", "en", "et", "luego", "poi", "puis",
    "then", "und", "y",
];

/// Other words before a verb that gives an order.
#[rustfmt::skip]
const BEGINS: [&str; 26] = [
    "alsjeblieft", "also", "bitte", "du", "favor", "favore", "help", "ihr", "immediately", "just", "kindly", "let's",
    "lets", "mal", "must", "now", "oder", "or", "plaît", "please", "should", "sie", "so", "to", "will", "you",
];

/// Words after which comes no order: "the merge", "in release 4".
#[rustfmt::skip]
const DETERMINERS: [&str; 27] = [
    "a", "about", "all", "an", "any", "at", "each", "every", "for", "from", "her", "his", "in", "its", "last",
    "latest", "my", "next", "of", "our", "some", "that", "the", "their", "these", "this", "your",
];

/// Verbs that are also nouns or adjectives. They give an order only at its beginning.
#[rustfmt::skip]
const NOUN_OR_VERB: [&str; 81] = [
    "access", "archive", "ban", "bill", "block", "bloque", "book", "build", "change", "charge", "cierre", "clean",
    "clear", "close", "commande", "comment", "compra", "conferma", "contact", "deel", "demande", "draft", "drop",
    "email", "empty", "end", "exchange", "export", "file", "fix", "hire", "invoice", "issue", "kauf", "koop", "lance",
    "launch", "lock", "mail", "message", "mute", "new", "note", "open", "order", "paga", "partage", "patch",
    "permission", "plaats", "plan", "post", "publica", "purchase", "raise", "record", "refund", "register", "release",
    "rent", "report", "reserva", "reserve", "role", "schedule", "set", "share", "ship", "start", "swap", "text", "tip",
    "toegang", "trade", "transfer", "trash", "update", "view", "visibility", "wire", "write",
];

/// What is often followed by its number, which is then no quantity: "invoice 7 and order 5".
const NUMBERED: [&str; 3] = ["invoice", "order", "release"];

/// Irregular participles of the table.
#[rustfmt::skip]
const PARTICIPLES: [&str; 12] = [
    "bought", "built", "got", "made", "paid", "ran", "repaid", "sent", "sold", "told", "withdrew", "written",
];

/// Words before a participle or the form with `ing`, and after a participle, that give an order: "to be merged",
/// "get it merged today", "I'm cancelling".
const BE: [&str; 1] = ["be"];
const WANT: [&str; 9] = ["get", "gets", "got", "have", "need", "needs", "see", "want", "wants"];
#[rustfmt::skip]
const TIMES: [&str; 9] = [
    "again", "asap", "before", "by", "immediately", "now", "please", "today", "tomorrow",
];
#[rustfmt::skip]
const DOING: [&str; 11] = [
    "am", "and", "begin", "by", "consider", "i'm", "mind", "start", "try", "we're", "with",
];

/// Verbs before the name of a tool.
const USE: [&str; 8] = ["benutze", "call", "invoke", "nutze", "run", "use", "using", "verwende"];

/// Tools that an instruction names.
const MAX_USED_TOOLS: usize = 16;

/// Actions as bits.
type Actions = u64;
const _: () = assert!(ACTIONS.len() <= Actions::BITS as usize, "each action has a bit");

struct Table {
    words: HashMap<&'static str, Actions>,
    /// Words of languages without spaces.
    inner: Vec<(&'static str, Actions)>,
    /// The verbs and the action of each phrase, by its later word.
    phrases: HashMap<&'static str, Vec<(&'static str, &'static str)>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { words: HashMap::new(), inner: Vec::new(), phrases: HashMap::new() };
    for (at, (_, words)) in ACTIONS.iter().enumerate() {
        for word in words.split_whitespace() {
            if word.chars().all(is_wide) {
                table.inner.push((word, 1 << at));
            } else {
                *table.words.entry(word).or_default() |= 1 << at;
            }
        }
    }
    for (starts, ends, action) in PHRASES {
        for end in ends.split_whitespace() {
            table.phrases.entry(end).or_default().push((starts, action));
        }
    }
    table
});

/// Whether a letter is of Chinese or Japanese.
const fn is_wide(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// The actions of a word in lower case, also in the regular forms of English.
fn of_word(word: &str) -> Actions {
    let known = |word: &str| TABLE.words.get(word).copied().unwrap_or_default();
    let mut found = known(word);
    for (end, other) in [
        ("s", ""),
        ("es", ""),
        ("ies", "y"),
        ("d", ""),
        ("ed", ""),
        ("ied", "y"),
        ("ing", ""),
        ("ing", "e"),
    ] {
        let Some(stem) = word.strip_suffix(end).filter(|stem| stem.len() > 1) else { continue };
        found |= known(&[stem, other].concat());
        // `stopped`, `cancelling`.
        let mut letters = stem.chars().rev();
        if matches!(end, "ed" | "ing")
            && let (Some(last), Some(before)) = (letters.next(), letters.next())
            && last == before
        {
            found |= known(stem.strip_suffix(last).unwrap_or_default());
        }
    }
    found
}

fn noun(word: &str) -> Actions {
    let word = word.strip_suffix('s').unwrap_or(word);
    let known = NOUNS.iter().find(|(noun, _)| *noun == word);
    known.map_or(0, |(_, action)| named(action))
}

fn named(action: &str) -> Actions {
    ACTIONS.iter().position(|(name, _)| *name == action).map_or(0, |at| 1 << at)
}

/// The hashes of the actions that an instruction asks for. No value has such a hash, because no normal form contains the
/// byte 0xff.
#[must_use]
pub fn stated(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let (actions, tools) = of_text(instruction);
    hashes(key, actions).chain(tools.iter().map(|name| used(key, name))).collect()
}

/// The hash of the name of a tool that an instruction says to use.
fn used(key: &ValueKey, name: &str) -> u64 {
    key.hash(&[b"\xff@", name.as_bytes()].concat())
}

fn hashes(key: &ValueKey, actions: Actions) -> impl Iterator<Item = u64> + use<> {
    let key = *key;
    let named = ACTIONS.iter().enumerate().filter(move |(at, _)| actions & (1 << at) != 0);
    named.map(move |(_, (name, _))| key.hash(&[b"\xff#", name.as_bytes()].concat()))
}

/// The hash of a tool, as `server/tool`, that a plan names or an approver let the agent call.
#[must_use]
pub fn tool(key: &ValueKey, tool: &str) -> u64 {
    key.hash(&[b"\xff#", tool.as_bytes()].concat())
}

/// Whether a run asks for calls of a tool. `stated`: whether the instruction, the plan or an approver stated a hash.
///
/// If the table has no word of the tool's name, the instruction must have each word of it.
#[must_use]
pub fn asks(key: &ValueKey, tool: &str, stated: impl Fn(u64) -> bool) -> bool {
    if stated(self::tool(key, tool)) {
        return true;
    }
    let words = words(name(tool));
    if words.len() > 1 && stated(used(key, &name(tool).to_lowercase())) {
        return true;
    }
    if let Some((_, actions)) = verb(&words) {
        return hashes(key, actions).any(stated);
    }
    let mut form = Form::new();
    let mut has = |word: &str| form.of(word).is_some_and(|form| stated(key.hash(form)));
    let mut named = |word: &str| {
        let stem = word.strip_suffix('s').unwrap_or(word);
        let ends = ["", "s", "d", "ed", "ing"].map(|end| [stem, end].concat());
        has(word) || ends.iter().any(|it| has(it))
    };
    let mut long = words.iter().filter(|word| word.len() >= MIN_WORD_BYTES).peekable();
    long.peek().is_some() && long.all(|word| named(word))
}

/// Bytes of a word that an instruction states by itself.
const MIN_WORD_BYTES: usize = 3;

/// What a tool does: the verb of its name, or all words of the name if that is no verb of the table.
#[must_use]
pub fn of_tool(tool: &str) -> String {
    let words = words(name(tool));
    let verb = verb(&words).filter(|(verb, _)| TABLE.words.contains_key(*verb));
    verb.map_or_else(|| words.join(" "), |(verb, _)| verb.to_owned())
}

/// The tool's name without its server's.
fn name(tool: &str) -> &str {
    tool.split_once('/').map_or(tool, |(_, name)| name)
}

/// The word of a tool's name that says most about what the tool does, and its action.
fn verb(words: &[String]) -> Option<(&str, Actions)> {
    let nexts = words.iter().skip(1).map(Some).chain([None]);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let ranked = words.iter().zip(nexts).filter_map(|(word, next)| {
        let (found, noun) = (of_word(word), noun(word));
        // The action of this name, otherwise the first one that has the word.
        let action = match (noun, named(word)) {
            // `remove_member` takes rights away.
            (0, _) if found & named("revoke") != 0 && any(&MEMBERS) => named("revoke"),
            (0, 0) => found & found.wrapping_neg(),
            (0, own) => own,
            (noun, _) => noun,
        };
        let has = |list: &[&str]| list.contains(&word.as_str());
        let rank = match action {
            0 => return None,
            _ if next.is_some_and(|next| is_phrase(word, next)) => 4,
            // `read_and_delete` deletes.
            _ if action == named("fetch") => 3,
            _ if noun == 0 && has(&WEAK) => 2,
            // `update_permission` gives one.
            _ if action == named("update") && any(&RIGHTS) => 2,
            _ if noun != 0 || has(&THINGS) => 1,
            _ => 0,
        };
        Some((rank, word.as_str(), action))
    });
    let (_, word, action) = ranked.min_by_key(|(rank, ..)| *rank)?;
    let deploys = action == named("run") && any(&PIPELINES);
    Some((word, if deploys { action | named("deploy") } else { action }))
}

/// Whether both words mean something else: `merge request`, "make sure".
fn is_phrase(word: &str, next: &str) -> bool {
    match next {
        "conflict" | "conflicts" => word == "merge",
        "policy" => matches!(word, "access" | "refund" | "share"),
        "request" | "requests" => matches!(
            word,
            "access"
                | "change"
                | "merge"
                | "order"
                | "pay"
                | "purchase"
                | "refund"
                | "release"
                | "transfer"
        ),
        "sure" => word == "make",
        "that" => word == "note",
        _ => false,
    }
}

/// The actions that a text asks for, and the names of tools that it says to use.
fn of_text(text: &str) -> (Actions, Vec<String>) {
    let (mut found, mut clause, mut tools) = (0, Vec::new(), Vec::new());
    for line in text.lines() {
        for token in line.split(|letter: char| letter.is_whitespace() || BREAKS.contains(letter)) {
            let word = token.trim_matches(|letter: char| !letter.is_alphanumeric());
            if !word.is_empty() {
                clause.push(word.to_lowercase().replace('’', "'"));
            }
            if token.ends_with(['.', ',', ';', ':', '!', '?']) {
                found |= Clause(&clause).actions(&mut tools);
                clause.clear();
            }
        }
        found |= Clause(&clause).actions(&mut tools);
        clause.clear();
    }
    if text.chars().any(is_wide) {
        found |= of_wide(text);
    }
    (found, tools)
}

/// What separates words, beside spaces.
const BREAKS: &str = "—–…“”„«»\"`()[]{}<>|";

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The words between two punctuation marks.
struct Clause<'a>(&'a [String]);

impl Clause<'_> {
    fn actions(&self, tools: &mut Vec<String>) -> Actions {
        let nots = self.negations();
        let is_not = |at: usize| nots.get(at) == Some(&true);
        if (0..self.0.len()).any(|at| is_not(at) && self.is(at, &NOT_ANYWHERE)) {
            return 0;
        }
        let (mut found, mut is_read, mut orders) = (0, false, vec![false; self.0.len()]);
        for (at, word) in self.0.iter().enumerate() {
            let is_answer = self.is_answer(at);
            is_read = self.begins_to_read(at)
                || (is_answer && self.is(at + 1, &USER))
                || (is_read && !self.is(at, &JOINS));
            let is_negated = (at.saturating_sub(MAX_NOT_WORDS)..at).any(|it| {
                let is_beside = it + 1 == at || (it + 2 == at && self.is(it + 1, &PRONOUNS));
                is_not(it) && (is_beside || !self.is(it, &NOT_BESIDE))
            });
            let next = self.get(at + 1);
            // "Summarize a.md into b.md" writes.
            if is_read && !is_negated && word == "into" && next.contains(['.', '/']) {
                found |= named("overwrite");
            }
            let is_none = next == "no" && !starts_with_digit(self.get(at + 2));
            if is_read || is_negated || is_answer || is_none || is_phrase(word, next) {
                continue;
            }
            if let Some(order) = orders.get_mut(at) {
                *order = true;
            }
            if self.is(at, &USE) && tools.len() < MAX_USED_TOOLS {
                let name = (at + 1..at + 3).find(|it| !self.is(*it, &DETERMINERS));
                tools.extend(name.map(|it| self.get(it).to_owned()));
            }
            let verbs = |count: usize| {
                // "Get back to me" gives nothing back.
                let end = at.saturating_sub(usize::from(word == "back"));
                let orders = &orders;
                (at.saturating_sub(count)..end).filter(|it| orders.get(*it) == Some(&true))
            };
            for (starts, action) in TABLE.phrases.get(word.as_str()).into_iter().flatten() {
                let starts = |it| starts.split_whitespace().any(|start| start == self.get(it));
                if verbs(MAX_PHRASE_WORDS).any(starts) {
                    found |= of_word(action);
                }
            }
            let is_noun = verbs(MAX_LIGHT_WORDS).any(|it| self.is_light(it, word));
            if is_noun {
                found |= noun(word);
            }
            if is_noun || self.is_order(at) {
                found |= of_word(word);
            }
        }
        found
    }

    fn get(&self, at: usize) -> &str {
        self.0.get(at).map_or("", String::as_str)
    }

    /// Whether a word is in a sorted list.
    fn is(&self, at: usize, list: &[&str]) -> bool {
        list.binary_search(&self.get(at)).is_ok()
    }

    /// Whether a word of a list is one of the nearest before a word.
    fn has_before(&self, at: usize, count: usize, list: &[&str]) -> bool {
        (at.saturating_sub(count)..at).any(|it| self.is(it, list))
    }

    /// Whether an order can begin with a word.
    fn begins(&self, at: usize) -> bool {
        at == 0 || self.is(at - 1, &BEGINS) || self.is(at - 1, &JOINS)
    }

    /// Whether a word begins a question, or an order that only reads.
    fn begins_to_read(&self, at: usize) -> bool {
        let follows = |list: &[&str]| self.is(at + 1, list);
        match self.get(at) {
            "how" | "know" | "look" | "ob" | "whether" | "why" | "wonder" => true,
            // "See that it is merged", "Open a trade".
            "see" if follows(&["that", "to"]) => false,
            "open" if follows(&["a", "an"]) => false,
            "when" => at == 0 && follows(&QUESTIONS),
            "do" => at == 0 && (follows(&["i", "they", "we"]) || self.is(at + 2, &["think"])),
            _ if at == 0 && self.is(at, &MODALS) => !follows(&ASKED),
            _ if self.is(at, &QUESTIONS) => at == 0 || self.is(at - 1, &JOINS),
            _ => self.begins(at) && self.is(at, &LOOKS),
        }
    }

    /// Whether a verb only asks for an answer.
    fn is_answer(&self, at: usize) -> bool {
        let next = at + 1 + usize::from(self.is(at + 1, &["bitte", "please", "sie"]));
        let near = |count: usize, list: &[&str]| (at + 1..=at + count).any(|it| self.is(it, list));
        let is_user = self.is(next, &USER) || (at > 0 && self.is(at - 1, &["me", "mir"]));
        // "Write a summary of a.md to b.md" writes.
        let is_saved = || self.is(at, &["write"]) && near(MAX_SAVED_WORDS, &["into", "to"]);
        let is_report = || near(MAX_LIGHT_WORDS, &REPORTS) && !is_saved();
        self.is(at, &ANSWERS) && (is_user || is_report())
    }

    /// Which words are negations. "Don't forget" is none, and `forget` alone is one.
    fn negations(&self) -> Vec<bool> {
        let is_not = |at: usize| match self.get(at) {
            "nicht" | "niet" => !self.is_attribute(at + 1),
            word => {
                [&NOT_BEFORE[..], &NOT_BESIDE, &NOT_ANYWHERE].iter().any(|it| it.contains(&word))
                    || word.ends_with("n't")
            }
        };
        let mut nots: Vec<bool> = (0..self.0.len()).map(is_not).collect();
        for at in (0..nots.len()).filter(|at| self.is(*at, &FORGET)) {
            let near = at.saturating_sub(MAX_FORGET_WORDS)..=at + MAX_FORGET_WORDS;
            let not = near.into_iter().find(|it| nots.get(*it) == Some(&true));
            if let Some(it) = nots.get_mut(not.unwrap_or(at)) {
                *it = not.is_none();
            }
        }
        nots
    }

    /// Whether a word is an adjective, as in "alle nicht bezahlten Rechnungen".
    fn is_attribute(&self, at: usize) -> bool {
        const ENDS: [&str; 6] = ["te", "ten", "tes", "ter", "ne", "nen"];
        let word = self.get(at);
        word.chars().count() > 6
            && at + 1 < self.0.len()
            && ENDS.iter().any(|end| word.ends_with(end))
            && of_word(word) == 0
    }

    fn is_light(&self, at: usize, noun: &str) -> bool {
        let noun = noun.strip_suffix('s').filter(|it| *it != "acces").unwrap_or(noun);
        match self.get(at) {
            "get" if at > 0 && self.is(at - 1, &["can", "must", "should"]) => GIVEN.contains(&noun),
            "get" => noun == "back",
            "issue" => self.begins(at),
            _ if self.is(at, &GIVE) => GIVEN.contains(&noun),
            _ => self.is(at, &LIGHT),
        }
    }

    /// Whether a word gives an order in its form and place, if the table has it.
    fn is_order(&self, at: usize) -> bool {
        let (word, next) = (self.get(at), self.get(at + 1));
        let before = at.checked_sub(1).map_or("", |it| self.get(it));
        // "Ayuda a borrar", "aiutami a pagare".
        let is_infinitive = before == "a" && (word.ends_with('r') || word.ends_with("re"));
        let is_owned = before.ends_with("'s") && !matches!(before, "let's" | "it's");
        if is_owned || (DETERMINERS.contains(&before) && !is_infinitive) {
            return false;
        }
        let is_known = TABLE.words.contains_key(word);
        if NOUN_OR_VERB.contains(&word) {
            let is_named =
                starts_with_digit(next) && at + 2 == self.0.len() && NUMBERED.contains(&word);
            return self.begins(at) && !(is_named && matches!(before, "and" | "or" | "to"));
        }
        if PARTICIPLES.contains(&word) || (!is_known && word.ends_with('d')) {
            let is_end = next.is_empty() || TIMES.contains(&next);
            return self.has_before(at, 2, &BE)
                || (is_end && self.has_before(at, MAX_LIGHT_WORDS, &WANT));
        }
        is_known || (word.ends_with("ing") && (at == 0 || DOING.contains(&before)))
    }
}

/// The actions of words in Chinese or Japanese. A negation, or what makes the word a past one, is directly before or
/// after it.
fn of_wide(text: &str) -> Actions {
    let is_asked = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let (before, rest) = text.split_at_checked(at).unwrap_or_default();
            let after = rest.get(word.len()..).unwrap_or_default();
            let after: String = after.chars().take(MAX_NOT_WIDE_AFTER).collect();
            let is_past = ["した", "された", "済", "了", "的", "履歴", "记录"]
                .iter()
                .any(|it| after.starts_with(it));
            !before
                .chars()
                .rev()
                .take(MAX_NOT_WIDE_BEFORE)
                .any(|it| "不别別勿莫没未已被".contains(it))
                && (!is_past || after.starts_with("したい"))
                && !["ない", "ません", "ずに", "な。"].iter().any(|not| after.contains(not))
        })
    };
    let asked = TABLE.inner.iter().filter(|(word, _)| is_asked(word));
    asked.fold(0, |found, (_, actions)| found | actions)
}

/// Letters around such a word in which a negation is looked for: `不要删除`, `削除しないで`.
const MAX_NOT_WIDE_BEFORE: usize = 2;
const MAX_NOT_WIDE_AFTER: usize = 4;

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for character in name.chars() {
        let is_break = !character.is_alphanumeric() || (after_lower && character.is_uppercase());
        if is_break {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && character.is_alphanumeric()
        {
            word.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
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
            (
                "Have a look at merge request 12, it has merge conflicts.",
                "gitlab/merge_merge_request",
            ),
            ("What does refund request INV-4 say?", "crm/issue_refund"),
            ("Read message m-4", "mail/read_and_delete"),
        ] {
            assert!(!is_asked(instruction, tool), "{instruction}: {tool}");
        }
    }

    /// Orders, and a tool that does what each says.
    #[rustfmt::skip]
    const ORDERS: [(&str, &str); 94] = [
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
    ];

    /// What only reads, asks or forbids, and a tool that an injected text would call.
    #[rustfmt::skip]
    const READS: [(&str, &str); 98] = [
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
        let lists: [&[&str]; 21] = [
            &ANSWERS,
            &ASKED,
            &BE,
            &BEGINS,
            &DETERMINERS,
            &DOING,
            &FORGET,
            &GIVE,
            &JOINS,
            &LIGHT,
            &LOOKS,
            &MODALS,
            &NOT_ANYWHERE,
            &NOT_BESIDE,
            &PRONOUNS,
            &QUESTIONS,
            &REPORTS,
            &TIMES,
            &USE,
            &USER,
            &WANT,
        ];
        for list in lists {
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
}
