import { sql, type Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { enterDisabled } from './alerts/alert-store.ts'
import type { RecordedAttempt } from './attempt-store.ts'
import { DISABLED_REASONS, type DisabledCode } from './delivery-error.ts'
import { GONE } from './delivery-state.ts'

/** Keeps since when webhooks have failed, by what came of attempts, and switches off those that were to be. */
export async function touchWebhooks(
  trx: Transaction<Schema>,
  made: readonly RecordedAttempt[],
  now: number,
): Promise<void> {
  const events = made.filter(isWhereItIs)
  for (const [webhookId, ofOne] of Map.groupBy(events, ({ delivery }) => delivery.webhookId)) {
    const [{ delivery: before }] = ofOne as [RecordedAttempt]
    const after = deliveriesOf(ofOne, now)
    if (after.failingSince !== before.failingSince) {
      const { failingSince } = after
      await sql`update webhook set failing_since = ${failingSince} where id = ${webhookId}`.execute(
        trx,
      )
    }
    if (before.active === 1 && after.disabledCode !== null) {
      const { disabledCode: code } = after
      const reason = DISABLED_REASONS[code]
      await switchOff(trx, { webhookId, code, reason, now })
      await enterDisabled(trx, { webhookId, accountId: before.accountId, reason, now })
    }
  }
}

/** A URL that was changed meanwhile says nothing about the one that has taken its place. */
const isWhereItIs = ({ attempt, delivery }: RecordedAttempt) => attempt.url === delivery.url

/** What attempts at one webhook make of it, one after the other. */
function deliveriesOf(made: readonly RecordedAttempt[], now: number) {
  let failingSince = made[0]?.delivery.failingSince ?? null
  let disabledCode: DisabledCode | null = null
  for (const { attempt } of made) {
    // Another attempt succeeded since this one was judged: the webhook has not failed for long.
    const isStale = failingSince === null || failingSince > attempt.startedAt
    if (attempt.statusCode === GONE || !isStale) disabledCode ??= attempt.disabledCode
    failingSince = attempt.next.state === 'delivered' ? null : (failingSince ?? now)
  }
  return { failingSince, disabledCode }
}

const switchOff = (
  trx: Transaction<Schema>,
  o: {
    readonly webhookId: string
    readonly code: DisabledCode
    readonly reason: string
    readonly now: number
  },
) =>
  trx
    .updateTable('webhook')
    .set({ active: 0, disabled_reason: o.reason, disabled_code: o.code, updated_at: o.now })
    .where('id', '=', o.webhookId)
    .execute()
