import { oneOf, type ReplyRule, re, words } from './generic.ts'

/** A fault of a recipient, or of a record. */
const FAULTY = oneOf(
  ...['unknown', 'invalid', 'bad', 'wrong', 'incorrect', 'illegal', 'non-?exist(?:ent|ing)'],
  ...['undeliverable', 'unrout(?:e)?able', 'inactive', 'unregistered', 'unrecogni[sz]ed', 'failed'],
)
const RECIPIENT = '(?:user(?:name| ?id)?|recipient|rcpt|address|mail ?box|account|login|name)'
const RECIPIENTS = '(?:user(?:name| ?id)?s|recipients|rcpts|addresses|mail ?boxes|accounts|names)'
const LIMIT =
  '(?:too many|excess|exceed|limit|maximum|\\bmax\\b|threshold|number of|count of|rate of|ratio of|percentage of|more than|repeated)'
const FORBIDDEN =
  '(?:disabled|suspended|blocked|denied|prohibited|forbidden|restricted|barred|locked|not (?:enabled|allowed|permitted|authori[sz]ed))'
/** What a sender's domain lacks, such as "DNS MX or A/AAAA resource record". */
const RECORD =
  '(?:dns|mx|aaaa|a\\/aaaa|spf|resource records?)\\b(?![^;]{0,20} (?:for|of) (?:the )?(?:rcpt|recipient))'

/**
 * Phrases about the client, its sender or its rate that contain words for a missing or closed
 * mailbox, or for a domain that does not accept mail. They precede the phrases about those.
 */
export const CLIENT_PHRASES: readonly ReplyRule[] = [
  ...words(
    'deferred/rate',
    'Limits on unknown recipients: Exim, MailEnable, Kerio, GoDaddy',
    re`${LIMIT}[^;]{0,40}\b${FAULTY} (?:\w{1,12} )?${RECIPIENTS}\b`,
    re`${LIMIT}[^;]{0,40}\b(?:${RECIPIENT}|${RECIPIENTS}) (?:are |is )?(?:unknowns?|failures|errors|rejections)\b`,
    re`\b(?:${FAULTY} ${RECIPIENT}(?:es|s)?|${RECIPIENT} (?:errors?|failures?)) (?:errors|failures|attempts|count|limit|threshold|rate|ratio|percentage)`,
  ),
  {
    // The recipient has an MX, because it was found by it.
    pattern: re`(?:^|[^a-z])(?:invalid|no|not|missing|bad|broken|without|lacks?|have|find|resolve|locate)(?: (?:an?|any|the|your|valid|usable|proper)){0,2} ${RECORD}`,
    meaning: 'blocked/sender',
    provider: 'any',
    source: 'Sendmail, MDaemon, Postfix reject_unknown_sender_domain',
  },
  ...words(
    'blocked/sender',
    'Postfix reject_unknown_sender_domain; hosting panels that stop outgoing mail',
    /\b(?:dns|mx|aaaa)(?: (?:or|and) [a-z/]{1,6}){0,2}(?: resource)? records? (?:is |are |was |were )?(?:missing|not|invalid|absent)/,
    /\b(?:in|of) (?:the )?(?:smtp )?mail[- ]from\b|\bmail[- ]from (?:domain |address )?(?:has|does)\b/,
    re`\b(?:sending|outgoing|outbound)\b[^;]{0,60}\b${FORBIDDEN}`,
    re`\b(?:${FORBIDDEN}|cannot|may not|unable)\b[^;]{0,20}\b(?:(?:from|for) sending|(?:to )?send (?:any |out )?(?:e?mails?|messages?))\b(?! to\b)`,
  ),
  {
    pattern:
      /\bbare (?:<(?:cr|lf)|cr\b|lf\b|new ?line|line ?feed)|\bprotocol error|pipelining|out of (?:order|sequence)/,
    stage: 'rcpt',
    meaning: 'no-response/garbage',
    provider: 'any',
    source: 'Postfix postscreen and smtpd_forbid_bare_newline',
  },
  ...words(
    'blocked/blocklist',
    'Checks of the address of the client',
    /\b(?:client|remote|source|peer|your|sender) (?:ip|host|address)(?: address)? (?:check|lookup|verification|error)|\bip (?:address )?(?:check|lookup|verification) (?:error|fail)/,
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
