import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { DAY, HOUR, SECOND, systemClock } from '../../../src/platform/clock.ts'
import { emptyFolder, type Ran, runEv } from '../../support/cli.ts'
import { startService, verifyList } from '../../support/cli-service.ts'
import { ev, homeWith, newKey, read } from '../../support/cli-webhooks.ts'
import { shiftedClock } from '../../support/clock.ts'

const BASE_URL = ['--base-url', 'https://ev.example.com']

/** A folder with a list of the key "CI", and one of the key "Office", which is restricted to IPs. */
let made: string
let jobId: string
let jobOfOffice: string
beforeAll(async () => {
  made = await homeWith('Shop')
  const key = await newKey(made)
  const office = await read(
    made,
    ...['keys', 'create', '--name', 'Office', '--allow-ip', '127.0.0.1'],
  )
  const service = await startService(made)
  const list = { sandbox: true, body: { emails: ['valid@a.example'] } }
  jobId = await verifyList(service, key, list)
  jobOfOffice = await verifyList(service, office.key, list)
  await service.end('SIGTERM')
})

let home: string
beforeEach(() => {
  home = emptyFolder()
  cpSync(join(made, 'data'), join(home, 'data'), { recursive: true })
})

const share = (job: string, ...flags: string[]) => ev(home, 'jobs', 'download-url', job, ...flags)

test('prints a URL that the service answers without a key', async () => {
  const service = await startService(home)
  const { code, stdout } = await share(jobId, '--base-url', service.url, '--format', 'json')
  expect([code, stdout.split('\n').length]).toEqual([0, 2])
  const response = await fetch(stdout.trim())
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject([{ email: 'valid@a.example', class: 'deliverable' }])
  expect(await service.end('SIGTERM')).toMatchObject({ code: 0 })
})

test('the URL selects the file and ends after a day; the audit log has it', async () => {
  const flags = ['--format', 'xlsx', '--only', 'risky,deliverable', '--raw']
  const { stdout, stderr } = await share(jobId, ...BASE_URL, ...flags, '--deduplicate', 'canonical')
  const { origin, pathname, searchParams } = new URL(stdout.trim())
  expect([origin, pathname]).toEqual(['https://ev.example.com', `/v1/jobs/${jobId}/download`])
  const { expires, signature, ...query } = Object.fromEntries(searchParams)
  expect(query).toEqual({
    format: 'xlsx',
    filter: 'deliverable,risky',
    raw: 'true',
    deduplicate: 'canonical',
    key_id: expect.stringMatching(/^key_/),
  })
  const left = Number(expires) * SECOND - systemClock.now()
  expect(Math.abs(left - DAY)).toBeLessThan(60 * SECOND)
  expect(signature).toMatch(/^[0-9a-f]{64}$/)
  expect(stderr.replaceAll('\n', ' ')).toMatch(
    /^note: The URL works for everyone until .*\. It ends earlier if key key_\w+ "CI" is revoked/,
  )
  expect((await read(home, 'audit'))[0]).toMatchObject({
    action: 'results.shared',
    actor: 'command_line',
    target_id: jobId,
  })
})

type Key = { readonly id: string; readonly name: string }

const keys = (): Promise<readonly Key[]> => read(home, 'keys')
const create = (name: string, ...restrictions: string[]) =>
  ev(home, 'keys', 'create', '--name', name, ...restrictions)

async function revoke(...names: string[]): Promise<void> {
  for (const { id, name } of await keys()) {
    if (names.includes(name)) await ev(home, 'keys', 'revoke', id, '--force', '--yes')
  }
}

describe('the key of the URL', () => {
  /** The name of the key in a URL to the results of a job. */
  async function nameOfKey(job: string, ...flags: string[]): Promise<string | undefined> {
    const { key_id: id } = await read(home, 'jobs', 'download-url', job, ...BASE_URL, ...flags)
    return (await keys()).find(key => key.id === id)?.name
  }

  test('is that of the job', async () => {
    await create('Other')
    expect(await nameOfKey(jobId)).toBe('CI')
  })

  test('is another one if that of the job is revoked', async () => {
    await create('Other')
    await revoke('CI')
    expect(await nameOfKey(jobId)).toBe('Other')
  })

  test('restricts nobody, if there is such a key; else it is that of the job', async () => {
    expect(await nameOfKey(jobOfOffice)).toBe('CI')
    await create('Site', '--allow-domain', 'a.example')
    await revoke('CI')
    expect(await nameOfKey(jobOfOffice)).toBe('Office')
  })

  test('may read results, and is not expired', async () => {
    await create('Single', '--scopes', 'verify:single')
    await create('Old', '--expires', '1h')
    await create('Reader', '--scopes', 'jobs:read')
    await revoke('CI', 'Office')
    const clock = shiftedClock(systemClock)
    clock.pass(2 * HOUR)
    const args = ['jobs', 'download-url', jobId, ...BASE_URL, '--json', '--data-dir', 'data']
    const { stdout } = await runEv(args, { home, context: { clock } })
    const reader = (await keys()).find(({ name }) => name === 'Reader')
    expect(JSON.parse(stdout).key_id).toBe(reader?.id)
  })

  test('is the one of --key', async () => {
    await create('Other')
    await create('Single', '--scopes', 'verify:single')
    const idOf = async (name: string) => (await keys()).find(key => key.name === name)?.id ?? ''
    expect(await nameOfKey(jobId, '--key', await idOf('Other'))).toBe('Other')
    const unsuitable = await share(jobId, ...BASE_URL, '--key', await idOf('Single'))
    expect([unsuitable.code, unsuitable.stderr]).toEqual([
      64,
      expect.stringMatching(/^error: Key key_\w+ cannot read the results of job_\w+: it /),
    ])
    const unknown = await share(jobId, ...BASE_URL, '--key', 'key_x')
    expect([unknown.code, unknown.stderr]).toEqual([
      66,
      expect.stringMatching(/^error: Account acc_\w+ has no key key_x\./),
    ])
  })
})

describe('without a URL', () => {
  const faultOf = ({ code, stdout, stderr }: Ran): string => {
    expect([code, stdout]).toEqual([64, ''])
    return stderr.replaceAll('\n', ' ')
  }

  test('a list of ev bulk says where its results are', async () => {
    writeFileSync(join(home, 'list.csv'), 'valid@a.example\n')
    await ev(home, 'bulk', 'list.csv', '--sandbox', '-o', 'out.csv')
    const [{ job_id: id }] = await read(home, 'jobs')
    expect(faultOf(await share(id, ...BASE_URL))).toMatch(
      /is a list of "ev bulk", which writes its results/,
    )
  })

  test('an account without a suitable key says how to create one', async () => {
    await revoke('CI', 'Office')
    expect(faultOf(await share(jobId, ...BASE_URL))).toMatch(
      /No API key of account acc_\w+ can read .* ev keys create --name NAME --scopes jobs:read/,
    )
  })

  test('a job that is not completed needs --partial', async () => {
    const { stdout } = await ev(home, 'jobs', 'reverify', jobId, '--only', 'deliverable')
    const id = /^Created (job_\w+)/.exec(stdout)?.[1] ?? ''
    expect(faultOf(await share(id, ...BASE_URL))).toMatch(/job_\w+ is queued, so .* add --partial/)
    expect((await share(id, ...BASE_URL, '--partial')).stdout).toContain('&partial=true&')
  })

  test('the base URL must be set', async () => {
    expect(faultOf(await share(jobId))).toMatch(/Set --base-url to its public URL/)
  })
})
