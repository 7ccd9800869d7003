import type { Meaning, ReplyRule } from './generic.ts'

/** Creates rules for one language. */
const inLanguage =
  (language: string) =>
  (meaning: Meaning, pattern: RegExp): ReplyRule => ({
    meaning,
    pattern,
    provider: language,
    source: 'sisimai: UserUnknown, MailboxFull; postmasters writing in this language',
  })
const languages = inLanguage('several languages')
const french = inLanguage('French')
const german = inLanguage('German')
const spanish = inLanguage('Spanish')
const portuguese = inLanguage('Portuguese')
const italian = inLanguage('Italian')
const polish = inLanguage('Polish')
const czech = inLanguage('Czech and Slovak')
const dutch = inLanguage('Dutch')
const nordic = inLanguage('Danish, Norwegian, Swedish, Finnish')
const slavic = inLanguage('Russian, Ukrainian, Bulgarian')
const eastern = inLanguage('Turkish, Greek, Hungarian, Romanian')
const chinese = inLanguage('Chinese')
const japanese = inLanguage('Japanese')
const korean = inLanguage('Korean')

/** Rules for other languages. Accents are already removed, so й becomes и and ü becomes u. */
export const LOCALIZED_PHRASES: readonly ReplyRule[] = [
  languages(
    'blocked/sender',
    /expediteur|absender|remitente|remetente|mittente|nadawc|odesilatel|odosielatel|afzender|afsender|avsandare|отправител|відправник|gonderen|发件人|發件人|寄件|送信者|差出人|발신자|보낸 ?사람/,
  ),
  languages(
    'rejected/not-hosted',
    /(?:domaine|dominio|domena|domeen|домен|alan adi)(?: <>)? (?:n'existe|no existe|non esiste|nao existe|inexistant|inexistente|inesistente|inconnu|desconocid|desconhecid|sconosciut|nie istnieje|не наиден|не существует)|域名(?:不存在|错误|无效)/,
  ),

  french('deferred/rate', /trop de (?:connexion|message|session|destinataire)/),
  french(
    'blocked/blocklist',
    /bloques? par nos|liste noire|adresse ip [^;]{0,30}(?:bloque|refuse)/,
  ),
  french('blocked/auth', /authenti[a-z]{3,9} (?:invalide|requise|necessaire)/),
  french('blocked/policy', /politique|indesirable|pourriel/),
  french(
    'rejected/no-mailbox',
    /(?:utilisateur|destinataire|compte|adresse|boite)[^;]{0,30} (?:inconnue?|invalide|inexistante?|introuvable|erronee?)/,
  ),
  french(
    'rejected/no-mailbox',
    /(?:utilisateur|destinataire|compte|adresse|boite)[^;]{0,30} n'existe|aucun (?:utilisateur|compte|destinataire)/,
  ),
  french('rejected/full', /(?:boite|compte|quota)[^;]{0,40}(?:pleine?|depasse|sature)/),
  french(
    'rejected/disabled',
    /(?:compte|boite|adresse)[^;]{0,40}(?:archivee|desactive|suspendu|ferme|inacti|bloque)/,
  ),
  french('deferred/busy', /plus tard|temporairement/),

  german('blocked/blocklist', /schwarze[nr]? liste|gesperrte ip|ip[^;]{0,30}(?:gesperrt|gelistet)/),
  german('blocked/policy', /abgelehnt wegen|wegen spam|unerwunscht|richtlinie|gesperrte absender/),
  german(
    'rejected/not-hosted',
    /domain[^;]{0,20} (?:unbekannt|existiert nicht|nicht (?:verwaltet|gefunden|zustandig))/,
  ),
  german(
    'rejected/no-mailbox',
    /(?:empfanger|benutzer|adresse|postfach|mailbox|konto)[^;]{0,30} (?:unbekannt|existiert nicht|nicht (?:gefunden|vorhanden|bekannt|zustellbar)|ungultig)/,
  ),
  german(
    'rejected/no-mailbox',
    /unbekannte[rs]? (?:empfanger|benutzer|adresse|konto|postfach)|kein (?:benutzer|postfach|empfanger|konto)/,
  ),
  german(
    'rejected/full',
    /(?:postfach|mailbox|speicher(?:platz)?|quota)[^;]{0,30}(?:voll|uberschritten|ueberschritten|erschopft)/,
  ),
  german(
    'rejected/disabled',
    /(?:postfach|konto|account|benutzer|mailbox|empfanger)[^;]{0,30}(?:deaktiviert|gesperrt|stillgelegt|geloscht)/,
  ),
  german('deferred/busy', /spater (?:erneut|noch|wieder)|vorubergehend/),

  languages('blocked/blocklist', /list[ae] ne[gr]r?a|czarnej lisci|zwarte lijst/),
  spanish(
    'rejected/no-mailbox',
    /(?:usuario|destinatario|buzon|casilla|cuenta|direccion)[^;]{0,30} (?:desconocid|no (?:existe|encontrad|valid)|inexistente|invalid|incorrect)/,
  ),
  spanish(
    'rejected/no-mailbox',
    /no existe (?:el|la|ese|esa|dicha|ningun)|(?:usuario|destinatario) no/,
  ),
  spanish(
    'rejected/full',
    /(?:buzon|casilla|cuenta|cuota)[^;]{0,30}(?:llen[oa]|excedid|superad|agotad)/,
  ),
  spanish(
    'rejected/disabled',
    /(?:buzon|casilla|cuenta|usuario)[^;]{0,30}(?:deshabilitad|suspendid|inactiv|desactivad|bloquead|expirad|cerrad)/,
  ),
  portuguese(
    'rejected/no-mailbox',
    /\b(?:usuario|destinatario|caixa|conta|endereco)\b[^;]{0,30} (?:desconhecid|nao (?:existe|encontrad)|inexistente|invalid|incorret)/,
  ),
  portuguese('rejected/full', /\b(?:caixa|conta|quota|cota)\b[^;]{0,30}(?:chei[ao]|lotad|excedid)/),
  portuguese(
    'rejected/disabled',
    /\b(?:caixa|conta|usuario)\b[^;]{0,30}(?:desativad|suspens|inativ|bloquead|desabilitad|cancelad)/,
  ),
  italian(
    'rejected/no-mailbox',
    /(?:utente|casella|indirizzo|destin(?:atario|\.)?)[^;]{0,30} (?:sconosciut|inesistente|errat|non (?:esiste|trovat|valid))/,
  ),
  italian('rejected/no-mailbox', /nessun utente/),
  italian('rejected/full', /(?:casella|quota|spazio)[^;]{0,30}(?:pien[ao]|superat|esaurit)/),
  italian(
    'rejected/disabled',
    /(?:casella|account|utenza)[^;]{0,30}(?:disabilitat|sospes|disattivat|inattiv|chius)/,
  ),
  polish(
    'rejected/no-mailbox',
    /(?:uzytkownik|odbiorca|skrzynka|adres|konto)[^;]{0,30}nie (?:istnieje|znalezion)|nieznany (?:uzytkownik|odbiorca|adres)/,
  ),
  polish(
    'rejected/no-mailbox',
    /nie (?:istnieje|ma) (?:takie|taki|konto|skrzynk|uzytkownik|adres)|brak (?:takie|uzytkownik|konta)/,
  ),
  polish('rejected/full', /skrzynka[^;]{0,30}(?:pełna|pelna|przepełniona|przepelniona)/),
  polish(
    'rejected/disabled',
    /(?:skrzynka|konto)[^;]{0,30}(?:zablokowan|zawieszon|nieaktywn|usuniet)/,
  ),
  czech(
    'rejected/no-mailbox',
    /(?:schranka|uzivatel|pouzivatel|adresa|prijemc)[^;]{0,30}(?:neexistuje|nenalezen|nenajden)|neznamy (?:uzivatel|pouzivatel|prijemc)/,
  ),
  czech('rejected/full', /schranka[^;]{0,20}pln[ae]/),
  dutch(
    'rejected/no-mailbox',
    /(?:gebruiker|mailbox|postvak|ontvanger|adres)[^;]{0,30}(?:bestaat niet|onbekend|niet gevonden)|onbekende (?:gebruiker|ontvanger)/,
  ),
  dutch('rejected/full', /(?:mailbox|postvak|postbus)[^;]{0,20} vol\b/),
  nordic(
    'rejected/no-mailbox',
    /(?:ukendt|ukjent|okand) (?:bruger|bruker|anvandare|modtager|mottaker|mottagare)|(?:bruger|bruker|anvandare|mottaker|mottagare|modtager|adresse|adress)(?:en|n)? (?:findes|finnes|finns|eksisterer|existerar) (?:ikke|inte)|tuntematon (?:kayttaja|vastaanottaja)/,
  ),
  slavic('blocked/policy', /спам|заблокирован[^;]{0,30}ip|черн[^;]{0,10}спис/),
  slavic(
    'rejected/no-mailbox',
    /(?:пользовател|адрес|ящик|получател|адресат|користувач|потребител)[^;]{0,30}не (?:наиден|существует|знаиден|існує)|(?:нет|немає|няма) так|неизвестн|адресат неизвест/,
  ),
  slavic('rejected/full', /переполнен|превышен[^;]{0,20}(?:квот|размер ящика)/),
  slavic(
    'rejected/disabled',
    /(?:ящик|аккаунт|пользовател)[^;]{0,30}(?:заблокирован|отключен|удален)/,
  ),
  eastern(
    'rejected/no-mailbox',
    /(?:kullanici|alici|adres)[^;]{0,20} (?:bulunamadi|yok)|αγνωστος (?:χρηστης|παραληπτης)|ismeretlen (?:felhasznalo|cimzett)|(?:felhasznalo|cimzett|cim)[^;]{0,10} nem letezik|utilizator(?:ul)? (?:necunoscut|nu exista)/,
  ),
  eastern('rejected/full', /kutusu dolu|kotasi (?:dolu|asildi)/),

  chinese('blocked/blocklist', /黑名单|黑名單|ip[^;]{0,20}(?:拒绝|不在|禁止)/),
  chinese('blocked/policy', /垃圾/),
  chinese('deferred/rate', /频率|过于频繁|太频繁/),
  chinese(
    'rejected/no-mailbox',
    /(?:用户|用戶|收件人|邮箱|郵箱|地址|账号|帐号|帳號)[^;]{0,8}(?:不存在|未找到|无效|無效|错误|錯誤)|[无無]此[用人]|没有此用户|[查无無]{1,2}此人/,
  ),
  chinese('rejected/full', /(?:邮箱|郵箱|空间|空間|容量)[^;]{0,6}(?:已满|已滿|不足|超)/),
  chinese(
    'rejected/disabled',
    /(?:邮箱|郵箱|用户|用戶|账号|帐号|帳號)[^;]{0,6}(?:停用|冻结|禁用|锁定|暂停|注销)/,
  ),
  japanese(
    'rejected/no-mailbox',
    /(?:ユーザ|宛先|アドレス|メールボックス)[^;]{0,12}(?:存在しません|見つかりません|不明)/,
  ),
  japanese('rejected/full', /(?:メールボックス|容量)[^;]{0,12}(?:いっぱい|超え|超過)/),
  korean('blocked/blocklist', /차단된 ?ip|ip[^;]{0,10}차단/),
  korean(
    'rejected/no-mailbox',
    /존재하지 않는|사용자가 없|없는 사용자|(?:수신자|사용자|주소)[^;]{0,6}찾을 수 없/,
  ),
  korean('rejected/disabled', /(?:휴면|정지|해지)[^;]{0,3} ?계정/),
  korean('rejected/full', /용량[^;]{0,6}초과/),
]
