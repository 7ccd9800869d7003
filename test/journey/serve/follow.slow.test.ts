import { afterAll, beforeAll, expect, test } from 'vitest'
import { EvClient, EvConnectionError, type JobProgress } from '../../../src/client/client.ts'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, simulatorFlags } from '../../support/cli.ts'
import { type CliService, startService } from '../../support/cli-service.ts'
import { withEqualHosts } from '../../support/own-hosts.ts'

// A list is followed while it is cancelled and resumed, and across a restart of the service.

const ROWS = 4_000
const DOMAINS = Array.from({ length: 20 }, (_, n) => `d${n}.test`)

let simulator: Simulator
let service: CliService
let key: string
const home = emptyFolder()

beforeAll(async () => {
  simulator = await startSimulator(SCENARIO)
  service = await startService(home, simulatorFlags(simulator))
  key = service.key
})

afterAll(async () => {
  await service.end('SIGTERM')
  await simulator.close()
})

const SCENARIO: Scenario = {
  mailboxes: ['user*'],
  ...withEqualHosts(DOMAINS, { behavior: 'slow', ms: 20 }),
}

const client = () => new EvClient({ apiKey: key, baseUrl: service.url })

/** Unknown addresses are spread out, because a streak of them pauses the probes of a server. */
const isUnknown = (row: number) => row % 9 === 4
const UNKNOWN_COUNT = Array.from({ length: ROWS }, (_, n) => n).filter(isUnknown).length

const listOf = (name: string) =>
  Array.from(
    { length: ROWS },
    (_, n) => `${isUnknown(n) ? 'gone' : 'user'}-${name}${n}@${DOMAINS[n % DOMAINS.length]}`,
  )

test('a list is cancelled, resumed and completed while its events are streamed', async () => {
  const { jobs, batch } = client()
  const { job_id } = await batch({ emails: listOf('a') })
  const before: JobProgress[] = []
  for await (const progress of jobs.events(job_id)) {
    before.push(progress)
    if (progress.processed_emails > 0 && progress.status === 'processing') await jobs.cancel(job_id)
  }
  const cancelled = before.at(-1) as JobProgress
  expect(cancelled.status).toBe('cancelled')
  expect(cancelled.processed_emails).toBeLessThan(ROWS)
  expect(await jobs.resume(job_id)).toMatchObject({ status: 'processing' })
  const after: JobProgress[] = []
  for await (const progress of jobs.events(job_id)) after.push(progress)
  const done = after.map(({ processed_emails }) => processed_emails)
  expect(done).toEqual(done.toSorted((a, b) => a - b))
  expect(done[0]).toBeGreaterThanOrEqual(cancelled.processed_emails)
  expect(after.some(({ rate_per_second, seconds_left }) => rate_per_second && seconds_left)).toBe(
    true,
  )
  expect(after.at(-1)).toMatchObject({
    status: 'completed',
    progress: 100,
    processed_emails: ROWS,
    seconds_left: null,
    classes: {
      deliverable: ROWS - UNKNOWN_COUNT,
      undeliverable: UNKNOWN_COUNT,
      risky: 0,
      unknown: 0,
    },
  })
  const rows: number[] = []
  for await (const { row } of jobs.results(job_id)) rows.push(row)
  expect(rows).toEqual(listOf('a').map((_, n) => n + 1))
})

test('a stopping service ends its event streams, and the next one continues them', async () => {
  const { jobs, batch } = client()
  const { job_id } = await batch({ emails: listOf('b') })
  let ended: Promise<unknown> | null = null
  const follow = async () => {
    for await (const { processed_emails } of jobs.events(job_id)) {
      if (processed_emails > 0) ended ??= service.end('SIGTERM')
    }
  }
  await expect(follow()).rejects.toBeInstanceOf(EvConnectionError)
  await expect(ended).resolves.toMatchObject({ code: 0 })
  service = await startService(home, simulatorFlags(simulator))
  let last: JobProgress | null = null
  for await (const progress of client().jobs.events(job_id)) last = progress
  expect(last).toMatchObject({ status: 'completed', processed_emails: ROWS })
})
