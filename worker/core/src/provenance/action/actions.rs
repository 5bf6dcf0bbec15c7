//! The table of actions, and the words that name each. All are in lower case.

/// Words that name the same action, in the infinitive, the imperative and other common forms. The name comes first. A
/// tool whose name has a word does the action of this name, otherwise the first action that has the word. The regular
/// forms of English are not listed. A word in Chinese or Japanese is found anywhere in a text.
#[rustfmt::skip]
pub(super) const ACTIONS: [(&str, &str); 47] = [
    ("refund", "refund reimburse repay repaid erstatten erstatte erstattet zurückzahlen rembourser rembourse \
        remboursez reembolsar reembolsa reembolse devolver devuelve rimborsare rimborsa rimborsate terugbetalen 退款 退还 \
        返金 払い戻 devuélvele retourne rembourses верни zwróć"),
    ("merge", "merge squash mergen zusammenführen fusionner fusionne fusionnez fusionar fusiona mesclar mescle unire \
        unisci fondere samenvoegen 合并 合併 マージ land combine merger mergea смержи слей scal reinmergen merg \
        zmerguj reinnehmen gemergt"),
    ("forward", "forward redirect reroute divert weiterleiten leite transférer transfère réexpédier rediriger \
        reenviar reenvía reenvia reencaminhar encaminhar encaminhe inoltrare inoltra doorsturen 转发 轉發 転送 forwarde \
        weiterleite renvoie redirige reenvíe przekaż перешли"),
    ("delete", "delete remove erase clean clear purge wipe destroy discard trash empty rid uninstall unlink truncate \
        scrap löschen lösche lösch gelöscht entfernen entferne entfernt leeren leere supprimer supprime supprimez \
        effacer efface effacez enlever enlève vider borrar borra borre eliminar elimina elimine quitar quita suprimir \
        apagar apague excluir exclua exclui remover remova eliminare cancellare cancella rimuovere rimuovi svuota \
        verwijderen verwijder wissen wis opruimen 删除 刪除 删掉 移除 清空 清除 削除 消して 消去 bin flush nuke ditch rm drop vernichte \
        vernichten schmeiß schmeiße enlevez vide videz borren suprime suprima vacía vaciar удали \
        сотри usuń skasuj toss dispose gone"),
    ("cancel", "cancel annul void abort stop end delete remove unbook stornieren storniere absagen streichen streiche \
        kündigen kündige abbestellen annuler annule annulez résilier résilie cancelar cancela cancele anular anula \
        annullare annulla disdire disdici annuleren annuleer afzeggen opzeggen 取消 撤销 キャンセル 取り消 解約 scratch storniert \
        annulliere annullieren décommande décommander anulen cancelen отмени anuluj odwołaj stornier kill löschen \
        lösche lösch supprimer supprime eliminar elimina borrar borra abbrechen wstrzymaj termina terminar finaliza \
        interrumpe interrumpir interrompre interromps halt discontinue suspende abgesagt gekündigt"),
    ("pay", "pay payout paid transfer wire remit send sent settle reimburse repay refund donate tip überweisen \
        überweise überweist bezahlen bezahle zahlen zahle begleichen begleiche schicken schicke sende payer paye \
        payez paie virer vire virez régler règle réglez verser verse envoyer envoie pagar paga pague transferir \
        transfiere transfere transfira enviar envía envia abonar abona pagare pagate bonificare bonifica trasferire \
        trasferisci inviare invia versare versa betalen betaal overmaken overboeken stuur 支付 付款 转账 轉帳 汇款 匯款 付给 缴费 転帳 \
        振り込 支払 払って 送金 disburse begleich zahl überweis bezahl rembourse acquitte abone liquida liquidar оплати заплати \
        zapłać przelej opłać move überwiesen bezahlt"),
    ("buy", "buy bought purchase order reorder procure restock kaufen kaufe kauf bestellen bestelle bestell acheter \
        achète achetez commander commande commandez comprar compra compre pedir pide encargar encomendar encomende \
        comprare acquistare acquista ordinare ordina kopen koop bestel 购买 購買 订购 下单 購入 買って 注文 commandes encarga \
        adquirir adquiere закажи купи kup zamów bestellt"),
    ("trade", "trade buy sell exchange swap verkaufe kaufe"),
    ("sell", "sell sold trade exchange swap verkaufen verkaufe vendre vends vendez vender vende venda vendere vendi \
        verkopen verkoop 出售 売却 売って verkauf продай sprzedaj"),
    ("book", "book reserve schedule rent hire buchen buche buch reservieren reserviere mieten réserver réserve \
        réservez reservar reserva alquilar prenotare prenota boeken boek reserveren 预订 预约 預訂 予約 reservier miete \
        mietet loue louer alquila забронируй zarezerwuj gebucht"),
    ("approve", "approve accept merge confirm authorize authorise genehmigen genehmige bestätigen bestätige freigeben \
        annehmen approuver approuve accepter accepte confirmer aprobar aprueba aceptar confirmar aprovar aprove \
        aceitar approvare approva accettare confermare conferma goedkeuren accepteer bevestig 批准 同意 确认 承認 確認 \
        greenlight genehmigt bewillige bewilligen akzeptiere akzeptieren approuvez acceptez valide valider validez \
        apruebe acepta acepte confirma autoriza одобри подтверди zatwierdź zaakceptuj"),
    ("reject", "reject decline deny refuse dismiss ablehnen lehne zurückweisen rejeter rejette refuser rechazar \
        rechaza rejeitar rejeite recusar rifiutare rifiuta respingere afwijzen weiger 拒绝 驳回 却下 拒否 lehn verweigere \
        verweigern rejetez refusez rechace deniega denegar отклони odrzuć abgelehnt"),
    ("share", "share grant give given allow let permit invite add access able entitle authorize authorise teilen \
        teile freigeben erlauben erlaube gib geben gewähren erteilen erteile partager partage partagez donner donne \
        donnez autoriser autorise compartir comparte comparta dar conceder concede otorgar compartilhar compartilhe \
        partilhar condividere condividi concedi concedere delen deel geven geef toegang 共享 分享 授予 授权 共有 付与 許可 freigib \
        berechtige berechtigen gewähre accorde accorder autoriza поделись udostępnij dale zugriff zugang rechte \
        rights accès acceso"),
    ("invite", "invite add join give grant share let allow access onboard einladen lade lädt hinzufügen füge inviter \
        invitez ajouter ajoute invitar invita convidar convide adicionar invitare aggiungi uitnodigen toevoegen 邀请 邀請 \
        添加 加入 招待 追加 ladet añade convida пригласи zaproś gib geben donne donner donnez dar dale concede accorde \
        zugriff zugang rechte rights accès acceso gewähre able füg hol hole eingeladen hinzugefügt"),
    ("revoke", "revoke withdraw rescind remove delete kick expel strip cancel widerrufen widerrufe entziehen entziehe \
        entfernen entferne révoquer révoque retirer retire revocar revoca revogar revogue retirar revocare togliere \
        togli rimuovi intrekken verwijder 撤销 撤回 取消 移除 取り消 剥奪 invalidate detach entzieh retirez révoquez revoque \
        expulsa expulsar вышвырни исключи wyrzuć saca sacar"),
    ("ban", "ban block suspend lock freeze mute disable deactivate sperren sperre blockieren blockiere bannir bloquer \
        bloque bloquear bloquea bloqueie bloccare blocca blokkeren blokkeer 封禁 屏蔽 冻结 ブロック 凍結 blacklist sperr bannen \
        banne verbanne bannis expulse заблокируй zablokuj gesperrt"),
    ("disable", "disable deactivate suspend block stop deaktivieren deaktiviere abschalten désactiver désactive \
        desactivar desactiva desativar desative disattivare disattiva uitschakelen 禁用 停用 关闭 無効 disarm deaktivier \
        abschalte désactivez desactive inhabilita отключи выключи wyłącz lock deaktiviert"),
    ("reset", "reset revert rollback undo undone zurücksetzen réinitialiser réinitialise restablecer redefinir \
        reimpostare resetten 重置 恢复 リセット reinitialize réinitialisez restablece restablezca сбрось zresetuj"),
    ("enable", "enable unlock unblock unban unfreeze activate reactivate restore allow aktivieren aktiviere \
        entsperren entsperre activer active débloquer activar activa desbloquear ativar ative attivare attiva \
        sbloccare activeren 启用 解锁 激活 有効 解除 arm reenable einschalten freischalten activez débloquez habilita habilitar \
        разблокируй включи włącz odblokuj entriegle entriegeln allume allumer enciende"),
    ("deploy", "deploy release upgrade rollout ausrollen bereitstellen deploye déployer déploie desplegar despliega \
        implantar implante distribuire distribuisci uitrollen 部署 上线 デプロイ 展開 ship redeploy promote ausliefern ausrollt \
        déployez despliegue разверни задеплой wdróż"),
    ("restart", "restart reboot relaunch neustarten redémarrer redémarre reiniciar reinicia reinicie riavviare \
        riavvia herstarten 重启 重新启动 再起動 bounce powercycle restartet relance relancer relancez redémarrez перезапусти \
        перезагрузи zrestartuj"),
    ("stop", "stop kill terminate shut shutdown end abort halt cancel pause stoppen stoppe beenden beende arrêter \
        arrête arrêtez parar detener detén terminar fermare ferma beëindigen 停止 终止 終了 停止して anhalten stopp detenga \
        pare останови zatrzymaj interrumpe interrumpir interrompre interromps discontinue éteins éteindre apaga gestoppt"),
    ("close", "close resolve finish complete end shut schließen schließe fermer ferme fermez clore cerrar cierra \
        cierre fechar feche chiudere chiudi sluiten sluit afsluiten 关闭 關閉 解决 クローズ 閉じ schließ clôture clôturer \
        clôturez закрой zamknij"),
    ("run", "run ran execute start launch trigger invoke rerun ausführen starten starte exécuter exécute lancer lance \
        lancez ejecutar ejecuta ejecute executar iniciar eseguire esegui avviare avvia uitvoeren 运行 执行 启动 実行 起動 exec \
        retry retrigger fire führe startet exécutez démarre démarrer corre correr lanza lanzar arranca arrancar \
        запусти uruchom dispatch"),
    ("charge", "charge bill debit collect invoice abbuchen belasten facturer débiter cobrar cobra faturar addebitare \
        fatturare factureren 收费 扣款 請求 kassiere fakturiere fakturieren encaisse encaisser prélève prélever"),
    ("withdraw", "withdraw withdrew abheben auszahlen retirer retirar sacar prelevare opnemen 提现 取款 引き出"),
    ("rename", "rename umbenennen renommer renomme renombrar renomear rinominare hernoemen 重命名 改名 renommez renombra \
        renombre переименуй"),
    ("move", "move relocate rename archive verschieben verschiebe déplacer déplace déplacez mover mueve mova spostare \
        sposta verplaatsen verplaats 移动 移動 verschieb bouge transfère traslada trasladar перемести przenieś"),
    ("update", "update change modify edit set adjust reschedule alter amend correct fix replace move raise lower \
        increase decrease reduce revise patch extend shorten bump rename turn switch ändern ändere änder \
        aktualisieren aktualisiere anpassen setze setzen erhöhen erhöhe senken senke verschieben verschiebe modifier \
        modifie modifiez changer changez ajuster augmenter augmente baisser corriger remplacer cambiar cambia cambie \
        modificar modifica actualizar actualiza ajustar subir aumentar bajar alterar altere mudar mude atualizar \
        atualize modificare cambiare aggiornare aggiorna aumentare imposta wijzigen wijzig veranderen verander \
        aanpassen verhogen bijwerken 修改 更改 更新 调整 設定 设置 变更 変更 調整 implement refactor tweak bearbeite bearbeiten \
        passe korrigiere korrigieren mets actualice edita editar измени обнови zmień zaktualizuj"),
    ("overwrite", "overwrite upload write wrote written save store replace update edit change put add append record \
        fix fill set note überschreiben schreiben schreibe schreib speichern speichere ersetzen ersetze ergänze \
        écrire écris écrivez enregistrer enregistre remplacer escribir escribe guardar reemplazar escrever escreva \
        salvar salve substituir scrivere scrivi salvare salva sostituire schrijven schrijf opslaan vervang 写入 保存 覆盖 \
        替换 更新 書い 書き create generate draft rewrite refactor implement convert format sort repariere schreibt notiere \
        notieren mets sauvegarde sauvegarder guarde edita запиши сохрани zapisz guarda make push commit export dump \
        download exportiere erstelle erstellen crée crea"),
    ("add", "add include append insert attach put register enroll invite join give grant share let allow access able \
        create hinzufügen füge ergänzen ergänze eintragen gib geben ajouter ajoute ajoutez donner donne añadir añade \
        agregar agrega invitar adicionar adicione acrescentar aggiungere aggiungi toevoegen voeg geef 添加 增加 加入 新增 追加 \
        加えて trag trage hänge hängen rajoute rajouter añada добавь dodaj füg assign hinzugefügt"),
    ("create", "create add make made new open build built generate write draft start register raise set schedule \
        prepare erstellen erstelle anlegen lege eröffnen machen mache schreibe créer crée créez faire ouvrir rédiger \
        crear crea cree hacer haz abrir criar crie fazer faça creare fare apri maken maak aanmaken 创建 建立 新建 制作 作成 作って \
        spawn provision anlege eröffne erzeuge erzeugen rédige ouvre genera generar создай utwórz stwórz"),
    ("fetch", "fetch get got read open load download retrieve import look check visit show see view browse find \
        search summarize summarise translate holen hole lesen lies öffnen öffne laden lade ansehen zeige lire lis \
        ouvrir ouvre télécharger regarde leer lee abrir abre descargar mira ler leia abra baixar leggere leggi aprire \
        apri scaricare lezen lees openen 打开 读取 下载 查看 获取 開い 読ん 取得 見て"),
    ("export", "export extract download dump exportieren exportiere exporter exporte exportar exporta esportare \
        esporta exporteren exporteer 导出 エクスポート exportiert exportez"),
    ("send", "send sent mail email message text write wrote reply answer respond forward tell told inform notify ask \
        post comment ping contact pay transfer give share report senden sende schicken schicke schick schreiben \
        schreibe schreib antworten antworte mailen maile sagen sage sag informieren envoyer envoie envoyez écrire \
        écris répondre réponds dire dis enviar envía envia envie manda mandar escribir escribe responder responde \
        dile decir mande escrever escreva responda inviare invia mandare scrivere scrivi rispondere rispondi dì \
        sturen stuur schrijven schrijf antwoorden 发送 发给 寄给 回复 告诉 通知 送信 送って 送り 返信 伝え schickt verschicke verschicken \
        versende versenden отправь напиши wyślij napisz verschick"),
    ("publish", "publish post release announce veröffentlichen veröffentliche publier publie publiez publicar publica \
        pubblicare publiceren publiceer plaats 发布 發佈 公開 投稿 опубликуй opublikuj veröffentlicht"),
    ("schedule", "schedule plan set arrange book block create planen plane planifier planifie programmer programar \
        programa agendar agende programmare pianifica plannen 安排 计划 予定 planifiez programme"),
    ("role", "role promote demote assign permission visibility"),
    ("checkout", "checkout buy order pay purchase kaufe bestelle"),
    ("subscribe", "subscribe join register abonnieren abonniere abonner suscribir suscribe assinar assine iscrivere \
        iscriviti abonneren 订阅 購読 abonnier"),
    ("terminate", "terminate kill delete destroy remove cancel end kündigen kündige résilier résilie"),
    ("unsubscribe", "unsubscribe abmelden abbestellen abbestelle désabonne désabonner désinscrire desuscribir \
        desuscríbeme cancela"),
    ("renew", "renew extend prolong verlängern verlängere renouveler renouvelle renouvelez prolonger prolonge renovar \
        renueva renueve prorrogar rinnova rinnovare verleng verlengen продли przedłuż"),
    ("scale", "scale resize skalieren skaliere escalar escala redimensionner"),
    ("dispute", "dispute contest challenge anfechten beanstande beanstanden conteste contester disputar disputa \
        impugnar"),
    ("fulfill", "fulfill fulfil ship dispatch expédie expédier despacha"),
    ("finalize", "finalize abschließen finaliser finaliza finalizar finalizuj"),
];

/// Verbs that ask for an action together with a later word: the verbs, the later words and verbs of the action.
#[rustfmt::skip]
pub(super) const PHRASES: [(&str, &str, &str); 73] = [
    ("neu", "starten", "restart"),
    ("nimm", "aus", "remove"),
    ("point", "at to", "create update"),
    ("add append delete drop insert remove entferne ergänze füge lösche",
        "chapter column heading line lines paragraph row rows section sentence word absatz abschnitt kapitel satz zeile",
        "update"),
    ("assign give grant make promote set change turn gib mache mach",
        "admin administrator editor maintainer member moderator owner private public readable editable visible role viewer \
        access permission rolle",
        "role"),
    ("push", "production prod live", "deploy"),
    ("bring get put ship take", "production prod", "deploy"),
    ("bring go put", "live", "publish"),
    ("mets", "ligne", "publish"),
    ("roll", "out", "deploy"),
    ("go revert roll", "back", "reset"),
    ("mach", "rückgängig", "reset"),
    ("roll rolle setz setze", "zurück", "reset"),
    ("power shut spin switch turn", "off down", "disable stop"),
    ("fahr fahre", "herunter runter", "stop"),
    ("schalt schalte stell stelle", "ab aus", "disable stop"),
    ("power switch turn", "on", "enable start"),
    ("schalt schalte", "ein frei", "enable"),
    ("boot bring fire spin", "up", "start"),
    ("kick", "off", "start"),
    ("führ führe", "aus", "run"),
    ("stoß stoße", "an", "run"),
    ("sag sage", "ab", "cancel"),
    ("call", "off", "cancel"),
    ("nimm schmeiß schmeiße wirf", "raus weg", "delete"),
    ("chuck throw toss", "away out", "delete"),
    ("take", "off out", "remove"),
    ("take", "down", "delete"),
    ("chuck drag move put send throw toss leg lege schmeiß verschieb verschiebe wirf mets mueve envía",
        "bin trash papierkorb corbeille papelera", "delete"),
    ("kill", "pod pods", "delete"),
    ("boot throw", "from out", "kick"),
    ("kick", "out", "kick"),
    ("bring get pull put", "into", "invite"),
    ("nimm put", "auf in", "invite"),
    ("bring", "back", "restore"),
    ("sign", "off", "approve"),
    ("gib", "frei", "approve"),
    ("nimm", "an", "accept"),
    ("lehn lehne weis weise", "ab zurück", "reject"),
    ("turn", "down", "reject"),
    ("allow open permit", "ingress port ports", "authorize"),
    ("leg lege speicher speichere", "ab", "save"),
    ("save store", "beneficiary contact payee recipient", "add"),
    ("bump increase lower raise reduce set", "instances nodes replicas", "scale"),
    ("make", "admin collaborator editor maintainer member owner viewer", "invite share"),
    ("breche brich", "ab", "cancel"),
    ("schmeiß wirf", "aus", "kick"),
    ("meld melde", "ab", "unsubscribe"),
    ("give pay", "back", "refund"),
    ("fire", "off", "send"),
    ("start starte", "neu", "restart"),
    ("call", "endpoint function lambda", "run"),
    ("schließ schließe", "auf", "unlock"),
    ("roll rolle spiel spiele", "aus ein", "deploy"),
    ("dispose", "of", "delete"),
    ("reverse", "charge payment transaction", "refund"),
    ("return", "money", "refund"),
    ("schließ schließe", "ab", "finalize"),
    ("invalidate", "cache", "delete"),
    ("open", "door", "unlock"),
    ("mach mache", "auf", "open unlock"),
    ("mach mache", "zu", "close"),
    ("bring get put", "onto", "deploy"),
    ("put stell stelle", "online", "publish"),
    ("hol hole", "in", "invite"),
    ("get take", "off", "unsubscribe"),
    ("schick schicke send", "einladung invitation invite", "invite"),
    ("launch start", "campaign", "send"),
    ("leg lege", "an", "create save"),
    ("mach mache make", "public", "publish"),
    ("mach mache make set turn", "private public", "update"),
    ("tear", "down", "delete"),
    ("flag mark", "dispatched fulfilled shipped", "fulfill"),
];
