import { onTestFinished } from 'vitest'
import { deregister, register } from '../../src/cluster/members.ts'
import {
  openSharedRates,
  type SharedRates,
} from '../../src/cluster/rate-control/rate-coordinator.ts'
import type { StoredRate } from '../../src/cluster/rate-control/stored-state.ts'
import type { Database } from '../../src/db/database.ts'
import { RateController } from '../../src/engine/rate-control/controller.ts'
import type { RateLimits } from '../../src/engine/rate-control/limit-table.ts'
import type { RecipientOutcome } from '../../src/engine/smtp/classify-reply.ts'
import { releaseClaims } from '../../src/jobs/member-claims.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { openServer, tempPostgres } from './postgres-pool.ts'
import { waitUntil } from './wait.ts'

export const ROW: RateLimits = {
  sessionsMax: 2,
  recipientsPerSession: 20,
  recipientsPerTransaction: 20,
  sessionsPerSecond: 500,
  unknownStreakMax: 20,
}

export const REFUSAL: RecipientOutcome = {
  kind: 'blocked',
  why: 'blocklist',
  stage: 'greeting',
  // Replies are untrusted, and PostgreSQL cannot store a NUL in text.
  reply: { code: 554, enhanced: null, text: 'listed \0 "refusal":null \u{10fffe}1' },
}

export const never = new AbortController().signal

/** The rate control of a cluster process, with its own database connections. */
export type Process = {
  readonly url: string
  readonly database: Database
  readonly paces: SharedRates
  readonly pace: (operator?: string, row?: Partial<RateLimits>, egress?: string) => RateController
  /** Rejoins under another ID, as an expired member does. */
  join(id: string): Promise<void>
  /** Resolves after it has polled for changes `times` more times. */
  polled(times: number): Promise<void>
  /** Expires the member without its knowledge. */
  expire(): Promise<void>
}

/** Creates processes that share an empty database. */
export async function processes(
  count: number,
  existingUrl?: string,
  prefix = 'm',
): Promise<AtLeastTwo> {
  const url = existingUrl ?? (await tempPostgres())
  const all = Array.from({ length: count }, (_, n) => process(url, `${prefix}${n}`))
  return (await Promise.all(all)) as Process[] as AtLeastTwo
}

/** At least two, as no test uses fewer. */
type AtLeastTwo = Process[] & { readonly 0: Process; readonly 1: Process }

async function process(url: string, first: string): Promise<Process> {
  const { pollMs, pollSoonMs } = FAST_TIMINGS.rates
  let polls = 0
  const after: Clock['after'] = (delayMs, callback) =>
    systemClock.after(delayMs, () => {
      // The polls sleep for one of these intervals.
      if (delayMs === pollMs || delayMs === pollSoonMs) polls++
      callback()
    })
  const database = await openServer(url, { ...systemClock, after })
  let member = first
  const join = async (id: string) => {
    await register(database, { id, role: 'worker', name: id, version: '1', egresses: [] })
    member = id
  }
  await join(first)
  const paces = openSharedRates({
    database,
    log: silentLog,
    member: () => member,
    timings: FAST_TIMINGS.rates,
  })
  onTestFinished(async () => {
    await paces.close()
    await database.close()
  })
  return {
    url,
    database,
    paces,
    join,
    async polled(times) {
      const wanted = polls + times + 1
      await waitUntil(() => polls >= wanted)
    },
    expire: () => deregister(database, member, releaseClaims),
    pace(operator = 'mx.test', row = {}, egress = 'a') {
      const limits = { ...ROW, ...row }
      return new RateController(limits, systemClock, paces.open({ operator, egress }, limits))
    },
  }
}

export const pause = (ms: number) => new Promise(resolve => systemClock.after(ms, () => resolve(0)))

/** Returns the stored rate state, or null if there is none. */
export async function storedOf({ database }: Process, operator = 'mx.test', egress = 'a') {
  const row = await database.db
    .selectFrom('pace')
    .select('state')
    .where('operator', '=', operator)
    .where('egress', '=', egress)
    .executeTakeFirst()
  return row === undefined ? null : (JSON.parse(row.state) as StoredRate)
}

/** Resolves when no process holds a connection. */
export const untilFree = (one: Process) =>
  waitUntil(async () => Object.keys((await storedOf(one))?.held ?? {}).length === 0)

/** Returns the permit of a start; throws if it has none. */
export async function permitOf(start: ReturnType<RateController['start']>) {
  const result = await start
  if ('permit' in result) return result.permit
  throw new Error(`no permit: ${JSON.stringify(result)}`)
}
