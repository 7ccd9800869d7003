import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { MIGRATIONS } from '../../src/db/migrate.ts'
import { createJob, readJob } from '../../src/jobs/job-store.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { emptyDatabase } from '../support/database.ts'
import { ask } from '../support/postgres-server.ts'

const SRC = join(import.meta.dirname, '../../src')
const OPENER = `
  const { openDatabase } = await import(process.argv[1] + '/db/database.ts')
  const { systemClock } = await import(process.argv[1] + '/platform/clock.ts')
  console.log('begun')
  await (await openDatabase(process.argv[2], systemClock)).close()`

/** A process that opens a database and ends. */
const opener = (url: string) =>
  spawn(process.execPath, ['--input-type=module', '-e', OPENER, SRC, url], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })

const newJob = (id: string) => ({ id, sourceKey: id, source: '{}' })

describe('a PostgreSQL database', () => {
  test('opened by several processes at once is migrated once', async () => {
    const url = await emptyDatabase()
    const faults = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const child = opener(url)
        let output = ''
        child.stderr.on('data', text => {
          output += text
        })
        const [code] = await once(child, 'close')
        return code === 0 ? '' : output
      }),
    )
    expect(faults).toEqual(['', '', '', ''])
    const names = await ask<{ name: string }>(
      url,
      'select name from kysely_migration order by name',
    )
    expect(names.map(({ name }) => name)).toEqual(Object.keys(MIGRATIONS).sort())
  })

  test('whose migration was killed is migrated by the next process', async () => {
    const url = await emptyDatabase()
    for (let killed = 0; killed < 3; killed++) {
      const child = opener(url)
      const ended = once(child, 'close')
      await once(child.stdout, 'data')
      child.kill('SIGKILL')
      await ended
    }
    const database = await openDatabase(url, systemClock)
    onTestFinished(() => database.close())
    await createJob(database, newJob('job_a'))
    expect(await readJob(database, 'job_a')).toMatchObject({ id: 'job_a' })
  })
})
