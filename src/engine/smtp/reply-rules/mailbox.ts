import { oneOf, type ReplyRule, re, words } from './generic.ts'

/** An address of a mailbox, not of a host. */
const ADDRESS = String.raw`(?<!(?:ip|client|source|remote|network|host) )address(?! literal| family|:? \[?\d{1,3}\.\d)`
const MAILBOX = `(?:user(?:name|id)?(?! agent)|recipient|mail ?box|mail ?drop|${ADDRESS}|alias|account|addressee|rcpt)(?:es|s)?(?! header)`
/** Words allowed between "invalid" and "address": an invalid *client* address is our own. */
const SORT =
  '(?:(?:local|virtual|e-?mail|mail|destination|recipient|rcpt|target|smtp|user|account) )?'
const ADVERB = '(?:currently |temporar(?:il)?y |permanently |administratively )?'
/** The text between a noun and its predicate: "is", or an address and "is". */
const IS = "(?: ?[('[]{0,2}<>[)'\\]]{0,2})?\"?:? (?:is |are |was |has |has been |have been |been )?"
const NOT = String.raw`(?:\bnot|n't)`

/** Predicates of a mailbox that does not exist: after "is", and after "is not". */
const MISSING = oneOf(
  'un(?:known|available|avaiable|deliverable|recogni[sz]ed|registered)',
  'invalid',
  'incorrect',
  'wrong',
  'nonexist',
  'missing',
  'misspelled',
  'obsolete',
)
const PRESENT = oneOf(
  'found',
  'known',
  'valid',
  'a valid',
  'available',
  'here',
  'exist',
  'in ',
  'listed',
  'local',
  'recogni[sz]ed',
  'registered',
  'present',
  '(?:on|at) this',
  'deliverable',
  'ok\\b',
)
/** Adjectives of a mailbox that does not exist. */
const NO_SUCH = oneOf(
  'unknown',
  'no such',
  'no match for',
  'non-?exist(?:ent|ing)',
  'unregistered',
  'unrecogni[sz]ed',
  '(?<!your )(?:invalid|illegal|bad)',
  'undeliverable',
  'incorrect',
  'wrong',
  'unavailable',
  'false',
)
/** Predicates of a mailbox that was closed. */
const CLOSED = `${oneOf(
  'disabled',
  'deactivated',
  'suspended',
  'inactive',
  'dormant',
  'not (?:been )?(?:an? )?activ',
  'frozen',
  'discontinued',
  'archived',
  'on hold',
  'locked',
  'retired',
  'closed',
  'expired',
  'terminated',
  'cancell?ed',
  'deleted',
  'removed',
)}(?! (?:from|for send|the |conn))`

/** Phrases about the mailbox. */
export const MAILBOX_PHRASES: readonly ReplyRule[] = [
  ...words(
    'rejected/full',
    'RFC 5248 (x.2.2), sisimai: MailboxFull',
    /over ?-?quota|over (?:its |the )?(?:allowed |storage |disk )?quota/,
    /(?<!(?:queue|submission|hourly|domains|sending|message|server|system|your|bandwidth) )quota (?:usage |limit )?(?:has been |is |was )?(?:exceed|full|reach|violat)/,
    /(?:exceed|reach)[^;]{0,30}\b(?:storage|quota|disk space)\b/,
    /(?:mail ?box|in-?box|mail ?folder|account|recipient|user|maildir|storage)(?: <>| (?:for|of) [^ ;]{1,64})? (?:is )?(?:too |almost )?full/,
    /full (?:mail ?box|in-?box)|mail ?box (?:size |storage )?(?:limit|quota|exceed|has (?:reached|exceeded)|exceeds)/,
    /(?:mail ?box|account|user|storage)[^;]{0,30} (?:is |has )?(?:at|over|above|beyond|reached|exceed(?:s|ed)?) (?:its |the |their )?(?:size |storage )?limit/,
    /storage (?:limit|quota|space)? ?(?:is |was |has been )?(?:reached|exceeded|exhausted|full)|account storage limit|exceeded storage|exhausted (?:the )?(?:allowed )?storage/,
    /insufficient (?:mail ?box|user) (?:storage|space)|out of (?:storage|(?:disk )?space)|space (?:has been used up|has run out|not enough)|too many messages on the server/,
    /(?:not|n't) (?:have )?(?:enough|sufficient) (?:mail ?box )?(?:storage|space|room|disk)|dis[kc] ?(?:space )?quota/,
    /would exceed (?:the |its |recipient's |their )?(?:mail ?box|quota|storage|maximum allowed)/,
    /no (?:more )?(?:space|room) (?:left )?(?:in|for|on) (?:the )?(?:mail ?box|user|account|device)/,
  ),
  ...words(
    'accepted/restricted',
    'Exchange Online NDR codes 5.7.124-5.7.136',
    /resolver\.rst\.(?:authrequired|notauthorized|restricted|sendernot)/,
    /only accepts? (?:messages?|mail|e?mails?) from (?:people|members|internal|authenticated)/,
  ),
  ...words(
    'rejected/disabled',
    'RFC 5248 (x.2.1), sisimai: Suspend',
    re`${MAILBOX}${IS}${ADVERB}${CLOSED}`,
    re`(?<!(?:sender|message|sending|your) )\b(?:disabled|suspended|inactive|expired|closed|deactivated|deleted|archived) (?:e-?mail )?${MAILBOX}`,
    re`^<>:? (?:is |has been |was |has )?(?:now )?${CLOSED}`,
    /closed (?:his|her|their|the|this) (?:account|mail ?box)|is deactivated|user or domain is disabled|(?:user|account) status (?:is )?(?:locked|inactive|disabled)/,
    /(?:mail|message) receiving (?:is |has been )?disabled|(?:cannot|can't|unable to|not allowed to) receive (?:any )?(?:e?-?mail|messages)(?! from)/,
    /(?<!(?:conn|session|channel|idle)[^;]{0,40})due to (?:extended |prolonged )?inactivity|rejected: (?:temporarily )?inactive|(?:recipient|user|subscriber) suspend(?:ed)? the service/,
  ),
  ...words(
    'rejected/moved',
    'RFC 5321 §3.4 (551), RFC 5248 (x.1.6)',
    /(?:mail ?box|user|recipient|account|address) (?:has |have |was |is )?(?:been )?(?:moved|migrated|changed)/,
    /^<> has moved/,
    /not local[;,]? (?:please )?(?:try|forward)|new (?:e-?mail )?address is/,
  ),
  ...words(
    'rejected/no-mailbox',
    'RFC 5248 (x.1.1), sisimai: UserUnknown',
    re`${NO_SUCH}(?: or (?:illegal|disabled|invalid|unknown|inactive))? ${SORT}${MAILBOX}`,
    re`(?:unknown|no such) ${SORT}(?:person|login|customer|member|subscriber|id\b|one|e-?mail)`,
    /(?:unknown|no such|invalid|illegal|bad) (?:local[ -]?)?part\b|mail ?box name (?:is )?(?:not allowed|invalid)/,
    re`^<>:? (?:is |was )?(?:${MISSING}|illegal|not ${PRESENT})`,
    re`${MAILBOX}${IS}(?:(?:currently )?${MISSING}|not ${PRESENT})`,
    /(?:user|mail ?box|recipient|account|address) [^ ;]{1,64} (?:is )?(?:not (?:found|known|valid|here|listed)|unknown)/,
    re`${MAILBOX}[^;]{0,40} (?:(?:has|is|was|could) ?n[o']?t (?:been |be )?found|(?:can|could) ?n[o']t be (?:verified|delivered))`,
    /unrout(?:e)?able|user_?unknown|unknown_?user|nosuchuser|usernotfound|recip(?:ient)?notfound/,
    /(?<!\b(?:domain|host|list|server|you|origin|send|lookup|dns|url|header|attachment|file)[^;]{0,60})(?:does|do|dos|did) ?n[o']t? exist/,
    /(?<=(?:user|mail ?box|recipient|account|address|email|person|<>)"?) (?:is )?(?:not?|n't) (?:longer )?exists?\b|don't exists? (?:that|this)/,
    /no (?:mail ?box|account|user|recipient|valid recipients?|such address)(?: <>)?(?: here| by| with| found| named| matching| available|[:.,]|$)/,
    /no such here|no (?:one|person) (?:here|at|with|by)|there is no (?:such |one|user|account|mail ?box|recipient|person)/,
    /no (?:mail ?box|account|record|match|entry) (?:\w{1,12} )?(?:for|of|by) (?:that |this |the |such |a )?(?:user|name|recipient|address|mail ?box|<>)|no mail ?box available/,
    /(?:do|does) ?n[o']t have an? (?:[a-z.]{1,30} )?(?:account|mail ?box|user)/,
    re`${NOT} an? (?:valid|known|recogni[sz]ed|local|registered|active|existing) ${SORT}${MAILBOX}|${NOT} an? member of (?:this |the )?domain`,
    /not (?:our|an?) (?:customer|user|subscriber|e-?mail address)|not (?:an? )?(?:user|customer) (?:of|on|at)|not e-?mail address/,
    /not (?:present |listed |found )?in (?:the |our |my |this )?(?:public )?(?:recip|direct|user|domino|name (?:and|&|dir)|address (?:book|list|dir)|ldap|system)/,
    re`(?:unable to|can ?no?'?t|could ?n[o']t|failed to) (?:find|locate|look ?up) (?:the |this |that |a |alias )?${MAILBOX}`,
    /(?<!\b(?:host|hostname|domain|server|dns|record|ip|client|mx|file|page|url)\b[^;]{0,60})(?:could|can) ?n[o']t be (?:found|located)/,
    /address lookup (?:in [^;]{1,30} )?failed(?!,)|no forwarding (?:address|info)/,
    /badrcptto|badrecipientto|validrcptto|bad destination (?:mail ?box|e-?mail)|destination address(?:es)? (?:was|were|is|are)? ?unknown/,
    /(?:has )?left the (?:company|organi[sz]ation|firm)|missing home dir|user path no/,
    /(?<!(?:certificate|password|key|token|session|connection|your)[^;]{0,30})no longer (?:valid|active|available|in (?:use|service)|exist|an? (?:valid|active|employee)|on (?:this )?server|works?|employed|here|with)/,
    /no longer accepts? (?:any )?(?:e?mail|messages)(?! from)/,
    /verify address failed|recipient (?:address )?verif(?:y|ication) fail|address syntax|(?:not a valid|valid) rfc/,
    /callout verification failed|\(cached\) callout|do(?:es)? ?n[o']t like recipient/,
    /^<?>?:? ?(?:recipient )?address rejected(?:\.|$| <>)|user (?:<> )?rejected$/,
  ),
  {
    pattern: re`${MAILBOX}${IS}(?:rejected|refused|denied|not (?:been )?(?:accepted|allowed|permitted|ok))`,
    enhanced: /^5\.1\.[01]$/,
    meaning: 'rejected/no-mailbox',
    provider: 'any',
    source: 'RFC 3463 §3.2: x.1.0 and x.1.1 are about the address; Cox, Spectrum, Haraka',
  },
  {
    pattern:
      /^(?:<>:? )?(?:recipient|mail ?box|user) (?:address )?(?:<> )?(?:is |was )?(?:rejected|denied|not allowed)\.?(?: <>)?$/,
    enhanced: /^(?:5\.[0-6]\.\d{1,3})?$/,
    code: /^55/,
    meaning: 'rejected/no-mailbox',
    provider: 'any',
    source: 'KumoMTA: InvalidRecipient',
  },
]
