import { oneOf, type ReplyRule, re, words } from './generic.ts'

/** A domain that is not the sender's. The block rules run first and match "sender domain". */
const DOMAIN = `(?<!(?:from|originating|sending|your|helo|client|level|of the) )domain(?: ?name)?`
/** An optional domain name after the noun. `plainText` removes the recipient's. */
const NAME = '(?: [("<]{0,2}(?:[a-z0-9-]{1,63}\\.[a-z0-9.-]{2,190})?[)"> ]{0,3})?'
const IS = '(?: <>)?:? ?(?:is |was |has been |has )?'
const MISSING = oneOf(
  'un(?:known|recogni[sz]ed|rout)',
  'not (?:found(?!,? (?:in dns|try))|hosted|handled|local|served|configured|known|recogni[sz]ed|registered|valid)',
)
const CLOSED = oneOf(
  'disabled',
  'expired',
  'suspended',
  'retired',
  'deleted',
  'removed',
  'obsolete',
  'deactivated',
  'no longer',
)
const NOT = String.raw`(?:\bnot|n't|never)`

/** Phrases about the recipient's domain. */
export const DOMAIN_PHRASES: readonly ReplyRule[] = [
  ...words(
    'rejected/no-mail',
    'RFC 7504 §2, RFC 7505 §4.1',
    /(?:host|domain|server|system)(?: <>)? (?:does not|doesn't|never) (?:accept|receive)s? (?:any )?e?-?mail\b(?! (?:from|for|to))/,
  ),
  ...words(
    'rejected/not-hosted',
    'Postfix, Exim, Sendmail, qmail: relaying refused at RCPT',
    /relay(?:ing)?(?: access| mail| operation)?(?: from| to| for)?(?: <>)?[^;]{0,20}(?:denied|not (?:perm|allow|auth))/,
    /relay(?:ing)?[^;]{0,20}(?:refused|disallowed|forbidden|rejected|disabled|prohibited|is off)/,
    re`(?:${NOT} (?:permitted|allowed|authori[sz]ed|configured)|unable|cannot|can't|won't|do(?:es)? not|don't|no) (?:to )?relay`,
    /as a relay|unauthori[sz]ed relay|not a gateway|rcpthosts|i cannot deliver mail for|loops? back to (?:myself|me)\b/,
    /local users? only|not local host|(?<!your )\bmx (?:record )?points? (?:back )?to (?:local ?host|(?:the )?local host|me\b)/,
  ),
  ...words(
    'rejected/not-hosted',
    'RFC 5248 (x.1.2), sisimai: HostUnknown, KumoMTA and PowerMTA: BadDomain',
    re`${DOMAIN}${NAME}${IS}(?:${MISSING}|(?:been )?${CLOSED})`,
    // No name is allowed here: a host that remains in the text is not the recipient's.
    re`(?<!relay )\bhost${IS}${MISSING}`,
    /(?:remote|recipient(?:'s)?|destination|rcpt) (?:domain|host)(?: name)? (?:is |was )?(?:not found|invalid|bad|unknown|must exist)/,
    /(?:unknown|no such|no valid|non-?existent|unrout(?:e)?able) (?:recipient |destination |mail )?domain|(?:invalid|bad) (?:recipient|destination) (?:domain|host|system)/,
    re`(?:${DOMAIN}${NAME}|(?<!relay )\bhost) does ?n[o']t exist|find the recipient domain|${NOT} an? (?:local|hosted) domain`,
    /(?:do|does) ?n[o']t (?:handle|host|serve) (?:(?:e-?)?mail for|(?:for )?(?:that|this|the)\b)/,
    /(?:we are|i am|this is|server is) not (?:the |an? )?(?:mail )?(?:exchanger|server|host) for|(?:for|to) this domain is (?:not|refused)/,
    /(?:do|does) ?n[o']t accept (?:any )?(?:(?:e-?)?mail|messages) (?:for|to) (?!this address|that address|<>)/,
    /not point to us|is not a customer|unknown destination|wrong (?:mail )?(?:server|host|mx) for|not one of our domains|domain [^;]{0,20}not (?:belong|in (?:our|my) list)|no route (?:found )?to (?:the )?(?:recipient|domain)|specified domain is not/,
    /can(?:'t|not) find a valid mx for rcpt|(?<!your )mx records? points? to (?:local|non-?exist)|nonexistent ?domain/,
    re`(?<!(?:your|sender) )\bdomain${NAME} (?:could not|cannot) be found`,
    /\bno-domain\b|\bdomain is (?:not |un)reachable|unrout(?:e)?able (?:mail )?domain/,
  ),
]
