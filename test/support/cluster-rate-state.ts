import { onTestFinished } from 'vitest'
import { deregister, register } from '../../src/cluster/members.ts'
import {
  openSharedRates,
  type SharedRates,
} from '../../src/cluster/rate-control/rate-coordinator.ts'
import type { StoredRate } from '../../src/cluster/rate-control/stored-state.ts'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { RateController } from '../../src/engine/rate-control/controller.ts'
import type { RateLimits } from '../../src/engine/rate-control/limit-table.ts'
import type { RecipientOutcome } from '../../src/engine/smtp/classify-reply.ts'
import { releaseClaims } from '../../src/jobs/member-claims.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { tempPostgres } from './database.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { waitUntil } from './wait.ts'

export const ROW: RateLimits = {
  sessionsMax: 2,
  recipientsPerSession: 20,
  recipientsPerTransaction: 20,
  sessionsPerSecond: 500,
  unknownStreakMax: 20,
}

export const REFUSAL: RecipientOutcome = {
  ...{ kind: 'blocked', why: 'blocklist', stage: 'greeting' },
  // What servers say is foreign; a zero byte has no place in a text of PostgreSQL.
  reply: { code: 554, enhanced: null, text: 'listed \0 "refusal":null \u{10fffe}1' },
}

export const never = new AbortController().signal

/** A process of the cluster, as far as paces go: with connections of its own. */
export type Process = {
  readonly url: string
  readonly database: Database
  readonly paces: SharedRates
  readonly pace: (operator?: string, row?: Partial<RateLimits>, egress?: string) => RateController
  /** Joins anew under another ID, as who was buried does. */
  join(id: string): Promise<void>
  /** Resolves when it has looked `times` more times for what others changed. */
  looked(times: number): Promise<void>
  /** Somebody buries it; it does not know. */
  die(): Promise<void>
}

/** Processes that share an empty database. */
export async function processes(count: number, given?: string, prefix = 'm'): Promise<Several> {
  const url = given ?? (await tempPostgres())
  const all = Array.from({ length: count }, (_, n) => process(url, `${prefix}${n}`))
  return (await Promise.all(all)) as Process[] as Several
}

/** As many as were asked for: no test asks for fewer than it names. */
type Several = Process[] & { readonly 0: Process; readonly 1: Process }

async function process(url: string, first: string): Promise<Process> {
  const { pollMs, pollSoonMs } = FAST_TIMINGS.rates
  let looks = 0
  const after: Clock['after'] = (delayMs, callback) =>
    systemClock.after(delayMs, () => {
      // A look sleeps for one of these.
      if (delayMs === pollMs || delayMs === pollSoonMs) looks++
      callback()
    })
  const database = await openDatabase(url, { ...systemClock, after })
  let member = first
  const join = async (id: string) => {
    await register(database, { id, role: 'worker', name: id, version: '1', egresses: [] })
    member = id
  }
  await join(first)
  const paces = openSharedRates({
    ...{ database, log: silentLog, member: () => member, timings: FAST_TIMINGS.rates },
  })
  onTestFinished(async () => {
    await paces.close()
    await database.close()
  })
  return {
    ...{ url, database, paces, join },
    async looked(times) {
      const wanted = looks + times + 1
      await waitUntil(() => looks >= wanted)
    },
    die: () => deregister(database, member, releaseClaims),
    pace(operator = 'mx.test', row = {}, egress = 'a') {
      const whole = { ...ROW, ...row }
      return new RateController(whole, systemClock, paces.open({ operator, egress }, whole))
    },
  }
}

export const pause = (ms: number) => new Promise(resolve => systemClock.after(ms, () => resolve(0)))

/** What is stored of a pace; null: nothing. */
export async function storedOf({ database }: Process, operator = 'mx.test', egress = 'a') {
  const row = await database.db
    .selectFrom('pace')
    .select('state')
    .where('operator', '=', operator)
    .where('egress', '=', egress)
    .executeTakeFirst()
  return row === undefined ? null : (JSON.parse(row.state) as StoredRate)
}

/** Resolves when nobody holds a connection any more. */
export const untilFree = (one: Process) =>
  waitUntil(async () => Object.keys((await storedOf(one))?.held ?? {}).length === 0)

/** The permit of a start that must have one. */
export async function permitOf(start: ReturnType<RateController['start']>) {
  const told = await start
  if ('permit' in told) return told.permit
  throw new Error(`no permit: ${JSON.stringify(told)}`)
}
