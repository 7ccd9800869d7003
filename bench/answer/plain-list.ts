/** The classes that typical verifiers distinguish. */
export type Kind = 'accepted' | 'rejected' | 'blocked' | 'deferred'

/**
 * Classifies a reply as typical verifiers do: the first matching expression wins, and the code
 * decides if none matches. Expressions and order are those of well-known verifiers and bounce
 * parsers: first those about the sender, then temporary errors, then the mailbox.
 */
export function classifyByList(code: number, enhanced: string | null, text: string): Kind {
  if (code < 400) return 'accepted'
  const whole = `${code} ${enhanced ?? ''} ${text}`
  for (const [expression, kind] of LIST) if (expression.test(whole)) return kind
  return code < 500 ? 'deferred' : 'rejected'
}

const LIST: readonly (readonly [RegExp, Kind])[] = [
  [/spamhaus|spamcop|barracuda|sorbs|uceprotect|\brbl\b|dnsbl/i, 'blocked'],
  [/black ?list|block ?list|deny ?list/i, 'blocked'],
  [/client host .*blocked|(?:ip|host|address|sender) .*(?:blocked|banned|denied)/i, 'blocked'],
  [/blocked (?:by|using|due|because)|has been blocked/i, 'blocked'],
  [/poor reputation|bad reputation|low reputation|reputation/i, 'blocked'],
  [/reverse dns|rdns|\bptr\b|cannot find your (?:hostname|reverse)/i, 'blocked'],
  [/helo|ehlo command rejected/i, 'blocked'],
  [/\bspf\b|\bdkim\b|\bdmarc\b/i, 'blocked'],
  [/sender (?:address )?(?:rejected|denied|refused|not allowed|verify failed)/i, 'blocked'],
  [/starttls|tls required|must issue/i, 'blocked'],
  [/authentication required|auth(?:entication)? (?:is )?needed|not authenticated/i, 'blocked'],
  [/relay(?:ing)? (?:access )?(?:denied|not permitted|prohibited)|unable to relay/i, 'blocked'],
  [/spam|junk|unsolicited/i, 'blocked'],
  [/policy|security reasons|not authorized|unauthorized/i, 'blocked'],
  [/access denied|permission denied|administratively prohibited/i, 'blocked'],
  [/gr[ae]y ?list/i, 'deferred'],
  [/try again|try later|retry later|come back later/i, 'deferred'],
  [/too many (?:connections|recipients|messages|concurrent|requests|errors)/i, 'deferred'],
  [/rate limit|throttl|too fast|exceeded .*(?:rate|limit)/i, 'deferred'],
  [/temporar(?:y|ily)|deferred/i, 'deferred'],
  [/service (?:not |un)available|server (?:is )?busy|resources|overload/i, 'deferred'],
  [/internal error|local error|lookup fail|timed? ?out|connection (?:reset|refused)/i, 'deferred'],
  [/mailbox (?:is )?full|full mailbox|over ?quota|quota exceeded|exceeded .*quota/i, 'rejected'],
  [/insufficient (?:storage|space)|out of (?:storage|space)|storage allocation/i, 'rejected'],
  [
    /(?:account|mailbox|user|recipient) .*(?:disabled|suspended|inactive|deactivated|closed)/i,
    'rejected',
  ],
  [/(?:disabled|inactive|suspended) (?:account|mailbox|user|recipient)/i, 'rejected'],
  [
    /user unknown|unknown user|unknown recipient|recipient unknown|unknown (?:local|mailbox)/i,
    'rejected',
  ],
  [/no such (?:user|recipient|mailbox|address|person|account|local)/i, 'rejected'],
  [
    /(?:user|mailbox|recipient|account|address|alias) .*(?:not found|not exist|unavailable|invalid)/i,
    'rejected',
  ],
  [/(?:does not|doesn't|doesnt) exist|not exist/i, 'rejected'],
  [
    /invalid (?:recipient|mailbox|user|address|account)|bad (?:recipient|destination|address)/i,
    'rejected',
  ],
  [
    /recipient (?:address )?(?:rejected|refused|not (?:found|known|ok))|rejected recipient/i,
    'rejected',
  ],
  [
    /no (?:mailbox|user) here|not (?:a )?(?:valid|known|local) (?:user|mailbox|recipient)/i,
    'rejected',
  ],
  [
    /not our customer|no longer (?:valid|available|exists|employed)|has (?:moved|left)/i,
    'rejected',
  ],
  [/undeliverable|cannot be delivered|address unknown|unrouteable|unroutable/i, 'rejected'],
  [/utilisateur inconnu|adresse inconnue|n'existe pas/i, 'rejected'],
  [/unbekannt|existiert nicht|nicht vorhanden/i, 'rejected'],
  [/no existe|desconocid|destinatario/i, 'rejected'],
  [/\b5\.7\.\d/, 'blocked'],
  [/\b[45]\.2\.[12]|\b5\.1\.\d/, 'rejected'],
  [/\b4\.\d\.\d/, 'deferred'],
]
