import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createJob } from '../../src/jobs/job-store.ts'
import { tempDatabase, tempFolder } from '../support/database.ts'

describe('a database', () => {
  test('opened by several processes at once is migrated once', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    const children = Array.from({ length: 4 }, () =>
      spawn(process.execPath, ['--input-type=module', '-e', OPENER, SRC, file], {
        stdio: ['ignore', 'ignore', 'pipe'],
      }),
    )
    const faults = await Promise.all(
      children.map(async child => {
        let output = ''
        child.stderr.on('data', text => {
          output += text
        })
        const [code] = await once(child, 'close')
        return code === 0 ? '' : output
      }),
    )
    expect(faults).toEqual(['', '', '', ''])
  })

  test('whose migration was killed is migrated by the next process', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    for (let killed = 0; killed < 3; killed++) {
      const args = ['--input-type=module', '-e', OPENER, SRC, file]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      const ended = once(child, 'close')
      await once(child.stdout, 'data')
      child.kill('SIGKILL')
      await ended
    }
    const database = await tempDatabase({ file })
    await createJob(database, { id: 'job_a', sourceKey: 'job_a', source: '{}' })
    const { rows } = await sql`pragma quick_check`.execute(database.db)
    expect(rows).toEqual([{ quick_check: 'ok' }])
  })
})

const SRC = join(import.meta.dirname, '../../src')
const OPENER = `
  const { openDatabase } = await import(process.argv[1] + '/db/database.ts')
  const { systemClock } = await import(process.argv[1] + '/platform/clock.ts')
  console.log('begun')
  await (await openDatabase('sqlite:' + process.argv[2], systemClock)).close()`
