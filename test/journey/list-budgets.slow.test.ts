import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { TestBed } from '../../bench/engine/measure.ts'
import { addressesOf, type Shape, scenarioFor } from '../../bench/engine/scenario.ts'
import { EvClient } from '../../src/client/client.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { startService } from '../support/cli-service.ts'
import { emptyFolder, runEv, simulatorFlags } from '../support/ev-process.ts'

/** What a list causes at DNS and mail servers. */
type Counts = {
  readonly shape: Shape
  /** At most, because connections to one host depend on which rows arrive first. */
  readonly connectionsMax: number
  readonly questions: number
  /** One for each address, and a random name for each domain with an accepted one. */
  readonly recipients: number
}

const LISTS: readonly Counts[] = [
  {
    shape: { name: 'a domain for each address', addresses: 500, domains: 500, hosts: 500 },
    connectionsMax: 500,
    questions: 2 * 500,
    recipients: 500 + 450,
  },
  {
    shape: { name: 'fifty addresses for each domain', addresses: 2_000, domains: 40, hosts: 40 },
    connectionsMax: 40,
    questions: 2 * 40,
    recipients: 2_000 + 40,
  },
  {
    shape: { name: 'all domains at one hoster', addresses: 2_000, domains: 200, hosts: 1 },
    connectionsMax: 60,
    questions: 200 + 1,
    recipients: 2_000 + 200,
  },
]

describe.each(LISTS)('a list with $shape.name', ({ shape, ...counts }) => {
  let testBed: TestBed
  beforeAll(async () => {
    testBed = await TestBed.open(shape, 0)
  })
  afterAll(() => testBed.close())

  test.each([
    ['verifyMany', 'engine'],
    ['ev bulk', 'bulk'],
  ] as const)(
    'takes the same few connections, questions and recipients: %s',
    async (_, program) => {
      const { counters, missing, repeated, wrong } = await testBed.measure(program)
      expect({ missing, repeated, wrong }).toEqual({ missing: 0, repeated: 0, wrong: 0 })
      expect(counters.total.connections).toBeLessThanOrEqual(counts.connectionsMax)
      // A busy machine may answer after a second; then a question is asked again.
      expect(counters.dns.questions.size).toBe(counts.questions)
      expect(counters.total.recipients.size).toBe(counts.recipients)
      // After three rejections in a row, an accepted recipient is asked again.
      expect(counters.total.commands.RCPT).toBeLessThanOrEqual(1.01 * counts.recipients)
    },
  )
})

test('a service takes one connection for a domain whose addresses are far apart', async () => {
  // Each tenth of the list has one address of each domain.
  const shape: Shape = { name: 'far apart', addresses: 24_000, domains: 2_400, hosts: 2_400 }
  const simulator = await startSimulator(scenarioFor(shape, 0))
  onTestFinished(() => simulator.close())
  const service = await startService(emptyFolder(), simulatorFlags(simulator))
  onTestFinished(async () => void (await service.end('SIGTERM')))
  const { batch, waitForJob } = new EvClient({ apiKey: service.key, baseUrl: service.url })
  const { job_id } = await batch({ emails: addressesOf(shape) })
  expect(await waitForJob(job_id)).toMatchObject({
    status: 'completed',
    processed_emails: shape.addresses,
  })
  expect(simulator.counters().total.connections).toBeLessThanOrEqual(1.05 * shape.domains)
})

describe('the database after a list', () => {
  const shape: Shape = { name: 'list', addresses: 5_000, domains: 500, hosts: 500 }
  /** One row for each address; the others do not grow with the list. */
  const OTHER_ROWS_MAX = 30
  let simulator: Simulator
  beforeAll(async () => {
    simulator = await startSimulator(scenarioFor(shape, 0))
  })
  afterAll(() => simulator.close())

  /** The bytes are those of the rows and their indexes. */
  test.each([
    ['verified', 800],
    ['simulated', 500],
  ] as const)('has a row for each address, and few bytes: %s', async (kind, bytesMax) => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), ['email', ...addressesOf(shape)].join('\n'))
    const limits = ['--sessions-per-second', '1000', '--concurrency', '200', '--cache', 'off']
    const files = ['list.csv', '-o', 'out.csv', '--data-dir', 'data', '--quiet']
    const flags = kind === 'simulated' ? ['--sandbox'] : [...simulatorFlags(simulator), ...limits]
    const { code, stderr } = await runEv(['bulk', ...files, ...flags], { home })
    expect(code, stderr).toBe(0)
    const { rows, bytes } = measureDatabase(join(home, 'data/ev.sqlite'))
    expect(rows).toBeLessThanOrEqual(shape.addresses + OTHER_ROWS_MAX)
    expect(bytes / shape.addresses).toBeLessThan(bytesMax)
  })
})

/** Returns the rows of all tables, and the bytes of the file without tables that hold no addresses. */
function measureDatabase(file: string): { rows: number; bytes: number } {
  const database = new SqliteDatabase(file, { readonly: true })
  const readNumber = (text: string) => Number(database.prepare(text).pluck().get())
  try {
    const tables = database
      .prepare<[], { name: string }>("select name from sqlite_master where type = 'table'")
      .all()
    const counts = tables.map(({ name }) => readNumber(`select count(*) from "${name}"`))
    const others = readNumber(`
      select sum(pgsize) from dbstat
      where name not in (select name from sqlite_master where tbl_name = 'item')`)
    const rows = counts.reduce((sum, count) => sum + count, 0)
    return { rows, bytes: statSync(file).size - others }
  } finally {
    database.close()
  }
}
