import type { Meaning, ReplyRule } from './generic.ts'

const enhanced = (meaning: Meaning, codes: RegExp, source: string): ReplyRule => ({
  meaning,
  enhanced: codes,
  provider: 'any',
  source,
})
const basic = (meaning: Meaning, codes: RegExp, source: string): ReplyRule => ({
  meaning,
  code: codes,
  provider: 'any',
  source,
})

/** A recipient that accepts mail from some senders only. */
const RESTRICTED = /^5\.7\.(?:124|13[3-6])$/

/** Codes that say whose fault it is where the words do not, such as "domain not found". */
export const DEFINITIVE_CODES: readonly ReplyRule[] = [
  {
    ...enhanced('accepted/restricted', RESTRICTED, 'Exchange Online NDR codes'),
    pattern: /resolver\.rst|restrict|group|sender|authenticat|permission|approved|moderat/,
  },
  {
    ...enhanced('blocked/sender', /^[45]\.(?:1\.[789]|7\.27)$/, 'RFC 3463 §3.2, RFC 7505 §4.2'),
    // Sendmail says 4.1.8 of the PTR record of the client too.
    pattern:
      /^(?!.{0,100}\b(?:recipient|rcpt)\b|host does not accept mail|possibly forged hostname|client ip address)/,
  },
  {
    ...enhanced('blocked/sender', /^[45]\.1\.0$/, 'Orange, Titan, Outlook.com'),
    // Postfix says 5.1.0 of a null MX of the recipient, whose domain `plainText` removes.
    pattern: /\b(?:domain|host)\b(?! does not accept mail \(nullmx)/,
  },
  enhanced('no-response/smtputf8', /^[45]\.6\.(?:7|9|10)$/, 'RFC 6531 §3.7.4.2'),
]

/** Enhanced codes about this client, if no phrase matched. Ambiguous codes are left out. */
export const BLOCK_CODES: readonly ReplyRule[] = [
  enhanced('deferred/too-many', /^[45]\.5\.3$/, 'RFC 3463 §3.6'),
  enhanced('blocked/tls', /^[45]\.7\.(?:10|11|29)$/, 'RFC 5248, Google Workspace SMTP errors'),
  enhanced('blocked/auth', /^[45]\.7\.(?:8|57)$/, 'RFC 4954 §6, Exchange Online NDR codes'),
  enhanced('blocked/sender', /^[45]\.7\.(?:2[0-4]|26|27|3[02]|509|515)$/, 'RFC 7372, RFC 7505'),
  enhanced('blocked/rdns', /^[45]\.7\.(?:25|506)$/, 'RFC 7372 §3.3, Exchange Online NDR codes'),
  enhanced(
    'deferred/rate',
    /^(?:[45]\.7\.28|4\.7\.5\d\d|4\.7\.65\d)$/,
    'RFC 7372, Exchange Online',
  ),
  enhanced('blocked/blocklist', /^5\.7\.(?:51[13]|60[6-9]|6[1-4]\d)$/, 'Exchange Online NDR codes'),
]

/** Matches a text without words: empty, or the name of a host. */
const WORDLESS_TEXT =
  /^(?:<>|\[[\d.]{7,15}\]|(?:[a-z0-9-]{1,63}\.){1,8}[a-z0-9-]{0,63})?[ .:]{0,3}$/

/** Codes of RFC 7504: with words, the words decide, because many servers reply 521 to a block. */
export const NO_MAIL_CODES: readonly ReplyRule[] = [
  {
    ...basic('rejected/no-mail', /^(?:521|556)$/, 'RFC 7504 §3, §4'),
    pattern:
      /(?:(?:does|do|will|can) ?n[o']t|doesn't|won't|cannot|never) (?:accept|receive|handle|process)(?:e?s)? (?:any |incoming |inbound )?(?:e?-?mails?|messages|smtp)\b(?! (?:from|for|to))|\bno (?:e?-?mail|smtp)(?: service)? (?:here|accepted)|accepts? no e?-?mail|not an? (?:mail|smtp) (?:server|host)/,
  },
  { ...basic('rejected/no-mail', /^556$/, 'RFC 7504 §4'), pattern: /null ?mx/ },
  {
    ...basic('rejected/no-mail', /^521$/, 'RFC 7504 §3: in place of a greeting'),
    enhanced: /^(?:5\.0\.0|5\.3\.[02])?$/,
    pattern: WORDLESS_TEXT,
    stage: 'greeting',
  },
  {
    ...basic('rejected/no-mail', /^556$/, 'RFC 7504 §4: in reply to RCPT'),
    enhanced: /^(?:5\.0\.0|5\.3\.[02]|5\.1\.10)?$/,
    pattern: WORDLESS_TEXT,
    stage: 'rcpt',
  },
]

/** Enhanced codes about the mailbox, if no phrase matched. */
export const MAILBOX_CODES: readonly ReplyRule[] = [
  { ...enhanced('rejected/no-mail', /^5\.1\.10$/, 'RFC 7505 §4.1'), pattern: /null ?mx/ },
  {
    ...basic('blocked/sender', /^5/, 'RFC 7505 §4.2: the domain of the recipient had an MX'),
    pattern: /null ?mx/,
  },
  enhanced('accepted/restricted', RESTRICTED, 'Exchange Online NDR codes'),
  enhanced('rejected/no-mailbox', /^[45]\.1\.(?:1|10)$/, 'RFC 3463 §3.2, RFC 7505 §4.2'),
  enhanced('rejected/no-mailbox', /^5\.1\.[34]$/, 'RFC 3463 §3.2'),
  enhanced('rejected/not-hosted', /^5\.1\.2$/, 'RFC 3463 §3.2'),
  enhanced('rejected/moved', /^5\.1\.6$/, 'RFC 3463 §3.2'),
  enhanced(
    'rejected/no-mailbox',
    /^5\.7\.1[78]$/,
    'RFC 7293 §14: mailbox or domain has a new owner',
  ),
  enhanced('rejected/disabled', /^5\.2\.1$/, 'RFC 3463 §3.3'),
  enhanced('rejected/full', /^[45]\.2\.2$/, 'RFC 3463 §3.3'),
  enhanced('rejected/disabled', /^5\.7\.50[45]$/, 'Exchange Online NDR codes'),
  enhanced('rejected/not-hosted', /^5\.4\.4$/, 'RFC 3463 §3.5: unable to route; Exchange Server'),
  enhanced('deferred/busy', /^5\.(?:3\.[125]|4\.[0-35-7])$/, 'RFC 3463 §3.4, §3.5'),
]

/** Matches a text that is empty or repeats the meaning of the code. */
const UNINFORMATIVE_TEXT =
  /^(?:<>)?[ .:]{0,3}(?:requested (?:mail )?action (?:not taken|aborted)|no|unknown|not found|invalid|unavailable)?[ .]{0,2}$/

const UNINFORMATIVE_ENHANCED = /^(?:5\.0\.0)?$/

/** Basic codes, if nothing else matched (RFC 5321 §4.2.3). The last two rules match all others. */
export const CODE_MEANINGS: readonly ReplyRule[] = [
  {
    ...basic('blocked/sender', /^5/, 'RFC 3463 §3.2: at MAIL an address error concerns the sender'),
    enhanced: /^5\.1\./,
    stage: 'before-rcpt',
  },
  {
    ...basic('blocked/rdns', /^50[14]$/, 'RFC 5321 §4.1.1.1'),
    pattern: /argument/,
  },
  { ...basic('blocked/policy', /^5/, 'RFC 5321 §4.2.3'), pattern: /reject/ },
  {
    ...basic('rejected/no-mailbox', /^55[03]$/, 'RFC 5321 §4.2.3'),
    pattern: UNINFORMATIVE_TEXT,
    enhanced: UNINFORMATIVE_ENHANCED,
  },
  {
    ...basic('rejected/moved', /^551$/, 'RFC 5321 §3.4'),
    pattern: UNINFORMATIVE_TEXT,
    enhanced: UNINFORMATIVE_ENHANCED,
  },
  {
    ...basic('rejected/full', /^552$/, 'RFC 5321 §4.2.3'),
    pattern: UNINFORMATIVE_TEXT,
    enhanced: UNINFORMATIVE_ENHANCED,
  },
  { ...basic('no-response/garbage', /^(?:50[0-4]|555)$/, 'RFC 5321 §4.2.4'), stage: 'rcpt' },
  {
    ...basic(
      'no-response/garbage',
      /^[45]/,
      'RFC 3463 §3.6: the server did not understand the command',
    ),
    enhanced: /^[45]\.5\.[0-24-6]$/,
    stage: 'rcpt',
  },
  basic('blocked/auth', /^53[0458]$/, 'RFC 4954 §6'),
  basic('deferred/busy', /^4/, 'RFC 5321 §4.2.1'),
  basic('blocked/policy', /^5/, 'RFC 5321 §4.2.1'),
]
