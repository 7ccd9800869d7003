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

/** Codes with a single meaning, whatever the text. */
export const DEFINITIVE_CODES: readonly ReplyRule[] = [
  enhanced('accepted/restricted', /^5\.7\.(?:124|13[3-6])$/, 'Exchange Online NDR codes'),
  enhanced('blocked/sender', /^[45]\.1\.[789]$/, 'RFC 3463 §3.2, RFC 7505 §4.2'),
  {
    ...enhanced('blocked/sender', /^[45]\.1\.0$/, 'Orange, Titan, Outlook.com'),
    pattern: /\b(?:domain|host)\b/,
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

/** Enhanced codes about the mailbox, if no phrase matched. */
export const MAILBOX_CODES: readonly ReplyRule[] = [
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
  basic('rejected/no-mail', /^(?:521|556)$/, 'RFC 7504 §3, §4'),
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
  { ...basic('no-response/garbage', /^50[0-4]$|^555$/, 'RFC 5321 §4.2.4'), stage: 'rcpt' },
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
