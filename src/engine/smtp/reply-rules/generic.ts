/**
 * `not-hosted`: the server does not accept mail for this domain. `no-mail`: the host or the domain
 * accepts no mail at all (521, 556).
 */
export type RejectedReason = 'no-mailbox' | 'disabled' | 'full' | 'moved' | 'not-hosted' | 'no-mail'

/**
 * `blocklist`: our IP address is listed or has a poor reputation. `rdns`: PTR or HELO. `sender`:
 * our MAIL FROM. `tls`: STARTTLS required. `auth`: authentication required. `policy`: any other
 * block.
 */
export type BlockedReason = 'blocklist' | 'rdns' | 'sender' | 'tls' | 'auth' | 'policy'

/**
 * `greylist`: new senders are deferred. `rate`: rate limited. `too-many`: this transaction accepts
 * no more recipients. `busy`: a temporary problem of the server.
 */
export type DeferredReason = 'greylist' | 'rate' | 'too-many' | 'busy'

/** The meaning of a reply, as `kind/why` of `RecipientOutcome`. */
export type Meaning =
  | 'accepted/restricted'
  | `rejected/${RejectedReason}`
  | `blocked/${BlockedReason}`
  | `deferred/${DeferredReason}`
  | 'no-response/garbage'
  | 'no-response/smtputf8'

/**
 * One classification rule; all fields that are set must match. `classify-reply.ts` adds two
 * conditions: a rule about the mailbox applies only at RCPT, and with a 4xx it means
 * `deferred/busy` unless its meaning is `full` or its `code` names the 4xx.
 */
export type ReplyRule = {
  /**
   * Matched against `plainText`: lower case, no accents, addresses as `<>`. It has no unbounded
   * quantifier, so that matching is linear.
   */
  readonly pattern?: RegExp
  readonly enhanced?: RegExp
  /** Matched against the three digits. */
  readonly code?: RegExp
  readonly stage?: 'greeting' | 'before-rcpt' | 'rcpt'
  readonly meaning: Meaning
  /** The provider that sends this text; `any` if many servers do. */
  readonly provider: string
  /** The document that defines the meaning. */
  readonly source: string
}

/** Creates one rule per pattern, with the same meaning, for any provider. */
export const words = (meaning: Meaning, source: string, ...patterns: RegExp[]): ReplyRule[] =>
  patterns.map(pattern => ({ meaning, pattern, provider: 'any', source }))

/** Creates a pattern from named parts. */
export const re = (text: TemplateStringsArray, ...deps: string[]) =>
  new RegExp(String.raw(text, ...deps))

/** Returns an expression that matches any of these. */
export const oneOf = (...expressions: string[]) => `(?:${expressions.join('|')})`

/** Predicates of a dead mailbox. Rules use it with another subject: a sender, a host, a message. */
const FAULT = String.raw`(?:\b(?:no\b|not\b|cannot\b|un(?:known|avail|rout|regist|deliver|reach|recogn|verif)|(?:non-?)?exist|invalid|incorrect|illegal|bad\b|wrong|missing|obsolete|disabled|suspend|inactive|expired|closed|deleted|removed|retired|locked|moved|full\b|over quota|blacklist)|n't\b)`
const ADJECTIVE_OF_FAULT =
  '(?:unknown|no such|invalid|bad|illegal|non-?existent|disabled|suspended|inactive|expired|closed|undeliverable|unrout(?:e)?able|unavailable|wrong|unregistered|unrecogni[sz]ed)'
const SENDER = String.raw`(?:(?<![.@-])\bsender(?! ip|s? list|\.\w)|sending (?:account|address|user|domain|mail ?box)|originat(?:or|ing (?:account|address|user|domain))|origin domain|mail[- ]from:?(?= <| addr| dom| id| unknown| invalid)|(?:return|reverse|reply|bounce)[- ](?:path|address)|envelope[- ]from|from:? (?:header|address)|(?:authenticated|smtp) user|\byour (?:e?mail )?(?:account|domain|address|mail ?box)\b)`
const OUR_END = String.raw`\b(?:ips?|ip-?address|network|connections?|client|country|region)\b`
const OUR_HOST = String.raw`(?:(?:client|source|remote|connecting|sending|network) (?:address|host|ip|machine)|sending server|(?<![?&])\bips?\b(?!=)|host ?name\b|\bclient\b|\b(?:helo|ehlo)\b)`
const OUR_MESSAGE = String.raw`(?:certificate|user agent|\b(?:tls|ssl) version|\bheader|\burl\b|attachment|\bfile\b)`
/**
 * Phrases that concern this client. They precede mailbox phrases: "recipient rejected, IP listed".
 */
export const BLOCK_PHRASES: readonly ReplyRule[] = [
  ...words(
    'blocked/tls',
    'RFC 3207 §4',
    /starttls|requiretls|unencrypted/,
    /\b(?:tls|ssl|encryption|secure connection) (?:is )?(?:required|needed|mandatory|enforced)/,
    /(?:requires?|must use|only accepts?) (?:the use of )?(?:an? )?(?:tls|ssl|encrypt|secure conn)/,
    /(?:over|using|without|use) (?:an? )?(?:tls|ssl|encrypted|secure) (?:conn|session|channel)/,
  ),
  ...words(
    'blocked/sender',
    'RFC 7208 §8.4, RFC 7489 §10.3',
    /\bspf|\bdkim|\bdmarc|sender policy framework|domain authentication/,
    /spoof|\bforged (?!\[|helo|ehlo)|forgery|(?<!host )impersonat|backscatter|\bbatv\b|fake sender/,
    /unauthenticated (?:e?mail|message|sender)|not allowed to send (?:any )?(?:e?mail|messages)|not designate|permissions? to send as/,
    /(?:sender|message|e?mail) (?:is |was )?(?:unauthenticated|not authenticated)/,
  ),
  ...words(
    'blocked/auth',
    'RFC 4954 §6',
    /authenticat(?:e|ion) (?:is )?(?:required|needed|first|failed|failure|unsuccessful|not allowed)|\bauth failed/,
    /(?:without|failed to|unable to) authenticat|turn(?:ed)? on[^;]{0,20} authentication|authentication turned on|incorrect authentication|invalid authentication/,
    /requires? (?:smtp )?auth|please auth|must (?:be )?authenticate|not authenticated|(?:smtp|proper)[- ]auth/,
    /\blog ?in\b|logged in\b|password|credentials|unauthenticated command/,
  ),
  ...words(
    'blocked/rdns',
    'RFC 1912 §2.1',
    /\bptr\b|\brdns\b|reverse[- ](?:dns|host|name|lookup|resol|record|address|mapping|ip\b)/,
    /(?:find|resolve) your (?:reverse |ip |host|address)|unresolvable relay|ip name (?:lookup failed|possibly)/,
    /no (?:dns )?a[- ](?:data|record)|forward(?:ing)? dns|unverif[a-z]{0,4}able sending|host ?name[^;]{0,40}(?:does not|doesn't|not) (?:resolve|match)/,
  ),
  ...words(
    'blocked/rdns',
    'RFC 5321 §4.1.4',
    /\bhelo\b|\behlo\b|fully[- ]qualified (?:host|domain)/,
    /hostname (?:is )?(?:required|invalid|not found)|invalid hostname|mismatch(?:es|ed)? (?:the )?client ip|client ip (?:address )?mismatch|did not map to a host/,
  ),
  ...words(
    'deferred/greylist',
    'RFC 6647 §2',
    /gr[ae]y-? ?list/,
    /not yet authori[sz]ed|retry too early|first (?:time|contact)[^;]{0,30}(?:later|again|defer)/,
  ),
  ...words(
    'blocked/sender',
    'RFC 5321 §3.3, Postfix reject_unknown_sender_domain',
    re`${SENDER}[^;]{0,40}(?:reject|refus|denied|verif|fail|required|syntax|mismatch|${FAULT})`,
    /mail[- ]from[^;]{0,20}(?:mismatch|not owned)|\bfrom: ?(?:addresses|address|domain)|provide a valid from|domain of (?:the |your )?(?:sender|address)/,
    re`(?:${ADJECTIVE_OF_FAULT}|unverified|unauthori[sz]ed|null|empty|denied|banned) (?:envelope |mail |smtp |authenticated )?(?:send(?:er\b|ing )|originat|origin d|(?:return|reverse|reply|bounce)[- ]|from:? (?:address|header|domain))`,
    /mail exchanger or ip|sender domain|badmailfrom|sender verif|verify (?:the )?(?:sender|mail ?from)/,
  ),
  {
    // `plainText` removes the recipient's domain, so a remaining domain is the sender's.
    pattern:
      /(?:^|[.;:] )(?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,24}:? (?:domain )?(?:does not exist|not found|unknown)/,
    enhanced: /^(?:5\.0\.0|5\.1\.[078]|5\.7\.\d{1,3})?$/,
    meaning: 'blocked/sender',
    provider: 'any',
    source: 'SoftBank: no DNS record for the domain of MAIL FROM',
  },
  ...words(
    'deferred/rate',
    'RFC 5321 §4.5.4.1, Postfix anvil(8)',
    /frequency (?:is )?limit|rate[- ](?:limit|control)|rate has been limited|rate over-?limit|(?:rate|concurrent [a-z]{1,12}) (?:is |was )?exceeded|\bthrottl|slow down|slower/,
    /too (?:fast|quickly|frequent|often|much(?! spam))\b/,
    /unusual rate|excessive (?:volume|rate|connection|message|e?mail|unknown|reject|number|invalid)/,
    /(?<!recipients per )(?:hourly|daily|connection|session|concurrency|sending|relay|message|rate|per hour message \w{1,10}) (?:limit|quota)|limits? (?:for|on) how many/,
    /exceed[^;]{0,40}(?:connections|messages|sessions|invalid|per (?:hour|day|minute)|\bsent\b)/,
    /exceed[^;]{0,30}(?:threshold|allowed rate|rate limit|permitted limit|\blimit of\b|\blimit for)|threshold exceeded/,
    /(?:maximum|max) (?:number of )?(?:concurrent |simultaneous )?(?:server )?(?:conn|sess|message(?! size))|deferred due to (?:\w{1,12} )?volume/,
    /too many (?:(?:concurrent|simultaneous|parallel|open|smtp|active) ){0,2}(?:conn|sess|mess|e?-?mail)/,
    /too many (?:error|invalid|unknown|bad|command|request|attempt|non|wrong|fail|reject)/,
    /too many recipients(?: from\b|[^;]{0,20}(?:hour|minute|\bday))|(?:connections?|messages?) per (?:conn|sess|ip)/,
  ),
  ...words(
    'deferred/too-many',
    'RFC 5321 §4.5.3.1.10',
    /too many (?:recipient|rcpt)/,
    /(?:exceed|maximum|limit)[^;]{0,40}(?:recipients|rcpts)|recipients? (?:limit|count|maximum)/,
    /separate transaction|multiple (?:regions|destination domains)|per (?:smtp )?transaction/,
  ),
  ...words(
    'blocked/blocklist',
    'RFC 5782 §2',
    /(?:block|black|deny|reject|ban)[- ]?list|white-?list|allow-?list/,
    /\b(?:rbl|dnsbl|rhsbl|uribl|surbl|[sxdp]bl|dul|cbl)\b|dnsbl-lookup|ipcheck/,
    /spamhaus|spamcop|\bsorbs\b|abusix|abuseat|barracuda ?(?:central|reputation|networks)/,
    /senderbase|\btalos|cloudmark|uceprotect|invaluement|spamrats|mailspike|\bpsbl\b|senderscore/,
  ),
  ...words(
    'blocked/blocklist',
    'sisimai: BadReputation, Blocked',
    /reputation/,
    /client host|blocked (?:using|by (?:our|rbl|ip|geo)|ip\b|sender ip)|\bip based\b/,
    re`${OUR_END}[^;]{0,40}\bblocked\b`,
    re`${OUR_END}[^;]{0,40}\b(?:banned|barred)\b`,
    re`${OUR_END}[^;]{0,40}\b(?:refused|denied)\b`,
    re`${OUR_END}[^;]{0,40}\b(?:rejected|reject|listed|filtered|hangup)\b`,
    re`${OUR_END}[^;]{0,40}\bnot (?:allow|permit|accept|auth)`,
    /(?:invalid|bad|untrusted|banned|refused|denied|block(?:ed|ing)?) (?:the |your |this )?(?:ip\b|network)/,
    /(?:blocked|rejected|refused|denied|not accepted|forbidden) from (?:your|this|the|ip|\[|\d)/,
    /(?:from|host|client) \[?\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b[^;]{0,30}(?:not|refus|reject|denied|listed)/,
    /\d\.\d{1,3}\.\d{1,3}\b[^;:]{0,30}\b(?:blocked|listed|banned)|accept (?:e?mail|messages|connections?) from (?:(?:this|the) (?:ip|host|server|network|range)|ip|\[?\d)/,
    /\byour (?:mail ?)?(?:server|(?:remote ?)?host|hostname|ip|network|provider|country|site|location|region|isp)\b|not allowed to connect|no access from|too many (?:spam|unwanted|unsolicited)|mail server [^;]{0,40}blocked/,
  ),
  ...words(
    'blocked/blocklist',
    'sisimai: Blocked',
    /\bdynamic(?:ally)? (?:ip|pool|assigned|address|host|range)|dial-?up|residential/,
    /(?:of|through|by|use|contact) your (?:isp|internet service)|open (?:proxy|relay)|botnet/,
    /\babuse\b|\babusive\b|go away|sending spam|spam source/,
    /harvest|dictionary attack|namespace mining|compromised/,
  ),
  ...words(
    'blocked/policy',
    'RFC 5248 (x.7.1), sisimai: SpamDetected',
    /\bspam\b|spammy|\bspammers?\b|\bube\b|\buce\b|\bby (?:our |the |a )?filter|unsolicited|\bbulk\b|\bjunk|unwanted/,
    /phish|virus|malware|malicious|infected|trojan|suspicio|suspect|fraud/,
  ),
  ...words(
    'blocked/policy',
    'RFC 5248 (x.7.1), sisimai: PolicyViolation',
    /\bcontent\b|attachment|executable|quarantine|security (?:reason|issue|risk|violat)/,
    /\bpolic(?:y|ies)\b|(?<!relay[^;]{0,30})\bprohibit|not [io]n [^;]{0,50}\bsenders\b/,
    /message (?:was |has been |is )?(?:too (?:large|big|long)|filtered|refused|blocked|size)/,
    /(?:mail|message) (?:header|body)|maximum (?:message )?size|exceeds (?:fixed |maximum )?(?:message )?size/,
  ),
  ...[re`${OUR_HOST}[^;:]{0,30}${FAULT}`, re`${ADJECTIVE_OF_FAULT} (?:the |your )?${OUR_HOST}`].map(
    (pattern): ReplyRule => ({
      pattern,
      // RFC 3463 §3.2: x.1.1 to x.1.6 are about the address of the recipient.
      enhanced: /^(?!5\.1\.[1-6]$)/,
      meaning: 'blocked/rdns',
      provider: 'any',
      source: 'Postfix: the name and the address of the client',
    }),
  ),
  ...words(
    'blocked/policy',
    'RFC 5248 (x.6, x.7): what is not a mailbox',
    re`${OUR_MESSAGE}[^;:]{0,20}${FAULT}`,
    re`${ADJECTIVE_OF_FAULT} ${OUR_MESSAGE}`,
  ),
  ...words(
    'rejected/disabled',
    'sisimai: Suspend',
    /(?<!your |sender )(?:mail ?box|account|user) (?:is |has been )?(?:temporarily )?(?:blocked|locked)/,
  ),
  ...words('blocked/policy', 'sisimai: Blocked', /\bblocked\b|\bbanned\b|not welcome/),
]

/**
 * Weak phrases. They still outweigh an enhanced mailbox code: "5.1.1 Access denied" is no evidence.
 */
export const WEAK_PHRASES: readonly ReplyRule[] = [
  ...words(
    'deferred/busy',
    'RFC 5321 §4.2.3 (421, 451, 452)',
    /(?:service|server|system|resources?|mail ?box|host)[^;]{0,30}(?:unavailable|not available|busy|error|problem)/,
    /internal (?:server )?error|temporar|insufficient|(?:disk|storage) (?:space|full)|overload|load average|maintenance/,
    /expired|hop count|too many hops|mail loop|not accepting (?:network )?(?:connections|messages|mail)|incorrectly configured|config(?:uration)? error|misconfigured|lookup (?:failure|failed|error)|timed? ?out|congestion/,
  ),
  {
    pattern: /\blater\b|come back|try again|retry/,
    code: /^45[01]/,
    enhanced: /^4\.7\.[01]$/,
    stage: 'rcpt',
    meaning: 'deferred/greylist',
    provider: 'any',
    source: 'RFC 6647 §2 (greylisting that is not named)',
  },
  {
    pattern: /protocol (?:error|violat)|bad sequence|unrecogni[sz]ed|unimplemented|syntax error/,
    stage: 'rcpt',
    meaning: 'no-response/garbage',
    provider: 'any',
    source: 'RFC 5321 §4.2.4',
  },
  ...words('deferred/busy', 'RFC 5321 §4.2.3 (421)', /\blater\b|try again|retry/),
  ...words(
    'blocked/policy',
    'RFC 5321 §4.2.3 (550, command refused for policy reasons)',
    /denied|refused|forbidden|disallow|unacceptable|administrative|violat/,
    /not (?:be )?(?:accept|allow|permit|authori[sz]ed)|unauthori[sz]ed/,
  ),
]
