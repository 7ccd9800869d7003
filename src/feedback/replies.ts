import { addressKey, isFault } from '../engine/address/address.ts'
import { maskVariables, plainText } from '../engine/smtp/reply-rules/reply-text.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import { DAY } from '../platform/clock.ts'
import { sanitizeText } from '../platform/text.ts'
import { ACCEPTED, REJECTED } from './adjust-result.ts'
import { wilsonInterval } from './calibration.ts'

/** Fewer contradictions may be a coincidence. */
export const CONTRADICTED_MIN = 5

/** A reply with the outcomes of the addresses that it was about. */
export type ReplySum = {
  /** '' if the operator is unknown. */
  readonly operator: string
  /** As `decidingReply` returns it. */
  readonly reply: string
  readonly confirmed: number
  readonly contradicted: number
  /** Number of accounts whose feedback contradicts it. */
  readonly accounts: number
}

/** Replies of servers are compared with the outcomes of this time: older policies have changed. */
export const REPLY_AGE_MAX_MS = 180 * DAY
/**
 * A reply is reported if more than this share of it is contradicted, with a probability of 97.5 %:
 * mailboxes are closed, and forwarded mail bounces, also where servers reply correctly.
 */
export const CONTRADICTED_SHARE_MIN = 0.1

/** The cause is at the start of a reply. */
const TEXT_LENGTH_MAX = 100

/**
 * Returns the reply that decided a result, as its meaning, its code and its text without what
 * differs between recipients, such as `rejected/no-mailbox 550 user unknown`. Null if no reply
 * decided it, or if the reply leaves open whether mail arrives.
 */
export function decidingReply({ verdict: { reason }, evidence }: Result): string | null {
  const { answer, address } = evidence
  if (answer === null || isFault(address)) return null
  const decides =
    answer.kind === 'accepted'
      ? ACCEPTED.has(reason)
      : answer.kind === 'rejected' && REJECTED.has(reason)
  if (!decides || !('reply' in answer)) return null
  const { kind, why, reply } = answer
  const code = `${reply.code}${reply.enhanced === null ? '' : ` ${reply.enhanced}`}`
  const plain = plainText(reply, addressKey(address))
  const { loose } = maskVariables(plain, address.local.toLowerCase())
  return `${kind}/${why} ${code} ${sanitizeText(loose, TEXT_LENGTH_MAX)}`.trim()
}

/** A reply that feedback contradicts. */
export type ContradictedReply = {
  readonly operator: string
  readonly said: 'accepted' | 'rejected'
  /** The meaning that the reply rules give it, such as `rejected/no-mailbox`. */
  readonly meaning: string
  readonly reply: string
  readonly count: number
  readonly contradicted: number
  /** The lower end of the interval of the contradicted share. */
  readonly shareMin: number
  readonly accounts: number
}

/** Returns the replies that feedback contradicts again and again, most contradicted first. */
export function findContradictedReplies(sums: readonly ReplySum[]): ContradictedReply[] {
  return sums
    .map(({ operator, reply, confirmed, contradicted, accounts }): ContradictedReply => {
      const count = Math.max(0, confirmed) + contradicted
      const [meaning = '', ...rest] = reply.split(' ')
      return {
        operator,
        said: meaning.startsWith('accepted') ? 'accepted' : 'rejected',
        meaning,
        reply: rest.join(' '),
        count,
        contradicted,
        accounts,
        shareMin: wilsonInterval(contradicted, count).low,
      }
    })
    .filter(
      ({ contradicted, shareMin }) =>
        contradicted >= CONTRADICTED_MIN && shareMin > CONTRADICTED_SHARE_MIN,
    )
    .sort((a, b) => b.contradicted - a.contradicted)
}
