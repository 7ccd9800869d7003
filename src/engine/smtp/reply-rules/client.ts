import { type ReplyRule, words } from './generic.ts'

/**
 * Phrases about the client, its sender or its rate that contain words for a missing or closed
 * mailbox, or for a domain that does not accept mail. They precede the phrases about those.
 */
export const CLIENT_PHRASES: readonly ReplyRule[] = [
  {
    // The recipient has an MX, because it was found by it.
    pattern:
      /(?:^|[^a-z])(?:invalid|illegal|no|missing|bad|broken|without|lacks?|have|find|resolve|locate)(?: (?:an?|any|the|your|valid|usable|proper)){0,2} (?:dns|mx|aaaa|a(?:,|\/| or| and) ?(?:or |and )?(?:aaaa|mx)|resource records?)\b(?![^;]{0,20} (?:for|of) (?:the )?(?:rcpt|recipient))/,
    meaning: 'blocked/sender',
    provider: 'any',
    source: 'Postfix reject_unknown_sender_domain',
  },
  {
    pattern:
      /\bbare (?:<(?:cr|lf)|cr\b|lf\b|new ?line|line ?feed)|\bprotocol error|pipelining|out of (?:order|sequence)|\b(?:line|command) (?:is )?(?:too long|length)/,
    stage: 'rcpt',
    meaning: 'no-response/garbage',
    provider: 'any',
    source: 'Postfix postscreen and smtpd_forbid_bare_newline',
  },
  ...words('blocked/auth', 'RFC 4954 §6', /not logged (?:in|on)(?: yet)?(?:$|[.;:,])/),
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
