import { sql } from 'kysely'
import { SECOND } from '../platform/clock.ts'
import { formatDuration } from '../platform/format.ts'
import { type Log, type LogEvent, writeLog } from '../platform/log.ts'
import { type Loop, loopFailure, startLoop } from '../platform/loop.ts'
import { type Database, writeAsyncCommit } from './database.ts'
import { readClock, STEADY_CLOCK, type StoredClock } from './steady-clock.ts'

export const CLOCK_CHECK_FAILED = loopFailure('clock check failed')

export const CLOCK_SET = {
  level: 'warn',
  message: 'the clock was set …; what waits is still due after its remaining time',
  fields: ['by'],
} as const satisfies LogEvent

/** A jump does no harm until it is stored, which other processes and the next start need. */
const CHECK_INTERVAL_MS = 10 * SECOND
/**
 * If the clock was set back before the next start, whatever waits is due later by the time since it
 * was stored last.
 */
const STORE_INTERVAL_MS = 10 * SECOND

/** Keeps the steady clock of a database while the process runs. */
export function startClockSync(database: Database, log: Log): Loop {
  return startLoop({
    failed: CLOCK_CHECK_FAILED,
    everyMs: CHECK_INTERVAL_MS,
    clock: database.clock,
    log,
    async run() {
      const jumpMs = await synchronizeClock(database)
      if (jumpMs === 0) return
      const direction = jumpMs > 0 ? 'ahead' : 'back'
      writeLog(log, CLOCK_SET, { by: formatDuration(Math.abs(jumpMs)) }, direction)
    },
  })
}

/**
 * Compares the steady clock with its reference and stores it. Returns by how much the reference was
 * set ahead, ms; negative if it was set back, and 0 if it did not jump.
 */
export async function synchronizeClock(database: Database): Promise<number> {
  const { steadyClock } = database
  steadyClock.addSuspension()
  const since = steadyClock.now()
  const reading = await readClock(database)
  const { aheadMs, jumpMs } = steadyClock.compare(reading, since)
  const storedForMs = steadyClock.now() - (reading.stored?.at ?? 0)
  if (jumpMs !== 0 || storedForMs >= STORE_INTERVAL_MS) {
    // If another process was first, the next call sees what it has stored.
    if (!(await storeClock(database, reading.stored, aheadMs))) return 0
  }
  steadyClock.setAhead(aheadMs)
  return jumpMs
}

/** Returns false if it has changed since it was read. */
async function storeClock(
  database: Database,
  before: StoredClock | null,
  aheadMs: number,
): Promise<boolean> {
  const value = JSON.stringify({ aheadMs, at: database.steadyClock.now() })
  const { numAffectedRows } = await writeAsyncCommit(database, db =>
    before === null
      ? sql`insert into setting (name, value) values (${STEADY_CLOCK}, ${value})
          on conflict (name) do nothing`.execute(db)
      : sql`update setting set value = ${value}
          where name = ${STEADY_CLOCK} and value = ${before.text}`.execute(db),
  )
  return numAffectedRows === 1n
}
