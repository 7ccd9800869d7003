import { join } from 'node:path'
import type { Database } from '../../src/db/database.ts'
import { emptyFolder, type RunningCli, runEv, startEv, withRelativePaths } from './cli.ts'
import { openServer, tempPostgres } from './postgres-pool.ts'

/**
 * The password in every URL of these tests, which must never be printed. The test server accepts
 * any password.
 */
export const CANARY = 'c4nary-s3cret'

/** A secret of sufficient length. */
export const SECRET = 'a'.repeat(32)

export type Cluster = {
  /** The database URL with a password. */
  readonly url: string
  readonly home: string
  /** Runs a command of `ev` on the database to its end. */
  run(
    args: readonly string[],
    environment?: Readonly<Record<string, string>>,
  ): ReturnType<typeof runEv>
  /** Starts `ev serve` with a data directory of this name. */
  serve(
    name: string,
    args?: readonly string[],
    environment?: Readonly<Record<string, string>>,
  ): RunningCli
  worker(args?: readonly string[], environment?: Readonly<Record<string, string>>): RunningCli
  /** Runs `work` with a connection to the database, and closes it. */
  inside<T>(work: (database: Database) => Promise<T>): Promise<T>
}

/** Creates an empty PostgreSQL database and a home directory for all processes. */
export async function cluster(): Promise<Cluster> {
  const plainUrl = await tempPostgres()
  const url = plainUrl.replace('//ev@', `//ev:${CANARY}@`)
  const home = emptyFolder()
  const environment = { EV_DATABASE: url, EV_SECRET: SECRET, EV_HELO: 'probe.example.com' }
  const options = (own = {}) => ({ home, environment: { ...environment, ...own } })
  return {
    url,
    home,
    run: async (args, own) => withRelativePaths(await runEv(args, options(own)), home),
    serve: (name, args = [], own = {}) =>
      startEv(['serve', '--data-dir', name, '--listen', '127.0.0.1:0', ...args], options(own)),
    worker: (args = [], own = {}) =>
      startEv(['worker', '--data-dir', 'worker', ...args], options(own)),
    async inside(work) {
      const database = await openServer(plainUrl)
      try {
        return await work(database)
      } finally {
        await database.close()
      }
    },
  }
}

/** Returns the URL of the SQLite database in a data directory. */
export const fileOf = (home: string, name: string) => `sqlite:${join(home, name, 'ev.sqlite')}`
