import { beforeEach, describe, expect, test } from 'vitest'
import { ensureSetting } from '../../../src/cluster/cluster-settings.ts'
import { DAY, SECOND, systemClock } from '../../../src/platform/clock.ts'
import { addKey } from '../../support/account-rows.ts'
import { startService } from '../../support/cli-service.ts'
import { ev, homeWith, inDatabase, read } from '../../support/cli-webhooks.ts'
import { type Seed, seedJob } from '../../support/job-rows.ts'

const ID = 'job_aaaa'
const BASE_URL = ['--base-url', 'https://ev.example.com']

let home: string

beforeEach(async () => {
  home = await homeWith('acc_a')
})

const addJob = (seed: Partial<Seed> = {}) =>
  inDatabase(home, database =>
    seedJob(database, { id: ID, texts: ['valid@a.example'], accountId: 'acc_a', ...seed }),
  )

const addKeys = (...keys: Parameters<typeof addKey>[1][]) =>
  inDatabase(home, async database => {
    for (const key of keys) await addKey(database, key)
  })

const share = (...flags: string[]) => ev(home, 'jobs', 'download-url', ID, ...flags)

test('prints a URL that the service answers without a key', async () => {
  await addJob()
  await addKeys({})
  const service = await startService(home)
  const { code, stdout } = await share('--base-url', service.url, '--format', 'json')
  expect([code, stdout.split('\n').length]).toEqual([0, 2])
  const response = await fetch(stdout.trim())
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject([{ email: 'valid@a.example', class: 'deliverable' }])
  expect(await service.end('SIGTERM')).toMatchObject({ code: 0 })
})

test('the URL selects the file and ends after a day; the audit log has it', async () => {
  await addJob()
  await addKeys({ name: 'Shop' })
  const flags = [
    '--format',
    'xlsx',
    '--only',
    'risky,deliverable',
    '--raw',
    '--deduplicate',
    'canonical',
  ]
  const { stdout, stderr } = await share(...BASE_URL, ...flags)
  const { origin, pathname, searchParams } = new URL(stdout.trim())
  expect([origin, pathname]).toEqual(['https://ev.example.com', `/v1/jobs/${ID}/download`])
  const { expires, signature, ...query } = Object.fromEntries(searchParams)
  expect(query).toEqual({
    format: 'xlsx',
    filter: 'deliverable,risky',
    raw: 'true',
    deduplicate: 'canonical',
    key_id: 'key_a',
  })
  const left = Number(expires) * SECOND - systemClock.now()
  expect(Math.abs(left - DAY)).toBeLessThan(60 * SECOND)
  expect(signature).toMatch(/^[0-9a-f]{64}$/)
  expect(stderr.replaceAll('\n', ' ')).toMatch(
    /^note: The URL works for everyone until .*\. It ends earlier if key key_a "Shop" is revoked/,
  )
  expect(await read(home, 'audit')).toMatchObject([
    { action: 'results.shared', actor: 'command_line', target_id: ID },
  ])
})

describe('the key of the URL', () => {
  const shared = async (...flags: string[]) =>
    JSON.parse((await share(...BASE_URL, '--json', ...flags)).stdout).key_id

  test.each<[string, Parameters<typeof addKey>[1][], string]>([
    ['is that of the job', [{ id: 'key_a' }, { id: 'key_b' }], 'key_b'],
    ['is another one if the job has none', [{ id: 'key_a' }, { id: 'key_c' }], 'key_a'],
    [
      'restricts nobody, if there is such a key',
      [{ id: 'key_b', allowedIps: ['192.0.2.1'] }, { id: 'key_c' }],
      'key_c',
    ],
    [
      'is the restricted key of the job, if all are restricted',
      [
        { id: 'key_a', allowedDomains: ['a.example'] },
        { id: 'key_b', allowedIps: ['192.0.2.1'] },
      ],
      'key_b',
    ],
    [
      'may read results',
      [
        { id: 'key_a', scopes: ['verify:single'] },
        { id: 'key_b', expiresAt: 1 },
        { id: 'key_c', scopes: ['jobs:read'] },
      ],
      'key_c',
    ],
  ])('%s', async (_, keys, expected) => {
    await addJob({ keyId: 'key_b' })
    await addKeys(...keys)
    expect(await shared()).toBe(expected)
  })

  test('is the one of --key', async () => {
    await addJob()
    await addKeys({ id: 'key_a' }, { id: 'key_b' }, { id: 'key_c', scopes: ['verify:single'] })
    expect(await shared('--key', 'key_b')).toBe('key_b')
    const unsuitable = await share(...BASE_URL, '--key', 'key_c')
    expect([unsuitable.code, unsuitable.stderr]).toMatchObject([
      ...[64, expect.stringMatching(/^error: Key key_c cannot read the results of job_aaaa: it /)],
    ])
    const unknown = await share(...BASE_URL, '--key', 'key_x')
    expect([unknown.code, unknown.stderr]).toMatchObject([
      ...[66, expect.stringMatching(/^error: Account acc_a has no key key_x\./)],
    ])
  })
})

describe('without a URL', () => {
  const fault = async (...flags: string[]) => {
    const { code, stdout, stderr } = await share(...flags)
    expect([code, stdout]).toEqual([64, ''])
    return stderr.replaceAll('\n', ' ')
  }

  test('a list of ev bulk says where its results are', async () => {
    await addJob()
    await inDatabase(home, ({ db }) =>
      db.updateTable('job').set({ account_id: null, type: 'list' }).execute(),
    )
    expect(await fault(...BASE_URL)).toMatch(/is a list of "ev bulk", which writes its results/)
  })

  test('an account without a suitable key says how to create one', async () => {
    await addJob()
    expect(await fault(...BASE_URL)).toMatch(
      /No API key of account acc_a can read .* ev keys create --name NAME --scopes jobs:read/,
    )
  })

  test('a job that is not completed needs --partial', async () => {
    await addJob({ done: 0 })
    await addKeys({})
    expect(await fault(...BASE_URL)).toMatch(/job_aaaa is queued, so .* add --partial/)
    expect((await share(...BASE_URL, '--partial')).stdout).toContain('&partial=true&')
  })

  test('the base URL must be set or stored in the database', async () => {
    await addJob()
    await addKeys({})
    expect(await fault()).toMatch(/Set --base-url to its public URL/)
    await inDatabase(home, database => ensureSetting(database, 'base-url', 'https://a.example'))
    expect((await share()).stdout).toMatch(/^https:\/\/a\.example\/v1\/jobs\/job_aaaa\/download\?/)
  })
})
