import { expect, onTestFinished, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { newSecret } from '../../../src/accounts/key.ts'
import { createKey } from '../../../src/accounts/key-store.ts'
import { listFiles } from '../../../src/compose/engine.ts'
import { composeService } from '../../../src/compose/service.ts'
import { toConfig } from '../../../src/config/config.ts'
import { write } from '../../../src/db/database.ts'
import { openLists } from '../../../src/engine/lists.ts'
import { SECOND, systemClock } from '../../../src/platform/clock.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { tempFolder } from '../../support/database.ts'
import { isRandomRecipient, mail, toRecipients } from '../../support/engine.ts'
import { recordingLog } from '../../support/log.ts'
import { scriptedMx } from '../../support/mx.ts'
import { ask, startPostgres } from '../../support/postgres-server.ts'
import { unlimitedKey } from '../../support/service.ts'
import { waitUntil } from '../../support/wait.ts'
import { zone } from '../../support/zone.ts'

const DOMAINS = 10
const ROWS = 3_000
/** How long the standby is reached before it is promoted. */
const READ_ONLY_MS = 3 * SECOND

/** The complete service with an account whose credits are counted. */
async function startService(databaseUrl: string) {
  const dataDir = tempFolder()
  const plans = { chaos: { requests: 1_000_000, per: 'second', 'credits-per-day': 100_000 } }
  const ipLimits = { 'single-per-minute': 1_000_000, 'bulk-per-hour': 1_000_000 }
  const config = toConfig({
    flags: {
      dataDir,
      helo: 'probe.test',
      allowRanges: '192.0.2.0/24',
      specialDomains: 'on',
      sessionsPerSecond: '50',
    },
    environment: {},
    file: { path: 'config.json', values: { plans, 'ip-limits': ipLimits } },
  })
  const names = Array.from({ length: DOMAINS }, (_, n) => mail(`d${n}.test`, `192.0.2.${n + 1}`))
  const { log, lines } = recordingLog()
  const resolver = zone(Object.assign({}, ...names))
  const mx = scriptedMx(
    toRecipients(to => (isRandomRecipient(to) ? '550 5.1.1 No such user' : '250 2.1.5 Ok')),
  )
  const { app, service, close } = await composeService(
    config,
    { log, resolver, dial: mx },
    {
      databaseUrl,
      baseUrl: 'https://ev.example.com',
      version: '0.0.0',
      lists: openLists(listFiles(config)),
    },
  )
  onTestFinished(() => close())
  const secret = newSecret(systemRandom, 'live')
  const now = systemClock.now()
  await write(service.database, async trx => {
    await createAccount(trx, { id: 'acc_1', name: 'test', plan: 'chaos', now })
    await createKey(trx, { ...unlimitedKey(), id: 'key_1', secret, now })
  })
  const request = async (path: string, body?: object) => {
    const init = {
      method: body === undefined ? 'GET' : 'POST',
      headers: { Authorization: `Bearer ${secret.text}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    const bindings = { incoming: { socket: { remoteAddress: '127.0.0.1' } } }
    const response = await app.fetch(new Request(`https://ev.example.com${path}`, init), bindings)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return { request, lines, database: service.database }
}

test('a promoted standby takes over: answers are 200 or 503, the list completes, and no credits stay held', async () => {
  const primary = await startPostgres()
  onTestFinished(() => primary.stop())
  const url = await primary.create('ev')
  const standby = await primary.addStandby()
  onTestFinished(() => standby.stop())
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  const { request, lines, database } = await startService(proxy.url)

  const emails = Array.from({ length: ROWS }, (_, n) => `user${n}@d${n % DOMAINS}.test`)
  const submitted = await request('/v1/verify/batch', { emails })
  const path = `/v1/jobs/${submitted.body.job_id}`
  const statuses = new Map<number, number>()
  let isDone = false
  const clients = Array.from({ length: 8 }, async (_, client) => {
    for (let n = 0; !isDone; n++) {
      const email = `single${client}x${n}@d${n % DOMAINS}.test`
      const { status } = await request('/v1/verify/single', { email })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })
  await waitUntil(async () => Number((await request(path)).body.processed_emails) > 0)
  // A shutdown waits until the standby has everything.
  await primary.down('fast')
  proxy.redirect(standby.url('ev'))
  const before = statuses.get(200) ?? 0
  const readOnlyAt = systemClock.monotonicNow()
  await waitUntil(() => systemClock.monotonicNow() - readOnlyAt > READ_ONLY_MS)
  expect(statuses.get(503)).toBeGreaterThan(0)
  await ask(standby.url(), 'select pg_promote()')
  await waitUntil(() => (statuses.get(200) ?? 0) > before + 100)
  isDone = true
  await Promise.all(clients)

  const failed = lines.filter(({ fields }) => fields.code === 'server_error')
  expect(failed).toEqual([])
  expect([...statuses.keys()].filter(status => status !== 200 && status !== 503)).toEqual([])
  const job = async () => (await request(`${path}?wait=5`)).body
  await expect.poll(async () => (await job()).status, { timeout: 120_000 }).toBe('completed')
  expect(await job()).toMatchObject({ processed_emails: ROWS })
  const credits = () =>
    database.reader.selectFrom('credit').select(['used', 'held']).executeTakeFirstOrThrow()
  await expect.poll(async () => (await credits()).held, { timeout: 60_000 }).toBe(0)
  // A row whose answer was cached before the failover, and its result was not stored, is free.
  const charged = await database.reader
    .selectFrom('verification')
    .select(eb => eb.fn.countAll().as('count'))
    .where('cached', '=', 0)
    .where('class', '<>', 'unknown')
    .executeTakeFirstOrThrow()
  expect((await credits()).used).toBe(Number(charged.count))
  expect(lines.filter(({ message }) => /lost|internal error/.test(message))).toEqual([])
})
