import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { EngineOptions, Result } from '../../src/index.ts'
import { missingOf, REQUIRED, type RealServers, startRealServers } from '../support/real-servers.ts'
import { exim } from './exim.ts'
import { opensmtpd } from './opensmtpd.ts'
import { postfix, postfixLog } from './postfix.ts'
import { ask, casesOf, dialogueOf, findingsOf } from './table.ts'

// The engine against real mail and DNS servers from Debian packages on loopback: each row of
// fixtures/real names the options, and the expected verdict and evidence.

const SERVERS = [postfix, exim, opensmtpd]
const TABLES = ['dns', ...SERVERS.map(({ name }) => name)]
const missing = missingOf(SERVERS)

// The reporter prints how many tests were skipped, not why.
if (missing !== null && !REQUIRED) console.warn(`No test against real servers: ${missing}`)

let services: RealServers

describe.skipIf(missing !== null && !REQUIRED)('real servers', () => {
  beforeAll(async () => {
    if (missing !== null) throw new Error(missing)
    services = await startRealServers(SERVERS)
  })
  afterAll(() => services?.close())

  describe.each(TABLES)('%s', table => {
    test.concurrent.each(casesOf(table))('$name', async row => {
      const results = await ask(services, row)
      expect(results.map(({ email }) => email).toSorted()).toEqual(row.addresses.toSorted())
      for (const result of results) {
        expect(findingsOf(result, row), dialogueOf(result)).toEqual(row.expected)
      }
    })
  })

  test.concurrent('a list of 195 uses ten connections and causes no errors that count', async () => {
    const results = await verifyList(namesOf(195).map(name => `${name}@list.test`))
    expect(countsOf(results)).toEqual({ 'user accepted_email': 156, 'zoe rejected_email': 39 })
    const log = await untilLogged('list.test', / disconnect from .* quit=1 /, 10)
    expect(log.filter(line => line.includes(' connect from '))).toHaveLength(10)
    expect(log.filter(isClientError)).toEqual([])
    // All recipients once, and a random one.
    expect(recipientsIn(log)).toBe(196)
  })

  test.concurrent('a list of 40 that postgrey defers ends with correct results', async () => {
    const results = await verifyList(
      namesOf(40).map(name => `${name}@grey-list.test`),
      { greylistDelayMs: 3_000 },
    )
    expect(countsOf(results)).toEqual({ 'user accepted_email': 32, 'zoe rejected_email': 8 })
    const log = await untilLogged('grey-list.test', / disconnect from /, 6)
    expect(log.filter(line => /Greylisted.* to=<(user|zoe)/.test(line))).toHaveLength(40)
    expect(log.filter(isClientError)).toEqual([])
  })
})

/** One in five names is unknown. */
const namesOf = (count: number) =>
  Array.from({ length: count }, (_, n) => (n % 5 === 4 ? `zoe${n}` : `user${n + 1}`))

async function verifyList(
  texts: readonly string[],
  options: EngineOptions = {},
): Promise<Result[]> {
  const results: Result[] = []
  for await (const result of services.engine(options).verifyMany(texts)) results.push(result)
  return results
}

function countsOf(results: readonly Result[]): Record<string, number> {
  const kind = ({ email, verdict }: Result) => `${email.replace(/\d*@.*/, '')} ${verdict.reason}`
  const groups = Map.groupBy(results, kind)
  return Object.fromEntries([...groups].map(([name, those]) => [name, those.length]))
}

/** Whether a log line reports a client error. */
const isClientError = (line: string) =>
  /too many errors|lost connection|improper command/.test(line)

/** Counts all RCPT commands: `rcpt=16/20` are twenty, of which sixteen were accepted. */
const recipientsIn = (log: readonly string[]) =>
  log
    .map(line => Number(/ rcpt=(?:\d+\/)?(\d+)/.exec(line)?.[1] ?? 0))
    .reduce((sum, count) => sum + count)

/**
 * Waits until the log of a domain has this many matching lines, which are written after the client
 * has disconnected.
 */
async function untilLogged(domain: string, kind: RegExp, count: number): Promise<string[]> {
  const read = () => postfixLog(services.dirOf(postfix), domain)
  await vi.waitFor(
    () => expect(read().filter(line => kind.test(line)).length).toBeGreaterThanOrEqual(count),
    { timeout: 120_000 },
  )
  return read()
}
