import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { runEv } from '../support/ev-process.ts'
import { startChaosService } from './service.ts'

/** Each round makes a backup and runs VACUUM. */
const ROUNDS = 5

test('backups and VACUUM during load lose no data, and each backup contains what was acknowledged before', async () => {
  const chaos = await startChaosService()
  const workload = chaos.startWorkload()
  await workload.everyKind()
  for (let round = 0; round < ROUNDS; round++) {
    const { singles, batches } = workload.acknowledged
    const before = { singles: [...singles.keys()], batches: [...batches.keys()] }
    const file = join(chaos.home, `copy${round}.sqlite`)
    const result = await runEv(['backup', file, '--data-dir', chaos.dataDir], { home: chaos.home })
    expect(result.code, result.stderr).toBe(0)
    const copy = new Sqlite(file, { readonly: true })
    const has = (of: string, value: string) =>
      copy.prepare(`select count(*) from ${of} = ?`).pluck().get(value) === 1
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
    const missing = [
      ...before.singles.filter(email => !has('verification where email', email)),
      ...before.batches.filter(id => !has('job where id', id)),
    ]
    expect(missing).toEqual([])
    copy.close()

    const live = new Sqlite(join(chaos.dataDir, 'ev.sqlite'), { timeout: LOCK_WAIT_MS })
    live.exec('vacuum')
    live.close()
    await workload.next()
  }
  await workload.stop()
  // A request that waits for a lock is delayed, not rejected.
  expect([...workload.refusals.keys()].filter(status => status !== 409)).toEqual([])
  await chaos.expectLedger(workload)
})

const LOCK_WAIT_MS = 30_000
