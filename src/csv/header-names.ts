/** What the name of a column suggests about its content. */
export type NameHint =
  | 'exact' // Only a word for e-mail address: "Email".
  | 'first' // The first of several: "E-mail 1 - Value", "Email (Primary)".
  | 'part' // A word for e-mail among others: "contact_email".
  | 'other' // Another person's address, or a second one: "Owner email", "E-mail 2 - Value".
  | 'about' // Data about e-mail, or a postal address: "email_opt_in", "Mailing address".
  | 'login' // A user name, which may look like an address.
  | 'none'

/** Classifies a column name in any of the languages below. */
export function nameHint(name: string): NameHint {
  const words = splitWords(name)
  const joined = words.join('')
  if (EXACT.has(joined)) return 'exact'
  if (words.some(word => LOGIN.has(word))) return 'login'
  if (words.some(word => word === 'mailing')) return 'about'
  if (
    !words.some(word => MAIL_WORDS.has(word)) &&
    !MAIL_PARTS.some(part => joined.includes(part))
  ) {
    return 'none'
  }
  // Columns that ev added on an earlier run.
  if (words[0] === 'ev') return 'other'
  if (words.some(word => ABOUT.has(word)) || ABOUT_PARTS.some(part => joined.includes(part))) {
    return 'about'
  }
  if (words.some(word => OTHER.has(word) || SECOND.test(word))) return 'other'
  return words.some(word => FIRST.has(word)) ? 'first' : 'part'
}

/**
 * Splits a name into lowercase words without accents and punctuation; `emailAddress` is two words,
 * `e-mail` is one.
 */
function splitWords(name: string): string[] {
  return name
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/\b(e)[-_. ](?=(mail|pos|mel|poc|adre|naslov|bost))/gu, '$1')
    .split(/[^\p{L}\p{N}]+/u)
    .filter(word => word !== '')
}

/** Normalizes the word lists below with `splitWords`, the form in which names are compared. */
const joinedWords = (text: string) =>
  text
    .split(',')
    .map(name => splitWords(name).join(''))
    .filter(name => name !== '')

const EXACT: ReadonlySet<string> = new Set(
  joinedWords(`
    email, e-mail, mail, emails, e-mails, email address, e-mail addresses, mail address, email id, address email,
    your email, email adress, emailaddr, mailid, smtp address, internet address, electronic mail,
    E-Mail-Adresse, Mailadresse, Emailadresse, elektronische Post, Mailanschrift,
    courriel, adresse e-mail, adresse mail, adresse courriel, adresse électronique, adresse de courriel, mél, courrier électronique, adresse de messagerie,
    correo, correo electrónico, correo-e, dirección de correo, dirección de correo electrónico, email dirección, correu electrònic, correu, correo electronico, helbide elektronikoa, posta elektronikoa, eposta helbidea,
    indirizzo email, indirizzo e-mail, posta elettronica, indirizzo di posta elettronica, indirizzo mail, PEC,
    endereço de email, endereço de e-mail, endereço eletrônico, correio eletrônico, correio electrónico, enderezo electrónico,
    e-mailadres, mailadres, adres e-mail, e-postadres, e-posadres, e-pos,
    adres email, adres e-mail, adres poczty elektronicznej, poczta, poczta elektroniczna, adres mailowy,
    e-mailová adresa, emailová adresa, e-pošta, elektronická pošta, elektronska pošta, e-poštni naslov, e-naslov, elektronska adresa, adresa e-pošte, adresa elektronske pošte, el. paštas, elektroninis paštas, el. pašto adresas, e-pasts, e-pasta adrese, epasts,
    e-mail cím, email cím, drótposta, adresă de email, adresă email, poștă electronică, adresa de e-mail,
    e-post, epost, e-postadress, e-postadresse, epostadress, epostadresse, mejl, mejladress, mailadresse, tölvupóstur, netfang,
    sähköposti, sähköpostiosoite, meili, e-posti aadress, meiliaadress, meil,
    e-posta, e-posta adresi, eposta, elektronik posta, mail adresi, e-poçt, elektron poçt, elektron pochta, email manzil, posta elektronike,
    почта, электронная почта, эл. почта, эл почта, адрес электронной почты, емейл, имейл, е-мейл, имэйл, мейл, емайл, мыло, е-mail,
    електронна пошта, ел. пошта, пошта, адреса електронної пошти, електронна поща, ел. поща, имейл адрес, е-пошта, електронска пошта, электронны адрас, электрондық пошта, цахим шуудан, имэйл хаяг,
    ηλεκτρονικό ταχυδρομείο, διεύθυνση email, διεύθυνση ηλεκτρονικού ταχυδρομείου, ηλ. ταχυδρομείο, ηλεκτρονική διεύθυνση,
    էլ. փոստ, էլ. հասցե, ელფოსტა, ელ. ფოსტა, მეილი,
    דוא"ל, דואל, אימייל, מייל, דואר אלקטרוני, כתובת אימייל, כתובת דואר אלקטרוני,
    البريد الإلكتروني, بريد إلكتروني, البريد الالكتروني, الإيميل, ايميل, عنوان البريد الإلكتروني, ایمیل, پست الکترونیک, رایانامه, نشانی ایمیل, آدرس ایمیل, ای میل, برقی ڈاک,
    ईमेल, ई-मेल, ईमेल पता, ইমেইল, ই-মেইল, ইমেল, ઈમેલ, ਈਮੇਲ, ईमेल आईडी, மின்னஞ்சல், மின்னஞ்சல் முகவரி, ఇమెయిల్, ಇಮೇಲ್, ഇമെയിൽ, විද්‍යුත් තැපෑල, इमेल,
    อีเมล, อีเมล์, ที่อยู่อีเมล, ອີເມວ, အီးမေးလ်,
    thư điện tử, địa chỉ email, hòm thư, surel, alamat email, alamat surel, pos-el, e-mel, emel, alamat e-mel, barua pepe, imel, ríomhphost, e-bost, ebost, post-d, imeyl,
    メール, メールアドレス, Eメール, Eメールアドレス, 電子メール, 電子メールアドレス, メアド, mailアドレス, emailアドレス,
    邮箱, 电子邮箱, 邮件, 电子邮件, 邮箱地址, 邮件地址, 电子邮件地址, 电子邮箱地址, 电邮, 邮箱账号, email地址, 信箱, 電郵, 電郵地址, 電子郵件, 電子信箱, 電子郵件地址, 電子郵箱, 郵箱, 電子郵件信箱, email信箱,
    이메일, 이메일 주소, 메일, 메일주소, 전자우편, 전자 우편 주소, 이메일주소
  `),
)

/** Complete words that mean e-mail. */
const MAIL_WORDS: ReadonlySet<string> = new Set(
  joinedWords(
    'mail, mails, mél, epost, eposta, correo, meil, mejl, почта, почты, пошта, мейл, pec',
  ),
)
/** Parts of words that mean e-mail, for languages that join words. */
const MAIL_PARTS = joinedWords(
  `email, courriel, e-mail, correo electr, correio eletr, posta elettronica, e-postad, e-pošt, sähköposti, mailadress,
   mailaddr, электронная почта, электронной почты, електронна пошта, емейл, имейл,
   メール, メアド, 邮箱, 邮件, 信箱, 電郵, 电邮, 郵件, 郵箱, 이메일, 메일, อีเมล, ईमेल, אימייל, ایمیل, ايميل, بريد, البريد`,
)

const LOGIN: ReadonlySet<string> = new Set(
  'username,user_name,login,userid,handle,nickname,account,twitter,skype,instagram,benutzername,identifiant,usuario,utente,usuário,логин,ユーザー名,用户名'
    .split(',')
    .flatMap(name => joinedWords(name)),
)

/** Words that mark a column as data about addresses, such as a status or a date. */
const ABOUT: ReadonlySet<string> = new Set(
  joinedWords(
    `opt, optin, optout, opted, sent, send, sending, status, state, date, time, at, on, last, count, counts, number, total,
     open, opens, opened, click, clicks, clicked, bounce, bounced, bounces, subscribed, subscribe, subscription,
     unsubscribed, unsubscribe, consent, permission, permissions, verified, verification, confirmed, valid, validity,
     validation, type, label, template, subject, body, preference, preferences, frequency, domain, provider, hash, md5,
     sha1, sha256, score, rating, quality, flag, is, has, allow, allowed, accepts, accept, enabled, disabled, notes,
     note, comment, format, language, stop, deliverability, risk, reason, error, quota, size, statut, estado, fecha,
     datum, gesendet, versand, envoyé, enviado, inviato, erlaubnis, einwilligung`,
  ),
)
const ABOUT_PARTS = joinedWords(
  'optin, optout, メール配信, メールマガジン, 送信日, 发送, 状态, 配信, 수신',
)

/** Words that mark an address as another person's or as a secondary one. */
const OTHER: ReadonlySet<string> = new Set(
  joinedWords(
    `secondary, second, alternate, alternative, alt, other, additional, old, previous, former, backup, recovery, cc, bcc, reply, replyto, owner, manager, supervisor, boss, rep, agent, advisor, assigned, assignee,
     sender, from, by, created, modified, updated, referrer, referral, referred, parent, guardian, mother, father, spouse, partner, emergency, support, sales, team, assistant, admin, billing, invoice, mean, suggested, corrected, third`,
  ),
)
const SECOND = /^[2-9]$|^(email|mail)[2-9]$/
const FIRST: ReadonlySet<string> = new Set(
  joinedWords('primary, main, 1, email1, mail1, preferred, default, principal, haupt, first'),
)
