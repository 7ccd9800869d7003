import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createAccount, listAccounts } from '../../../src/accounts/account-store.ts'
import { COMMAND_LINE } from '../../../src/audit.ts'
import { getSetting } from '../../../src/cluster/cluster-settings.ts'
import { openDatabase, write } from '../../../src/db/database.ts'
import { acquireLock, jobLock, SERVE_LOCK } from '../../../src/db/file-lock.ts'
import { fingerprint, readSecret } from '../../../src/db/service-secret.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { createSecretBox } from '../../../src/platform/secret-box.ts'
import { listWebhooks } from '../../../src/webhooks/endpoint-store.ts'
import { createUncheckedWebhook } from '../../../src/webhooks/endpoints.ts'
import { CANARY, type Cluster, cluster, fileOf } from '../../support/cluster-cli.ts'

const TIMEOUT = { timeout: 120_000 }

/** Creates a data directory with an account, a webhook and its secret. */
async function seedDataDir(at: Cluster): Promise<{ dataDir: string; secret: string }> {
  const dataDir = join(at.home, 'data')
  const secret = readSecret({ secret: null, secretFile: null, dataDir }, systemRandom)
  const file = await openDatabase(fileOf(at.home, 'data'), systemClock)
  const account = { id: 'acc_a', name: 'Shop', plan: 'free', now: systemClock.now() }
  await write(file, trx => createAccount(trx, account))
  const options = { url: 'https://hook.example/', events: [], active: true, description: null }
  const secretBox = createSecretBox(secret, systemRandom)
  const audit = { clock: systemClock, random: systemRandom, origin: COMMAND_LINE }
  const services = { ...audit, database: file, secretBox }
  await createUncheckedWebhook(services, { ...options, accountId: 'acc_a' })
  await file.close()
  return { dataDir, secret }
}

const WITHOUT_SECRET = { EV_SECRET: '' }
const ARGS = ['migrate', '--from', 'data']

test(
  'copies all data of a data directory and leaves the directory unchanged',
  TIMEOUT,
  async () => {
    const at = await cluster()
    const { dataDir, secret } = await seedDataDir(at)
    const { code, stdout, stderr } = await at.run(ARGS, WITHOUT_SECRET)
    expect(code, stderr).toBe(0)
    expect(stdout).toMatch(
      /^Copied data\/ev\.sqlite to postgres:\/\/…@127\.0\.0\.1.*verified the row counts/,
    )
    expect(stdout).toMatch(/^ {2}accounts +1$/m)
    expect(stdout).toMatch(/^ {2}webhooks +1$/m)
    expect(stdout).toContain('Set EV_SECRET or EV_SECRET_FILE to the secret in data/secret')
    expect(stdout).toContain('are not copied')
    expect(stdout + stderr).not.toMatch(new RegExp(`${CANARY}|${secret}`))
    expect(readFileSync(join(dataDir, 'secret'), 'utf8').trim()).toBe(secret)

    const [webhook] = await at.inside(database => listWebhooks(database, 'acc_a'))
    expect(webhook).toMatchObject({ url: 'https://hook.example/' })
    expect(await at.inside(database => getSetting(database, 'secret-mark'))).toBe(
      fingerprint(secret),
    )
    // A service with another secret is rejected from its first start.
    expect((await at.serve('other').ended).code).toBe(78)
    const serving = at.serve('data', [], WITHOUT_SECRET)
    await serving.printed('API documentation:', 'stderr')
    serving.signal('SIGTERM')
    expect(await serving.ended).toMatchObject({ code: 0, stdout: '' })
    const file = await openDatabase(fileOf(at.home, 'data'), systemClock)
    onTestFinished(() => file.close())
    expect(await listAccounts(file)).toHaveLength(1)
  },
)

test('prints what was copied as JSON with --json', TIMEOUT, async () => {
  const at = await cluster()
  await seedDataDir(at)
  const { code, stdout, stderr } = await at.run([...ARGS, '--to', at.url, '--json'], WITHOUT_SECRET)
  expect(code, stderr).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    from: 'data',
    file: 'data/ev.sqlite',
    to: expect.stringMatching(/^postgres:\/\/…@/),
    loading_lists: 0,
    lists_of_bulk: 0,
    rows_in_flight: 0,
    secret: 'data/secret',
    rows: { account: 1, webhook: 1, item: 0 },
  })
  expect(stderr.match(/can see the password in --to/g)).toHaveLength(1)
  expect(stdout + stderr).not.toContain(CANARY)
})

test('rejects a target that is not empty and leaves it unchanged', TIMEOUT, async () => {
  const at = await cluster()
  await seedDataDir(at)
  const now = systemClock.now()
  await at.inside(database =>
    write(database, trx => createAccount(trx, { id: 'acc_b', name: 'B', plan: 'free', now })),
  )
  const { code, stdout, stderr } = await at.run(ARGS, WITHOUT_SECRET)
  expect([code, stdout]).toEqual([64, ''])
  expect(stderr).toMatch(/^error: The PostgreSQL database is not empty: it has 1 of account/)
  expect(await at.inside(listAccounts)).toMatchObject([{ id: 'acc_b' }])
})

test('rejects a data directory that another process is using', TIMEOUT, async () => {
  const at = await cluster()
  const { dataDir } = await seedDataDir(at)
  const locks = [
    [SERVE_LOCK, '"ev serve"'],
    [jobLock(null, '', 'a')[1], '"ev bulk"'],
  ] as const
  for (const [name, command] of locks) {
    const lock = acquireLock(dataDir, name)
    const { code, stderr } = await at.run(ARGS, WITHOUT_SECRET)
    expect(code).toBe(74)
    expect(stderr).toMatch(new RegExp(`^error: ${command} is running in data, .*Stop it first`))
    lock?.release()
  }
  expect(await at.inside(listAccounts)).toEqual([])
  expect((await at.run(ARGS, WITHOUT_SECRET)).code).toBe(0)
})

test(
  'reports a missing or damaged source and a missing or invalid target, and creates nothing',
  TIMEOUT,
  async () => {
    const at = await cluster()
    const none = await at.run(['migrate', '--from', 'nowhere'], WITHOUT_SECRET)
    expect(none.code).toBe(66)
    expect(none.stderr).toMatch(
      /^error: The database nowhere\/ev\.sqlite does not exist, .*--from\.\n$/,
    )
    expect(existsSync(join(at.home, 'nowhere'))).toBe(false)
    await seedDataDir(at)
    const unnamed = await at.run(ARGS, { EV_DATABASE: '' })
    expect(unnamed.code).toBe(64)
    expect(unnamed.stderr).toMatch(/^error: No target database is set\. .*--to postgres:/)
    const bad = await at.run(
      [...ARGS, '--to', `postgres://ann:${CANARY}#@db.example/ev`],
      WITHOUT_SECRET,
    )
    expect(bad.code).toBe(64)
    expect(bad.stderr).toMatch(/--to is "postgres:…"; it takes sqlite:FILE or postgres:/)
    expect(bad.stderr).not.toContain(CANARY)
    writeFileSync(join(at.home, 'data/ev.sqlite'), 'no database')
    const damaged = await at.run(ARGS, WITHOUT_SECRET)
    expect(damaged.code).toBe(74)
    expect(damaged.stderr).toMatch(/^error: The database data\/ev\.sqlite cannot be copied: /)
  },
)
