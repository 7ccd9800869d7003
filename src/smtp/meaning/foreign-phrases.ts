import type { Meaning, Phrase } from './phrases.ts'

/** Rows in one language. */
const spoken =
  (language: string) =>
  (meaning: Meaning, pattern: RegExp): Phrase => ({
    meaning,
    pattern,
    provider: language,
    source: 'sisimai: UserUnknown, MailboxFull; postmasters writing in this language',
  })
const french = spoken('French')
const german = spoken('German')
const spanish = spoken('Spanish')
const portuguese = spoken('Portuguese')
const italian = spoken('Italian')
const polish = spoken('Polish')
const dutch = spoken('Dutch')
const russian = spoken('Russian')
const chinese = spoken('Chinese')
const japanese = spoken('Japanese')
const korean = spoken('Korean')

/** The same in other languages; accents are already gone, so й reads и. */
export const FOREIGN_PHRASES: readonly Phrase[] = [
  french('deferred/rate', /trop de (?:connexion|message|session|destinataire)/),
  french(
    'refused-us/blocklist',
    /bloques? par nos|liste noire|adresse ip [^;]{0,30}(?:bloque|refuse)/,
  ),
  french('refused-us/policy', /politique|indesirable|pourriel/),
  french(
    'rejected/no-mailbox',
    /(?:utilisateur|destinataire|compte|adresse|boite)[^;]{0,30} (?:inconnue?|invalide|inexistante?|introuvable)/,
  ),
  french(
    'rejected/no-mailbox',
    /(?:utilisateur|destinataire|compte|adresse|boite)[^;]{0,30} n'existe/,
  ),
  french('rejected/full', /(?:boite|compte|quota)[^;]{0,40}(?:pleine?|depasse|sature)/),
  french(
    'rejected/disabled',
    /(?:compte|boite|adresse)[^;]{0,40}(?:archivee|desactive|suspendu|ferme|inacti)/,
  ),
  french('deferred/busy', /plus tard|temporairement/),
  german(
    'refused-us/policy',
    /abgelehnt wegen|unerwunscht|richtlinie|gesperrte (?:ip|absender)|schwarze liste/,
  ),
  german(
    'rejected/no-mailbox',
    /(?:empfanger|benutzer|adresse|postfach|mailbox|konto)[^;]{0,30} (?:unbekannt|existiert nicht|nicht (?:gefunden|vorhanden|bekannt)|ungultig)/,
  ),
  german(
    'rejected/no-mailbox',
    /unbekannte[rs]? (?:empfanger|benutzer|adresse)|kein (?:benutzer|postfach|empfanger)/,
  ),
  german(
    'rejected/full',
    /(?:postfach|mailbox|speicher)[^;]{0,30}(?:voll|uberschritten|erschopft)/,
  ),
  german(
    'rejected/disabled',
    /(?:postfach|konto|mailbox|empfanger)[^;]{0,30}(?:deaktiviert|gesperrt|stillgelegt)/,
  ),
  german('deferred/busy', /spater (?:erneut|noch|wieder)|vorubergehend/),
  spanish(
    'rejected/no-mailbox',
    /(?:usuario|destinatario|buzon|cuenta|direccion)[^;]{0,30} (?:desconocid|no (?:existe|encontrad|valid)|inexistente|invalid)/,
  ),
  spanish(
    'rejected/no-mailbox',
    /no existe (?:el|la|ese|esa|dicha|ningun)|(?:usuario|destinatario) no/,
  ),
  spanish('rejected/full', /(?:buzon|cuenta|cuota)[^;]{0,30}(?:llen[oa]|excedid|superad)/),
  spanish(
    'rejected/disabled',
    /(?:buzon|cuenta|usuario)[^;]{0,30}(?:deshabilitad|suspendid|inactiv|desactivad|bloquead)/,
  ),
  portuguese(
    'rejected/no-mailbox',
    /(?:usuario|destinatario|caixa|conta|endereco)[^;]{0,30} (?:desconhecid|nao (?:existe|encontrad)|inexistente)/,
  ),
  portuguese('rejected/full', /(?:caixa|conta|quota|cota)[^;]{0,30}(?:chei[ao]|lotad|excedid)/),
  portuguese(
    'rejected/disabled',
    /(?:caixa|conta)[^;]{0,30}(?:desativad|suspens|inativ|bloquead|desabilitad)/,
  ),
  italian(
    'rejected/no-mailbox',
    /(?:utente|casella|indirizzo|destinatario)[^;]{0,30} (?:sconosciut|inesistente|non (?:esiste|trovat|valid))/,
  ),
  italian('rejected/no-mailbox', /nessun utente/),
  italian('rejected/full', /(?:casella|quota|spazio)[^;]{0,30}(?:pien[ao]|superat|esaurit)/),
  italian(
    'rejected/disabled',
    /(?:casella|account|utenza)[^;]{0,30}(?:disabilitat|sospes|disattivat|inattiv)/,
  ),
  polish(
    'rejected/no-mailbox',
    /(?:uzytkownik|skrzynka|adres|konto)[^;]{0,30}nie (?:istnieje|znalezion)|nieznany (?:uzytkownik|odbiorca|adres)/,
  ),
  polish('rejected/full', /skrzynka[^;]{0,30}(?:pełna|pelna|przepełniona|przepelniona)/),
  dutch(
    'rejected/no-mailbox',
    /(?:gebruiker|mailbox|ontvanger|adres)[^;]{0,30}(?:bestaat niet|onbekend)|onbekende (?:gebruiker|ontvanger)/,
  ),
  russian('refused-us/policy', /спам|заблокирован[^;]{0,30}ip|черн[^;]{0,10}спис/),
  russian(
    'rejected/no-mailbox',
    /(?:пользовател|адрес|ящик|получател)[^;]{0,30}не (?:наиден|существует)|нет такого|неизвестн/,
  ),
  russian('rejected/full', /переполнен|превышен[^;]{0,20}(?:квот|размер ящика)/),
  russian(
    'rejected/disabled',
    /(?:ящик|аккаунт|пользовател)[^;]{0,30}(?:заблокирован|отключен|удален)/,
  ),
  chinese('refused-us/blocklist', /黑名单|ip[^;]{0,20}(?:拒绝|不在|禁止)/),
  chinese('refused-us/policy', /垃圾/),
  chinese('deferred/rate', /频率|过于频繁|太频繁/),
  chinese(
    'rejected/no-mailbox',
    /(?:用户|收件人|邮箱|地址|账号|帐号)[^;]{0,8}(?:不存在|未找到|无效)|无此用户|没有此用户/,
  ),
  chinese('rejected/full', /(?:邮箱|空间|容量)[^;]{0,6}(?:已满|不足|超)/),
  chinese('rejected/disabled', /(?:邮箱|用户|账号|帐号)[^;]{0,6}(?:停用|冻结|禁用|锁定|暂停)/),
  japanese(
    'rejected/no-mailbox',
    /(?:ユーザ|宛先|アドレス|メールボックス)[^;]{0,12}(?:存在しません|見つかりません|不明)/,
  ),
  korean('rejected/no-mailbox', /존재하지 않는|사용자가 없|없는 사용자/),
  korean('rejected/full', /용량[^;]{0,6}초과/),
]
