import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { testAuthority } from '../support/certificate.ts'
import { emptyFolder, runEv, startEv } from '../support/cli.ts'
import { type CliService, startService } from '../support/cli-service.ts'
import { startReceiver } from '../support/http-receiver.ts'

// Commands with --url: on the same data, they print what they print on the machine of the service.

const home = emptyFolder()
let service: CliService
beforeAll(async () => {
  writeFileSync(join(home, 'ca.pem'), testAuthority().cert)
  const hooks = ['--webhook-allow-ranges', '127.0.0.1', '--webhook-ca-file', 'ca.pem']
  service = await startService(home, [...hooks, '--list-allow-ranges', '127.0.0.1'])
})

/** Runs a command on the machine of the service. */
const here = (...args: string[]) =>
  runEv(args, { home, environment: { EV_DATA_DIR: 'data' }, offline: true })

/** Runs a command somewhere else, on the service. */
const there = (...args: string[]) =>
  runEv(args, { home: emptyFolder(), environment: address(service) })

const address = ({ url, key }: CliService) => ({ EV_URL: url, EV_KEY: key })

/** Expects that a command that changes nothing prints the same in both places. */
async function expectSame(...args: string[]): Promise<void> {
  const [local, remote] = [await here(...args), await there(...args)]
  expect(remote, args.join(' ')).toEqual(local)
  expect(remote.code, remote.stderr).toBe(0)
}

const json = async (ran: ReturnType<typeof there>) => {
  const { code, stdout, stderr } = await ran
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

test('manages keys', async () => {
  const created = await json(there('keys', 'create', '--name', 'CI', '--expires', '90d', '--json'))
  expect(created).toMatchObject({ name: 'CI', key: expect.stringMatching(/^ev_live_\w{38}$/) })
  await expectSame('keys')
  await expectSame('keys', '--json')
  const text = await there(
    'keys',
    'create',
    '--name',
    'Form',
    '--publishable',
    '--allow-domain',
    'a.example',
  )
  expect(text.stdout).toMatch(/^Key key_\w+ "Form" of account acc_\w+ ".+":\n\n {2}ev_pub_\w{38}$/m)
  const rotated = await there('keys', 'rotate', created.id, '--grace', '1h')
  expect(rotated.stdout).toMatch(/The old secret stays valid until \d{4}-/)
  expect(await there('keys', 'revoke', created.id)).toMatchObject({
    code: 64,
    stderr: `error: This would revoke ${created.id} "CI". To confirm, add --yes.\n`,
  })
  const revoked = await there('keys', 'revoke', created.id, '--yes')
  expect(revoked.stdout).toMatch(/^Revoked key_\w+ "CI"/)
  for (const run of [here, there]) {
    expect(await run('keys', 'rotate', created.id)).toMatchObject({ code: 66, stdout: '' })
  }
})

test('manages accounts with the key of an admin account', async () => {
  const created = await json(there('accounts', 'create', '--name', 'Shop', '--json'))
  expect(created).toMatchObject({ name: 'Shop', plan: 'enterprise', email: null, admin: false })
  const key = await json(there('keys', 'create', '--name', 'A', '--account', 'Shop', '--json'))
  expect(key.account_id).toBe(created.id)
  const changes = [
    ['set-plan', 'Shop', 'starter'],
    ['set-email', 'Shop', 'owner@shop.example'],
    ['set-admin', 'Shop', 'on'],
    ['set-name', 'Shop', 'Web shop'],
  ]
  for (const [verb = '', ...args] of changes) {
    expect(await there('accounts', verb, ...args)).toMatchObject({ code: 0, stderr: '' })
  }
  const [, listed] = await json(here('accounts', '--json'))
  expect(listed).toMatchObject({ name: 'Web shop', plan: 'starter', admin: true, keys: 1 })
  const remote = await json(there('accounts', '--json'))
  expect(remote[1]).toEqual({ ...listed, keys: null })
  for (const run of [here, there]) {
    expect(await run('accounts', 'set-plan', 'None', 'free')).toMatchObject({
      code: 66,
      stderr: 'error: Account None does not exist. To list accounts, run "ev accounts".\n',
    })
    expect(await run('accounts', 'set-plan', 'Web shop', 'none')).toMatchObject({ code: 64 })
  }
})

test('manages people', async () => {
  const ann = 'ann@shop.example'
  const invite = ['people', 'invite', '--name', 'Ann Lee', '--email', ann]
  const invited = await json(there(...invite, '--role', 'admin', '--json'))
  expect(invited).toMatchObject({ email: ann, role: 'admin', joined: false })
  expect(invited.account_id).toMatch(/^acc_/)
  expect(invited.url).toMatch(/\/invitation\/[a-z0-9]{40}$/)
  expect(invited.expires_at).toBe(invited.invitation_expires_at)
  await expectSame('people')
  await expectSame('people', '--account', 'default', '--json')
  const link = await there('people', 'link', invited.id)
  expect(link.stdout).toMatch(
    /^Link for per_\w+ "Ann Lee" <ann@shop\.example>, admin of account acc_/,
  )
  const changed = await there('people', 'set-role', ann, 'viewer')
  expect(changed.stdout).toMatch(/^Changed the role of per_\w+ "Ann Lee" from admin to viewer\.$/m)
  for (const verb of ['reset-two-factor', 'remove']) {
    expect(await there('people', verb, ann)).toMatchObject({ code: 64, stdout: '' })
    expect(await there('people', verb, ann, '--yes')).toMatchObject({ code: 0, stderr: '' })
    await expectSame('people', '--json')
  }
  for (const run of [here, there]) {
    expect(await run('people', 'require-two-factor', 'on', '--account', 'default')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('No admin of the account has accepted an invitation yet.'),
    })
    expect(await run('people', 'require-two-factor', 'off', '--account', 'default')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^A second factor is now optional in account acc_\w+ "/),
    })
    expect(await run('people', 'remove', ann, '--yes')).toMatchObject({
      code: 66,
      stderr: `error: Person ${ann} does not exist. To list people, run "ev people".\n`,
    })
  }
})

test('manages webhooks and their deliveries', async () => {
  const receiver = await startReceiver({ name: '127.0.0.1' })
  const create = ['webhooks', 'create', '--url', receiver.url, '--events', 'batch.completed']
  const created = await json(there(...create, '--header', 'X-Team: a', '--json'))
  expect(created).toMatchObject({ header_names: ['X-Team'], active: true })
  expect(created.secret.slice(-4)).toBe(created.secret_hint)
  const { secret, ...shown } = created
  expect(await json(here('webhooks', 'show', created.id, '--json'))).toEqual(shown)
  const { id } = created
  await there('webhooks', 'change', id, '--description', 'Shop', '--remove-header', 'X-Team')
  await there('webhooks', 'disable', id)
  await expectSame('webhooks')
  await expectSame('webhooks', '--json')
  await expectSame('webhooks', 'show', id)
  await there('webhooks', 'enable', id)
  const rotated = await there('webhooks', 'rotate', id)
  expect(rotated.stdout).toMatch(/The old secret also signs webhook-signature until \d{4}-/)
  expect(rotated.stdout).not.toContain(secret)
  await expectSame('webhooks', 'show', id)

  const tested = await there('webhooks', 'test', id)
  expect(tested).toMatchObject({ code: 0, stderr: '' })
  expect(tested.stdout).toContain(`Delivered: ${receiver.url} responded with 200`)
  receiver.answer(500)
  const failed = await there('webhooks', 'test', id, '--event', 'batch.completed', '--json')
  expect(failed.code).toBe(1)
  const { delivery_id: deliveryId } = JSON.parse(failed.stdout)
  await expectSame('webhooks', 'deliveries', id)
  await expectSame('webhooks', 'deliveries', id, '--limit', '1', '--json')
  await expectSame(
    'webhooks',
    'deliveries',
    id,
    '--status',
    'delivered',
    '--search',
    'webhook.test',
  )
  await expectSame('webhooks', 'deliveries', deliveryId, '--json')
  await expectSame('webhooks', 'deliveries', id, deliveryId)
  const retried = await there('webhooks', 'retry', deliveryId)
  expect(retried.stdout).toMatch(/ will be sent again, within a second\.$/m)
  const recovered = await there('webhooks', 'recover', id, '--since', '1h', '--json')
  expect(JSON.parse(recovered.stdout)).toEqual({ recovered: expect.any(Number) })
  expect(await there('webhooks', 'delete', id)).toMatchObject({ code: 64, stdout: '' })
  expect(await there('webhooks', 'delete', id, '--yes')).toMatchObject({ code: 0, stderr: '' })
  for (const run of [here, there]) {
    expect(await run('webhooks', 'show', id)).toMatchObject({ code: 66, stdout: '' })
    expect(await run('webhooks', 'retry', deliveryId)).toMatchObject({ code: 66, stdout: '' })
  }
  await receiver.close()
})

test('imports feedback, and manages its sources', async () => {
  const folder = emptyFolder()
  const rows = ['ann@a.example,bounced,,hard', 'bob@a.example,bounced,550,', 'x,bounced,550,']
  writeFileSync(join(home, 'events.csv'), `email,event,code,type\n${rows.join('\n')}\n`)
  writeFileSync(join(folder, 'events.csv'), `email,event,code,type\n${rows.join('\n')}\n`)
  const account = ['--account', 'default']
  const args = ['feedback', 'import', 'events.csv', '--json', ...account]
  const imported = await json(runEv(args, { home: folder, environment: address(service) }))
  expect(imported).toMatchObject({ recorded: 2, duplicates: 0, rejected: 1 })
  expect(await json(here(...args))).toMatchObject({ recorded: 0, duplicates: 2 })
  const report = await json(there('feedback', 'report', '--json', ...account))
  expect(await json(here('feedback', 'report', '--json', ...account))).toEqual({
    ...report,
    contradicted_replies: [],
    learned_replies: [],
  })
  await expectSame('feedback', 'report', ...account)

  const created = await json(there('feedback', 'sources', 'create', 'postmark', '--json'))
  expect(created).toMatchObject({ provider: 'postmark', basic_auth: { username: 'ev' } })
  const [{ url, ...source }] = await json(there('feedback', 'sources', '--json'))
  const [local] = await json(here('feedback', 'sources', '--json'))
  expect({ ...source, url: new URL(url).pathname }).toEqual(local)
  const remove = ['feedback', 'sources', 'delete', created.id]
  expect(await there(...remove)).toMatchObject({ code: 64, stdout: '' })
  expect(await there(...remove, '--yes')).toMatchObject({ code: 0, stderr: '' })
  for (const run of [here, there]) expect(await run(...remove)).toMatchObject({ code: 66 })
})

test('manages jobs', async () => {
  const client = new EvClient({ baseUrl: service.url, apiKey: service.key, sandbox: true })
  const emails = ['valid@a.example', 'invalid@a.example', 'role@b.example']
  const { job_id: id } = await client.batch({ emails, name: 'March', metadata: { customer: '42' } })
  await client.waitForJob(id)
  const list = ['jobs', '--metadata', 'customer=42']
  await expectSame(...list)
  const [job] = await json(there(...list, '--json'))
  expect(job).toMatchObject({ job_id: id, state: 'completed', name: 'March', deliverable: 1 })
  expect(await json(here(...list, '--json'))).toEqual([{ ...job, duplicates: 0 }])
  const prefix = id.slice(0, -4)
  await expectSame('jobs', 'show', prefix)
  expect(await json(there('jobs', 'show', id, '--json'))).toMatchObject({ ...job, waiting: [] })

  const reverified = await there('jobs', 'reverify', prefix, '--only', 'risky')
  expect(reverified.stdout).toMatch(
    /^Created job_\w+, which re-verifies 1 of 3 rows of job_\w+\. The service starts it within seconds\.$/m,
  )
  const [, next = ''] = /^Created (job_\w+),/.exec(reverified.stdout) ?? []
  await client.waitForJob(next)
  await expectSame('jobs', 'changes', next)
  await expectSame('jobs', 'changes', next, '--json')

  const url = await json(there('jobs', 'download-url', id, '--only', 'deliverable', '--json'))
  expect(url).toMatchObject({ url: expect.stringContaining(`/${id}`), key_id: null })
  expect(await there('jobs', 'download-url', id, '--key', 'key_a')).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('Omit --key, or set EV_KEY to the key.'),
  })
  const finished = await there('jobs', 'finish', id)
  expect(finished.stdout).toBe(`${id} is already completed.\n`)
  for (const verb of ['cancel', 'resume']) {
    expect(await there('jobs', verb, id)).toMatchObject({ code: 64, stdout: '' })
  }
  expect(await there('jobs', 'delete', id)).toMatchObject({ code: 64, stdout: '' })
  const deleted = await there('jobs', 'delete', id, '--yes')
  expect(deleted).toMatchObject({ code: 0, stdout: `Deleted ${id} with its 3 rows.\n` })
  for (const run of [here, there]) {
    expect(await run('jobs', 'show', id)).toMatchObject({ code: 66, stdout: '' })
    expect(await run('jobs', 'show', 'job_aa')).toMatchObject({ code: 64, stdout: '' })
  }
})

test('listens for the events of a service, and deletes its webhook', async () => {
  const run = { home: emptyFolder(), environment: address(service) }
  const listener = startEv(['webhooks', 'listen', '--port', '0', '--json'], run)
  await listener.printed('\n\n', 'stderr')
  expect(listener.stderr).toContain(`for all events of account "default" at ${service.url}.`)
  expect(listener.stderr).not.toContain('--webhook-allow-ranges')
  const [webhook] = await json(there('webhooks', '--json'))
  expect(listener.stderr).toContain(`  ev --url ${service.url} webhooks test ${webhook.id}\n`)
  expect(await there('webhooks', 'test', webhook.id)).toMatchObject({ code: 0 })
  await listener.printed('"event":"webhook.test"', 'stdout')
  listener.signal('SIGINT')
  const { code, stdout } = await listener.ended
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ event: 'webhook.test', fault: null })
  expect(await json(there('webhooks', '--json'))).toEqual([])
})

test('a service that cannot reach the listener needs the URL of a tunnel', async () => {
  const run = { home: emptyFolder(), environment: address(service) }
  const listen = ['webhooks', 'listen', '--port', '0']
  const refused = await runEv([...listen, '--host', '127.0.0.2'], run)
  expect(refused).toMatchObject({ code: 64, stdout: '' })
  expect(refused.stderr.replace(/\s+/g, ' ')).toContain('Or set --public-url to an https:// URL')
  const wrong = await runEv([...listen, '--public-url', 'tunnel'], run)
  expect(wrong.stderr).toContain('--public-url is "tunnel"; it takes a URL such as https://')
  const tunnel = await startReceiver({ name: '127.0.0.1' })
  const listener = startEv([...listen, '--public-url', tunnel.url], run)
  await listener.printed('\n\n', 'stderr')
  expect(listener.stderr).toContain(`The service sends events to ${tunnel.url}\n`)
  expect(await json(there('webhooks', '--json'))).toMatchObject([{ url: tunnel.url }])
  listener.signal('SIGINT')
  expect(await listener.ended).toMatchObject({ code: 0 })
  expect(await json(there('webhooks', '--json'))).toEqual([])
})

describe('ev bulk', () => {
  const list = 'email,name\nvalid@a.example,Ann\ninvalid@a.example,Bob\nrole@b.example,Eve\n'

  /** A folder with a list, and a function that runs `ev bulk` there, on the service. */
  function createFolder() {
    const folder = emptyFolder()
    writeFileSync(join(folder, 'list.csv'), list)
    const bulk = (...args: string[]) =>
      runEv(['bulk', ...args], { home: folder, environment: address(service) })
    return { folder, bulk, read: (name: string) => readFileSync(join(folder, name), 'utf8') }
  }

  test('uploads a list once, waits for it and downloads the results', async () => {
    const { bulk, read } = createFolder()
    const first = await bulk('list.csv', '--sandbox', '--json', '--metadata', 'customer=7')
    expect(first.code, first.stderr).toBe(0)
    const summary = JSON.parse(first.stdout)
    expect(summary).toMatchObject({ total: 3, deliverable: 1, risky: 1, undeliverable: 1 })
    expect(first.stderr).toContain(`Submitted as ${summary.job_id}: 3 rows, addresses in column`)
    expect(first.stderr).toMatch(/3 rows in .*, written to .*list\.verified\.csv\./)
    const [header, row] = read('list.verified.csv').split(/\r?\n/)
    expect(header).toMatch(/^email,name,ev_class,ev_action,/)
    expect(row).toMatch(/^valid@a\.example,Ann,deliverable,send,/)
    const again = await bulk('list.csv', '--sandbox', '--metadata', 'customer=7', '--quiet')
    expect(again).toMatchObject({ code: 0, stdout: '', stderr: '' })
    const [job, ...others] = await json(there('jobs', '--metadata', 'customer=7', '--json'))
    expect([job.job_id, others]).toEqual([summary.job_id, []])
    const fresh = await bulk('list.csv', '--sandbox', '--metadata', 'customer=7', '--fresh')
    expect(fresh.stderr).not.toContain(summary.job_id)
    expect(await json(there('jobs', '--metadata', 'customer=7', '--json'))).toHaveLength(2)
  })

  test('writes the classes, actions and formats of its options', async () => {
    const { folder, bulk, read } = createFolder()
    const split = ['--split', '--only', 'deliverable,risky', '-o', 'out.csv.gz']
    expect(await bulk('list.csv', '--sandbox', '-q', ...split)).toMatchObject({ code: 0 })
    const zipped = readFileSync(join(folder, 'out.risky.csv.gz'))
    expect(gunzipSync(zipped).toString()).toMatch(/\nrole@b\.example,Eve,risky,/)
    const options = ['--action', 'suppress', '--format', 'ndjson', '-o', 'out.ndjson']
    expect(await bulk('list.csv', '--sandbox', '-q', ...options)).toMatchObject({ code: 0 })
    expect(JSON.parse(read('out.ndjson'))).toMatchObject({ row: 2, class: 'undeliverable' })
    const stdout = await bulk('list.csv', '--sandbox', '-q', '-o', '-', '--only', 'risky')
    expect(stdout.stdout).toMatch(/^email,name,ev_class.*\r?\nrole@b\.example,Eve,risky/)
    writeFileSync(join(folder, 'mine.csv'), 'not of ev')
    expect(await bulk('list.csv', '--sandbox', '-o', 'mine.csv')).toMatchObject({ code: 73 })
  })

  test('names each option that only works on this machine, and what is wrong with a list', async () => {
    const { folder, bulk } = createFolder()
    const refused = await bulk('list.csv', '--no-wait', '--concurrency', '5')
    expect(refused).toMatchObject({ code: 64, stdout: '' })
    expect(refused.stderr.replace(/\s+/g, ' ')).toMatch(
      /EV_URL is ".+", but --no-wait and --concurrency work only on this machine\. Omit them, or to run the command here, omit --url and unset EV_URL\./,
    )
    expect(await bulk('none.csv', '--sandbox')).toMatchObject({ code: 66, stdout: '' })
    writeFileSync(join(folder, 'empty.csv'), '')
    const empty = await bulk('empty.csv', '--sandbox')
    expect(empty).toMatchObject({ code: 64, stdout: '' })
    expect(empty.stderr).toMatch(/^error: .*empty/i)
  })

  test('--fail-above judges the rows of --action, and the whole list without it', async () => {
    const { bulk } = createFolder()
    const all = await bulk('list.csv', '--sandbox', '--json', '--fail-above', '10%')
    expect(all.code).toBe(1)
    expect(JSON.parse(all.stdout).fail_above).toMatchObject({
      limit: 0.1,
      exceeded: true,
      addresses: 3,
    })
    expect(all.stderr).toMatch(
      /error: Mail to the 3 addresses of the output is expected to bounce at [\d.]+% \(.*\), above --fail-above 10%\./,
    )
    const sent = ['--action', 'send,send_with_care', '-o', 'send.csv', '--fail-above', '10%']
    const some = await bulk('list.csv', '--sandbox', '--json', ...sent)
    expect(some.code, some.stderr).toBe(0)
    expect(JSON.parse(some.stdout).fail_above).toMatchObject({ exceeded: false, addresses: 2 })
    const refused = await bulk('list.csv', '--only', 'risky', '--fail-above', '10%')
    expect(refused).toMatchObject({ code: 64, stdout: '' })
    expect(refused.stderr).toContain('cannot be combined with --only')
  })

  test('the service downloads a list at a URL, and again when its job is completed', async () => {
    const { bulk, read } = createFolder()
    const files = await startReceiver({ name: '127.0.0.1', tls: 'none' })
    files.answer({ body: list })
    const url = `http://127.0.0.1:${files.port}/march.csv`
    const first = await bulk(url, '--sandbox', '--json')
    expect(first.code, first.stderr).toBe(0)
    expect(read('march.verified.csv')).toMatch(/\nvalid@a\.example,Ann,deliverable,/)
    files.answer({ body: list.replace('Eve', 'Mia') })
    const second = await bulk(url, '--sandbox', '--json')
    expect(read('march.verified.csv')).toContain('role@b.example,Mia,risky')
    expect(JSON.parse(second.stdout).job_id).not.toBe(JSON.parse(first.stdout).job_id)
    expect(first.stderr + second.stderr).not.toContain('this machine does')
    expect(files.received).toHaveLength(2)
  })

  test('this machine downloads a list that the service may not download', async () => {
    const { bulk, read } = createFolder()
    const files = await startReceiver({ name: '127.0.0.2', ip: '127.0.0.2', tls: 'none' })
    files.answer({ body: list })
    const ran = await bulk(`http://127.0.0.2:${files.port}/april.csv`, '--sandbox')
    expect(ran.code, ran.stderr).toBe(0)
    expect(ran.stderr.replace(/\s+/g, ' ')).toContain(
      'The service does not download the list, so this machine does: The URL of the list is not allowed.',
    )
    expect(read('april.verified.csv')).toContain('role@b.example,Eve,risky')
  })

  test('a run that was interrupted goes on with the same job', async () => {
    const { folder, bulk } = createFolder()
    const slow = ['bulk', 'slow.csv', '--sandbox', '--metadata', 'run=slow']
    writeFileSync(join(folder, 'slow.csv'), 'timeout@a.example\n')
    const running = startEv(slow, { home: folder, environment: address(service) })
    await running.printed('Submitted as job_', 'stderr')
    running.signal('SIGINT')
    const stopped = await running.ended
    expect(stopped.code).toBe(130)
    expect(stopped.stderr).toMatch(
      /Stopped\. The service continues job_\w+\. To go on, run the same/,
    )
    const ended = await bulk(...slow.slice(1))
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stderr).toMatch(/This list was submitted before, as job_\w+: 1 row\./)
    expect(await json(there('jobs', '--metadata', 'run=slow', '--json'))).toHaveLength(1)
  })
})

const CREATE_WEBHOOK = ['webhooks', 'create', '--events', 'batch.completed', '--url']

test.each([
  [['jobs', 'show', 'job_none'], 66, 'Job job_none does not exist. To list jobs, run "ev jobs".'],
  [['jobs', 'cancel', 'job_none'], 66, 'Job job_none does not exist. To list jobs, run "ev jobs".'],
  [
    [...CREATE_WEBHOOK, 'http://a.example', '--account', 'default'],
    64,
    '--url is "http://a.example", which is not allowed. It must begin with https://.',
  ],
  [
    ['webhooks', 'deliveries', 'wh_none'],
    66,
    'Webhook wh_none does not exist. To list webhooks, run "ev webhooks".',
  ],
  [
    ['schedules', 'delete', 'sch_none', '--yes'],
    66,
    'Schedule sch_none does not exist. To list schedules, run "ev schedules".',
  ],
])('%j fails with the same text here and on a service', async (args, code, text) => {
  for (const run of [here, there]) {
    expect(await run(...args)).toMatchObject({ code, stdout: '', stderr: `error: ${text}\n` })
  }
})

test('a service that does not respond is an error of one sentence, with what to do', async () => {
  // Port 1 is one that fetch never connects to.
  const nowhere = { EV_URL: 'http://127.0.0.1:1', EV_KEY: 'ev_live_wrong' }
  const { code, stderr } = await runEv(['keys'], { home: emptyFolder(), environment: nowhere })
  expect(code).toBe(74)
  expect(stderr).toMatch(/^error: The service did not respond: .*bad port.*\. Check --url\.\n$/)
})

test('an error of a service has the remedy of the command line, not that of the API', async () => {
  const wrong = { EV_URL: service.url, EV_KEY: 'ev_live_wrong' }
  const refused = await runEv(['keys'], { home: emptyFolder(), environment: wrong })
  expect(refused.stderr).toBe(
    'error: Missing or invalid API key. Check EV_KEY, --key-file or --key.\n',
  )
  const elsewhere = { EV_URL: `${service.url}/elsewhere`, EV_KEY: service.key }
  const unknown = await runEv(['keys'], { home: emptyFolder(), environment: elsewhere })
  expect(unknown.stderr).toBe(
    'error: Path not found. Check --url. The service may be older than this ev.\n',
  )
  const client = new EvClient({ baseUrl: service.url, apiKey: service.key, sandbox: true })
  const { job_id: id } = await client.bulk(['valid@x.example'])
  const cancelled = await there('jobs', 'cancel', id)
  expect(cancelled.stderr).toBe(
    'error: The job is already completed. To delete it: ev jobs delete JOB\n',
  )
})

test('shows the audit log and refuses another account', async () => {
  await expectSame('audit', '--account', 'default')
  await expectSame('audit', '--action', 'session.started', '--limit', '1', '--json')
  await expectSame('schedules')
  await expectSame('schedules', '--json')
  expect(await there('audit', '--account', 'Other')).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('cannot address account "Other"'),
  })
})

describe('the key and the URL', () => {
  const run = (args: string[], environment: Record<string, string> = {}) =>
    runEv(args, { home, environment })

  test('come from options, the environment or a file; --key warns', async () => {
    // Not `keys`: the service writes the last use of a key some time later.
    const schedules = await there('schedules')
    expect(schedules.code).toBe(0)
    writeFileSync(join(home, 'key'), `${service.key}\n`)
    expect(await run(['--url', service.url, '--key-file', 'key', 'schedules'])).toEqual(schedules)
    const file = { EV_URL: service.url, EV_KEY_FILE: 'key' }
    expect(await run(['schedules'], file)).toEqual(schedules)
    const { code, stdout, stderr } = await run([
      '--url',
      service.url,
      '--key',
      service.key,
      'schedules',
    ])
    expect({ code, stdout }).toEqual({ code: 0, stdout: schedules.stdout })
    expect(stderr).toMatch(/^warning: Other users of this machine can see the key in --key /)
  })

  test.each([
    [
      ['--url', 'https://ev.example.com', 'keys'],
      {},
      64,
      /^error: The service needs an API key\. Set EV_KEY/,
    ],
    [
      ['--url', 'http://ev.example.com', 'keys'],
      { EV_KEY: 'ev_live_a' },
      64,
      /send the key unencrypted\. Use https, or set --allow-http\./,
    ],
    [
      ['--url', 'nowhere', 'keys'],
      { EV_KEY: 'ev_live_a' },
      64,
      /^error: --url must be the URL of the service/,
    ],
    [
      ['--url', 'https://a.example', '--key-file', 'none', 'keys'],
      {},
      66,
      /^error: The key file none cannot be read: no such file/,
    ],
    [
      ['--url', 'https://a.example', 'keys', '--data-dir', 'data'],
      { EV_KEY: 'a' },
      64,
      /--url is set, but --data-dir works only on this machine\. Omit it, or/,
    ],
    [
      ['--url', 'https://a.example', 'backup', 'a.sqlite'],
      { EV_KEY: 'a' },
      64,
      /--url is set, but "ev backup" works only on this machine/,
    ],
    [
      ['keys', 'list', '--url', 'https://a.example'],
      {},
      64,
      /^error: Unknown option "--url"\. .*before the command: ev --url/,
    ],
  ])('%j with %j exits with %i', async (args, environment, code, message) => {
    const ran = await runEv(args, { home, environment, offline: true })
    expect(ran).toMatchObject({ code, stdout: '' })
    expect(ran.stderr).toMatch(message)
  })

  test('a command without stored data ignores EV_URL', async () => {
    const ran = await run(['version'], { EV_URL: 'https://ev.example.com' })
    expect(ran).toMatchObject({ code: 0, stderr: '' })
  })

  test('a refused key is an error of the configuration, and a service that is gone one of the network', async () => {
    const wrong = await run(['keys'], { EV_URL: service.url, EV_KEY: 'ev_live_wrong' })
    expect(wrong).toMatchObject({ code: 78, stdout: '' })
    expect(wrong.stderr).toMatch(/^error: .*Check EV_KEY, --key-file or --key\.\n$/)
    const { key } = await json(
      there('keys', 'create', '--name', 'R', '--scopes', 'jobs:read', '--json'),
    )
    expect(await run(['keys'], { EV_URL: service.url, EV_KEY: key })).toMatchObject({ code: 78 })
  })
})

describe('ev verify', () => {
  const addresses = ['valid@x.example', 'invalid@y.example', 'disposable@z.example', 'n/a']
  const verify = (...args: string[]) => ['verify', '--sandbox', ...args]
  /** Times and the duration of a lookup differ from run to run. */
  const withoutTimes = ({ stdout, ...ran }: Awaited<ReturnType<typeof there>>) => ({
    ...ran,
    stdout: stdout
      .replace(/("response_time": ?)\d+|("\w+_ms": ?)\d+/g, '$1$2')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '')
      .replace(/^( *time +)[\d,]+ ms$/gm, '$1'),
  })

  test.each([
    [verify('valid@x.example'), 0],
    [verify('role@x.example', '--json', '--include', 'flags,evidence'), 1],
    [verify(...addresses), 1],
    [verify(...addresses, '--json'), 1],
    [verify(...addresses, '--ndjson', '--include', 'flags'), 1],
    [verify(...addresses, '--format', 'csv'), 1],
    [verify('timeout@x.example'), 2],
  ] as const)('%j prints what it prints here, and exits with %i', async (args, code) => {
    const local = await here(...args)
    const remote = await there(...args)
    expect(withoutTimes(remote)).toEqual(withoutTimes(local))
    expect(remote.code).toBe(code)
  })
})
