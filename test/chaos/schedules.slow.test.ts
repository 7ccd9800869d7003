import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { DEFAULT_SCHEDULE_TIMINGS } from '../../src/jobs/schedules/run-schedules.ts'
import { DAY, MINUTE } from '../../src/platform/clock.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { xorshift } from '../support/random.ts'
import { hasOpenWork } from './ledger.ts'
import { startChaosService } from './service.ts'
import { expectedReason } from './workload.ts'

/** Kills per run; use EV_KILLS=10 before a release. */
const KILLS = Number(process.env.EV_KILLS ?? 4)
const SEED = Number(process.env.EV_SEED ?? 20_261_127)
const RUNS = 2
const ROWS = 3_000
/** Longest time from the start of the process to a kill at any moment; it may not listen yet. */
const LIFE_MS_MAX = 1_500
const WATCH_MS = 5
/** A run that was being prepared at a kill is prepared again after this time. */
const CLAIM_MS = DEFAULT_SCHEDULE_TIMINGS.claimMs + MINUTE

const CLOCK = join(import.meta.dirname, '../support/jumping-clock.mjs')

const EMAILS = Array.from({ length: ROWS }, (_, n) => {
  const name = n % 11 === 3 ? 'gone' : 'user'
  return `${name}.${n}@d${n % 20}.test`
})

test('a service that is killed repeatedly with -9 creates one job for each due run of a schedule, and each row has one result', {
  timeout: 300_000 + RUNS * KILLS * 10_000,
}, async () => {
  const folder = emptyFolder()
  const file = join(folder, 'clock')
  let aheadMs = 0
  const jump = (ms: number) => {
    aheadMs += ms
    writeFileSync(`${file}.new`, String(aheadMs))
    renameSync(`${file}.new`, file)
  }
  jump(0)
  const environment = { NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_FILE: file }
  const chaos = await startChaosService({ process: { environment } })
  const { dataDir } = chaos
  const client = new EvClient({ apiKey: chaos.key, baseUrl: chaos.service.url })
  const { job_id: listId } = await client.batch(EMAILS)
  await client.waitForJob(listId)
  const { id: scheduleId } = await client.schedules.create({
    job_id: listId,
    every_days: 1,
  })

  const random = xorshift(SEED)
  const killed = { 'at any time': 0, 'while a run is prepared': 0, 'while it is verified': 0 }
  const moments = Object.keys(killed) as (keyof typeof killed)[]
  for (let run = 1; run <= RUNS; run++) {
    jump(DAY)
    // The first process of a run is the one that has finished the previous one.
    await endWithKill()
    for (let kill = 0; kill < KILLS; kill++) {
      chaos.start()
      const moment = moments[kill % moments.length] ?? 'at any time'
      const rows = Math.floor(random() * ROWS)
      if (moment === 'at any time') await setTimeout(random() * LIFE_MS_MAX)
      else
        await until(({ jobs, isClaimed, done }) => {
          const isCreated = jobs.filter(isQueued).length > run
          return moment === 'while a run is prepared'
            ? isClaimed || isCreated
            : isCreated && done > rows
        })
      await endWithKill()
      killed[moment]++
      jump(CLAIM_MS)
    }
    await chaos.start().isUp
    await until(({ jobs }) => jobs.filter(({ state }) => state === 'completed').length > run)
  }
  console.log(`killed ${JSON.stringify(killed)}`)
  await expect.poll(() => hasOpenWork(dataDir), { interval: 100 }).toBe(false)
  const ended = await chaos.service.end('SIGTERM')
  expect(ended.code, ended.stderr).toBe(0)
  expectOneResultEach()

  async function endWithKill() {
    const result = await chaos.service.end('SIGKILL')
    expect(result, result.stderr).toMatchObject({ signal: 'SIGKILL' })
  }

  /** Waits for a state of the file of the service. */
  async function until(isReached: (state: ReturnType<typeof readState>) => boolean) {
    while (!isReached(readState())) await setTimeout(WATCH_MS)
  }

  function readState() {
    const database = open()
    const jobs = database
      .prepare<[], JobRow>('select id, state, total, source from job order by created_at, id')
      .all()
    const isClaimed = database
      .prepare('select claimed_until is not null from schedule')
      .pluck()
      .get()
    const latest = jobs.filter(isQueued).at(-1)?.id ?? ''
    const done = database
      .prepare("select count(*) from item where job_id = ? and state = 'done'")
      .pluck()
      .get(latest)
    database.close()
    return { jobs, isClaimed: isClaimed === 1, done: Number(done) }
  }

  function expectOneResultEach() {
    const { jobs } = readState()
    expect(jobs.map(({ state, total }) => [state, total])).toEqual(
      Array.from({ length: RUNS + 1 }, () => ['completed', ROWS]),
    )
    const sources = jobs.slice(1).map(({ source }) => JSON.parse(source) as object)
    expect(sources).toMatchObject(
      jobs.slice(0, -1).map(({ id }) => ({ previous_job_id: id, schedule_id: scheduleId })),
    )
    const database = open()
    const expected = EMAILS.map(email => ({ email, reason: expectedReason(email) }))
    for (const { id } of jobs) {
      const rows = database.prepare(
        `select text as email, result ->> '$.verdict.reason' as reason from item
        where job_id = ? and state = 'done' order by position`,
      )
      expect(rows.all(id)).toEqual(expected)
      const history = database.prepare(
        'select email, reason from verification where job_id = ? order by email',
      )
      expect(history.all(id)).toEqual(expected.toSorted((a, b) => (a.email < b.email ? -1 : 1)))
    }
    const credits = database.prepare('select sum(used) as used, sum(held) as held from credit')
    expect(credits.get()).toEqual({ used: (RUNS + 1) * ROWS, held: 0 })
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
    database.close()
  }

  function open() {
    return new Sqlite(join(dataDir, 'ev.sqlite'), { readonly: true })
  }
})

type JobRow = {
  readonly id: string
  readonly state: string
  readonly total: number
  readonly source: string
}

/** A job whose rows are not completely stored yet is `loading`. */
const isQueued = ({ state }: JobRow) => state !== 'loading'
