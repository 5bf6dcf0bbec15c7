//! The words by which [`super`] reads an instruction and the name of a tool. All are in lower case.

/// Words that name the same action, in the infinitive, the imperative and other common forms. The name comes first. A
/// tool whose name has a word does the action of this name, otherwise the first action that has the word. The regular
/// forms of English are not listed. A word in Chinese or Japanese is found anywhere in a text.
#[rustfmt::skip]
pub(super) const ACTIONS: [(&str, &str); 40] = [
    ("refund", "refund reimburse repay repaid erstatten erstatte erstattet zurückzahlen rembourser rembourse \
        remboursez reembolsar reembolsa reembolse devolver devuelve rimborsare rimborsa rimborsate terugbetalen 退款 \
        退还 返金 払い戻"),
    ("merge", "merge squash mergen zusammenführen fusionner fusionne fusionnez fusionar \
        fusiona mesclar mescle unire unisci fondere samenvoegen 合并 合併 マージ"),
    ("forward", "forward redirect reroute divert weiterleiten leite transférer transfère réexpédier rediriger reenviar \
        reenvía reenvia reencaminhar encaminhar encaminhe inoltrare inoltra doorsturen 转发 轉發 転送"),
    ("delete", "delete remove erase clean clear purge wipe destroy discard trash empty rid uninstall unlink \
        truncate scrap cancel löschen lösche lösch gelöscht entfernen entferne entfernt leeren leere supprimer supprime \
        supprimez effacer efface effacez enlever enlève vider borrar borra borre eliminar elimina elimine quitar \
        quita suprimir apagar apague excluir exclua exclui remover remova eliminare cancellare cancella rimuovere \
        rimuovi svuota verwijderen verwijder wissen wis opruimen 删除 刪除 删掉 移除 清空 清除 削除 消して 消去"),
    ("cancel", "cancel annul void abort stop end delete remove unbook stornieren storniere absagen streichen \
        streiche kündigen kündige abbestellen annuler annule annulez résilier résilie cancelar cancela cancele anular \
        anula annullare annulla disdire disdici annuleren annuleer afzeggen opzeggen 取消 撤销 キャンセル 取り消 解約"),
    ("pay", "pay payout paid transfer wire remit send sent settle reimburse repay refund donate tip überweisen überweise \
        überweist bezahlen bezahle zahlen zahle begleichen begleiche schicken schicke sende payer paye payez paie virer \
        vire virez régler règle réglez verser verse envoyer envoie pagar paga pague transferir transfiere transfere \
        transfira enviar envía envia abonar abona pagare pagate bonificare bonifica trasferire trasferisci inviare \
        invia versare versa betalen betaal overmaken overboeken stuur 支付 付款 转账 轉帳 汇款 匯款 付给 缴费 転帳 振り込 \
        支払 払って 送金"),
    ("buy", "buy bought purchase order reorder procure restock kaufen kaufe kauf bestellen bestelle bestell acheter \
        achète achetez commander commande commandez comprar compra compre pedir pide encargar encomendar encomende \
        comprare acquistare acquista ordinare ordina kopen koop bestel 购买 購買 订购 下单 購入 買って 注文"),
    ("trade", "trade buy sell exchange swap verkaufe kaufe"),
    ("sell", "sell sold trade exchange swap verkaufen verkaufe vendre vends vendez vender vende venda vendere vendi \
        verkopen verkoop 出售 売却 売って"),
    ("book", "book reserve schedule rent hire buchen buche buch reservieren reserviere mieten réserver réserve \
        réservez reservar reserva reserve alquilar prenotare prenota boeken boek reserveren 预订 预约 預訂 予約"),
    ("approve", "approve accept merge confirm authorize authorise genehmigen genehmige bestätigen bestätige \
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
    ("reset", "reset revert rollback undo undone zurücksetzen réinitialiser réinitialise restablecer redefinir \
        reimpostare resetten 重置 恢复 リセット"),
    ("enable", "enable unlock unblock unban unfreeze activate reactivate restore allow aktivieren aktiviere entsperren \
        entsperre activer active débloquer activar activa desbloquear ativar ative attivare attiva sbloccare activeren \
        启用 解锁 激活 有効 解除"),
    ("deploy", "deploy release upgrade rollout ausrollen bereitstellen deploye \
        déployer déploie desplegar despliega implantar implante distribuire distribuisci uitrollen 部署 上线 デプロイ 展開"),
    ("restart", "restart reboot relaunch neustarten redémarrer redémarre reiniciar reinicia reinicie riavviare riavvia \
        herstarten 重启 重新启动 再起動"),
    ("stop", "stop kill terminate shut shutdown end abort halt cancel pause stoppen stoppe beenden beende arrêter arrête arrêtez \
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
    ("overwrite", "overwrite upload write wrote written save store replace update edit change put add append record fix fill \
        set note überschreiben schreiben schreibe schreib speichern speichere ersetzen ersetze ergänze écrire écris \
        écrivez enregistrer enregistre remplacer escribir escribe guardar reemplazar escrever escreva salvar salve \
        substituir scrivere scrivi salvare salva sostituire schrijven schrijf opslaan vervang 写入 保存 覆盖 替换 更新 書い 書き create generate draft rewrite refactor implement convert format sort repariere"),
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

/// Regular ends of English, and what a word has in their place in the infinitive.
#[rustfmt::skip]
pub(super) const ENDS: [(&str, &str); 8] = [
    ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""), ("ing", "e"),
];

/// Words that say little about what a tool does: another word of its name says more.
#[rustfmt::skip]
pub(super) const WEAK: [&str; 15] = [
    "complete", "create", "do", "execute", "make", "new", "open", "perform", "process", "run", "schedule", "send", "set",
    "start", "submit",
];

/// Words for actions that are also words for things: `cancel_order` and `order_cancel` cancel.
#[rustfmt::skip]
pub(super) const THINGS: [&str; 39] = [
    "access", "archive", "ban", "bill", "block", "book", "charge", "comment", "contact", "email", "export", "file",
    "invoice", "lock", "mail", "message", "note", "order", "pay", "payout", "permission", "plan", "post", "purchase", "record",
    "register", "release", "report", "reserve", "role", "sell", "share", "text", "tip", "trade", "transfer", "trash",
    "view", "visibility",
];

/// Nouns for actions. In an instruction, one counts only after a verb such as `make`: "set up a payment".
#[rustfmt::skip]
pub(super) const NOUNS: [(&str, &str); 14] = [
    ("back", "refund"), ("bash", "run"), ("cancellation", "cancel"), ("command", "run"), ("deletion", "delete"),
    ("fund", "pay"), ("invitation", "invite"), ("money", "pay"), ("payment", "pay"), ("powershell", "run"),
    ("reservation", "book"), ("shell", "run"), ("terminal", "run"), ("transaction", "pay"),
];

/// Verbs before a noun for an action.
#[rustfmt::skip]
pub(super) const LIGHT: [&str; 12] = [
    "arrange", "do", "initiate", "issue", "make", "makes", "place", "process", "schedule", "set", "start", "submit",
];

/// Words between such a verb and a noun that is only what something is about: "make a list of payments".
pub(super) const ABOUT: [&str; 4] = ["about", "for", "of", "on"];

/// Verbs that do this before some nouns only: "Anna gets a refund", but not "give Anna the order".
pub(super) const GIVE: [&str; 7] = ["gave", "get", "gets", "give", "gives", "need", "needs"];
pub(super) const GIVEN: [&str; 6] = ["access", "back", "fund", "money", "permission", "refund"];

/// Verbs that ask for an action together with a later word: the verbs, the later words and the action.
#[rustfmt::skip]
pub(super) const PHRASES: [(&str, &str, &str); 10] = [
    ("add append delete drop insert remove entferne ergänze füge lösche",
        "chapter column heading line lines paragraph row rows section sentence word absatz abschnitt kapitel satz zeile",
        "update"),
    ("assign give grant make promote set change turn gib mache mach",
        "admin administrator editor maintainer member moderator owner private public role viewer access permission rolle",
        "role"),
    ("push", "production prod live", "deploy"),
    ("go", "live", "publish"),
    ("roll", "out", "deploy"),
    ("roll", "back", "reset"),
    ("switch turn", "off", "disable"),
    ("sag sage", "ab", "cancel"),
    ("nimm wirf", "raus weg", "delete"),
    ("take kick", "off out", "revoke"),
];

/// Words that mean something else together with the next word: the words, and the next ones.
#[rustfmt::skip]
pub(super) const OTHERS: [(&[&str], &[&str]); 6] = [
    (&["merge"], &["conflict", "conflicts"]),
    (&["access", "refund", "share"], &["policy"]),
    (&["access", "change", "merge", "order", "pay", "purchase", "refund", "release", "transfer"], &["request", "requests"]),
    (&["make"], &["sure"]),
    (&["note"], &["that"]),
    (&["confirm"], &["that", "to", "with"]),
];

/// Words of tool names for rights, and for who has them.
pub(super) const RIGHTS: [&str; 4] = ["permission", "permissions", "role", "visibility"];
#[rustfmt::skip]
pub(super) const MEMBERS: [&str; 7] = [
    "access", "collaborator", "collaborators", "guest", "guests", "member", "members",
];

pub(super) const TEAMS: [&str; 3] = ["group", "team", "user"];

/// Words of tool names for what deploys when it runs.
pub(super) const PIPELINES: [&str; 4] = ["pipeline", "pipelines", "workflow", "workflows"];

/// Negations that come before the verb, beside those that end with `n't`.
#[rustfmt::skip]
pub(super) const NOT_BEFORE: [&str; 30] = [
    "arent", "avoid", "cannot", "cant", "couldnt", "didnt", "doesnt", "dont", "isnt", "mustnt", "nadie", "neither",
    "nessuno", "never", "niemand", "ninguém", "nobody", "noone", "nor", "not", "não", "ohne", "prevent", "refuse",
    "sans", "shouldnt", "unless", "without", "wont", "wouldnt",
];

/// Negations directly before the verb, or before a pronoun: `no` is also the short form of "number".
pub(super) const NOT_BESIDE: [&str; 3] = ["no", "non", "sin"];
#[rustfmt::skip]
pub(super) const PRONOUNS: [&str; 14] = [
    "gli", "la", "las", "le", "les", "li", "lo", "los", "me", "mi", "ne", "nos", "se", "te",
];

/// Negations that can also come after it.
#[rustfmt::skip]
pub(super) const NOT_ANYWHERE: [&str; 29] = [
    "forbidden", "forbids", "geen", "interdiction", "interdit", "jamais", "kein", "keine", "keinen", "keines", "nicht",
    "nichts", "nie", "niemals", "niet", "niets", "none", "nooit", "nothing", "nunca", "pas", "prohibido", "prohibited",
    "proibido", "rien", "verboden", "verboten", "vietato", "zonder",
];

/// Words that turn a negation around: "don't forget to pay".
#[rustfmt::skip]
pub(super) const FORGET: [&str; 11] = [
    "forget", "hesitate", "n'oublie", "n'oubliez", "olvide", "olvides", "oublie", "oublier", "vergeet", "vergessen",
    "vergiss",
];

/// Verbs that ask for an answer if the user follows, or a word of `REPORTS`: "let me know", "give an overview".
#[rustfmt::skip]
pub(super) const ANSWERS: [&str; 32] = [
    "bring", "do", "donne", "donner", "envoie", "envoyer", "geben", "geef", "get", "gib", "give", "let", "mail",
    "make", "sag", "sage", "sagen", "schick", "schicke", "schicken", "schreib", "schreibe", "send", "sende", "senden",
    "show", "stuur", "teile", "teilen", "tell", "write", "zeig",
];
pub(super) const USER: [&str; 6] = ["ich", "me", "mir", "nous", "uns", "us"];
#[rustfmt::skip]
pub(super) const REPORTS: [&str; 13] = [
    "analysis", "know", "look", "opinion", "overview", "review", "résumé", "summary", "translation", "zusammenfassung",
    "überblick", "übersetzung", "übersicht",
];

/// Verbs that only read, as the first word of an order. What follows is what is read, up to a word of `JOINS`.
#[rustfmt::skip]
pub(super) const LOOKS: [&str; 112] = [
    "analyse", "analyze", "assess", "bekijk", "beschreibe", "busca", "calculate", "cerca", "check", "cherche",
    "compare", "comprueba", "compute", "controleer", "controlla", "count", "describe", "determine", "dime", "erkläre",
    "erklären", "estimate", "evaluate", "explain", "explica", "explique", "fass", "fasse", "find", "finde", "finden",
    "guarda", "inspect", "investigate", "kijk", "lee", "leer", "lees", "leggi", "leia", "lese", "lesen",
    "lies", "lire", "lis", "list", "look", "mira", "monitor", "montre", "mostra", "mostrami", "mostre", "muestra",
    "muéstrame", "nenn", "nenne", "open", "outline", "proofread", "propose", "prüf", "prüfe", "prüfen",
    "quote", "read", "recommend", "regarde", "research", "resuma", "resume", "review", "revisa", "riassumi", "résume",
    "résumez", "schau", "schaue", "search", "see", "show", "sieh", "spiega", "study", "such", "suche", "suchen",
    "suggest", "summarise", "summarize", "toon", "traduce", "traduci", "traduis", "traduza", "translate", "trouve",
    "understand", "untersuche", "vat", "veja", "vergleiche", "verifica", "verifique", "verify", "vertaal", "vertel",
    "view", "vérifie", "zeig", "zeige", "zeigen",
];

/// Words after which nothing is an order, wherever they are.
#[rustfmt::skip]
pub(super) const READING: [&str; 10] = [
    "before", "bevor", "how", "know", "look", "nachdem", "ob", "whether", "why", "wonder",
];

/// First words of questions.
#[rustfmt::skip]
pub(super) const QUESTIONS: [&str; 62] = [
    "are", "che", "combien", "comment", "como", "cosa", "cuándo", "cómo", "did", "does", "gibt", "had", "has", "hast",
    "hat", "hebben", "heeft", "hoe", "is", "ist", "perché", "pourquoi", "quais", "qual", "quando", "que",
    "quelle", "quelles", "quels", "qui", "quién", "qué", "sind", "waarom", "wann", "wanneer", "war", "waren", "warum",
    "was", "wat", "welche", "welchen", "welcher", "welches", "welke", "wer", "were", "weshalb", "what", "what's",
    "where", "which", "who", "who's", "whose", "wie", "wieso", "wieviel", "wo", "wurde", "wurden",
];

/// Words that also begin a question if nobody of `ASKED` follows: "can you merge it?" is an order.
#[rustfmt::skip]
pub(super) const MODALS: [&str; 9] = [
    "can", "could", "darf", "kann", "may", "must", "should", "will", "would",
];
pub(super) const ASKED: [&str; 7] = ["du", "ihr", "please", "sie", "somebody", "someone", "you"];

/// Words after which another order can follow.
#[rustfmt::skip]
pub(super) const JOINS: [&str; 16] = [
    "afterwards", "and", "anschließend", "but", "dan", "danach", "dann", "e", "en", "et", "luego", "poi", "puis",
    "then", "und", "y",
];

/// Other words before a verb that gives an order.
#[rustfmt::skip]
pub(super) const BEGINS: [&str; 26] = [
    "alsjeblieft", "also", "bitte", "du", "favor", "favore", "help", "ihr", "immediately", "just", "kindly", "let's",
    "lets", "mal", "must", "now", "oder", "or", "plaît", "please", "should", "sie", "so", "to", "will", "you",
];

/// Words after which comes no order: "the merge", "in release 4".
#[rustfmt::skip]
pub(super) const DETERMINERS: [&str; 28] = [
    "a", "about", "all", "an", "any", "at", "each", "every", "for", "from", "her", "his", "in", "its", "last", "latest",
    "my", "next", "of", "our", "some", "than", "that", "the", "their", "these", "this", "your",
];

/// Verbs that are also nouns or adjectives. They give an order only at its beginning.
#[rustfmt::skip]
pub(super) const NOUN_OR_VERB: [&str; 81] = [
    "access", "archive", "ban", "bill", "block", "bloque", "book", "build", "change", "charge", "cierre", "clean",
    "clear", "close", "commande", "comment", "compra", "conferma", "contact", "deel", "demande", "draft", "drop",
    "email", "empty", "end", "exchange", "export", "file", "fix", "hire", "invoice", "issue", "kauf", "koop", "lance",
    "launch", "lock", "mail", "message", "mute", "new", "note", "open", "order", "paga", "partage", "patch",
    "permission", "plaats", "plan", "post", "publica", "purchase", "raise", "record", "refund", "register", "release",
    "rent", "report", "reserva", "reserve", "role", "schedule", "set", "share", "ship", "start", "swap", "text", "tip",
    "toegang", "trade", "transfer", "trash", "update", "view", "visibility", "wire", "write",
];

/// What is often followed by its number, which is then no quantity: "invoice 7 and order 5".
pub(super) const NUMBERED: [&str; 3] = ["invoice", "order", "release"];

/// Users, as who can do something. "I want to be able to read it" gives nobody access.
pub(super) const I: [&str; 7] = ["i", "i'd", "i'm", "me", "us", "we", "we'd"];

/// Irregular participles of the table.
#[rustfmt::skip]
pub(super) const PARTICIPLES: [&str; 12] = [
    "bought", "built", "got", "made", "paid", "ran", "repaid", "sent", "sold", "told", "withdrew", "written",
];

/// Words before a participle or the form with `ing`, and after a participle, that give an order: "to be merged",
/// "get it merged today", "I'm cancelling".
pub(super) const BE: [&str; 1] = ["be"];
pub(super) const WANT: [&str; 9] =
    ["get", "gets", "got", "have", "need", "needs", "see", "want", "wants"];
#[rustfmt::skip]
pub(super) const TIMES: [&str; 9] = [
    "again", "asap", "before", "by", "immediately", "now", "please", "today", "tomorrow",
];
#[rustfmt::skip]
pub(super) const DOING: [&str; 10] = [
    "am", "and", "begin", "by", "consider", "i'm", "mind", "start", "try", "we're",
];

/// Verbs before the name of a tool.
pub(super) const USE: [&str; 8] =
    ["benutze", "call", "invoke", "nutze", "run", "use", "using", "verwende"];

/// Words after `no` that forbid all that follows: "under no circumstances".
#[rustfmt::skip]
pub(super) const NO_WAY: [&str; 31] = [
    "account", "bisogna", "case", "circumstance", "circumstances", "condition", "conditions", "debe", "debemos",
    "debería", "debes", "deve", "devi", "event", "events", "hay", "occorre", "one", "point", "puede", "puedes",
    "queremos", "quiero", "reason", "se", "si", "time", "va", "vogliamo", "voglio", "way",
];

/// Words that end a negation.
#[rustfmt::skip]
pub(super) const RESUMES: [&str; 12] = [
    "aber", "ale", "but", "dan", "dann", "ma", "maar", "mais", "mas", "pero", "sondern", "then",
];

/// Who does what the next word says, and modal verbs, before which is who does it: "Bob will merge it".
#[rustfmt::skip]
pub(super) const SUBJECTS: [&str; 17] = [
    "eu", "everybody", "everyone", "he", "i", "ich", "ik", "io", "je", "man", "she", "they", "we", "who", "wij", "wir",
    "yo",
];
#[rustfmt::skip]
pub(super) const AUXILIARIES: [&str; 9] = [
    "can", "could", "may", "might", "must", "shall", "should", "will", "would",
];

/// First words of relative clauses.
pub(super) const RELATIVES: [&str; 5] = ["das", "dem", "den", "der", "die"];

/// Words in a question that asks the agent for something.
#[rustfmt::skip]
pub(super) const POLITE: [&str; 24] = [
    "bitte", "favor", "favore", "kannst", "kun", "kunt", "können", "könnten", "könntest", "peux-tu", "plaît", "please",
    "pode", "podes", "podría", "podrías", "potresti", "pourrais-tu", "pourriez-vous", "pouvez-vous", "puede", "puedes",
    "puoi", "würdest",
];

/// Verbs that also send other things than money, and what says that it is money.
#[rustfmt::skip]
pub(super) const SENDS: [&str; 16] = [
    "envia", "enviar", "envoie", "envoyer", "envía", "invia", "inviare", "schicke", "schicken", "send", "sende",
    "sending", "sends", "sent", "settle", "stuur",
];
#[rustfmt::skip]
pub(super) const MONEY: [&str; 19] = [
    "argent", "chf", "dinero", "dinheiro", "dollar", "dollars", "eur", "euro", "euros", "franken", "gbp", "geld",
    "jpy", "money", "pound", "pounds", "soldi", "usd", "yen",
];

/// Actions that destroy something, that only make or change something, and that give access.
pub(super) const DESTROYS: [&str; 9] =
    ["cancel", "delete", "disable", "move", "rename", "reset", "restart", "revoke", "stop"];
pub(super) const WIDE: [&str; 7] =
    ["add", "create", "overwrite", "run", "schedule", "send", "update"];
pub(super) const GRANTS: [&str; 2] = ["invite", "share"];

/// Verbs that destroy only what is in a thing.
#[rustfmt::skip]
pub(super) const EMPTIES: [&str; 10] = [
    "clean", "clear", "empty", "leere", "leeren", "purge", "svuota", "truncate", "vider", "wipe",
];

/// What in a thing is the thing itself: "delete everything in /tmp/x".
#[rustfmt::skip]
pub(super) const WHOLE: [&str; 11] = [
    "all", "alle", "alles", "content", "contents", "dateien", "everything", "fichiers", "files", "todo", "tout",
];

/// Words for rights, and for who has them. Verbs that give access only with one of them, and other verbs that do.
#[rustfmt::skip]
pub(super) const ACCESS: [&str; 28] = [
    "acceso", "access", "accesso", "accès", "acesso", "admin", "admins", "collaborator", "collaborators", "editor",
    "guest", "maintainer", "member", "members", "moderator", "owner", "permission", "permissions", "reader", "rechte",
    "right", "rights", "role", "toegang", "viewer", "writer", "zugang", "zugriff",
];
#[rustfmt::skip]
pub(super) const GIVES: [&str; 19] = [
    "able", "allow", "allows", "dar", "donne", "donner", "donnez", "geben", "geef", "geven", "gib", "give", "given",
    "gives", "giving", "let", "lets", "letting", "permit",
];
#[rustfmt::skip]
pub(super) const ENTITLED: [&str; 7] = ["change", "comment", "edit", "open", "read", "view", "write"];

/// Words of names of tools, and other words for the same thing.
#[rustfmt::skip]
pub(super) const SAME: [(&str, &str); 14] = [
    ("account", "user"), ("appointment", "event"), ("collaborator", "access"), ("dir", "folder"),
    ("directory", "folder"), ("email", "mail"), ("guest", "access"), ("konto", "user"), ("meeting", "event"),
    ("member", "access"), ("message", "mail"), ("passwort", "password"), ("permission", "access"), ("repo", "repository"),
];

/// Words before where something is, or what it belongs to.
#[rustfmt::skip]
pub(super) const PREPOSITIONS: [&str; 68] = [
    "about", "after", "against", "al", "alla", "als", "am", "as", "at", "auf", "aus", "because", "between", "by", "da",
    "dal", "dalla", "dans", "de", "del", "della", "dem", "der", "des", "di", "do", "em", "en", "for", "from", "für",
    "if", "im", "in", "inside", "into", "like", "na", "nel", "nella", "of", "on", "onto", "out", "over", "per", "por",
    "pour", "since", "sul", "sulla", "sur", "to", "uit", "under", "until", "van", "via", "vom", "von", "when",
    "within", "without", "zu", "zum", "zur", "à", "über",
];

/// Words after which a thing is described, and words before whom or what something is for or has.
#[rustfmt::skip]
pub(super) const DESCRIBES: [&str; 8] = ["called", "named", "that", "titled", "where", "which", "who", "whose"];
pub(super) const WITH: [&str; 6] = ["avec", "com", "con", "met", "mit", "with"];

/// Words in place of a thing that is named elsewhere.
#[rustfmt::skip]
pub(super) const THESE: [&str; 20] = [
    "both", "es", "following", "her", "him", "hun", "ihn", "it", "la", "le", "les", "lo", "one", "ones", "sie", "that",
    "them", "these", "this", "those",
];

/// Words before `to` by which the user asks the agent, and before `to be`.
#[rustfmt::skip]
pub(super) const ASKS: [&str; 19] = [
    "asked", "forget", "free", "have", "help", "hesitate", "it", "like", "love", "me", "need", "remember", "sure",
    "told", "try", "us", "want", "wish", "you",
];
#[rustfmt::skip]
pub(super) const TO_BE: [&str; 9] =
    ["has", "have", "like", "need", "needs", "ready", "should", "want", "you"];

/// Verbs of other languages before an infinitive that is for the agent.
#[rustfmt::skip]
pub(super) const TRIES: [&str; 7] = ["besoin", "dich", "essaie", "merci", "pas", "prie", "quiero"];

/// Verbs that tell somebody something, and what is written to be done later.
#[rustfmt::skip]
pub(super) const TELLS: [&str; 22] = [
    "answer", "ask", "comment", "email", "erinnere", "mail", "message", "note", "ping", "post", "remind", "reply", "sag",
    "sage", "say", "schreib", "schreibe", "send", "tell", "text", "tweet", "write",
];
#[rustfmt::skip]
pub(super) const LATER: [&str; 8] =
    ["comment", "letter", "note", "reminder", "task", "ticket", "to-do", "todo"];
