import { getUncertainty, type RecipientOutcome } from '../smtp/classify-reply.ts'
import type { Reply } from '../smtp/reply.ts'
import { enhancedOf, maskVariables, plainText } from '../smtp/reply-rules/reply-text.ts'

/** A reply without what differs between recipients and sessions. */
export type ReplyPattern = {
  /** Code and masked text, in which short numbers are kept: they may be error codes. */
  readonly exact: string
  /** Code and masked text without any number. */
  readonly loose: string
  /** The masked text alone: before RCPT a server may use another code. */
  readonly words: string
}

/** A refusal at RCPT that no rule knows. */
export type Refusal = {
  readonly pattern: ReplyPattern
  /** True if the only known word is one such as "denied". */
  readonly isWeak: boolean
}

/** The masked text, in UTF-16 units. What is cut off could tell a block from a missing mailbox. */
const LENGTH_MAX = 500

/** Returns the pattern of a reply; null if it has no words, is too long or is not plain text. */
export function toPattern(reply: Reply, recipient: string): ReplyPattern | null {
  const local = recipient.slice(0, Math.max(recipient.lastIndexOf('@'), 0)).toLowerCase()
  const { exact, loose } = maskVariables(plainText(reply, recipient), local)
  if (!WORD.test(exact) || exact.length > LENGTH_MAX || NOT_TEXT.test(exact)) return null
  const code = `${reply.code} ${enhancedOf(reply)}`.trim()
  return { exact: `${code} ${exact}`, loose: `${code} ${loose}`, words: loose }
}

/** Returns the refusal that an outcome is; null if a rule knows it, or if it cannot be learned. */
export function toRefusal(answer: RecipientOutcome, recipient: string): Refusal | null {
  const uncertainty = getUncertainty(answer, recipient)
  if (uncertainty === null || !('reply' in answer)) return null
  const pattern = toPattern(answer.reply, recipient)
  return pattern && { pattern, isWeak: uncertainty === 'weak' }
}

/** The keys under which a text may be known, the stricter one first. */
export const formsOf = ({ exact, loose }: ReplyPattern): ReadonlySet<string> =>
  new Set([exact, loose])

const WORD = /\p{L}{2}/u
const NOT_TEXT = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u
