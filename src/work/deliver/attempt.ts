import type { Clock } from '../../base/clock.ts'
import type { Seal } from '../../base/seal.ts'
import { afterAttempt, isDelivered, type Next, retryAfterMs } from '../../hook/delivery.ts'
import { isSandboxBody } from '../../hook/event.ts'
import type { Tried } from '../../store/event/attempts.ts'
import type { DueDelivery } from '../../store/event/deliveries.ts'
import type { Post, Receipt } from '../post/post.ts'
import { letterOf } from './letter.ts'

export type AttemptParts = {
  readonly post: Post
  readonly seal: Seal
  readonly clock: Clock
  /** Of ev, for receivers to see. */
  readonly version: string
}

/** A request that was made, what came of it, and how it goes on with its delivery. */
export type Attempt = Tried & {
  /** How long the receiver asks us to wait; null: it does not say. */
  readonly retryAfterMs: number | null
  readonly next: Next
}

export type Sent = Pick<DueDelivery, 'eventId' | 'body' | 'trigger' | 'attempt' | 'webhook'>

/** Sends a delivery once. A letter that cannot be signed is an attempt that failed. */
export async function makeAttempt(parts: AttemptParts, sent: Sent): Promise<Attempt> {
  const { clock, post } = parts
  const startedAt = clock.now()
  const letter = letterOf(sent, { ...parts, at: startedAt })
  const receipt = 'fault' in letter ? { ...letter, ...UNSENT } : await post.send(letter)
  const { answer, durationMs } = receipt
  const status = answer?.status ?? null
  const now = clock.now()
  const askedMs = retryAfterMs(answer?.headers['retry-after'], now)
  const outcome = { status, retryAfterMs: askedMs }
  return {
    ...{ startedAt, url: sent.webhook.url, durationMs, statusCode: status },
    ...{ headers: answer?.headers ?? null, excerpt: answer?.excerpt ?? null },
    ...{ error: errorOf(receipt), retryAfterMs: askedMs },
    next: afterAttempt({
      ...{ attempt: sent.attempt, trigger: sent.trigger, outcome, now },
      sandbox: isSandboxBody(sent.body),
    }),
  }
}

const UNSENT = { answer: null, durationMs: 0 }

function errorOf({ answer, fault }: Receipt): string | null {
  if (answer === null) return fault
  const { status } = answer
  if (isDelivered(status)) return null
  const isRedirect = status >= 300 && status <= 399
  return isRedirect
    ? `It answered ${status}: redirects are not followed, so the URL must be the one that answers.`
    : `It answered ${status}: only an answer from 200 to 299 says that an event has arrived.`
}
