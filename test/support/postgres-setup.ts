import type { TestProject } from 'vitest/node'
import { systemClock } from '../../src/base/clock.ts'
import { openDatabase } from '../../src/store/database.ts'
import { startPostgres } from './postgres-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of a PostgreSQL server, without a database at its end. */
    postgres: string
  }
}

/** Name of a database whose tables are made already: others are copies of it. */
export const TEMPLATE = 'ev_template'

/** One server for all test files of a run; each test has a database of its own in it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres()
  const database = await openDatabase(await server.create(TEMPLATE), systemClock)
  await database.close()
  project.provide('postgres', server.url(''))
  return () => server.stop()
}
