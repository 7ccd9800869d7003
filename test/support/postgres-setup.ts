import type { TestProject } from 'vitest/node'
import { openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { startPostgres } from './postgres-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the PostgreSQL server of this run, up to the name of a database. */
    postgres: string
  }
}

/** Name of the template database with all tables. */
export const TEMPLATE = 'ev_template'

/**
 * Starts one PostgreSQL server for all files of a run. Two projects share it: the first setup
 * starts it, the last teardown stops it.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared.users++
  shared.server ??= startWithTemplate()
  const server = await shared.server
  project.provide('postgres', server.url(''))
  return async () => {
    if (--shared.users > 0) return
    shared.server = null
    await server.stop()
  }
}

async function startWithTemplate() {
  const server = await startPostgres()
  const database = await openDatabase(await server.create(TEMPLATE), systemClock)
  await database.close()
  return server
}

type Shared = { users: number; server: ReturnType<typeof startWithTemplate> | null }

/** Each project loads its own instance of this module, so shared state is stored in the process. */
const KEY = Symbol.for('ev.test.postgres')
const processWide = globalThis as typeof globalThis & { [KEY]?: Shared }
processWide[KEY] ??= { users: 0, server: null }
const shared = processWide[KEY]
