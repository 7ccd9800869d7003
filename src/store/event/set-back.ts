import { type RawBuilder, sql } from 'kysely'
import { HOUR } from '../../base/clock.ts'
import { WAIT_MAX_MS } from '../../hook/delivery.ts'
import { type Database, write } from '../database.ts'

type SetBack = {
  /** The wall clock as it is now, epoch ms. */
  readonly now: number
  /** By how much it was set back just now; 0: nobody saw it. */
  readonly byMs: number
}

/**
 * Moves what is to happen along with a wall clock that was set back: what was due at once by the time before would else
 * wait until that time comes again. Without `byMs` it is known by times that no wait of ours can have.
 */
export async function followSetBack(database: Database, { now, byMs }: SetBack): Promise<void> {
  const ahead = isAhead({ now, byMs })
  const { rows } = await sql<{ isNeeded: number }>`
    select exists (select 1 from delivery where ${ahead})
      or exists (select 1 from notice where due_at > ${now + HOUR} or sent_at > ${now})
      or exists (select 1 from webhook where failing_since > ${now}) as "isNeeded"`.execute(
    database.reader,
  )
  if (rows[0]?.isNeeded !== 1) return
  await write(database, async trx => {
    await sql`
      update delivery set due_at = case state when 'pending' then ${now}
        else max(${now}, min(due_at - ${byMs}, ${now + WAIT_MAX_MS})) end
      where ${ahead}`.execute(trx)
    await sql`
      update notice set due_at = min(due_at, ${now + HOUR}), sent_at = min(sent_at, ${now})
      where due_at > ${now + HOUR} or sent_at > ${now}`.execute(trx)
    await sql`update webhook set failing_since = ${now} where failing_since > ${now}`.execute(trx)
  })
}

/** The first attempt of a round is always due at once. */
const isAhead = ({ now, byMs }: SetBack): RawBuilder<boolean> =>
  sql<boolean>`state in ('pending', 'retry_scheduled') and due_at > ${now}
    and (state = 'pending' or due_at > ${byMs > 0 ? now : now + WAIT_MAX_MS})`
