import { phrase } from './grammar.ts'

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
  /** Matched against `toSentence` of the same text, in any language. */
  readonly sentence?: RegExp
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

/** Creates one rule per phrase of the grammar (see `phrase`), with the same meaning. */
export const says = (meaning: Meaning, source: string, ...phrases: string[]): ReplyRule[] =>
  phrases.map(text => ({ meaning, sentence: phrase(text), provider: 'any', source }))

/** What is wrong with something of ours. The same words about a recipient are a dead mailbox. */
const FAULTY = '(missing|closed|refused|blocked|fail|full|moved|over|require|not|no)'
/** The host of this client and its network, also with "your" before it. */
const CLIENT = '(ip|client|yours)'

/**
 * What a reply says about our side: the sender, the host of this client, its rate, its message. It
 * comes before all that is said about a mailbox: "recipient rejected, your IP is listed".
 */
export const BLOCK_PHRASES: readonly ReplyRule[] = [
  // It comes first: a log-in is also what a server may demand from a client.
  ...says(
    'rejected/disabled',
    'providers that close a mailbox that is not used',
    '(box|own|person) .. (not|no|never) .. login',
    '(no|never) login',
    'time login',
  ),
  {
    pattern: /no (?:valid )?recipients? (?:specified|given)|need rcpt/,
    stage: 'rcpt',
    meaning: 'no-response/garbage',
    provider: 'any',
    source: 'RFC 5321 §3.3: a reply to DATA without recipients',
  },
  ...words(
    'deferred/busy',
    'RFC 3463 §3.4: a part of the mail system',
    /being (?:moved|migrated|transferred|upgraded)|(?:mail|routing) ?loop|(?:^|[.;:] )(?:the )?dis[ck] (?:is )?full|space (?:left )?on (?:the )?(?:device|dis[ck])(?! for)/,
    /\b(?:data ?base|ldap|directory|back-?end) (?:(?:look-?up|query|search) )?(?:error|fail(?:ed|ure)|time-?out|unreachable)|sql (?:error|failure|time-?out|(?:server )?(?:has )?gone away)|server time-?out/,
    /no route to (?:host|network|destination)|(?:host|network|server) (?:is |was )?unreachable|locked by (?:an(?:other)?|other|pop|imap)\b|create (?:\(?user\)? )?output file/,
    /\b(?:user|account|recipient|alias|virtual|virtual user|address) (?:server|table|map|database|directory) (?:is |was )?(?:unavailable|missing|unknown|does not exist|not found|failure|error)/,
    /(?:mail ?box|directory|ldap|back-?end|user|recipient|account) ?(?:server|store|host|database|storage|service|verification) (?:is |was )?(?:currently |temporarily )?(?:not (?:found|available|reachable)|unavailable|down|offline|unreachable|error|disabled)/,
  ),
  ...says(
    'deferred/busy',
    'RFC 3463 §3.4 (x.3.1)',
    'server (space|full)',
    'state box? .. missing',
    '(no|full) space server',
    'lookup box (closed|refused)',
    'host box missing',
    'deliver time closed',
  ),
  {
    sentence: phrase('tls (missing|closed|fail)'),
    code: /^4/,
    meaning: 'deferred/busy',
    provider: 'any',
    source: 'RFC 3207 §4: TLS not available due to temporary reason',
  },
  ...words(
    'deferred/rate',
    'Postfix smtpd_client_new_tls_session_rate_limit',
    /too many (?:new )?(?:tls|ssl) (?:sessions|connections|handshakes)|(?:maximum|limit)[^;]{0,20} (?:tls|ssl) (?:sessions|connections|handshakes)|\b(?:tls|ssl) (?:session|connection|handshake)s? (?:rate |count )?(?:limit|exceed)/,
  ),
  ...says('blocked/tls', 'RFC 3207 §4', 'tls'),
  ...says(
    'blocked/rdns',
    'RFC 1912 §2.1, RFC 5321 §4.1.4',
    'helo',
    'your dns',
    '^ .? client missing',
    '^ missing client',
  ),
  ...words(
    'blocked/rdns',
    'RFC 1912 §2.1, RFC 5321 §4.1.4',
    /fully[- ]qualified (?:host|domain)|mismatch(?:es|ed)? (?:the )?client ip|client ip (?:address )?mismatch|no (?:dns )?a[- ](?:data|record)/,
  ),
  ...says('blocked/sender', 'RFC 7208 §8.4, RFC 7489 §10.3', 'spf'),
  ...words(
    'blocked/sender',
    'RFC 7489 §10.3',
    /unauthenticated (?:e?mail|message|sender)|not designate|permissions? to send as|fake sender/,
    /(?:sender|message|e?mail) (?:is |was )?(?:unauthenticated|not authenticated)|e-?mail address is not verified/,
  ),
  ...says('deferred/greylist', 'RFC 6647 §2', 'greylist'),
  ...words(
    'deferred/greylist',
    'RFC 6647 §2',
    /not yet authori[sz]ed|retry too early|first (?:time|contact)[^;]{0,30}(?:later|again|defer)/,
  ),
  ...says(
    'blocked/auth',
    'RFC 4954 §6',
    'auth',
    'login',
    '(box|person) refused to? relay',
    'relay box (missing|closed)',
  ),
  ...says('blocked/policy', 'RFC 5248 (x.3.4)', 'mail size', '(mail|your) over size'),
  ...says(
    'deferred/rate',
    'RFC 5321 §4.5.4.1, Postfix anvil(8); limits on unknown users in any words',
    'many .. (conn|missing|send)',
    'many box .. (missing|hour|from)',
    'many mail (hour|from|time|send)',
    '(^|.) addr? .? many mail (.|$)',
    '(mail|send|many) many',
    'many limit .. over',
    'many (.|$)',
    'missing box _? (limit|many|over)',
    'box missing _? (limit|many|over)',
    'box fail .. over',
    'many .. attempt',
    '(box|fail|missing) attempt',
    'missing box (attempt|conn)',
    'limit missing box',
    '(mail|missing) .. box? (limit|many) .. over',
    '(send|conn|hour) .. (limit|space|many)',
    '(send|mail) (limit|many)',
    '(limit|space) (for|from)? send',
    'conn .. over',
    'over .. (conn|hour)',
    '(space|limit) mail? hour',
    'send .. hour',
  ),
  ...words(
    'deferred/rate',
    'RFC 5321 §4.5.4.1, Postfix anvil(8)',
    /frequency (?:is )?limit|rate[- ]?(?:limit|control)|rate has been limited|rate over-?limit|rate (?:is |was )?exceeded|\bthrottl|slow down|slower|too (?:fast|quickly)/,
    /\b(?:your|sender|sending|mail|message|recipient|rcpt|client) rate\b|^"?rate:? \d|\brate of (?:recipients|rcpt|messages|mail)\b|\b(?:recipients|rcpts?)(?: per |\/)(?:sec|min|hour|day)/,
    /unusual rate|deferred due to (?:\w{1,12} )?volume|limits? (?:for|on) how many|too many (?:error|bad|request|attempt|non|wrong|fail|reject)/,
    /\b\d{1,4} (?:unknown|invalid|bad|non-?existent|wrong|failed) (?:users|recipients|rcpts|addresses|mailboxes)\b/,
    /(?:failed|rejected|refused) (?:users|recipients|rcpts|addresses|mailboxes)[^;]{0,20}(?:exceed|reach)|(?:exceed|maximum)[^;]{0,30}(?:failed|rejected|refused) (?:users|recipients|rcpts|addresses)/,
    /(?:hourly|daily|sending|relay|message|traffic|bandwidth|rate|per hour message \w{1,10}) (?:limit|quota)|exceed[^;]{0,30}(?:threshold|allowed rate|permitted limit|\blimit of\b|\blimit for)|threshold exceeded/,
    /exceed[^;]{0,40}(?:connections|messages|sessions|invalid|per (?:hour|day|minute)|\bsent\b)|(?:connections?|messages?) per (?:conn|sess|ip)/,
  ),
  ...says(
    'rejected/full',
    'RFC 5248 (x.2.2)',
    '(space|over) limit size? box',
    'limit box (size|space)',
  ),
  ...says('deferred/too-many', 'RFC 5321 §4.5.3.1.10', 'many box', 'limit box'),
  ...words(
    'deferred/too-many',
    'RFC 5321 §4.5.3.1.10',
    /(?:exceed|maximum|limit)[^;]{0,40}(?:recipients|rcpts)|recipients? (?:limit|count|maximum)|\bno (?:more |further |additional )?(?:recipients|users) (?:are )?(?:accepted|allowed)|not accepting (?:more |further )?(?:recipients|users)\b/,
    /separate transaction|multiple (?:regions|destination domains)|per (?:smtp )?transaction/,
  ),
  ...says(
    'blocked/blocklist',
    'RFC 5782 §2; sisimai: BadReputation, Blocked',
    'blocklist',
    'send blocked',
    'host refused',
    '(missing|refused) box ip',
    'box from server missing',
    `${CLIENT} .. (missing|closed|refused|blocked|fail|full|moved|over|require|not|exist)`,
    `${FAULTY} .. ${CLIENT}`,
    'conn .. (refused|blocked)',
    'conn from box? .. (closed|refused|blocked)',
  ),
  ...words(
    'blocked/blocklist',
    'sisimai: BadReputation, Blocked',
    /\b(?:rbl|dnsbl|rhsbl|uribl|surbl|[sxdp]bl|dul|cbl|psbl)\b|ipcheck|spamhaus|spamcop|\bsorbs\b|abuseat|abusix|barracuda ?(?:central|reputation|networks)/,
    /senderbase|\btalos|cloudmark|uceprotect|invaluement|spamrats|mailspike|senderscore/,
    /\bdynamic(?:ally)? (?:ip|pool|assigned|address|host|range)|dial-?up|residential|open (?:proxy|relay)|botnet|go away|\bip based\b/,
    /harvest|dictionary attack|namespace mining|compromised|\b(?:ip|host|connection)\b[^;]{0,40}filtered|hangup|no access from|mail server [^;]{0,40}blocked/,
    /(?:of|through|by|use|contact) your (?:isp|internet service)|\byour (?:mail ?)?(?:server|(?:remote ?)?host|hostname|ip|network|provider|country|site|location|region|isp)\b/,
    // The address of a server in languages in which it comes before its owner.
    /\b(?:enderec|direc|indirizz|adres)[a-z]{1,6} (?:do|de|del|du|des|van) (?:la )?ser[vw]/,
  ),
  ...words(
    'blocked/policy',
    'mailing lists; postmasters: a recipient that accepts mail from some senders only',
    /not [io]n [^;]{0,50}\bsenders\b|not (?:a )?(?:member|subscriber)s? of (?:this|the|our) (?:mailing |closed )?(?:list|group)|you are not an? |members?[- ]only|only members|(?:by|from) (?:an? )?non-?(?:member|subscriber)|non-?(?:member|subscriber)s\b|recipient's (?:filter|rule|setting|policy)|(?:rejected|refused|declined|blocked) by (?:the )?(?:recipient|user)(?!')/,
  ),
  ...says(
    'blocked/sender',
    'RFC 5321 §3.3, Postfix reject_unknown_sender_domain',
    `sender .... ${FAULTY}`,
    'sender .... dns',
    `${FAULTY} .. sender`,
    '(domain|box) .. send from',
    'missing box mail? from',
    'you use missing? box',
    'mail command box',
    'domain your missing',
    '(no|missing) _? box sender',
    'box from missing',
    '(^|.) (refused|blocked) domain',
    'mail from .... (missing|closed|fail)',
    `from box .. ${FAULTY}`,
    'no mail allowed? from',
    'box not _? send',
    'lookup sender',
  ),
  ...words(
    'blocked/sender',
    'RFC 5321 §3.3, Postfix reject_unknown_sender_domain',
    /mail[- ]from[^;]{0,20}(?:mismatch|not owned)|\bmail from\b[^;]{0,40}\bmx\b|\bfrom: ?(?:addresses|address|domain)|provide a valid from/,
    /mail exchanger or ip|sender domain|badmailfrom|\bin mail(?: command)?(?:$|[.;])|sender verif|verify (?:the )?(?:sender|mail ?from)|(?:null|empty) (?:sender|return)|(?<!type=)\baaaa\b|resource record|(?<!recipient )\bdomain may not exist|\bdns check fail/,
  ),
  // `plainText` removes the recipient's domain, so a remaining domain is the sender's.
  ...[
    /(?:^|[.;:] |\bdomain:? )(?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,24}:? (?:(?:domain|host|is|was) ){0,2}(?:does not exist|not found|unknown|unresolvable|no such domain|could not be (?:found|resolved))/,
    /(?:unknown|unresolvable|no such|invalid|non-?existent|resolve)(?: the)? (?:domain|host):? (?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,24}(?![a-z0-9-])/,
  ].map(
    (pattern): ReplyRule => ({
      pattern,
      enhanced: /^(?:5\.0\.0|5\.1\.[078]|5\.7\.\d{1,3})?$/,
      meaning: 'blocked/sender',
      provider: 'any',
      source: 'SoftBank, Cox: no DNS record for the domain of MAIL FROM',
    }),
  ),
  {
    sentence: phrase('(box|domain) .? .. (missing|closed)'),
    code: /^5/,
    stage: 'before-rcpt',
    meaning: 'blocked/sender',
    provider: 'any',
    source: 'RFC 5321 §3.3: at MAIL an address is the sender',
  },
  // A mailbox that may not send: our own, or that of the sender.
  ...says(
    'blocked/sender',
    'Mail.ru, hosters: an account that may not send',
    'send .. (box|mail|server|own) .. (closed|blocked|refused)',
    'send .. (closed|refused)',
    '(closed|blocked|refused) (from|to|for)? .. send',
  ),
  ...says(
    'blocked/policy',
    'RFC 5248 (x.6, x.7)',
    'spam',
    'policy',
    `part .... ${FAULTY}`,
    'part .. exist',
    `${FAULTY} part`,
    'closed mail? list',
    'list closed',
    '(box|list) closed to',
    'closed mail from',
    'outside',
    'missing you',
    'here refused box lookup',
    'you (not|no) (box|own|person)',
    'you missing (.|$)',
    'refused for missing',
    '(you|send) .. not .. (list|person)',
    '(not|no|never) .. receive mail from',
  ),
  ...words(
    'blocked/policy',
    'RFC 5248 (x.6, x.7), sisimai: PolicyViolation, SpamDetected',
    /\bcontent\b|attachment|executable|quarantine|\bheaders?\b|\bbody\b|security (?:reason|issue|risk|violat)|infected|trojan|fraud|\bby (?:our |the |a )?filter|\bdo(?:es)? not verify/,
    /(?<!relay[^;]{0,30})\bprohibit|message (?:was |has been |is )?(?:filtered|refused|blocked)/,
  ),
  ...says(
    'rejected/disabled',
    'sisimai: Suspend; a word of blocking beside a mailbox that is locked',
    '(box|addr) .... blocked .... .? .. closed',
  ),
  ...words(
    'blocked/policy',
    'postmasters: blocked by the recipient, or for it',
    /<>(?::|\.\.\.?) ?(?:temporarily )?blocked\b|(?:recipient|rcpt|address) (?:is |was |has |has been )?(?:temporarily )?blocked|\bsuppress(?:ed|ion)\b/,
  ),
  ...says('rejected/full', 'sisimai: MailboxFull', '(box|addr) .. closed .... over receive limit'),
  ...says(
    'rejected/disabled',
    'sisimai: Suspend',
    '(box|addr) later? closed',
    '(box|addr) later? blocked (_|.|later|from|for|$)',
  ),
  ...words('blocked/policy', 'sisimai: Blocked', /\bblocked\b|\bbanned\b|not welcome/),
]

/** Weak phrases. They outweigh an enhanced mailbox code: "5.1.1 Access denied" is not evidence. */
export const WEAK_PHRASES: readonly ReplyRule[] = [
  ...words(
    'deferred/busy',
    'RFC 5321 §4.2.3 (421, 451, 452)',
    /(?:service|server|system|resources?|mail ?box|host)[^;]{0,30}(?:unavailable|not available|busy|error|problem)/,
    /read-?only mode|\bdns (?:error|failure)|no (?:answer|response|reply) from (?:the )?(?:user )?(?:database|directory|ldap)/,
    /internal (?:server )?error|temporar|insufficient|(?:disk|storage) (?:space|full)|overload|load average|maintenance/,
    /expired|hop count|too many hops|not accepting (?:network )?(?:connections|messages|mail)|incorrectly configured|config(?:uration)? error|misconfigured|lookup (?:failure|failed|error)|timed? ?out|congestion/,
  ),
  {
    pattern: /\blater\b|come back|try again|retry/,
    code: /^45[01]$/,
    enhanced: /^4\.7\.[01]$/,
    stage: 'rcpt',
    meaning: 'deferred/greylist',
    provider: 'any',
    source: 'RFC 6647 §2 (greylisting that is not named)',
  },
  ...says('no-response/garbage', 'RFC 5321 §4.2.4', 'command .. missing', 'missing command').map(
    (rule): ReplyRule => ({ ...rule, stage: 'rcpt' }),
  ),
  {
    pattern: /protocol (?:error|violat)|bad sequence|unrecogni[sz]ed|unimplemented|syntax error/,
    stage: 'rcpt',
    meaning: 'no-response/garbage',
    provider: 'any',
    source: 'RFC 5321 §4.2.4',
  },
  ...says('deferred/busy', 'RFC 5321 §4.2.3 (421)', 'later'),
  ...words(
    'blocked/policy',
    'RFC 5321 §4.2.3 (550, command refused for policy reasons)',
    /denied|refused|forbidden|disallow|unacceptable|administrative|violat/,
    /not (?:be )?(?:accept|allow|permit|authori[sz]ed)|unauthori[sz]ed/,
  ),
]
