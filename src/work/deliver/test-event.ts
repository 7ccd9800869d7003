import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Seal } from '../../base/seal.ts'
import type { Database } from '../../store/database.ts'
import type { Webhook } from '../../store/event/webhooks.ts'
import type { Post } from '../post/post.ts'

export type TestParts = {
  readonly database: Database
  readonly post: Post
  readonly seal: Seal
  readonly clock: Clock
  readonly random: Random
  /** Of ev. */
  readonly version: string
}

export type TestOutcome = {
  readonly deliveryId: string
  readonly eventId: string
  readonly state: 'delivered' | 'failed'
  /** Null: no answer. */
  readonly statusCode: number | null
  readonly durationMs: number
  /** The beginning of the body of the answer, cleaned; null: no answer. */
  readonly excerpt: string | null
  /** What was wrong, in a sentence; null: nothing. */
  readonly error: string | null
}

/** Sends a test event to a webhook once, whether it is on or off, and writes down what came of it. */
export async function sendTest(
  _parts: TestParts,
  _webhook: Webhook,
  _o: { readonly sandbox: boolean },
): Promise<TestOutcome> {
  throw new Error('not yet')
}
