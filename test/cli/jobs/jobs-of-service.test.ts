import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { reserveCredits } from '../../../src/accounts/credits/credit-store.ts'
import { addHistory } from '../../../src/accounts/credits/history.ts'
import { periodStart } from '../../../src/accounts/plan.ts'
import { type Database, openDatabase, write } from '../../../src/db/database.ts'
import { acquireLock, SERVE_LOCK } from '../../../src/db/file-lock.ts'
import { addItems } from '../../../src/jobs/import/item-import.ts'
import { createJob, findJob } from '../../../src/jobs/job-store.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { queueJob } from '../../support/queue-job.ts'
import { verifyQueued } from '../../support/reverified-job.ts'

const ID = 'job_0123456789abcdef'

/** Stores a list of three rows that was submitted to a service, which is not running. */
async function homeWithJob(): Promise<{ home: string; database: Database }> {
  const home = emptyFolder()
  const database = await openDatabase(`sqlite:${join(home, 'data/ev.sqlite')}`, systemClock)
  const now = systemClock.now()
  await write(database, trx => createAccount(trx, { id: 'acc_1', name: 'Ann', plan: 'free', now }))
  const owner = { accountId: 'acc_1', keyId: 'key_1', type: 'batch', sandbox: false } as const
  await createJob(database, {
    id: ID,
    sourceKey: ID,
    source: SOURCE,
    owner: { ...owner, name: 'March list' },
  })
  const rows = [1, 2, 3].map(position => {
    const text = `a${position}@x.example`
    return { position, text, dedupeKey: text }
  })
  await addItems(database, ID, rows)
  await queueJob(database, ID)
  return { home, database }
}

const SOURCE = JSON.stringify({ metadata: { customer: '42', team: 'a\u001bb' } })

const jobs = (home: string, ...args: readonly string[]) =>
  runEv(['jobs', ...args, '--data-dir', 'data'], { home, offline: true })

describe.concurrent('ev jobs with a job of the service', () => {
  test('shows its account, type and name, and whether the service is running', async () => {
    const { home, database } = await homeWithJob()
    const { stdout } = await jobs(home)
    expect(stdout).toMatch(/stopped .* batch +March list\n$/)
    const [listed] = JSON.parse((await jobs(home, '--json')).stdout)
    expect(listed).toMatchObject({
      job_id: ID,
      type: 'batch',
      name: 'March list',
      account_id: 'acc_1',
      state: 'stopped',
      output: null,
      total: 3,
      metadata: { customer: '42' },
    })
    const shown = (await jobs(home, 'show', ID)).stdout
    expect(shown).toMatch(/state +stopped; the next "ev serve" continues it\n/)
    expect(shown).toMatch(/name +March list\n/)
    expect(shown).toMatch(/metadata +customer=42, team=a\uFFFDb\n/)
    expect(shown).toMatch(/account +Ann\n/)
    const lock = acquireLock(join(home, 'data'), SERVE_LOCK)
    expect(JSON.parse((await jobs(home, '--json')).stdout)).toMatchObject([{ state: 'queued' }])
    lock?.release()
    await database.close()
  })

  test('does not resume it, because the service continues it', async () => {
    const { home, database } = await homeWithJob()
    const { code, stderr } = await jobs(home, 'resume', ID)
    expect({ code, stderr }).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(
        /Only a cancelled or failed job can be resumed\. While "ev serve" runs, it continues the job/,
      ),
    })
    await database.close()
  })

  test('verifies a finished list again, and shows what has changed', async () => {
    const { home, database } = await homeWithJob()
    const refused = await jobs(home, 'reverify', ID)
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('is queued') })
    const valid = 'valid@x.example'
    const as = { 'a1@x.example': valid, 'a2@x.example': 'timeout@x.example', 'a3@x.example': valid }
    await verifyQueued(database, ID, { as })
    const created = await jobs(home, 'reverify', ID, '--only', 'unknown', '--older-than', '30')
    expect(created.stdout).toMatch(
      /^Created job_\w+, which re-verifies 1 of 3 rows of job_0123456789abcdef\. The next "ev serve" starts it\.\n$/,
    )
    const again = /job_\w+/.exec(created.stdout)?.[0] ?? ''
    expect((await jobs(home, 'show', again)).stdout).toMatch(/re-verifies +job_0123456789abcdef/)
    await verifyQueued(database, again, { as: { 'a2@x.example': 'invalid@x.example' } })
    const { stdout } = await jobs(home, 'changes', again)
    expect(stdout).toMatch(/^1 row re-verified; 1 has a different class than in job_/)
    expect(stdout).toMatch(/unknown +undeliverable +1\n/)
    expect(stdout).toMatch(/2 +unknown +undeliverable +rejected_email +a2@x\.example\n/)
    expect(JSON.parse((await jobs(home, 'changes', again, '--json')).stdout)).toMatchObject({
      job_id: again,
      previous_job_id: ID,
      verified: 1,
      changed: 1,
      items: [{ row: 2, before: { class: 'unknown' }, after: { class: 'undeliverable' } }],
    })
    expect((await jobs(home, 'changes', ID)).stdout).toMatch(/is a new list/)
    expect(await jobs(home, 'reverify', again, '--only', 'risky')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('No row of the list matches --only or --older-than'),
    })
    await database.close()
  })

  test('resumes it after a cancellation, and charges its plan', async () => {
    const { home, database } = await homeWithJob()
    await jobs(home, 'cancel', ID)
    expect(await jobs(home, 'resume', ID)).toMatchObject({
      code: 0,
      stderr: '',
      stdout: `Resumed ${ID}: 0 of 3 rows were finished. The next "ev serve" continues it.\n`,
    })
    expect(await findJob(database, ID)).toMatchObject({ state: 'queued', held: 3 })
    await jobs(home, 'cancel', ID)
    const lock = acquireLock(join(home, 'data'), SERVE_LOCK)
    expect((await jobs(home, 'resume', ID)).stdout).toMatch(
      /The service continues it within seconds/,
    )
    lock?.release()
    await jobs(home, 'cancel', ID)
    const period = periodStart(systemClock.now())
    const taken = { accountId: 'acc_1', period, amount: 98, limit: null }
    await write(database, trx => reserveCredits(trx, taken))
    expect(await jobs(home, 'resume', ID)).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(
        /verifications of the Free plan, 2 are left, and this list needs 3\./,
      ),
    })
    expect(await findJob(database, ID)).toMatchObject({ state: 'cancelled' })
    await database.close()
  })

  test('cancels and deletes it', async () => {
    const { home, database } = await homeWithJob()
    const lock = acquireLock(join(home, 'data'), SERVE_LOCK)
    expect((await jobs(home, 'cancel', ID)).stdout).toMatch(
      /^Cancelled .*0 of 3 rows were finished\. The service stops working on it within seconds\./,
    )
    lock?.release()
    expect(await findJob(database, ID)).toMatchObject({ state: 'cancelled' })
    expect((await jobs(home, 'delete', ID, '--yes')).stdout).toMatch(
      /^Deleted .* with its 3 rows\.\n$/,
    )
    expect(await findJob(database, ID)).toBeNull()
    await database.close()
  })

  test('deletes its rows in the history with it', async () => {
    const { home, database } = await homeWithJob()
    const row = (id: string, job_id: string | null) => ({
      id,
      job_id,
      account_id: 'acc_1',
      key_id: 'key_1',
      email: 'a1@x.example',
      sandbox: 0,
      valid: 1,
      deliverable: 1,
      risk_level: 'low',
      reason: 'accepted_email',
      ...({
        class: 'deliverable',
        cached: 0,
        source: 'batch',
        created_at: systemClock.now(),
      } as const),
    })
    await write(database, trx => addHistory(trx, [row('ver_1', ID), row('ver_2', null)]))
    expect((await jobs(home, 'delete', ID, '--yes')).stdout).toMatch(/^Deleted /)
    const left = await database.db.selectFrom('verification').select('id').execute()
    expect(left).toEqual([{ id: 'ver_2' }])
    await database.close()
  })

  test('is not unfinished for ev purge once it is completed', async () => {
    const { home, database } = await homeWithJob()
    const now = systemClock.now()
    await database.db.updateTable('job').set({ state: 'completed', finished_at: now }).execute()
    await database.close()
    const { stdout } = await runEv(['purge', '--data-dir', 'data'], { home, offline: true })
    expect(stdout).toBe('Nothing to delete.\n')
  })
})
