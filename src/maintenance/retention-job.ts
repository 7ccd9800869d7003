import { sql } from 'kysely'
import { serverNow } from '../cluster/members.ts'
import { type Database, writeAsyncCommit } from '../db/database.ts'
import { deleteJobsBefore } from '../jobs/delete-job.ts'
import { deleteLoadingJobs } from '../jobs/import/item-import.ts'
import { type Clock, DAY, HOUR } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import { expire, retentions, SANDBOX_KEPT_MS } from './retention.ts'

export type JanitorDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly dataDir: string
  readonly keepResultsMs: number
  readonly keepHistoryMs: number
  /** How often; an hour when left out. */
  readonly everyMs?: number
}

const EVERY_MS = HOUR
/** A list that is being stored for longer never will be. */
const LOADING_MS_MAX = HOUR

/** Removes, every hour and at the start, what was kept long enough, as long as the clock can be trusted. */
export function startJanitor(deps: JanitorDeps): Loop {
  const { clock, log, everyMs = EVERY_MS } = deps
  const clockCheck = new ClockCheck(deps)
  return startLoop({
    ...{ name: 'retention run', everyMs, clock, log },
    async run(signal) {
      if (await clockCheck.isTrusted()) await cleanUp(deps, signal)
    },
  })
}

async function cleanUp(deps: JanitorDeps, signal: AbortSignal): Promise<void> {
  const { database, clock, log, dataDir, keepResultsMs, keepHistoryMs } = deps
  const now = clock.now()
  const sandboxBefore = now - SANDBOX_KEPT_MS
  const jobs = await deleteJobsBefore(database, dataDir, now - keepResultsMs, sandboxBefore)
  const halves = await deleteLoadingJobs(database, now - LOADING_MS_MAX)
  const removed: Record<string, number> = { jobs: jobs.length + halves }
  for (const old of retentions(now, keepHistoryMs)) {
    removed[old.name] = await expire(database, old, signal)
  }
  const all = Object.values(removed).reduce((sum, count) => sum + count, 0)
  if (all > 0) log.info('what is old was removed', removed)
}

/** More than any clock drifts or is corrected by; a machine may also have been off for longer. */
const JUMP_MS = DAY
/** A clock that jumped is believed when it has run on evenly for so long: who set it wrong has had time to notice. */
const EVEN_MS = DAY
/** How far two readings of one clock may differ from the monotonic clock to count as even. */
const EVEN_WITHIN_MS = HOUR

type ClockCheckDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

/**
 * Whether the wall clock may be trusted with deleting what is old. One that is more than a day ahead of what was last
 * seen, and of the monotonic clock since, is trusted only when the clock of the database server agrees, or after it has
 * run on evenly for a day.
 */
export class ClockCheck {
  readonly #deps: ClockCheckDeps
  #seen: { readonly at: number; readonly ticks: number } | null = null
  #suspicion: { readonly ticks: number; readonly offset: number } | null = null

  constructor(deps: ClockCheckDeps) {
    this.#deps = deps
  }

  async isTrusted(): Promise<boolean> {
    const { database, clock, log } = this.#deps
    const [now, ticks] = [clock.now(), clock.monotonicNow()]
    const expected = await this.#expected(now, ticks)
    if (now - expected <= JUMP_MS || (await this.#isConfirmed(now, ticks))) {
      this.#suspicion = null
      // A clock that was set back does not make the right time a jump later on.
      this.#seen = { at: Math.max(now, expected), ticks }
      await keepSeenClock(database, this.#seen.at)
      return true
    }
    const offset = now - ticks
    if (this.#suspicion === null || !isEven(this.#suspicion.offset, offset)) {
      this.#suspicion = { ticks, offset }
      log.warn(JUMPED, { now: isoOf(now), expected: isoOf(expected) })
    }
    return false
  }

  /** What the clock should say: as it was last seen, and the time since. */
  async #expected(now: number, ticks: number): Promise<number> {
    if (this.#seen !== null) return this.#seen.at + (ticks - this.#seen.ticks)
    return (await readSeenClock(this.#deps.database)) ?? now
  }

  async #isConfirmed(now: number, ticks: number): Promise<boolean> {
    const { database } = this.#deps
    if (database.dialect === 'postgres') {
      return Math.abs((await serverNow(database)) - now) <= JUMP_MS
    }
    const suspicion = this.#suspicion
    if (suspicion === null || !isEven(suspicion.offset, now - ticks)) return false
    return ticks - suspicion.ticks >= EVEN_MS
  }
}

const isEven = (one: number, other: number) => Math.abs(one - other) <= EVEN_WITHIN_MS
const isoOf = (time: number) => new Date(time).toISOString()

const JUMPED =
  'The clock of this machine is more than a day ahead of what was last seen, so nothing is deleted by its age. ' +
  'Check the clock; if it is right, deletion goes on by itself after a day.'

/** In the table `setting`. */
const NAME = 'clock-seen-at'

/** The latest wall-clock time at which retention was sure of the clock, epoch ms; null: none is kept. */
async function readSeenClock({ reader }: Database): Promise<number | null> {
  const row = await reader
    .selectFrom('setting')
    .select('value')
    .where('name', '=', NAME)
    .executeTakeFirst()
  return row === undefined ? null : Number(row.value)
}

async function keepSeenClock(database: Database, at: number): Promise<void> {
  await writeAsyncCommit(database, db =>
    sql`insert into setting (name, value) values (${NAME}, ${String(at)})
      on conflict (name) do update set value = excluded.value`.execute(db),
  )
}
