import { oneOf, type ReplyRule, re, words } from './generic.ts'

/** A fault of a recipient, or of a record. */
const FAULTY = oneOf(
  ...['unknown', 'invalid', 'bad', 'wrong', 'incorrect', 'illegal', 'non-?exist(?:ent|ing)'],
  ...['undeliverable', 'unrout(?:e)?able', 'inactive', 'unregistered', 'unrecogni[sz]ed', 'failed'],
)
const RECIPIENT = '(?:user(?:name| ?id)?|recipient|rcpt|address|mail ?box|account|login|name)'
const RECIPIENTS = '(?:user(?:name| ?id)?s|recipients|rcpts|addresses|mail ?boxes|accounts|names)'
const LIMIT =
  '(?:too many|excess|exceed|limit|maximum|\\bmax\\b|threshold|(?:number|count|rate|ratio|percentage) of|more than|repeated)'
/** "Too many" in other languages, without accents. */
const LIMIT_ELSEWHERE = oneOf(
  'zu viele|trop d|demasiad|tropp[ie]|muit[ao]s|te veel|zbyt wiele|prilis mnoho|слишком много',
  'cok fazla|过多|太多|多すぎ|너무 많',
)
/** "Unknown", "recipients", "errors" and "attempts" in other languages. */
const FAULTY_ELSEWHERE = oneOf(
  'unbekannt|ungultig|empfang|fehl|versuch|inconnu|invalid|erreur|tentativ|destinat|desconoc',
  'desconhec|usuari|errori|sconosciut|utenti|onbekend|ongeldig|nieznan|neznam|неизвест|неверн',
  'несуществ|получател|ошиб|попыт|bilinmeyen|gecersiz|未知|无效|收件人|不明|宛先|수신자|알 수 없는',
)
const FORBIDDEN =
  '(?:disabled|suspended|blocked|denied|prohibited|forbidden|restricted|barred|locked|not (?:enabled|allowed|permitted|authori[sz]ed))'
/** What a sender's domain lacks, such as "DNS MX or A/AAAA resource record". */
const RECORD =
  '(?:dns|mx|aaaa|a(?:,|\\/| or| and) ?(?:or |and )?(?:aaaa|mx)|resource records?)\\b(?![^;]{0,20} (?:for|of) (?:the )?(?:rcpt|recipient))'

/**
 * Phrases about the client, its sender or its rate that contain words for a missing or closed
 * mailbox, or for a domain that does not accept mail. They precede the phrases about those.
 */
export const CLIENT_PHRASES: readonly ReplyRule[] = [
  ...words(
    'deferred/rate',
    'Servers that limit unknown recipients per client, against directory harvesting',
    re`(?:${LIMIT}[^;]{0,40}\b|\b\d{1,6} )${FAULTY} (?:\w{1,12} )?${RECIPIENTS}\b`,
    re`${LIMIT}[^;]{0,40}\b(?:${RECIPIENT} (?:unknowns|failures|errors|rejections)|${RECIPIENT} unknown (?:errors|failures|replies)|${RECIPIENTS} (?:are )?unknown)\b`,
    re`\b(?:${FAULTY} ${RECIPIENT}(?:es|s)?|${RECIPIENT} (?:errors?|failures?)) (?:errors|failures|attempts|count|limit|threshold|rate|ratio|percentage)`,
    re`\b${FAULTY} ${RECIPIENTS} (?:in|per|from) (?:this |your |one |an? )?(?:session|connection|host|ip|server|minute|hour|day)`,
    /too many (?:such |of these |rcpt |recipient |user |delivery |failed ){1,2}(?:attempts|errors|failures|tries|rejections)/,
    re`${LIMIT_ELSEWHERE}[^;]{0,20}${FAULTY_ELSEWHERE}`,
  ),
  {
    // The recipient has an MX, because it was found by it.
    pattern: re`(?:^|[^a-z])(?:invalid|no|not|missing|bad|broken|without|lacks?|have|find|resolve|locate)(?: (?:an?|any|the|your|valid|usable|proper)){0,2} ${RECORD}`,
    meaning: 'blocked/sender',
    provider: 'any',
    source: 'Postfix reject_unknown_sender_domain',
  },
  ...words(
    'blocked/sender',
    'Postfix reject_unknown_sender_domain; hosting panels that stop outgoing mail',
    /\b(?:dns|mx|aaaa)(?: (?:or|and) [a-z/]{1,6}){0,2}(?: resource)? records? (?:is |are |was |were )?(?:missing|not|invalid|absent)/,
    /\b(?:in|of) (?:the )?(?:smtp )?mail[- ]from\b|\bmail[- ]from (?:domain |address )?(?:has|does)\b|\bmail[- ]from: ?(?:bad|invalid|illegal|syntax)/,
    re`\b(?:sending|outgoing|outbound|submission)\b[^;]{0,60}\b${FORBIDDEN}`,
    re`(?:account|user|mail ?box)[^;]{0,30} (?:${FORBIDDEN} (?:from|for|to)|cannot|can't|may not) send(?:ing)?\b(?! (?:or|to|(?:e?mails?|messages?) to)\b)`,
  ),
  {
    pattern:
      /\bbare (?:<(?:cr|lf)|cr\b|lf\b|new ?line|line ?feed)|\bprotocol error|pipelining|out of (?:order|sequence)|\b(?:line|command) (?:is )?(?:too long|length)/,
    stage: 'rcpt',
    meaning: 'no-response/garbage',
    provider: 'any',
    source: 'Postfix postscreen and smtpd_forbid_bare_newline',
  },
  ...words(
    'blocked/blocklist',
    'Checks of the address of the client',
    /\b(?:client|remote|source|peer|your|sender) (?:ip|host|address)(?: address)? (?:check|lookup|verification|error)|\bip (?:address )?(?:check|lookup|verification) (?:error|fail)|\bprobing\b/,
  ),
  ...[
    /not yet (?:been )?(?:seen|known|recogni[sz]ed|trusted|verified|white-?listed|on our)/,
    /(?:not|never) (?:been )?(?:seen|known|heard)[^;]{0,20} before|unknown triplet|not (?:on|in) (?:our|the) white-?list yet/,
  ].map(
    (pattern): ReplyRule => ({
      pattern,
      code: /^4/,
      meaning: 'deferred/greylist',
      provider: 'any',
      source: 'RFC 6647 §2 (greylisting that is not named)',
    }),
  ),
]
