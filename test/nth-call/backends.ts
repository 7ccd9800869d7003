import { copyFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { inject } from 'vitest'
import { DEFAULT_TIMINGS, type Timings } from '../../src/compose/timings.ts'
import { type Clock, HOUR, MINUTE, SECOND, systemClock } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { tempSqlite } from '../support/database.ts'
import { FAST_TIMINGS } from '../support/fast-timings.ts'
import { type Calls, runToEnd } from '../support/nth-call.ts'
import { type CallsOf, watchPostgres, watchSqlite } from '../support/nth-statement.ts'
import { createPostgres } from '../support/postgres-pool.ts'
import { ask } from '../support/postgres-server.ts'

export type Row = Readonly<Record<string, unknown>>

/** A database for each run, and the clock of the run. */
export type Backend = {
  readonly timings: Timings
  /** Whether several services may use a database at the same time. */
  readonly isShared: boolean
  watch(callsOf: CallsOf): void
  /** Creates an empty database in a folder and returns its URL. */
  create(home: string): Promise<string>
  copy(origin: string, home: string): Promise<string>
  drop(url: string): Promise<void>
  /** Reads rows. The statement is not counted. */
  read(url: string, text: string): Promise<readonly Row[]>
  /** `startMs`, epoch ms, is the time of a fake clock. */
  startClock(startMs?: number): RunClock
  /** Returns the name by which the driver knows a database. */
  nameOf(url: string): string
}

export type RunClock = {
  readonly clock: Clock
  /** Lets time pass until the promise settles. */
  run<T>(calls: Calls, work: Promise<T>): Promise<T>
  /** Interval at which a test looks whether all work is done. */
  readonly pollMs: number
  /** The longest time without a change: a webhook is retried after a minute, of the fake clock. */
  readonly restMaxMs: number
}

const fileOf = (url: string) => url.replace(/^sqlite:/, '')
const sqliteIn = (home: string) => `sqlite:${join(home, 'ev.sqlite')}`

const nameOf = (url: string) => new URL(url).pathname.slice(1)

/** SQLite works in the process, so the clock can be a fake one. */
export const sqlite: Backend = {
  timings: DEFAULT_TIMINGS,
  isShared: false,
  watch: watchSqlite,
  nameOf: fileOf,
  create: async home => tempSqlite(fileOf(sqliteIn(home))),
  async copy(origin, home) {
    copyFileSync(fileOf(origin), fileOf(sqliteIn(home)))
    return sqliteIn(home)
  },
  drop: async () => {},
  async read(url, text) {
    const database = new Sqlite(fileOf(url), { readonly: true })
    const rows = database.prepare(text).all() as Row[]
    database.close()
    return rows
  },
  startClock(startMs) {
    const clock = fakeClock(startMs)
    return {
      clock,
      run: (calls, work) => runToEnd(clock, calls, work),
      pollMs: SECOND,
      restMaxMs: 2 * HOUR,
    }
  },
}

/** Members of a cluster have the clock of their server. */
export const postgres: Backend = {
  timings: {
    ...DEFAULT_TIMINGS,
    pool: FAST_TIMINGS.pool,
    deliveries: { ...DEFAULT_TIMINGS.deliveries, retryMs: 40, failureBackoffMs: 100, graceMs: 100 },
    worker: {
      ...DEFAULT_TIMINGS.worker,
      retryMs: 40,
      rejoinMs: 40,
      claimPollMs: 200,
      roundMs: 100,
    },
    queue: { ...DEFAULT_TIMINGS.queue, retryMs: 40, beatMs: 200 },
  },
  isShared: true,
  watch: watchPostgres,
  nameOf,
  create: createPostgres,
  async copy(origin, home) {
    const name = `ev_run_${basename(home)}_${process.pid}_${process.hrtime.bigint()}`
    const server = inject('postgres')
    await ask(`${server}postgres`, `create database ${name} template ${nameOf(origin)}`)
    return `${server}${name}`
  },
  async drop(url) {
    await ask(`${inject('postgres')}postgres`, `drop database ${nameOf(url)} with (force)`)
  },
  read: (url, text) => ask(url, text),
  startClock: () => ({ clock: systemClock, run: (_, work) => work, pollMs: 20, restMaxMs: MINUTE }),
}
