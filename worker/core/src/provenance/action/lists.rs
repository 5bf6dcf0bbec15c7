//! Lists of words by which [`super`] reads an instruction. All are in lower case.
//!
//! A list is one bit, and a table has the lists of each word. So one [look-up](super::table::is_listed) answers whether a word is
//! in any of several lists, and a list takes no more space than its words.

/// One or more lists, as bits.
pub(super) type List = u64;

/// Defines a constant for each list, and `LISTS` with the words of each.
macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident = $words:literal;)+) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the lists are")]
        enum Bit {
            $($name,)+
        }

        $($(#[$doc])* pub(super) const $name: List = 1 << Bit::$name as List;)+

        /// The words of each list, in the order of their bits.
        pub(super) const LISTS: &[&str] = &[$($words,)+];
    };
}

lists! {
    /// Verbs before a noun for an action.
    LIGHT = "arrange book do faire fais faites hacer haz initiate issue mach mache make makes place \
        process record schedule set start submit tätige";
    /// Verbs that do this before some nouns only: "Anna gets a refund", but not "give Anna the order".
    GIVE = "besoin brauchen braucht gave get gets give gives necesita need needs";
    GIVEN = "acceso access approval back cab fund leserechte money neustart permission refund right \
        schreibrechte taxi tip zugang zugriff";
    /// Later words that end their clause or follow their verb directly.
    PARTICLES = "ab an auf aus away back down ein frei herunter ligne live neu on out raus runter \
        rückgängig up weg zurück über";
    /// What is taken down, what is dropped for ever, and what somebody can come in by.
    POSTS = "ad article comment listing message page photo picture post tweet video";
    DROPPED = "branch collection column constraint database index indexes schema table tables trigger view";
    /// Negations that come before the verb, beside those that end with `n't`.
    NOT_BEFORE = "arent avoid bez cannot cant couldnt didnt doesnt dont isnt mustnt nadie neither nessuno \
        never niemand ninguém nobody noone nor not não ohne prevent refuse sans shouldnt unless without wont wouldnt \
        без не нельзя";
    PRONOUNS = "gli la las le les li lo los me mi ne nos se te";
    /// Negations that can also come after it.
    NOT_ANYWHERE = "forbidden forbids geen interdiction interdit jamais kein keine keinen keines nicht \
        nichts nie niemals niet niets none nooit nothing nunca pas prohibido prohibited proibido rien verboden \
        verboten vietato zonder";
    /// Words that turn a negation around: "don't forget to pay".
    FORGET = "forget hesitate n'oublie n'oubliez olvide olvides oublie oublier vergeet vergessen vergiss";
    /// Verbs that ask for an answer if the user follows, or a word of `REPORTS`: "let me know", "give an overview".
    ANSWERS = "bring do donne donner envoie envoyer geben geef get gib give let mail make sag sage sagen \
        schick schicke schicken schreib schreibe send sende senden show stuur teile teilen tell write zeig";
    USER = "ich me mir nous uns us";
    REPORTS = "analysis know look opinion overview review résumé summary translation zusammenfassung \
        überblick übersetzung übersicht";
    /// Verbs that only read, as the first word of an order. What follows is what is read, up to a word of `JOINS`.
    LOOKS = "analyse analyze assess bekijk beschreibe busca calculate cerca check cherche compare \
        comprueba compute controleer controlla count describe determine dime erkläre erklären estimate evaluate \
        explain explica explique fass fasse find finde finden guarda inspect investigate kijk lee leer lees leggi \
        leia lese lesen lies lire lis list look mira monitor montre mostra mostrami mostre muestra muéstrame nenn \
        nenne open opisz outline peruse pokaż porównaj proofread propose przeczytaj prüf prüfe prüfen quote read \
        recommend regarde research resuma resume review revisa riassumi résume résumez scan schau schaue search see \
        show sieh skim spiega sprawdź study such suche suchen suggest summarise summarize toon traduce traduci \
        traduis traduza translate trouve understand untersuche vat veja vergleiche verifica verifique verify vertaal \
        vertel view vérifie wyjaśnij zeig zeige zeigen znajdź найди объясни опиши покажи посмотри проверь прочитай \
        сравни";
    /// Words after which nothing is an order, wherever they are.
    READING = "before bevor czy dlaczego how jak know look nachdem ob whether why wonder зачем как ли почему";
    /// First words of questions.
    QUESTIONS = "are che combien comment como cosa cuándo cómo did does gibt had has hast hat hebben heeft \
        hoe is ist perché pourquoi quais qual quando que quelle quelles quels qui quién qué sind waarom wann wanneer \
        war waren warum was wat welche welchen welcher welches welke wer were weshalb what what's where which who \
        who's whose wie wieso wieviel wo wurde wurden";
    /// Words that also begin a question if nobody of `ASKED` follows: "can you merge it?" is an order.
    MODALS = "can could darf kann may must should will would";
    ASKED = "du ihr please sie somebody someone you";
    /// Words after which another order can follow.
    JOINS = "afterwards and anschließend but dan danach dann e en et luego następnie poi puis then und y \
        затем и потом";
    /// Other words before a verb that gives an order.
    BEGINS = "alsjeblieft also bitte du favor favore help ihr immediately just kindly let's lets mal must \
        now oder or plaît please proszę should sie so to will you пожалуйста";
    /// Words after which comes no order: "the merge", "in release 4".
    DETERMINERS = "a about all an any at each every for from her his in its last latest my next of our \
        some than that the their these this um your";
    /// Verbs that are also nouns or adjectives. They give an order only at its beginning.
    NOUN_OR_VERB = "access archive ban bill bin block bloque book boot bounce build challenge change \
        charge cierre clean clear close commande comment commit compra conferma contact contest deel demande \
        dispatch dispute draft drop dump email empty end exchange exec export file fix flush halt hire invoice issue \
        kauf koop lance land launch lock mail message mute new note nuke open order paga partage patch permission \
        plaats plan post publica purchase push raise record refund register release rent report reserva reserve role \
        scale schedule set share ship start swap text tip toegang toss trade transfer trash update view visibility \
        wire write";
    /// Words for rights that are never verbs.
    RIGHTS_ONLY = "acceso access accès permission rechte rights role visibility zugang zugriff";
    /// Users, as who can do something. "I want to be able to read it" gives nobody access.
    I = "i i'd i'm me us we we'd";
    /// Irregular participles of the table.
    PARTICIPLES = "abgelehnt abgesagt bestellt bezahlt bought built deaktiviert eingeladen entfernt \
        erstattet gebucht gekündigt gelöscht gemergt genehmigt gesperrt gestoppt gone got hinzugefügt made paid ran \
        repaid sent sold storniert told veröffentlicht withdrew written überwiesen";
    WANT = "get gets got have need needs see want wants";
    TIMES = "again ahora asap before by completely endgültig heute hoy immediately jetzt maintenant morgen \
        now permanently please right sofort soon today tomorrow tonight ya";
    DOING = "am and begin by consider i'm mind start try we're";
    /// Verbs before the name of a tool.
    USE = "benutze call invoke nutze run use using verwende";
    /// Words after `no` that forbid all that follows: "under no circumstances".
    NO_WAY = "account bisogna case circumstance circumstances condition conditions debe debemos debería \
        debes deve devi event events hay occorre one point puede puedes queremos quiero reason se si time va \
        vogliamo voglio way";
    /// Words that end a negation.
    RESUMES = "aber ale but dan dann ma maar mais mas pero sondern then";
    /// Who does what the next word says, and modal verbs, before which is who does it: "Bob will merge it".
    SUBJECTS = "eu everybody everyone he i ich ik io je man she they we who wij wir yo";
    AUXILIARIES = "can could may might must shall should will would";
    /// Words in a question that asks the agent for something.
    POLITE = "bitte favor favore kannst kun kunt können könnten könntest peux-tu plaît please pode podes \
        podría podrías potresti pourrais-tu pourriez-vous pouvez-vous proszę puede puedes puoi würdest пожалуйста";
    /// Verbs that also send other things than money, and what says that it is money.
    SENDS = "envia enviar envoie envoyer envía invia inviare move schicke schicken send sende sending \
        sends sent settle stuur";
    MONEY = "argent chf dinero dinheiro dollar dollars eur euro euros franken gbp geld jpy money pound \
        pounds soldi usd yen";
    /// Verbs that destroy only what is in a thing.
    EMPTIES = "clean clear empty flush leere leeren purge svuota truncate vacía vide vider videz wipe";
    /// What such a verb destroys as a whole: "purge the rows of t".
    CONTENTS = "cache comments entries items keys logs messages records rows zeilen";
    /// What in a thing is the thing itself: "delete everything in /tmp/x".
    WHOLE = "all alle alles content contents dateien everything fichiers files todo tout";
    /// Words for rights, and for who has them. Verbs that give access only with one of them, and other verbs that do.
    ACCESS = "acceso access accesso accès acesso admin adminrechte admins collaborator collaborators \
        editor guest lecture leserechte lesezugriff maintainer member members moderator owner permission permissions \
        reader rechte right rights role schreibrechte schreibzugriff toegang viewer writer zugang zugriff";
    GIVES = "able accorde allow allows autorise berechtige concede dale dar donne donner donnez geben geef \
        geven gewähre gib give given gives giving let lets letting permit";
    ENTITLED = "bearbeiten change comment deploy edit editar leer lesen lire look merge modifier open pull \
        push read see view write";
    /// Words between a kind of value and the value: "the account is DE44".
    IS = "are es est is ist it's sind son sono that's è";
    /// Words before where something is, or what it belongs to.
    PREPOSITIONS = "about after against al alla als am as at auf aus because between by da dal dalla dans \
        de del della dem der des di dla do em en for from für if im in inside into like na nel nella od of on onto \
        out over per po por pour przy since sul sulla sur to uit under until van via vom von w we when within \
        without z ze zu zum zur à über в во для из к на о об от по с со у";
    /// Words after which a thing is described, and words before whom or what something is for or has.
    DESCRIBES = "called named that titled where which who whose";
    WITH = "avec com con met mit with";
    /// Words in place of a thing that is named elsewhere.
    THESE = "both es following her him hun ihm ihn ihnen it la le les lo one ones sie that them these this \
        those";
    /// Words before `to` by which the user asks the agent, and before `to be`.
    ASKS = "asked forget free have help hesitate it like love me need remember sure time told try us want \
        wish you";
    TO_BE = "has have like need needs ready should want you";
    /// Verbs of other languages before an infinitive that is for the agent.
    TRIES = "besoin dich essaie hay merci pas prie quiero tengo tienes";
    /// Verbs that tell somebody something, and what is written to be done later.
    TELLS = "answer ask comment dile dis email erinnere escribe mail message napisz note ping post powiedz \
        remind reply sag sage say schreib schreibe send tell text tweet write écris напиши скажи";
    LATER = "brief comment letter nachricht note reminder task ticket to-do todo напоминание";
    /// Verbs after which comes what somebody else wants or thinks.
    SAYS = "asks claims dice dit meint sagt said says thinks wants";
    ALREADY = "already bereits déjà schon ya";
    /// Words before a second name after which "it" may mean any of the two.
    CHOICES = "and e et mit o oder or ou to und with y";
    /// Words after which comes only when or why something is to be done.
    CONDITIONS = "after because before bevor damit falls if nachdem once sobald unless weil wenn when while";
    /// Words for the owner of a thing, who was named before.
    POSSESSIVES = "her his ihr ihre its sein seine their";
    /// What says that a thing is another one.
    ANOTHER = "alte another different former last new next old other previous second wrong";
    /// Words that are no object: "unsubscribe me", "soll gemergt werden".
    EMPTY = "me mich moi of out uns us werden";
    /// Verbs that are one with a later word.
    BRINGS = "bring kick put take throw turn";
    /// Prepositions before what is written: "write it to a.md", but not "write a test for a.md". After an order to change
    /// something, `of` and `on` are so, too.
    TARGETS = "al alla als as at auf dans em en im in inside into nel nella onto to zu à";
    /// Prepositions before the account that pays.
    SOURCES = "da dal depuis desde from van von";
    /// Labels of what somebody else is to read.
    TEXTS = "betreff body inhalt message nachricht subject text";
    /// First words of letters.
    GREETINGS = "bonjour caro ciao dear estimado guten hallo hello hey hi hola liebe lieber oi salut sehr";
}
