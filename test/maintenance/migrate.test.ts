import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { acquireLock, jobLock, SERVE_LOCK } from '../../src/db/file-lock.ts'
import { migrate } from '../../src/maintenance/migrate.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { tempFolder } from '../support/database.ts'

/** No server listens there: refusals happen before it is contacted. */
const TO = 'postgres://ev@127.0.0.1:1/ev'

function migrateFrom(dataDir: string) {
  const place = { secret: null, secretFile: null, dataDir }
  const from = `sqlite:${join(dataDir, 'ev.sqlite')}`
  const input = { from, to: TO, place, onProgress: () => {} }
  return migrate({ clock: systemClock, random: systemRandom }, input)
}

test('a missing database is refused', async () => {
  const dataDir = tempFolder()
  const facts = { file: join(dataDir, 'ev.sqlite'), task: 'migrate' }
  await expect(migrateFrom(dataDir)).rejects.toThrow(
    expect.objectContaining({ code: 'database_absent', facts }),
  )
})

test.each([
  ['serve', SERVE_LOCK],
  ['bulk', jobLock(null, '', 'a list')[1]],
] as const)(
  'nothing is copied while ev %s is running, and the lock is released',
  async (command, name) => {
    const dataDir = tempFolder()
    const database = await openDatabase(`sqlite:${join(dataDir, 'ev.sqlite')}`, systemClock)
    await database.close()
    const atWork = acquireLock(dataDir, name)
    await expect(migrateFrom(dataDir)).rejects.toThrow(
      expect.objectContaining({ code: 'data_dir_in_use', facts: { dataDir, command } }),
    )
    atWork?.release()
    const free = acquireLock(dataDir, SERVE_LOCK)
    expect(free).not.toBeNull()
    free?.release()
  },
)

test('an unreachable target names the flag that sets it', async () => {
  const dataDir = tempFolder()
  const database = await openDatabase(`sqlite:${join(dataDir, 'ev.sqlite')}`, systemClock)
  await database.close()
  await expect(migrateFrom(dataDir)).rejects.toThrow(
    expect.objectContaining({
      code: 'io',
      message: expect.stringMatching(/connection refused.* or choose another one with --to\.$/),
    }),
  )
})
