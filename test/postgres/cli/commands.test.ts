import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { ensureSetting } from '../../../src/cluster/cluster-settings.ts'
import { register } from '../../../src/cluster/members.ts'
import { type Database, openDatabase, write } from '../../../src/db/database.ts'
import { addItems } from '../../../src/jobs/import/item-import.ts'
import { createJob, type NewJob } from '../../../src/jobs/job-store.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { CANARY, type Cluster, cluster, fileOf } from '../../support/cluster-cli.ts'
import { queueJob } from '../../support/queue-job.ts'

const TIMEOUT = { timeout: 120_000 }

/** Runs a command, and asserts that it succeeds and that its output lacks the password. */
async function runOk({ run }: Cluster, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(args)
  expect(code, stderr).toBe(0)
  expect(stdout + stderr).not.toContain(CANARY)
  return stdout
}

/** Adds a list of the service, with one address. */
async function addList(database: Database, id: string): Promise<void> {
  await write(database, trx =>
    createAccount(trx, { id: 'acc_a', name: 'Shop', plan: 'free', now: systemClock.now() }),
  )
  const owner = { accountId: 'acc_a', keyId: 'key_a', type: 'file', name: 'March', sandbox: false }
  await createJob(database, { id, sourceKey: id, source: '{}', owner } as NewJob)
  await addItems(database, id, [{ position: 1, text: 'ann@x.test', dedupeKey: 'ann@x.test' }])
  await queueJob(database, id)
}

const DATA = ['--data-dir', 'data']

describe('commands on a PostgreSQL database', () => {
  test(
    'create, list, change and revoke accounts and keys without a local file',
    TIMEOUT,
    async () => {
      const at = await cluster()
      const none = await at.run(['keys', ...DATA])
      expect(none.code).toBe(66)
      expect(none.stderr).toMatch(/^error: No accounts in the database postgres:\/\/…@127\.0\.0\.1/)
      expect(none.stderr).not.toContain(CANARY)
      expect(await runOk(at, 'accounts', ...DATA)).toMatch(/^No accounts in the database postgres:/)
      await runOk(at, 'accounts', 'create', '--name', 'Shop', '--plan', 'free', ...DATA)
      const key = JSON.parse(await runOk(at, 'keys', 'create', '--name', 'CI', '--json', ...DATA))
      expect(key.key).toMatch(/^ev_live_/)
      expect(JSON.parse(await runOk(at, 'keys', '--json', ...DATA))).toMatchObject([{ name: 'CI' }])
      await runOk(at, 'accounts', 'set-plan', 'Shop', 'enterprise', ...DATA)
      await runOk(at, 'keys', 'revoke', key.id, '--force', '--yes', ...DATA)
      expect(await runOk(at, 'keys', ...DATA)).toMatch(/^No keys\./)
      expect(existsSync(join(at.home, 'data', 'ev.sqlite'))).toBe(false)
    },
  )

  test(
    'show a list of the service, as stopped while there is no worker, share and cancel it',
    TIMEOUT,
    async () => {
      const at = await cluster()
      await at.inside(database => addList(database, 'job_service1'))
      const [stopped] = JSON.parse(await runOk(at, 'jobs', '--json', ...DATA))
      expect(stopped).toMatchObject({ job_id: 'job_service1', state: 'stopped', list: 'March' })
      await at.inside(database =>
        register(database, {
          id: 'mem_a',
          role: 'worker',
          name: 'a',
          version: '1',
          egresses: [],
        }),
      )
      const [queued] = JSON.parse(await runOk(at, 'jobs', '--json', ...DATA))
      expect(queued).toMatchObject({ state: 'queued' })
      await runOk(at, 'keys', 'create', '--name', 'CI', ...DATA)
      await at.inside(database => ensureSetting(database, 'base-url', 'https://a.example'))
      expect(await runOk(at, 'jobs', 'download-url', 'job_serv', '--partial', ...DATA)).toMatch(
        /^https:\/\/a\.example\/v1\/jobs\/job_service1\/download\?/,
      )
      expect(await runOk(at, 'jobs', 'cancel', 'job_serv', ...DATA)).toMatch(
        /^Cancelled job_service1: 0 of 1 rows were finished\. The service stops working on it/,
      )
      expect(await runOk(at, 'jobs', 'resume', 'job_serv', ...DATA)).toMatch(
        /continues it within seconds/,
      )
      await runOk(at, 'jobs', 'cancel', 'job_serv', ...DATA)
      await runOk(at, 'jobs', 'delete', 'job_serv', '--yes', ...DATA)
      expect(await runOk(at, 'jobs', ...DATA)).toMatch(/^No jobs in the database postgres:/)
    },
  )

  test(
    'store lists of "ev bulk" in a local file, which "ev jobs" and "ev purge" also read',
    TIMEOUT,
    async () => {
      const at = await cluster()
      await at.inside(database => addList(database, 'job_service1'))
      writeFileSync(join(at.home, 'list.csv'), 'email\nvalid@x.test\n')
      await runOk(at, 'bulk', 'list.csv', '-o', 'out.csv', '--sandbox', ...DATA)
      expect(readFileSync(join(at.home, 'out.csv'), 'utf8')).toContain(
        'valid@x.test,deliverable,send,valid@x.test,true',
      )
      const jobs = JSON.parse(await runOk(at, 'jobs', '--json', ...DATA))
      expect(jobs.map(({ type }: { type: string }) => type)).toEqual(['list', expect.any(String)])
      const id = jobs[0].job_id
      expect(await runOk(at, 'jobs', 'show', id, ...DATA)).toContain('list.csv')
      expect(await at.inside(({ db }) => db.selectFrom('job').select('id').execute())).toEqual([
        { id: 'job_service1' },
      ])
      const purged = JSON.parse(await runOk(at, 'purge', '--all', '--yes', '--json', ...DATA))
      expect(purged).toMatchObject({ jobs: [id], unfinished_jobs: 1 })

      const refused = await at.run(['bulk', 'list.csv', '-o', '-', '--database', at.url, ...DATA])
      expect(refused.code).toBe(64)
      expect(refused.stderr).toMatch(/"ev bulk" stores lists in a local file, data\/ev\.sqlite/)
      expect(refused.stdout + refused.stderr).not.toContain(CANARY)
    },
  )

  test(
    'erase an address from both databases, or from neither while an unfinished list has it',
    TIMEOUT,
    async () => {
      const at = await cluster()
      await at.inside(database => addList(database, 'job_service1'))
      const file = await openDatabase(fileOf(at.home, 'data'), systemClock)
      await file.db
        .insertInto('answer')
        .values({ address_key: 'ann@x.test', remembered: '{}', keep_until: 9e15 })
        .execute()
      const answers = () => file.db.selectFrom('answer').select('address_key').execute()
      const args = ['purge', '--address', 'ann@x.test', '--yes', ...DATA]
      const refused = await at.run(args)
      expect(refused.code).toBe(64)
      expect(refused.stderr).toContain('Nothing was erased')
      expect(await answers()).toHaveLength(1)
      await runOk(at, 'jobs', 'cancel', 'job_serv', ...DATA)
      const text = await runOk(at, ...args)
      expect(text).toContain('1 cached answer for the address')
      expect(text).toContain('the address in 1 row of 1 finished list')
      expect(text).toContain('PostgreSQL vacuums deleted rows later')
      expect(await answers()).toEqual([])
      await file.close()
      const [item] = await at.inside(({ db }) => db.selectFrom('item').select('text').execute())
      expect(item?.text).not.toContain('ann')
    },
  )

  test(
    'ev backup and ev restore print the commands of PostgreSQL without the password',
    TIMEOUT,
    async () => {
      const at = await cluster()
      const { code, stdout, stderr } = await at.run(['backup', "it's.dump"])
      expect([code, stdout]).toEqual([64, ''])
      const url = at.url.replace(`:${CANARY}`, '')
      expect(stderr).toContain(`pg_dump --format=custom --file='it'\\''s.dump' --dbname='${url}'`)
      expect(stderr).toContain(`pg_restore --no-owner --exit-on-error --dbname='${url}'`)
      expect(stderr).not.toContain(CANARY)
      const restore = await at.run(['restore', "it's.dump"])
      expect(restore.code).toBe(64)
      expect(restore.stderr).toContain(`--dbname='${url}' 'it'\\''s.dump'`)
      expect(restore.stderr).not.toContain(CANARY)
    },
  )

  test('ev config and ev doctor print the database URL without its password', TIMEOUT, async () => {
    const at = await cluster()
    const config = JSON.parse(await runOk(at, 'config', '--json'))
    expect(config.settings.database).toMatchObject({
      value: expect.stringMatching(/^postgres:\/\/…@127\.0\.0\.1:/),
      from: 'EV_DATABASE',
    })
    const simulator = await startSimulator({ domains: {}, hosts: {} })
    onTestFinished(() => simulator.close())
    const flags = ['--dns', simulator.dnsAddress, '--ask', '127.0.0.1', '--smtp-port', '1', ...DATA]
    const { stdout, stderr } = await at.run(['doctor', '--json', ...flags])
    const checks = JSON.parse(stdout).checks as { check: string; state: string; says: string }[]
    expect(checks.find(({ check }) => check === 'database')).toMatchObject({
      state: 'ok',
      says: expect.stringMatching(/^PostgreSQL 1\d\.\d+ at postgres:\/\/…@/),
    })
    expect(stdout + stderr).not.toContain(CANARY)
  })

  test('create webhooks only with the secret of the service', TIMEOUT, async () => {
    const at = await cluster()
    const to = ['--url', 'https://127.0.0.1:8443/hook', '--webhook-allow-ranges', '127.0.0.0/8']
    const create = ['webhooks', 'create', '--events', 'batch.completed', ...to, ...DATA]
    await runOk(at, 'accounts', 'create', '--name', 'Shop', ...DATA)
    await runOk(at, ...create)
    const other = await at.run(create, { EV_SECRET: 'b'.repeat(32) })
    expect(other.code).toBe(78)
    expect(other.stderr).toMatch(/^error: The secret in EV_SECRET is not the secret of the service/)
    const none = await at.run(create, { EV_SECRET: '' })
    expect(none.code).toBe(78)
    expect(existsSync(join(at.home, 'data/secret'))).toBe(false)
    expect(JSON.parse(await runOk(at, 'webhooks', '--json', ...DATA))).toHaveLength(1)
  })

  test('accept a password in a flag, with one warning about who can see it', TIMEOUT, async () => {
    const at = await cluster()
    const result = await at.run(['accounts', '--database', at.url], { EV_DATABASE: '' })
    expect(result.code).toBe(0)
    expect(result.stderr.match(/can see the password in --database/g)).toHaveLength(1)
    expect(result.stderr).toMatch(/EV_DATABASE.*PGPASSWORD.*~\/\.pgpass/)
    expect(result.stdout + result.stderr).not.toContain(CANARY)
    const bare = at.url.replace(`:${CANARY}`, '')
    const quiet = await at.run(['accounts', '--database', bare], { PGPASSWORD: CANARY })
    expect([quiet.code, quiet.stderr]).toEqual([0, ''])
  })
})
