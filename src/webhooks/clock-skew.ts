import { type RawBuilder, sql } from 'kysely'
import { type Database, write } from '../db/database.ts'
import { greatest, least } from '../db/sql-dialect.ts'
import { HOUR } from '../platform/clock.ts'
import { WAIT_MAX_MS } from './delivery-state.ts'

type ClockShift = {
  /** The wall clock as it is now, epoch ms. */
  readonly now: number
  /** By how much it was set back just now; 0: nobody saw it. */
  readonly byMs: number
}

/**
 * Moves what is to happen along with a wall clock that was set back: what was due at once by the time before would else
 * wait until that time comes again. Without `byMs` it is known by times that no wait of ours can have.
 */
export async function shiftAfterClockSkew(
  database: Database,
  { now, byMs }: ClockShift,
): Promise<void> {
  const ahead = isAhead({ now, byMs })
  const { rows } = await sql<{ isNeeded: number }>`
    select case when exists (select 1 from delivery where ${ahead})
      or exists (select 1 from notice where due_at > ${now + HOUR} or sent_at > ${now})
      or exists (select 1 from webhook where failing_since > ${now})
      then 1 else 0 end as "isNeeded"`.execute(database.reader)
  if (rows[0]?.isNeeded !== 1) return
  await write(database, async trx => {
    const [present, soon] = [number(now), number(now + HOUR)]
    const moved = least(trx, sql`due_at - ${byMs}`, number(now + WAIT_MAX_MS))
    await sql`
      update delivery
      set due_at = case state when 'pending' then ${present} else ${greatest(trx, present, moved)} end
      where ${ahead}`.execute(trx)
    await sql`
      update notice set due_at = ${earlier('due_at', soon)}, sent_at = ${earlier('sent_at', present)}
      where due_at > ${soon} or sent_at > ${present}`.execute(trx)
    await sql`update webhook set failing_since = ${now} where failing_since > ${now}`.execute(trx)
  })
}

/** PostgreSQL asks of what type a number is where nothing beside it says so. */
const number = (value: number) => sql<number>`cast(${value} as bigint)`

/** What is null stays null, which the two databases see differently in their functions. */
const earlier = (column: string, time: RawBuilder<number>) =>
  sql`case when ${sql.ref(column)} > ${time} then ${time} else ${sql.ref(column)} end`

/**
 * The first attempt of a round is always due at once. The times are literals: a plan of PostgreSQL for any time takes
 * it that many are ahead, and looks through all to find the first.
 */
const isAhead = ({ now, byMs }: ClockShift): RawBuilder<boolean> =>
  sql<boolean>`state in ('pending', 'retry_scheduled') and due_at > ${sql.lit(now)}
    and (state = 'pending' or due_at > ${sql.lit(byMs > 0 ? now : now + WAIT_MAX_MS)})`
