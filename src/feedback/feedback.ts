import { createHash } from 'node:crypto'
import { type Address, addressKey, isFault, parseAddress } from '../engine/address/address.ts'
import { classifyReply, isAboutRelaying } from '../engine/smtp/classify-reply.ts'
import { DAY } from '../platform/clock.ts'
import { sanitizeText } from '../platform/text.ts'

/** The events that feedback reports about a message. */
export const FEEDBACK_KINDS = ['delivered', 'bounced', 'complained'] as const
export type FeedbackKind = (typeof FEEDBACK_KINDS)[number]

/** Whether the mailbox exists, according to feedback. */
export type Outcome = 'alive' | 'dead'

/** One piece of feedback. */
export type FeedbackInput = {
  readonly address: string
  readonly kind: FeedbackKind
  /** SMTP reply code. */
  readonly code?: number | null | undefined
  /** Enhanced status code (RFC 3463). */
  readonly enhancedCode?: string | null | undefined
  /** Diagnostic text. */
  readonly text?: string | null | undefined
  /** The address that the message was sent from. A reply that names it alone is about it. */
  readonly sender?: string | undefined
  /** When it happened, epoch ms; null if it is unknown: then when it was received. */
  readonly occurredAt: number | null
  /** ID of the sender of the feedback; without it, equal pieces count once. */
  readonly id?: string | null | undefined
  /**
   * Whether the provider reports a bounce as permanent; null if it does not say. True decides only
   * without an SMTP code; false always leaves the outcome open.
   */
  readonly isPermanent?: boolean | null | undefined
}

/** A validated piece of feedback. */
export type Feedback = {
  readonly dedupeKey: string
  readonly addressKey: string
  readonly domain: string
  readonly kind: FeedbackKind
  readonly outcome: Outcome | null
  readonly code: number | null
  readonly enhancedCode: string | null
  readonly text: string | null
  readonly occurredAt: number
}

/** Longest stored diagnostic text: replies beyond it are policy pages. */
export const FEEDBACK_TEXT_MAX = 500
/** Older feedback says nothing about a mailbox of today, and is deleted. */
export const FEEDBACK_AGE_MAX_MS = 730 * DAY
/** Tolerated difference between the clocks of the sender and of this machine. */
const CLOCK_SKEW_MAX_MS = DAY

/** Validates a piece of feedback. Returns a sentence if it is invalid. */
export function parseFeedback(input: FeedbackInput, now: number): Feedback | string {
  const address = parseAddress(input.address)
  if (isFault(address)) return `The address is invalid: ${sanitizeText(address.message)}`
  const statedAt = input.occurredAt ?? now
  if (statedAt > now + CLOCK_SKEW_MAX_MS) return 'The time is in the future.'
  if (statedAt < now - FEEDBACK_AGE_MAX_MS) return 'The time is more than two years ago.'
  const code = toCode(input.code)
  const enhancedCode = toEnhancedCode(input.enhancedCode)
  const text = toText(input.text)
  const facts = { kind: input.kind, code, enhancedCode, text }
  const occurredAt = Math.min(Math.trunc(statedAt), now)
  return {
    ...facts,
    dedupeKey: dedupeKeyFor(input, address, facts),
    addressKey: addressKey(address),
    domain: address.domain.ascii,
    outcome: outcomeOf(facts, input, address),
    occurredAt,
  }
}

type Facts = Pick<Feedback, 'kind' | 'code' | 'enhancedCode' | 'text'>

/** The time is part of the key only without an ID: providers repeat an event with its ID. */
function dedupeKeyFor(input: FeedbackInput, address: Address, facts: Facts): string {
  const { kind, code, enhancedCode, text } = facts
  const parts =
    input.id == null
      ? [addressKey(address), kind, input.occurredAt, code, enhancedCode, text]
      : ['id', addressKey(address), kind, input.id]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

/**
 * Returns what feedback says about the mailbox. The text of a bounce is classified by the rules for
 * replies to RCPT: a full mailbox, a block and a temporary failure say nothing. Neither does a
 * refusal to relay or a loop, which may be due to the sender's own server, nor a bounce that its
 * provider does not call permanent. Without any code it must call it so.
 */
function outcomeOf(
  facts: Facts,
  { isPermanent, sender = '' }: FeedbackInput,
  address: Address,
): Outcome | null {
  if (facts.kind !== 'bounced') return 'alive'
  if (isPermanent === false) return null
  const code = isUndefinedStatus(facts) ? null : (facts.code ?? codeFrom(facts.enhancedCode))
  if (code === null) return isPermanent === true ? 'dead' : null
  const reply = { code, enhanced: facts.enhancedCode, text: facts.text ?? '' }
  const recipient = addressKey(address)
  const client = { mailFrom: sender, helo: '' }
  const outcome = classifyReply('rcpt', reply, { recipient, client })
  if (outcome.kind !== 'rejected' || outcome.why === 'full') return null
  return isAboutRelaying(reply, recipient) ? null : 'dead'
}

/**
 * Returns true for codes without words that name no cause (RFC 3463 §3.1): Exim reports every
 * failure before a server replied as 5.0.0, and after RCPT a 550 is about the message as well.
 */
const isUndefinedStatus = ({ enhancedCode, text }: Facts) =>
  text === null && /^(?:\d\.\d{1,3}\.0)?$/.test(enhancedCode ?? '')

/** A code of the class of an enhanced code, without a meaning of its own. */
function codeFrom(enhancedCode: string | null): number | null {
  if (enhancedCode === null || enhancedCode.startsWith('2')) return null
  return enhancedCode.startsWith('4') ? 450 : 554
}

const toCode = (code: number | null | undefined) =>
  code != null && Number.isInteger(code) && code >= 400 && code <= 599 ? code : null

/** An enhanced status code (RFC 3463), and nothing else. */
export const isEnhancedCode = (text: string) => /^[245]\.\d{1,3}\.\d{1,3}$/.test(text)

const toEnhancedCode = (text: string | null | undefined) =>
  text != null && isEnhancedCode(text) ? text : null

function toText(text: string | null | undefined): string | null {
  const clean = sanitizeText(text ?? '', FEEDBACK_TEXT_MAX)
  return clean === '' ? null : clean
}
