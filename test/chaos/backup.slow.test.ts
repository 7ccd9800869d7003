import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { runEv } from '../support/ev-process.ts'
import { chaosService } from './service.ts'

/** Copies and compactions, one after the other. */
const ROUNDS = 5

test('backups and VACUUM beside a busy service take nothing from it, and each copy has what was acknowledged before', async () => {
  const chaos = await chaosService()
  const workload = chaos.startWorkload()
  await workload.everyKind()
  for (let round = 0; round < ROUNDS; round++) {
    const { singles, batches } = workload.acknowledged
    const before = { singles: [...singles.keys()], batches: [...batches.keys()] }
    const file = join(chaos.home, `copy${round}.sqlite`)
    const ran = await runEv(['backup', file, '--data-dir', chaos.dataDir], { home: chaos.home })
    expect(ran.code, ran.stderr).toBe(0)
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
  // Whoever waits for a lock is answered late, not refused.
  expect([...workload.refusals.keys()].filter(status => status !== 409)).toEqual([])
  await chaos.expectLedger(workload)
})

const LOCK_WAIT_MS = 30_000
