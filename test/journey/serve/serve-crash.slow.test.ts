import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EvClient } from '../../../src/client/client.ts'
import type { Scenario } from '../../../src/world/scenario/scenario.ts'
import { startScenarioProcess, type WorldProcess } from '../../../src/world/world-process.ts'
import { emptyFolder, towards } from '../../support/ev-process.ts'
import { xorshift } from '../../support/random.ts'
import { beginService, postWhole, type ServiceProcess } from '../../support/service-process.ts'

/** Twenty show more than four, and take a minute. */
const KILLS = Number(process.env.EV_KILLS ?? 4)
const BATCHES = 5
const ROWS = 2_000
const DOMAINS = 40
const SEED = Number(process.env.EV_SEED ?? 20_261_121)

/** From the start of the process to its end: some are killed before they listen. */
const LIFE_MS_MAX = 2_500

let world: WorldProcess
beforeAll(async () => {
  world = await startScenarioProcess(scenario())
})
afterAll(() => world.close())

test('a service that is killed with -9 again and again loses nothing that it took, and does nothing twice', async () => {
  const home = emptyFolder()
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
  const args = [...towards(world), '--plan', 'team', '--concurrency', '40']
  const options = ['--recipients-per-session', '10', '--webhook-allow-ranges', '127.0.0.0/8']
  const start = () => beginService(home, [...args, ...options])

  const first = start()
  await first.isUp
  const { key } = first
  await clientOf(first, key).webhooks.create(HOOK)

  const submitted: Submitted = { service: first, jobs: new Map(), stopped: false }
  const submitters = Promise.all([
    ...BATCH_NUMBERS.map(batch => submit(submitted, key, batch)),
    verifyOnAndOn(submitted, key),
  ])
  const chance = xorshift(SEED)
  for (let kills = 0; kills < KILLS; kills++) {
    await setTimeout(chance() * LIFE_MS_MAX)
    const ran = await submitted.service.end('SIGKILL')
    expect(ran, ran.stderr).toMatchObject({ signal: 'SIGKILL' })
    const next = start()
    next.isUp.catch(() => {})
    submitted.service = next
  }
  await (submitted.service as ReturnType<typeof start>).isUp
  submitted.stopped = true
  await submitters
  const client = clientOf(submitted.service, key)
  await Promise.all([...submitted.jobs.values()].map(id => client.waitForJob(id)))

  const jobs = await gathered(client.jobs.list())
  expect(jobs.map(({ job_id }) => job_id).toSorted()).toEqual(
    [...submitted.jobs.values()].toSorted(),
  )
  for (const [batch, id] of submitted.jobs) {
    const rows = await gathered(client.jobs.results(id))
    expect(rows.map(({ row, email, reason }) => ({ row, email, reason }))).toEqual(
      addressesOf(batch).map((email, n) => ({ row: n + 1, email, reason: reasonOf(batch, n) })),
    )
    expect(await client.jobs.get(id)).toMatchObject({ status: 'completed', ...whole(batch) })
  }
  // Each answer was paid for once, and nothing is set aside any more.
  await expect
    .poll(() => client.credits(), { interval: 200 })
    .toMatchObject({ credits_consumed: BATCHES * ROWS, credits_held: 0 })
  const ended = await submitted.service.end('SIGTERM')
  expect(ended.code, ended.stderr).toBe(0)
  expect(countsIn(join(home, 'data'))).toEqual({
    ...{ jobs: BATCHES, items: BATCHES * ROWS, notDone: 0 },
    ...{ history: BATCHES * ROWS, events: BATCHES, deliveries: BATCHES },
  })
})

const BATCH_NUMBERS = Array.from({ length: BATCHES }, (_, n) => n)

const CONFIG = {
  'ip-limits': { 'single-per-minute': 100_000, 'bulk-per-hour': 100_000 },
  plans: { team: { requests: 1_000, per: 'second', 'credits-per-day': 1_000_000 } },
}

const HOOK = { url: 'https://127.0.0.1:8443/hook', events: ['batch.completed' as const] }

type Submitted = {
  service: ServiceProcess
  /** The job that each batch became, when it was first told. */
  readonly jobs: Map<number, string>
  stopped: boolean
}

/** Hands a batch in, again and again under one key, until the killing is over; each answer names the same job. */
async function submit(state: Submitted, key: string, batch: number): Promise<void> {
  const body = JSON.stringify({ emails: addressesOf(batch) })
  const headers = {
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': `batch ${batch}`,
  }
  while (!state.stopped || !state.jobs.has(batch)) {
    const answered = await postWhole(`${state.service.url}/v1/verify/batch`, { headers, body })
    if (answered?.status === 200) {
      const { job_id } = JSON.parse(answered.text) as { job_id: string }
      expect(state.jobs.get(batch) ?? job_id).toBe(job_id)
      state.jobs.set(batch, job_id)
    } else if (answered !== null) {
      // Its first request may still be under way, or the service starts.
      expect([409, 503], answered.text).toContain(answered.status)
    }
    await setTimeout(50)
  }
}

/** Has single addresses verified that come to nothing, and cost nothing: what was set aside for them goes back. */
async function verifyOnAndOn(state: Submitted, key: string): Promise<void> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  for (let n = 0; !state.stopped; n++) {
    const body = JSON.stringify({ email: `somebody${n}@later.test` })
    void postWhole(`${state.service.url}/v1/verify/single`, { headers, body })
    await setTimeout(100)
  }
}

const clientOf = ({ url }: ServiceProcess, apiKey: string) => new EvClient({ apiKey, baseUrl: url })

async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

const addressesOf = (batch: number): string[] =>
  Array.from(
    { length: ROWS },
    (_, n) => `${isGone(n) ? 'gone' : 'user'}${batch}n${n}@d${domainOf(batch, n)}.test`,
  )

const domainOf = (batch: number, row: number) => (row * 7 + batch) % DOMAINS
const isOpen = (domain: number) => domain % 10 === 7
const isGone = (row: number) => row % 11 === 3

/** What the world would say. */
function reasonOf(batch: number, row: number): string {
  if (isOpen(domainOf(batch, row))) return 'catch_all'
  return isGone(row) ? 'rejected_email' : 'accepted_email'
}

function whole(batch: number) {
  const invalid = addressesOf(batch).filter(
    (_, n) => reasonOf(batch, n) === 'rejected_email',
  ).length
  const summary = { total: ROWS, valid: ROWS - invalid, invalid, unknown: 0, failed: 0 }
  return { progress: 100, total_emails: ROWS, processed_emails: ROWS, data: { summary } }
}

/** What is in the database, whatever the service tells. */
function countsIn(dataDir: string) {
  const database = new Sqlite(join(dataDir, 'ev.sqlite'), { readonly: true })
  const count = (what: string) => database.prepare(`select count(*) from ${what}`).pluck().get()
  const counts = {
    ...{ jobs: count('job'), items: count('item'), notDone: count("item where state <> 'done'") },
    ...{
      history: count("verification where source = 'batch'"),
      events: count('event'),
      deliveries: count('delivery'),
    },
  }
  database.close()
  return counts
}

/** Polite hosts, some that take everything, at some distance, and one that makes up its mind later. */
function scenario(): Scenario {
  const names = Array.from({ length: DOMAINS }, (_, n) => `d${n}.test`)
  return {
    roundTripMs: 10,
    mailboxes: ['user*'],
    domains: Object.fromEntries(
      [...names, 'later.test'].map(name => [name, { mx: [[10, `mx.${name}`]] as const }]),
    ),
    hosts: {
      ...Object.fromEntries(
        names.map((name, n) => [`mx.${name}`, { temper: isOpen(n) ? 'catch-all' : 'polite' }]),
      ),
      'mx.later.test': {
        temper: 'polite',
        rules: [{ on: 'RCPT', afterMs: 3_000, reply: '451 4.3.0 not now' }],
      },
    },
  }
}
