import { type RawBuilder, sql } from 'kysely'
import { type Database, write } from '../db/database.ts'
import { greatest, least } from '../db/sql-dialect.ts'
import { HOUR } from '../platform/clock.ts'
import { WAIT_MAX_MS } from './delivery-state.ts'

type ClockShift = {
  /** Current time, epoch ms. */
  readonly now: number
  /** How far the clock was just set back; 0 if that was not observed. */
  readonly byMs: number
}

/**
 * Moves due times after the wall clock was set back: a delivery that was due at once would
 * otherwise wait until the old time comes round. If `byMs` is 0, only times are moved that are
 * further ahead than any wait.
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
      update notice set due_at = ${atMost('due_at', soon)}, sent_at = ${atMost('sent_at', present)}
      where due_at > ${soon} or sent_at > ${present}`.execute(trx)
    await sql`update webhook set failing_since = ${now} where failing_since > ${now}`.execute(trx)
  })
}

/** PostgreSQL cannot infer the type of the parameter here. */
const number = (value: number) => sql<number>`cast(${value} as bigint)`

/** Null stays null. The minimum functions of the two databases treat null differently. */
const atMost = (column: string, time: RawBuilder<number>) =>
  sql`case when ${sql.ref(column)} > ${time} then ${time} else ${sql.ref(column)} end`

/**
 * The first attempt of a cycle is always due at once. The times are literals: for a parameter
 * PostgreSQL plans as if many rows matched, and scans all of them to find the first.
 */
const isAhead = ({ now, byMs }: ClockShift): RawBuilder<boolean> =>
  sql<boolean>`state in ('pending', 'retry_scheduled') and due_at > ${sql.lit(now)}
    and (state = 'pending' or due_at > ${sql.lit(byMs > 0 ? now : now + WAIT_MAX_MS)})`
