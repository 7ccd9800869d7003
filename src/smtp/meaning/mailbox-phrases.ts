import { type Phrase, re, words } from './phrases.ts'

const MAILBOX =
  '(?:user(?:name)?|recipient|mail ?box|(?<!ip )address(?! literal| family)|alias|account|addressee|rcpt)'
/** Only such words may stand between "invalid" and "address": an invalid *client* address is ours. */
const SORT =
  '(?:(?:local|virtual|e-?mail|mail|destination|recipient|rcpt|target|smtp|user|account) )?'
const ADVERB = '(?:currently |temporarily |permanently )?'
/** What is between a noun and its verb: "is", or the address before it. */
const IS = '(?: ?<>)?:? (?:is |was |has been )?'

/** Words about the mailbox or its domain. */
export const WORDS_ABOUT_MAILBOX: readonly Phrase[] = [
  ...words(
    'rejected/full',
    'RFC 5248 (x.2.2), sisimai: MailboxFull',
    /over ?-?quota|over (?:its |the )?(?:storage|disk)? ?quota/,
    /(?<!(?:queue|submission|hourly|domains|sending|message|server|system|your|bandwidth) )quota (?:has been |is |was )?(?:exceed|full|reach|violat)/,
    /(?:exceed|reach)[^;]{0,30}\b(?:storage|quota)\b/,
    /(?:mail ?box|inbox|mail ?folder|account|recipient|user|maildir)(?: <>)? (?:is )?(?:too )?full/,
    /full (?:mail ?box|inbox)|mail ?box (?:size |storage )?(?:limit|quota|has exceeded|exceeds)/,
    /out of (?:storage|space)|space has been used up|too many messages on the server/,
    /(?:not|n't) (?:have )?(?:enough|sufficient) (?:storage|space|room|disk)|disk quota/,
    /would exceed (?:the |its )?(?:mail ?box|quota|storage|maximum allowed)|no (?:more )?space (?:left )?(?:in|for) (?:the )?(?:mail ?box|user|account)/,
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
    re`${MAILBOX}${IS}${ADVERB}(?:disabled|deactivated|suspended|inactive|dormant)(?! from| for send)`,
    re`${MAILBOX}${IS}${ADVERB}(?:not (?:been )?activ|frozen|discontinued|archived|on hold)`,
    re`${MAILBOX}${IS}(?:closed|expired|terminated|cancell?ed)(?! the| conn)`,
    /\b(?:disabled|suspended|inactive|expired|closed|deactivated) (?:recipient|mail ?box|user|account|e?mail)/,
    /closed (?:his|her|their|the|this) (?:account|mail ?box)|is deactivated/,
  ),
  ...words(
    'rejected/moved',
    'RFC 5321 §3.4 (551), RFC 5248 (x.1.6)',
    /(?:mail ?box|user|recipient|account|address) (?:has |have |was |is )?(?:been )?(?:moved|migrated|changed)/,
    /^<> has moved/,
    /not local[;,]? (?:please )?(?:try|forward)|new (?:e-?mail )?address is/,
  ),
  ...words(
    'rejected/no-mail',
    'RFC 7504 §2, RFC 7505 §4.1',
    /(?:host|domain|server|system)(?: <>)? (?:does not|doesn't|never) (?:accept|receive)s? (?:any )?e?mail\b(?! from)/,
    /null ?mx/,
  ),
  ...words(
    'rejected/not-hosted',
    'Postfix, Exim, Sendmail, qmail: relaying refused at RCPT',
    /relay(?:ing)?(?: access| mail)?(?: from| to| for)?(?: <>)?[^;]{0,20}(?:denied|not (?:perm|allow|auth))/,
    /relay(?:ing)?[^;]{0,20}(?:refused|disallowed|forbidden|rejected|is disabled)/,
    /(?:not (?:permitted|allowed|authori[sz]ed)|unable|cannot|can't|won't|do(?:es)? not|don't|no) (?:to )?relay/,
    /as a relay|not a gateway|rcpthosts|i cannot deliver mail for|loops? back to (?:myself|me)\b/,
  ),
  ...words(
    'rejected/not-hosted',
    'RFC 5248 (x.1.2), sisimai: HostUnknown',
    /(?:domain|host)(?: name)?(?: <>)? (?:is )?(?:not (?:found(?! in dns)|hosted|handled|local|served|configured|known)|unknown)/,
    /(?:unknown|no such|non-?existent) (?:recipient |destination )?domain|(?:invalid|bad) (?:recipient|destination) (?:domain|host)/,
    /(?<!(?:from|originating|sending|your) )domain (?:[^ ;]{1,80} )?does ?n[o']t exist|find the recipient domain|not an? (?:local|hosted) domain/,
    /(?:do|does) ?n[o']t (?:handle|host|serve) (?:e?mail )?(?:for )?(?:that|this|the)|for this domain is not accepted/,
    /(?:do|does) ?n[o']t accept (?:e?mail|messages) (?:for|to) (?:that|this|the) (?:domain|host)/,
    /not point to us|is not a customer/,
  ),
  ...words(
    'rejected/no-mailbox',
    'RFC 5248 (x.1.1), sisimai: UserUnknown',
    re`(?:unknown|no such|non-?exist(?:ent|ing)|unregistered) (?:or illegal )?${SORT}${MAILBOX}`,
    re`(?:unknown|no such) ${SORT}(?:person|part|login|customer|member|subscriber|id\b|one|email)`,
    re`(?:invalid|illegal|bad|undeliverable|incorrect|wrong) ${SORT}${MAILBOX}`,
    re`${MAILBOX}${IS}(?:unknown|invalid|(?:currently )?unavailable|nonexist|undeliverable|missing)`,
    re`${MAILBOX}${IS}not (?:found|known|valid|a valid|available|here|exist|in )`,
    /(?:user|mail ?box|recipient) [^ ;]{1,64} (?:is )?(?:not (?:found|known|valid|here)|unknown)/,
    re`${MAILBOX}[^;]{0,40} (?:has|is|was) ?n[o']?t (?:been )?found`,
    /unrout(?:e)?able|user_?unknown|unknown_?user|nosuchuser|usernotfound|recip(?:ient)?notfound/,
    /(?<!\b(?:domain|host|list|server|you|origin|send)[^;]{0,60})(?:does|do|dos|did) ?n[o']?t exist/,
    /no (?:mail ?box|account|user|recipient|valid recipients?)(?: <>)?(?: here| by| with| found| named| matching|[:.]|$)/,
    /no such here|no (?:one|person) (?:here|at)|there is no (?:one|user|account|mail ?box|recipient|person)/,
    /(?:do|does) ?n[o']t have an? (?:[a-z.]{1,30} )?(?:account|mail ?box|user)/,
    re`not an? (?:valid|known|recogni[sz]ed|local|registered) ${SORT}${MAILBOX}`,
    /not (?:our|a) (?:customer|user|subscriber)|not (?:present |listed )?in (?:the |our )?(?:recip|direct|user|domino)/,
    re`could ?n[o']t be (?:found|located)|(?:unable to|can ?no?'?t|could ?n[o']t) (?:find|locate) (?:the |this |that |a )?${MAILBOX}`,
    /badrcptto|validrcptto|bad destination mail ?box|left the (?:company|organi[sz]ation)/,
    /no longer (?:valid|active|available|in (?:use|service)|exist|on (?:this )?server|works?|employed|here|with)/,
    /no longer accepts? (?:any )?(?:e?mail|messages)(?! from)/,
    /verify address failed|recipient verif(?:y|ication) fail|address syntax|(?:not a valid|valid) rfc/,
    /^<?>?:? ?(?:recipient )?address rejected(?:\.|$| <>)|user (?:<> )?rejected$/,
  ),
]
