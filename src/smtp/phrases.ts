import type { DeferredWhy, RefusedWhy, RejectedWhy } from './answer.ts'

/** What a reply can mean, as `kind/why` of `Answer`. */
export type Meaning =
  | 'accepted/restricted'
  | `rejected/${RejectedWhy}`
  | `refused-us/${RefusedWhy}`
  | `deferred/${DeferredWhy}`
  | 'silent/garbage'
  | 'silent/smtputf8'

/**
 * One line of what we know; all that is given must match. Two rules hold for all rows and are kept by `answer.ts`: a row
 * about the mailbox holds only at RCPT, and with a 4xx only if it says `full` or names the 4xx in `code`.
 */
export type Phrase = {
  /** Matched against `plainText`: lower case, no accents, addresses as `<>`. No unbounded quantifier, so that it is linear. */
  readonly pattern?: RegExp
  readonly enhanced?: RegExp
  /** Matched against the three digits. */
  readonly code?: RegExp
  readonly stage?: 'before-rcpt' | 'rcpt'
  readonly meaning: Meaning
  /** Whose words these are; `any` where many servers say them. */
  readonly provider: string
  /** Where it stands what they mean. */
  readonly source: string
}

const words = (meaning: Meaning, source: string, ...patterns: RegExp[]): Phrase[] =>
  patterns.map(pattern => ({ meaning, pattern, provider: 'any', source }))

/** Words about us come before words about the mailbox: "recipient rejected, your IP is listed" is about us. */
export const WORDS_ABOUT_US: readonly Phrase[] = [
  ...words(
    'refused-us/tls',
    'RFC 3207 §4',
    /starttls|requiretls|unencrypted/,
    /\b(?:tls|ssl|encryption|secure connection) (?:is )?(?:required|needed|mandatory|enforced)/,
    /(?:requires?|must use|only accepts?) (?:the use of )?(?:an? )?(?:tls|ssl|encrypt|secure conn)/,
    /(?:over|using|without|use) an? (?:tls|ssl|encrypted|secure) (?:conn|session|channel)/,
  ),
  ...words(
    'refused-us/sender',
    'RFC 7208 §8.4, RFC 7489 §10.3',
    /\bspf|\bdkim|\bdmarc|sender policy framework|domain authentication/,
    /spoof|\bforged (?!\[)|forgery|impersonat/,
    /unauthenticated (?:e?mail|message|sender)/,
    /(?:sender|message|e?mail) (?:is |was )?(?:unauthenticated|not authenticated)/,
  ),
  ...words(
    'refused-us/auth',
    'RFC 4954 §6',
    /authenticat(?:e|ion) (?:is )?(?:required|needed|first|failed|failure|unsuccessful)/,
    /requires? (?:smtp )?auth|must (?:be )?authenticate|not authenticated|(?:smtp|proper)[- ]auth/,
    /\blog ?in\b|logged in\b|username|password|credentials|unauthenticated command/,
  ),
  ...words(
    'refused-us/rdns',
    'RFC 1912 §2.1',
    /\bptr\b|\brdns\b|reverse[- ](?:dns|host|name|lookup|resol|record|address|mapping|ip\b)/,
    /cannot find your (?:reverse )?host|unresolvable relay|ip name (?:lookup failed|possibly)/,
    /no (?:dns )?a[- ](?:data|record)|hostname[^;]{0,40}(?:does not|doesn't|not) (?:resolve|match)/,
  ),
  ...words(
    'refused-us/rdns',
    'RFC 5321 §4.1.4',
    /\bhelo\b|\behlo\b|fully[- ]qualified (?:host|domain)/,
    /hostname (?:is )?(?:required|invalid|not found)|invalid hostname/,
  ),
  ...words(
    'deferred/greylist',
    'RFC 6647 §2',
    /gr[ae]y-? ?list/,
    /not yet authori[sz]ed|retry too early|first (?:time|contact)[^;]{0,30}(?:later|again|defer)/,
  ),
  ...words(
    'refused-us/sender',
    'RFC 5321 §3.3, Postfix reject_unknown_sender_domain',
    /(?:sender|mail[- ]from|return[- ]path|envelope[- ]from)[^;]{0,40}(?:reject|refus|denied|verif|fail)/,
    /(?:sender|mail[- ]from|return[- ]path|envelope[- ]from)[^;]{0,40}\b(?:not|n't|no|cannot|unknown)\b/,
    /(?:sender|mail[- ]from|return[- ]path|envelope[- ]from)[^;]{0,40}(?:invalid|required|n't |syntax)/,
    /(?:invalid|unknown|bad|unverified|unauthori[sz]ed|null|empty|denied) (?:envelope )?sender/,
    /domain of sender|sender domain|badmailfrom|sender verif|verify (?:the )?sender/,
  ),
  ...words(
    'deferred/rate',
    'RFC 5321 §4.5.4.1, Postfix anvil(8)',
    /frequency (?:is )?limit|rate[- ]limit|rate has been limited|\bthrottl|slow down|slower/,
    /too (?:fast|quickly|frequent|often|much)\b/,
    /unusual rate|excessive (?:volume|rate|connection|message|e?mail|unknown|reject|number|invalid)/,
    /(?:hourly|daily|connection|session|concurrency|sending|relay|message|rate) (?:limit|quota)/,
    /exceed[^;]{0,40}(?:connections|messages|sessions|invalid|per (?:hour|day|minute)|\bsent\b)/,
    /exceed[^;]{0,30}(?:threshold|allowed rate|rate limit|\blimit of\b|\blimit for)/,
    /(?:maximum|max) (?:number of )?(?:concurrent |simultaneous )?(?:connection|message|session)/,
    /too many (?:concurrent |simultaneous |parallel |open |smtp |active )?(?:conn|sess|mess|e?-?mail)/,
    /too many (?:error|invalid|unknown|bad|command|request|attempt|non|wrong|fail|reject)/,
    /too many recipients (?:this|per|in|within|today)|(?:connections?|messages?) per (?:conn|sess|ip)/,
  ),
  ...words(
    'deferred/too-many',
    'RFC 5321 §4.5.3.1.10',
    /too many (?:recipient|rcpt)/,
    /(?:exceed|maximum|limit)[^;]{0,40}(?:recipients|rcpts)|recipients? (?:limit|count|maximum)/,
    /separate transaction|multiple (?:regions|destination domains)|per (?:smtp )?transaction/,
  ),
  ...words(
    'refused-us/blocklist',
    'RFC 5782 §2',
    /(?:block|black|deny|reject|ban)[- ]?list|white-?list|allow-?list/,
    /\b(?:rbl|dnsbl|rhsbl|uribl|surbl|[sxdp]bl|dul|cbl)\b|dnsbl-lookup|ipcheck/,
    /spamhaus|spamcop|\bsorbs\b|abusix|abuseat|barracuda ?(?:central|reputation|networks)/,
    /senderbase|\btalos|cloudmark|uceprotect|invaluement|spamrats|mailspike|\bpsbl\b|senderscore/,
  ),
  ...words(
    'refused-us/blocklist',
    'sisimai: BadReputation, Blocked',
    /reputation/,
    /client host|blocked (?:using|by (?:our|rbl|ip|geo)|ip\b|sender ip)|\bip based\b/,
    /\b(?:ips?|ip-?address|network|connections?|client|country|region)\b[^;]{0,40}\bblocked\b/,
    /\b(?:ips?|ip-?address|network|connections?|client|country|region)\b[^;]{0,40}\b(?:banned|barred)\b/,
    /\b(?:ips?|ip-?address|network|connections?|client|country|region)\b[^;]{0,40}\b(?:refused|denied)\b/,
    /\b(?:ips?|ip-?address|network|connections?|client|country|region)\b[^;]{0,40}\b(?:rejected|listed)\b/,
    /\b(?:ips?|ip-?address|network|connections?|client|region)\b[^;]{0,40}\bnot (?:allow|permit|accept|auth)/,
    /(?:invalid|bad|untrusted|banned|refused|denied|block(?:ed|ing)?) (?:the |your |this )?(?:ip\b|network)/,
    /(?:blocked|rejected|refused|denied|not accepted|forbidden) from (?:your|this|the|ip|\[)/,
    /\byour (?:mail ?)?(?:server|host|ip|network|provider|country|site)\b/,
  ),
  ...words(
    'refused-us/blocklist',
    'sisimai: Blocked',
    /\bdynamic(?:ally)? (?:ip|pool|assigned|address|host|range)|dial-?up|residential/,
    /(?:of|through|by|use|contact) your (?:isp|internet service)|open (?:proxy|relay)|botnet/,
    /\babuse\b|\babusive\b|go away|sending spam|spam source/,
    /harvest|dictionary attack|namespace mining|compromised/,
  ),
  ...words(
    'refused-us/policy',
    'RFC 5248 (x.7.1), sisimai: SpamDetected',
    /\bspam\b|spammy|\bspammers?\b|\bube\b|\buce\b|unsolicited|\bbulk\b|\bjunk|unwanted/,
    /phish|virus|malware|malicious|infected|trojan|suspicio|suspect|fraud/,
  ),
  ...words(
    'refused-us/policy',
    'RFC 5248 (x.7.1), sisimai: PolicyViolation',
    /\bcontent\b|attachment|executable|quarantine|security (?:reason|issue|risk|violat)/,
    /\bpolic(?:y|ies)\b|\bprohibit/,
    /message (?:was |has been |is )?(?:too (?:large|big|long)|filtered|refused|blocked|size)/,
    /(?:mail|message) (?:header|body)|maximum (?:message )?size|exceeds (?:fixed |maximum )?(?:message )?size/,
  ),
  ...words(
    'rejected/disabled',
    'sisimai: Suspend',
    /(?<!your |sender )(?:mail ?box|account|user) (?:is |has been )?(?:temporarily )?(?:blocked|locked)/,
  ),
  ...words('refused-us/policy', 'sisimai: Blocked', /\bblocked\b|\bbanned\b|not welcome/),
]

/** Words about the mailbox or its domain. */
export const WORDS_ABOUT_MAILBOX: readonly Phrase[] = [
  ...words(
    'rejected/full',
    'RFC 5248 (x.2.2), sisimai: MailboxFull',
    /over ?-?quota|over (?:its |the )?(?:storage|disk)? ?quota/,
    /(?<!queue |submission |hourly |domains )quota (?:has been |is |was )?(?:exceed|full|reach|violat)/,
    /(?:exceed|reach)[^;]{0,30}\b(?:storage|quota)\b/,
    /(?:mail ?box|inbox|mail ?folder|account|recipient|user|maildir)(?: <>)? (?:is )?(?:too )?full/,
    /full (?:mail ?box|inbox)|mail ?box (?:size |storage )?(?:limit|quota|has exceeded|exceeds)/,
    /out of (?:storage|space)|space has been used up|too many messages on the server/,
    /(?:not|n't) (?:have )?(?:enough|sufficient) (?:storage|space|room|disk)|disk quota/,
    /would exceed|no (?:more )?space (?:left )?(?:in|for) (?:the )?(?:mail ?box|user|account)/,
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
    /(?:mail ?box|account|user|recipient|address)[^;]{0,30}\b(?:disabled|deactivated|suspended)/,
    /(?:mail ?box|account|user|recipient|address)[^;]{0,30}\b(?:inactive|not (?:been )?activ|dormant)/,
    /(?:mail ?box|account|user|recipient|address)[^;]{0,30}\b(?:frozen|closed|expired|terminated)/,
    /(?:mail ?box|account|user|recipient|address)[^;]{0,30}\b(?:cancell?ed|discontinued|archived)/,
    /\b(?:disabled|suspended|inactive|expired|closed|deactivated) (?:recipient|mail ?box|user|account|e?mail)/,
  ),
  ...words(
    'rejected/moved',
    'RFC 5321 §3.4 (551), RFC 5248 (x.1.6)',
    /(?:mail ?box|user|recipient|account|address) (?:has |have |was |is )?(?:been )?(?:moved|migrated|changed)/,
    /not local[^;]{0,20}(?:please )?(?:try|forward)|new (?:e-?mail )?address is/,
  ),
  ...words(
    'rejected/no-mail',
    'RFC 7504 §2, RFC 7505 §4.1',
    /(?:host|domain|server|system)(?: <>)? (?:does not|doesn't|never) (?:accept|receive)s? (?:any )?e?mail/,
    /null ?mx|mail (?:is )?not accepted (?:here|by this)|not accept mail/,
  ),
  ...words(
    'rejected/not-hosted',
    'Postfix, Exim, Sendmail, qmail: relaying refused at RCPT',
    /relay(?:ing)?(?: access| mail)?(?: from| to| for)?(?: <>)?[^;]{0,20}(?:denied|not (?:perm|allow|auth))/,
    /relay(?:ing)?[^;]{0,20}(?:prohibited|refused|disallowed|forbidden|rejected|is disabled)/,
    /(?:not (?:permitted|allowed|authori[sz]ed)|unable|cannot|can't|won't|do(?:es)? not|don't|no) (?:to )?relay/,
    /as a relay|not a gateway|rcpthosts|i cannot deliver mail for|loops? back to (?:myself|me)\b/,
  ),
  ...words(
    'rejected/not-hosted',
    'RFC 5248 (x.1.2), sisimai: HostUnknown',
    /(?:domain|host)(?: name)?(?: <>)? (?:is )?(?:not (?:found|hosted|handled|local|served|configured|known)|unknown)/,
    /(?:unknown|no such|non-?existent|invalid|bad) (?:recipient |destination )?(?:domain|host)\b/,
    /(?:recipient|destination)(?:'s)? domain|domain does ?n[o']t exist|not an? (?:local|hosted) domain/,
    /(?:do|does) ?n[o']t (?:handle|host|serve) (?:e?mail )?(?:for )?(?:that|this|the)/,
    /not point to us|is not a customer/,
  ),
  ...words(
    'rejected/no-mailbox',
    'RFC 5248 (x.1.1), sisimai: UserUnknown',
    /(?:unknown|no such|non-?exist(?:ent|ing)|unregistered) (?:or illegal )?(?:[a-z-]{1,12} )?(?:user|recipient|mail ?box)/,
    /(?:unknown|no such|non-?exist(?:ent|ing)|unregistered) (?:or illegal )?(?:[a-z-]{1,12} )?(?:addr|alias|acc|rcpt)/,
    /(?:unknown|no such) (?:[a-z-]{1,12} )?(?:person|local|login|customer|member|subscriber|id\b|name)/,
    /(?:invalid|illegal|bad|undeliverable|incorrect|wrong) (?:[a-z-]{1,12} )?(?:user|recipient|mail ?box|rcpt)/,
    /(?:invalid|illegal|bad|undeliverable|incorrect|wrong) (?:[a-z-]{1,12} )?(?:addr|alias|account|local)/,
    /(?:user|recipient|mail ?box|address|alias|account|addressee|rcpt)(?: ?<>)?:? (?:is |was )?(?:unknown|invalid)/,
    /(?:user|recipient|mail ?box|address|account)(?: <>)? (?:is |was )?(?:not (?:found|known|valid|a valid|here|in ))/,
    /(?:user|recipient|mail ?box|address|account)(?: <>)? (?:is )?(?:currently )?(?:unavailable|nonexist|undeliverable|missing)/,
    /(?:user|mail ?box|address|account|recipient)[^;]{0,40} (?:does|do|did|dos|has|is|was) ?n[o']?t (?:exist|found|been found)/,
    /unrout(?:e)?able|user_?unknown|unknown_?user|nosuchuser|usernotfound|recip(?:ient)?notfound/,
    /(?:user|recipient|mail ?box|address|account) not exist|(?:does|do|dos|did) ?n[o']?t exist/,
    /no (?:mail ?box|account|user|recipient|valid recipients?)(?: <>)?(?: here| by| with| found| named| matching|[:.]|$)/,
    /no such (?:one|here|email)|no (?:one|person) (?:here|at)|there is no /,
    /(?:do|does) ?n[o']t have an? (?:[a-z.]{1,30} )?(?:account|mail ?box|user)/,
    /not a (?:valid|known|recogni[sz]ed|local|registered) (?:[a-z-]{1,12} )?(?:user|recipient|mail ?box|addr)/,
    /not (?:our|a) (?:customer|user|subscriber)|not (?:present |listed )?in (?:the |our )?(?:recip|direct|user|domino)/,
    /could ?n[o']t be (?:found|located)|(?:unable to|cannot|can't|could ?n[o']t) (?:find|locate) /,
    /badrcptto|validrcptto|bad destination mail ?box|left the (?:company|organi[sz]ation)/,
    /no longer (?:valid|active|available|in use|exist|on (?:this )?server|accept|works?|employed|here|with)/,
    /verify address failed|recipient verif(?:y|ication) fail|address syntax|(?:not a valid|valid) rfc/,
    /^<?>?:? ?(?:recipient )?address rejected(?:[. ]|$)|user (?:<> )?rejected$/,
  ),
]

/** Words that say little; they come after the enhanced code. */
export const FAINT_WORDS: readonly Phrase[] = [
  ...words(
    'deferred/busy',
    'RFC 5321 §4.2.3 (421, 451, 452)',
    /(?:service|server|system|resources?|mail ?box|host)[^;]{0,30}(?:unavailable|not available|busy|error|problem)/,
    /internal (?:server )?error|temporar|insufficient|(?:disk|storage) (?:space|full)|overload|load average|maintenance/,
    /not accepting (?:connections|messages|mail)|lookup (?:failure|failed|error)|timed? ?out|congestion/,
  ),
  {
    pattern: /\blater\b|come back|try again|retry/,
    code: /^45[01]/,
    enhanced: /^4\.7\.[01]$/,
    stage: 'rcpt',
    meaning: 'deferred/greylist',
    provider: 'any',
    source: 'RFC 6647 §2 (greylisting without the word)',
  },
  {
    pattern: /protocol (?:error|violat)|bad sequence|unrecogni[sz]ed|unimplemented|syntax error/,
    stage: 'rcpt',
    meaning: 'silent/garbage',
    provider: 'any',
    source: 'RFC 5321 §4.2.4',
  },
  ...words('deferred/busy', 'RFC 5321 §4.2.3 (421)', /\blater\b|try again|retry/),
  ...words(
    'refused-us/policy',
    'RFC 5321 §4.2.3 (550, command refused for policy reasons)',
    /denied|refused|reject|forbidden|disallow|unacceptable|administrative|violat/,
    /not (?:be )?(?:accept|allow|permit|authori[sz]ed)|unauthori[sz]ed/,
  ),
]
