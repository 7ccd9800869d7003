import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { yieldToEventLoop } from '../../src/platform/clock.ts'
import { countOpenDeliveries, recoverDeliveries } from '../../src/webhooks/delivery-store.ts'
import { tempDatabase } from '../support/database.ts'
import { addWebhook } from '../support/webhook-rows.ts'

test('recovery of many runs in steps that do not block the event loop', async () => {
  const database = await tempDatabase()
  await addWebhook(database)
  await sql`
    insert into delivery (id, event_id, webhook_id, kind, state, attempt, due_at, created_at)
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500)
    select 'dlv_' || i, 'evt_' || i, 'wh_a', 'batch.completed', 'failed', 6, 0, i from n`.execute(
    database.db,
  )
  let turns = 0
  const recovering = write(database, async trx => {
    void yieldToEventLoop().then(() => turns++)
    return recoverDeliveries(trx, 'wh_a', { since: 101, now: 500 })
  })
  expect(await recovering).toBe(2_400)
  expect(turns).toBe(1)
  expect(await countOpenDeliveries(database)).toBe(2_400)
})
