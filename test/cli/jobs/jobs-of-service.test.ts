import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, simulatorFlags } from '../../support/cli.ts'
import { request, startService, verifyList, waitForJob } from '../../support/cli-service.ts'
import { ev, homeWith, newKey, read } from '../../support/cli-webhooks.ts'

const PLANS = {
  five: { requests: 1_000, 'credits-per-day': 5 },
  six: { requests: 1_000, 'credits-per-day': 6 },
  many: { requests: 1_000, 'credits-per-day': 1_000 },
}
const EMAILS = ['ann@good.test', 'bob@good.test', 'cy@good.test']

/** A folder with a completed list of a service, and a re-verification of it that has not begun. */
type Home = { readonly home: string } & Record<'key' | 'done' | 'queued', string>

let made: Home
beforeAll(async () => {
  const home = await homeWith()
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify({ plans: PLANS }))
  await ev(home, 'accounts', 'create', '--name', 'Shop', '--plan', 'many')
  const key = await newKey(home)
  const metadata = { customer: '42', team: 'a\u001bb' }
  const body = { emails: EMAILS, name: 'March list', metadata }
  const done = await serving(home, ['ann'], service => verifyList(service, key, { body }))
  made = { home, key, done, queued: await reverify(home, done) }
})

/** Runs the service with a mail server that has these mailboxes. */
async function serving<T>(
  home: string,
  mailboxes: readonly string[],
  work: (service: Awaited<ReturnType<typeof startService>>) => Promise<T>,
): Promise<T> {
  const simulator = await startSimulator({
    mailboxes,
    domains: { 'good.test': { mx: [[10, 'mx.good.test']] } },
    hosts: { 'mx.good.test': { behavior: 'polite' } },
  })
  const service = await startService(home, simulatorFlags(simulator))
  const result = await work(service)
  await service.end('SIGTERM')
  await simulator.close()
  return result
}

function copyOfHome(): Home {
  const home = emptyFolder()
  cpSync(made.home, home, { recursive: true })
  return { ...made, home }
}

const ALL = ['--only', 'deliverable,undeliverable']

/** Creates a job that verifies all rows of a job again, and returns its ID. */
async function reverify(home: string, job: string): Promise<string> {
  const { stdout, stderr } = await jobs(home, 'reverify', job, ...ALL)
  return /^Created (job_\w+)/.exec(stdout)?.[1] ?? stderr
}

const jobs = (home: string, ...args: readonly string[]) => ev(home, 'jobs', ...args)

describe('ev jobs with a job of the service', () => {
  test('shows its account, type and name, and whether the service is running', async () => {
    const { home, done, queued } = copyOfHome()
    expect((await jobs(home)).stdout).toMatch(/completed .* batch +March list\n$/)
    expect((await read(home, 'jobs'))[1]).toMatchObject({
      job_id: done,
      type: 'batch',
      name: 'March list',
      account_id: expect.stringMatching(/^acc_/),
      state: 'completed',
      output: null,
      total: 3,
      metadata: { customer: '42' },
    })
    const shown = (await jobs(home, 'show', done)).stdout
    expect(shown).toMatch(/name +March list\n/)
    expect(shown).toMatch(/metadata +customer=42, team=a\uFFFDb\n/)
    expect(shown).toMatch(/account +Shop\n/)
    expect((await jobs(home, 'show', queued)).stdout).toMatch(
      /state +stopped; the next "ev serve" continues it\n/,
    )
    const states = async () =>
      (await read(home, 'jobs')).map(({ state }: { state: string }) => state)
    expect(await states()).toEqual(['stopped', 'completed'])
  })

  test('does not resume it, because the service continues it', async () => {
    const { home, queued } = copyOfHome()
    expect(await jobs(home, 'resume', queued)).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(
        /Only a cancelled or failed job can be resumed\. While "ev serve" runs, it continues the job/,
      ),
    })
  })

  test('verifies a finished list again, and shows what has changed', async () => {
    const { home, key, done, queued } = copyOfHome()
    expect(await jobs(home, 'reverify', queued)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('is queued'),
    })
    const again = await serving(home, ['ann', 'bob'], async service => {
      const created = await jobs(home, 'reverify', done, '--only', 'undeliverable')
      expect(created.stdout).toMatch(
        /^Created job_\w+, which re-verifies 2 of 3 rows of job_\w+\. The service starts it/,
      )
      const id = /job_\w+/.exec(created.stdout)?.[0] ?? ''
      await waitForJob(service, key, id)
      return id
    })
    expect((await jobs(home, 'show', again)).stdout).toMatch(/re-verifies +job_\w+/)
    const { stdout } = await jobs(home, 'changes', again)
    expect(stdout).toMatch(/^2 rows re-verified; 1 has a different class than in job_/)
    expect(stdout).toMatch(/undeliverable +deliverable +1\n/)
    expect(stdout).toMatch(/2 +undeliverable +deliverable +accepted_email +bob@good\.test\n/)
    expect(await read(home, 'jobs', 'changes', again)).toMatchObject({
      job_id: again,
      previous_job_id: done,
      verified: 2,
      changed: 1,
      items: [{ row: 2, before: { class: 'undeliverable' }, after: { class: 'deliverable' } }],
    })
    expect((await jobs(home, 'changes', done)).stdout).toMatch(/is a new list/)
    expect(await jobs(home, 'reverify', again, '--only', 'risky')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('No row of the list matches the conditions'),
    })
  })

  test('resumes it after a cancellation, and charges its plan', async () => {
    const { home, done, queued } = copyOfHome()
    const setPlan = (plan: string) => ev(home, 'accounts', 'set-plan', 'Shop', plan)
    await jobs(home, 'cancel', queued)
    expect(await jobs(home, 'resume', queued)).toMatchObject({
      code: 0,
      stderr: '',
      stdout: `Resumed ${queued}: 0 of 3 rows were finished. The next "ev serve" continues it.\n`,
    })
    await setPlan('six')
    expect(await jobs(home, 'reverify', done, ...ALL)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('All 6 daily verifications are used up.'),
    })
    await jobs(home, 'cancel', queued)
    await setPlan('five')
    expect(await jobs(home, 'resume', queued)).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/Five plan, 2 are left, and this list needs 3\./),
    })
    expect((await read(home, 'jobs'))[0]).toMatchObject({ job_id: queued, state: 'cancelled' })
  })

  test('says that a running service continues and stops it', async () => {
    const { home, done } = copyOfHome()
    await serving(home, ['ann'], async () => {
      const id = await reverify(home, done)
      expect((await jobs(home, 'cancel', id)).stdout).toMatch(
        /^Cancelled .*of 3 rows were finished\. The service stops working on it within seconds\./,
      )
      expect((await jobs(home, 'resume', id)).stdout).toMatch(
        /The service continues it within seconds/,
      )
    })
  })

  test('cancels and deletes it with its rows in the history', async () => {
    const { home, key, done, queued } = copyOfHome()
    await jobs(home, 'cancel', queued)
    expect((await jobs(home, 'delete', queued, '--yes')).stdout).toMatch(
      /^Deleted .* with its 3 rows\.\n$/,
    )
    expect((await jobs(home, 'delete', done, '--yes')).stdout).toMatch(/^Deleted /)
    expect(await read(home, 'jobs')).toEqual([])
    await serving(home, [], async service => {
      const history = await request(service, key, '/v1/history')
      expect(await history.json()).toMatchObject({ data: { items: [] } })
    })
  })

  test('is not unfinished for ev purge once it is completed', async () => {
    const { home, queued } = copyOfHome()
    await jobs(home, 'delete', queued, '--yes')
    expect((await ev(home, 'purge')).stdout).toBe('Nothing to delete.\n')
  })
})
