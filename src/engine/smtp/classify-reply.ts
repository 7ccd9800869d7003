import { type RejectedReason, type BlockedReason, type DeferredReason, BLOCK_PHRASES, type Meaning, type ReplyRule, WEAK_PHRASES } from './reply-rules/generic.ts'
import { LRUCache } from 'lru-cache'
import { sanitizeText } from '../../platform/text.ts'
import type { Reply } from './reply.ts'
import { BLOCK_CODES, CODE_MEANINGS, DEFINITIVE_CODES, MAILBOX_CODES } from './reply-rules/codes.ts'
import { DOMAIN_PHRASES } from './reply-rules/domains.ts'
import { LOCALIZED_PHRASES } from './reply-rules/localized.ts'
import { MAILBOX_PHRASES } from './reply-rules/mailbox.ts'
import { PROVIDER_PHRASES } from './reply-rules/providers.ts'
import { enhancedOf, plainText, retryAfterMs } from './reply-rules/reply-text.ts'

/** Where in the conversation something happened. */
export type Stage = 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'mail' | 'rcpt' | 'rset'

/** What a mail server's reply means for one recipient. Every kind but `accepted` and `rejected` says nothing of the mailbox. */
export type RecipientOutcome =
  /** 2xx to RCPT. `cannot-verify`: 251/252, the server took it without knowing. `restricted`: exists, but takes mail from few. */
  | {
      readonly kind: 'accepted'
      readonly why: 'recipient' | 'cannot-verify' | 'restricted'
      readonly stage: Stage
      readonly reply: Reply
    }
  | {
      readonly kind: 'rejected'
      readonly why: RejectedReason
      readonly stage: Stage
      readonly reply: Reply
    }
  | {
      readonly kind: 'blocked'
      readonly why: BlockedReason
      readonly stage: Stage
      readonly reply: Reply
    }
  /** `retryAfterMs` is what the server named, else null. */
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
/** `no-address`: no exchanger has an address, and the DNS is sure of it. `dns`: the DNS could not tell their addresses. `garbage`: what came was not SMTP. `not-public`: the exchanger's address may not be dialled. `smtputf8`: the server cannot take this address. */
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

/**
 * What a reply means. `about.recipient` is the address asked for: its own name is taken out of the text first.
 * Trouble of ours (blocked, too fast, greylisted, TLS, policy) never comes out as `rejected`.
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
  const phrase = matchRule(stage, reply, text)
  if (phrase === null)
    return { kind: 'no-response', why: 'garbage', stage, detail: detailOf(reply) }
  return toOutcome(phrase, stage, reply, text)
}

export type ReplyContext = { readonly recipient?: string }

/** Every row, in the order of judgement: the first that holds decides. */
export const REPLY_RULES: readonly ReplyRule[] = [
  ...DEFINITIVE_CODES,
  ...PROVIDER_PHRASES,
  ...BLOCK_PHRASES,
  ...LOCALIZED_PHRASES,
  ...DOMAIN_PHRASES,
  ...MAILBOX_PHRASES,
  ...BLOCK_CODES,
  ...WEAK_PHRASES,
  ...MAILBOX_CODES,
  ...CODE_MEANINGS,
]

/**
 * Has V8 compile the patterns, which takes 35 ms once per process and would otherwise delay the first
 * two verdicts: to bytecode at the first use, to machine code at the second. Call it while something
 * else is waited for.
 */
export function compileReplyRules(): void {
  if (isCompiled) return
  isCompiled = true
  for (let use = 0; use < 2; use++) firstMatch('rcpt', SAMPLE, SAMPLE.text)
}

let isCompiled = false
const SAMPLE: Reply = { code: 550, enhanced: '5.1.1', text: 'no such user here' }

/** The row that decides what a refusal means; null for a code that refuses nothing (1xx, 2xx, 3xx) or is none (6xx). */
export function matchRule(stage: Stage, reply: Reply, text = plainText(reply)): ReplyRule | null {
  if (reply.code < 400 || reply.code > 599) return null
  // Servers say the same words to everybody, and there are some 370 rows.
  const key = `${stage} ${reply.code} ${enhancedOf(reply)} ${text}`
  const known = JUDGED.get(key)
  if (known !== undefined) return known.phrase
  const phrase = firstMatch(stage, reply, text)
  JUDGED.set(key, { phrase })
  return phrase
}

/** Judgements of late; a text is at most 2,048 characters long. */
const JUDGED = new LRUCache<string, { phrase: ReplyRule | null }>({ max: 500 })

function firstMatch(stage: Stage, reply: Reply, text: string): ReplyRule | null {
  const code = String(reply.code)
  const enhanced = enhancedOf(reply)
  const holds = (phrase: ReplyRule) =>
    couldMatch(phrase, stage, reply.code) &&
    (phrase.code?.test(code) ?? true) &&
    (phrase.enhanced?.test(enhanced) ?? true) &&
    (phrase.pattern?.test(text) ?? true)
  for (const { any, phrases } of chunks()) {
    const found = any?.test(text) === false ? undefined : phrases.find(holds)
    if (found !== undefined) return found
  }
  return null
}

/** Rows that follow one another, and an expression that matches wherever the pattern of one of them does; null where they have none. */
type Chunk = { readonly any: RegExp | null; readonly phrases: readonly ReplyRule[] }

let cut: readonly Chunk[] | undefined

/** Hardly any of some 370 patterns matches a text: asked by the chunk, they say so in a quarter of the time. */
function chunks(): readonly Chunk[] {
  cut ??= runs(REPLY_RULES).map(phrases => ({ any: alternation(phrases), phrases }))
  return cut
}

/** Characters of pattern in one chunk. V8 compiles longer expressions in more than linear time. */
const CHUNK_LENGTH_MAX = 1_000

/** Rows in their order, in runs of those with a pattern and of those without. */
function runs(phrases: readonly ReplyRule[]): ReplyRule[][] {
  const all: ReplyRule[][] = []
  let length = 0
  for (const phrase of phrases) {
    const added = phrase.pattern?.source.length ?? 0
    const last = all.at(-1)
    const goesOn = last !== undefined && length + added <= CHUNK_LENGTH_MAX
    if (goesOn && (last[0]?.pattern === undefined) === (phrase.pattern === undefined)) {
      last.push(phrase)
      length += added
    } else {
      all.push([phrase])
      length = added
    }
  }
  return all
}

function alternation(phrases: readonly ReplyRule[]): RegExp | null {
  const sources = phrases.flatMap(({ pattern }) => pattern?.source ?? [])
  return sources.length === 0 ? null : new RegExp(sources.map(one => `(?:${one})`).join('|'))
}

/** Before RCPT nobody has heard of the mailbox; only RFC 7504's codes speak of the host at whatever stage they come. */
function couldMatch({ meaning, stage: only }: ReplyRule, stage: Stage, code: number) {
  const isRcpt = stage === 'rcpt'
  if (only !== undefined && (only === 'rcpt') !== isRcpt) return false
  if (isRcpt || !ABOUT_MAILBOX.test(meaning)) return true
  return meaning === 'rejected/no-mail' && TAKES_NO_MAIL.has(code)
}

/** A 4xx leaves open whether the mailbox exists, unless it is full or a provider's own words say more. */
function meaningFor({ meaning, code }: ReplyRule, reply: Reply): Meaning {
  const isOpen = reply.code < 500 && code === undefined && meaning !== 'rejected/full'
  return isOpen && ABOUT_MAILBOX.test(meaning) ? 'deferred/busy' : meaning
}

function toOutcome(phrase: ReplyRule, stage: Stage, reply: Reply, text: string): RecipientOutcome {
  const [kind, why] = meaningFor(phrase, reply).split('/')
  if (kind === 'no-response') {
    return { kind, why: why as NoResponseReason, stage, detail: detailOf(reply) }
  }
  if (kind === 'deferred') {
    const waitMs = retryAfterMs(text)
    return { kind, why: why as DeferredReason, retryAfterMs: waitMs, stage, reply }
  }
  return { kind, why, stage, reply } as RecipientOutcome
}

const TAKES_NO_MAIL = new Set([521, 556])
const ABOUT_MAILBOX = /^(?:accepted|rejected)\//
const DETAIL_LENGTH_MAX = 200
const detailOf = ({ code, text }: Reply) => sanitizeText(`${code} ${text}`, DETAIL_LENGTH_MAX)
