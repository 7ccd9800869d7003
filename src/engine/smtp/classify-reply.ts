import { LRUCache } from 'lru-cache'
import { sanitizeText } from '../../platform/text.ts'
import type { Reply } from './reply.ts'
import { CLIENT_PHRASES } from './reply-rules/client.ts'
import {
  BLOCK_CODES,
  CODE_MEANINGS,
  DEFINITIVE_CODES,
  MAILBOX_CODES,
  NO_MAIL_CODES,
} from './reply-rules/codes.ts'
import { DOMAIN_PHRASES } from './reply-rules/domains.ts'
import {
  BLOCK_PHRASES,
  type BlockedReason,
  type DeferredReason,
  type Meaning,
  type RejectedReason,
  type ReplyRule,
  WEAK_PHRASES,
} from './reply-rules/generic.ts'
import { MAILBOX_PHRASES } from './reply-rules/mailbox.ts'
import { PROVIDER_PHRASES } from './reply-rules/providers.ts'
import { asksToRetry, enhancedOf, plainText, retryAfterMs } from './reply-rules/reply-text.ts'
import { toSentence } from './reply-rules/sentence.ts'

/** The stage of a session. */
export type Stage = 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'mail' | 'rcpt' | 'rset'

/**
 * What a mail server's reply means for one recipient. Only `accepted` and `rejected` are evidence
 * about the mailbox.
 */
export type RecipientOutcome =
  /**
   * 2xx to RCPT. `cannot-verify`: 251 or 252, accepted without verification. `restricted`: the
   * mailbox exists but accepts mail from approved senders only.
   */
  | {
      readonly kind: 'accepted'
      readonly why: 'recipient' | 'cannot-verify' | 'restricted'
      readonly stage: Stage
      readonly reply: Reply
    }
  /** `learned` is set if no rule knows the text, but the server gave it to random recipients. */
  | {
      readonly kind: 'rejected'
      readonly why: RejectedReason
      readonly stage: Stage
      readonly reply: Reply
      readonly learned?: Learned
    }
  | {
      readonly kind: 'blocked'
      readonly why: BlockedReason
      readonly stage: Stage
      readonly reply: Reply
    }
  /** `retryAfterMs` is the delay that the server requested, else null. */
  | {
      readonly kind: 'deferred'
      readonly why: DeferredReason
      readonly retryAfterMs: number | null
      readonly stage: Stage
      readonly reply: Reply
    }
  | {
      readonly kind: 'no-response'
      readonly why: NoResponseReason
      readonly stage: Stage
      readonly detail: string
    }
/**
 * `no-address`: the DNS confirms that no MX host has an address. `dns`: the lookup of their
 * addresses failed. `garbage`: the data was not valid SMTP. `not-public`: the IP policy forbids the
 * address. `smtputf8`: the server does not support SMTPUTF8. `own-limit`: the server was not
 * contacted, because the time ended while ev waited for its own rate limit, or because this machine has no
 * free file descriptor or port, or its proxy fails.
 */
export type NoResponseReason =
  | 'no-address'
  | 'dns'
  | 'connect'
  | 'timeout'
  | 'closed'
  | 'tls'
  | 'garbage'
  | 'not-public'
  | 'smtputf8'
  | 'own-limit'

/**
 * From whom a text is known to be about the recipient. `domain`: this domain. `operator`: other
 * domains of its operator. `software`: domains of other operators with the same server software.
 */
export type Learned = {
  readonly scope: 'domain' | 'operator' | 'software'
  /** Domains whose server gave the text to a random recipient. */
  readonly domains: number
}

/**
 * Classifies a reply. `about.recipient` is the probed address, which is removed from the text
 * first; `about.client` has our names. A cause on our side (block, rate, greylisting, TLS, policy) is
 * never classified as `rejected`.
 */
export function classifyReply(
  stage: Stage,
  reply: Reply,
  about: ReplyContext = {},
): RecipientOutcome {
  if (stage === 'rcpt' && reply.code >= 250 && reply.code <= 252) {
    return {
      kind: 'accepted',
      why: reply.code === 250 ? 'recipient' : 'cannot-verify',
      stage,
      reply,
    }
  }
  const text = plainText(reply, about.recipient)
  const rule = matchRule(stage, reply, text)
  if (rule === null) return { kind: 'no-response', why: 'garbage', stage, detail: detailOf(reply) }
  const outcome = toOutcome(rule, stage, reply, text)
  if (outcome.kind !== 'rejected' || !namesClientOnly(reply.text, about)) return outcome
  return { kind: 'blocked', why: 'sender', stage, reply }
}

/** The probed address and the names of this client: a reply may repeat any of them. */
export type ReplyContext = { readonly recipient?: string; readonly client?: ClientNames }

/** The names that this client gave in MAIL, where it is empty for the null sender, and in EHLO. */
type ClientNames = { readonly mailFrom: string; readonly helo: string }

/**
 * Whether a text names this client and not the recipient: a server that verifies the sender says "no
 * such user" of it.
 */
function namesClientOnly(text: string, { recipient, client }: ReplyContext): boolean {
  if (recipient === undefined || client === undefined) return false
  const folded = text.toLowerCase()
  if (folded.includes(recipient.toLowerCase())) return false
  const words = folded.split(BETWEEN_NAMES)
  const names = [client.mailFrom, client.helo].filter(name => name !== '')
  return names.some(name => words.some(word => isNamed(word, name.toLowerCase())))
}

/** Whether a word is a name, also as `from=name`. The name itself may contain `=` (VERP, BATV). */
const isNamed = (word: string, name: string) => word === name || word.endsWith(`=${name}`)

const BETWEEN_NAMES = /[\s<>()[\]"',;:]|\.(?![\w-])/

/** All rules in order of precedence; the first match decides. */
export const REPLY_RULES: readonly ReplyRule[] = [
  ...DEFINITIVE_CODES,
  ...PROVIDER_PHRASES,
  ...CLIENT_PHRASES,
  ...BLOCK_PHRASES,
  ...DOMAIN_PHRASES,
  ...MAILBOX_PHRASES,
  ...BLOCK_CODES,
  ...NO_MAIL_CODES,
  ...WEAK_PHRASES,
  ...MAILBOX_CODES,
  ...CODE_MEANINGS,
]

/**
 * How little is known about a refusal at RCPT: `unknown` if no rule knows a word of it and its code
 * leaves open whom it is about, `weak` if the only word is one such as "denied". Null for any other
 * outcome, for a 4xx, and for a text that asks to retry.
 */
export function getUncertainty(
  answer: RecipientOutcome,
  recipient: string,
): 'unknown' | 'weak' | null {
  if (answer.kind !== 'blocked' && answer.kind !== 'deferred') return null
  if (answer.stage !== 'rcpt' || answer.reply.code < 500) return null
  const text = plainText(answer.reply, recipient)
  const rule = matchRule('rcpt', answer.reply, text)
  if (rule === null || !UNCERTAIN_MEANINGS.has(rule.meaning) || asksToRetry(text)) return null
  if (fieldOf(rule) === null) return 'unknown'
  const isWeak = CODE_MEANINGS.includes(rule) || WEAK_PHRASES.includes(rule)
  return isWeak && rule.meaning === 'blocked/policy' ? 'weak' : null
}

/**
 * Whether a 4xx says in words that the mailbox does not exist, and does not ask to retry: Postfix
 * with `soft_bounce` or `unknown_local_recipient_reject_code = 450`.
 */
export function isSoftUnknown(answer: RecipientOutcome, recipient: string): boolean {
  if (answer.kind !== 'deferred') return false
  const text = plainText(answer.reply, recipient)
  const rule = matchRule(answer.stage, answer.reply, text)
  if (rule === null || fieldOf(rule) === null) return false
  return rule.meaning === 'rejected/no-mailbox' && !asksToRetry(text)
}

/** Meanings that a 5xx gets from its code alone; x.3 and x.4 are the server and its network. */
const UNCERTAIN_MEANINGS: ReadonlySet<Meaning> = new Set(['blocked/policy', 'deferred/busy'])

/**
 * Returns true if a reply names relaying or a loop as the reason why the domain is not accepted. An
 * exchanger of the domain says so of its own configuration. In a report of another server, it may
 * be that of the sender.
 */
export function isAboutRelaying(reply: Reply, recipient: string): boolean {
  const text = plainText(reply, recipient)
  if (matchRule('rcpt', reply, text)?.meaning !== 'rejected/not-hosted') return false
  return RELAYING.test(toSentence(text)) || LOOPING.test(text)
}

/** A word of the lexicon of sentences, in any language. */
const RELAYING = /\brelay\b/
const LOOPING = /\b(?:loops?|looping)\b|points? (?:back )?to (?:the )?(?:local ?host|me\b|us\b)/

/**
 * Makes V8 compile the patterns: to bytecode at the first use, to machine code at the second. This
 * takes 35 ms once per process and would otherwise delay the first two verdicts. Call it while
 * waiting for I/O.
 */
export function compileReplyRules(): void {
  if (isCompiled) return
  isCompiled = true
  for (let use = 0; use < 2; use++) firstMatch('rcpt', SAMPLE, SAMPLE.text)
}

let isCompiled = false
const SAMPLE: Reply = { code: 550, enhanced: '5.1.1', text: 'no such user here' }

/** Returns the rule that decides the meaning of a 4xx or 5xx reply; null for any other code. */
export function matchRule(stage: Stage, reply: Reply, text = plainText(reply)): ReplyRule | null {
  if (reply.code < 400 || reply.code > 599) return null
  // Servers repeat the same texts, and there are about 400 rules.
  const key = `${stage} ${reply.code} ${enhancedOf(reply)} ${text}`
  const cached = RULE_CACHE.get(key)
  if (cached !== undefined) return cached.rule
  const rule = firstMatch(stage, reply, text)
  RULE_CACHE.set(key, { rule })
  return rule
}

/** Recent matches; a text has at most 2,048 characters. */
const RULE_CACHE = new LRUCache<string, { rule: ReplyRule | null }>({ max: 1_000 })

function firstMatch(stage: Stage, reply: Reply, whole: string): ReplyRule | null {
  const code = String(reply.code)
  const enhanced = enhancedOf(reply)
  const text = removeAdvice(whole)
  const sentence = toSentence(text)
  const matches = (rule: ReplyRule) =>
    couldMatch(rule, stage, reply.code) &&
    (rule.code?.test(code) ?? true) &&
    (rule.enhanced?.test(enhanced) ?? true) &&
    (rule.pattern?.test(text) ?? true) &&
    (rule.sentence?.test(sentence) ?? true)
  for (const { field, any, rules } of getChunks()) {
    const isExcluded = any !== null && !any.test(field === 'sentence' ? sentence : text)
    const found = isExcluded ? undefined : rules.find(matches)
    if (found !== undefined) return found
  }
  return null
}

/**
 * Removes the advice of a footer, such as "if you think we block you by mistake, call …": it belongs
 * to every refusal of the server and does not tell the cause of this one.
 */
function removeAdvice(text: string): string {
  const start = text.search(ADVICE)
  if (start <= 0) return text
  const end = text.indexOf('. ', start)
  return end === -1 ? text.slice(0, start) : text.slice(0, start) + text.slice(end)
}

const ADVICE = / if you (?:think|believe|feel|suspect) /

/** What a rule is matched against; null if only against codes. */
type Field = 'pattern' | 'sentence' | null

/**
 * Consecutive rules for the same field, and an expression that matches if any of them does; null if
 * there is no field.
 */
type Chunk = {
  readonly field: Field
  readonly any: RegExp | null
  readonly rules: readonly ReplyRule[]
}

let ruleChunks: readonly Chunk[] | undefined

/** Few patterns match a text, so testing chunks first takes a quarter of the time. */
function getChunks(): readonly Chunk[] {
  ruleChunks ??= groupRules(REPLY_RULES).map(rules => ({
    field: fieldOf(rules[0]),
    any: alternation(rules.flatMap(rule => sourceOf(rule) ?? [])),
    rules,
  }))
  return ruleChunks
}

/** The most pattern characters per chunk. V8 compiles longer expressions in superlinear time. */
const CHUNK_LENGTH_MAX = 1_000

/** Splits the rules, in order, into chunks for one field each. */
function groupRules(rules: readonly ReplyRule[]): ReplyRule[][] {
  const all: ReplyRule[][] = []
  let length = 0
  for (const rule of rules) {
    const added = sourceOf(rule)?.length ?? 0
    const last = all.at(-1)
    const fits = length + added <= CHUNK_LENGTH_MAX && fieldOf(last?.[0]) === fieldOf(rule)
    if (last !== undefined && fits) {
      last.push(rule)
      length += added
    } else {
      all.push([rule])
      length = added
    }
  }
  return all
}

const fieldOf = (rule: ReplyRule | undefined): Field =>
  rule?.pattern !== undefined ? 'pattern' : rule?.sentence !== undefined ? 'sentence' : null
const sourceOf = ({ pattern, sentence }: ReplyRule) => (pattern ?? sentence)?.source

const alternation = (sources: readonly string[]): RegExp | null =>
  sources.length === 0 ? null : new RegExp(sources.map(one => `(?:${one})`).join('|'))

/**
 * Before RCPT the server does not know the mailbox. A host that accepts no mail at all may say so to
 * the client that connects (RFC 7504 §3); at MAIL, such a reply is about the sender's domain.
 */
function couldMatch({ meaning, stage: ruleStage }: ReplyRule, stage: Stage, code: number) {
  const isRcpt = stage === 'rcpt'
  if (ruleStage === 'greeting') return stage === 'greeting'
  if (ruleStage !== undefined && (ruleStage === 'rcpt') !== isRcpt) return false
  if (isRcpt || !ABOUT_MAILBOX.test(meaning)) return true
  return (
    meaning === 'rejected/no-mail' && code === 521 && (stage === 'greeting' || stage === 'ehlo')
  )
}

/** A 4xx does not decide whether the mailbox exists, unless it is full or a rule names the code. */
function meaningFor(rule: ReplyRule, stage: Stage, reply: Reply, text: string): Meaning {
  const { meaning, code } = rule
  if (reply.code >= 500) return meaning
  if (ABOUT_MAILBOX.test(meaning)) {
    return code === undefined && meaning !== 'rejected/full' ? 'deferred/busy' : meaning
  }
  if (!isRetried(rule, text)) return meaning
  return stage === 'rcpt' ? 'deferred/greylist' : 'deferred/busy'
}

/**
 * Returns true if a 4xx is a deferral though its words are those of a block: it asks to retry, as
 * greylists do ("policy rejection, try again later"), and names no cause that outlasts a retry.
 */
function isRetried({ meaning, provider, enhanced }: ReplyRule, text: string): boolean {
  if (!VAGUE_BLOCKS.has(meaning) || !asksToRetry(text)) return false
  if (meaning === 'blocked/policy') return true
  return provider === 'any' && enhanced === undefined && !LASTING_CAUSE.test(text)
}

const VAGUE_BLOCKS: ReadonlySet<Meaning> = new Set([
  'blocked/policy',
  'blocked/sender',
  'blocked/blocklist',
])
/** Causes that are the same at the next attempt. */
const LASTING_CAUSE =
  /list(?:ed|ing)?\b|\brbl|reputation|spam|abus|dynamic|residential|blocked (?:using|by)|proxy|harvest|\bspf|dkim|dmarc/

function toOutcome(rule: ReplyRule, stage: Stage, reply: Reply, text: string): RecipientOutcome {
  const [kind, why] = meaningFor(rule, stage, reply, text).split('/')
  if (kind === 'no-response') {
    return { kind, why: why as NoResponseReason, stage, detail: detailOf(reply) }
  }
  if (kind === 'deferred') {
    const waitMs = retryAfterMs(text)
    return { kind, why: why as DeferredReason, retryAfterMs: waitMs, stage, reply }
  }
  return { kind, why, stage, reply } as RecipientOutcome
}

const ABOUT_MAILBOX = /^(?:accepted|rejected)\//
const DETAIL_LENGTH_MAX = 200
const detailOf = ({ code, text }: Reply) => sanitizeText(`${code} ${text}`, DETAIL_LENGTH_MAX)
