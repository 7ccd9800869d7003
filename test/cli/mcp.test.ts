import { describe, expect, onTestFinished, test } from 'vitest'
import { SECOND } from '../../src/platform/clock.ts'
import { emptyFolder, runEv } from '../support/cli.ts'
import { fakeClock, letTimePass } from '../support/clock.ts'
import { mail } from '../support/engine.ts'
import { readDoc } from '../support/markdown.ts'
import { connectCli, PROTOCOLS, type ToolAnswer } from '../support/mcp.ts'
import { scriptedMx } from '../support/mx.ts'
import { nameServer } from '../support/name-server.ts'
import { recipientOf, users } from '../support/recipients.ts'
import { zone } from '../support/zone.ts'

const BLOCKED_IP = '192.0.2.2'
const SLOW_IP = '192.0.2.3'
/** More than the first connections have, so that some wait until the block ends. */
const BLOCKED = 200
const SETTINGS = [
  '--allow-ranges',
  '192.0.2.0/24',
  '--special-domains',
  '--sessions-per-second',
  '1000',
]

describe('ev mcp', () => {
  test.each([
    [['--url', 'https://ev.example.com'], {}, 'Set EV_KEY in the environment'],
    [['--url', 'ev.example.com'], { EV_KEY: 'ev_live_x' }, 'baseUrl must be the URL'],
  ])('%j is refused', async (args, environment, message) => {
    const { code, stderr } = await runEv(['mcp', ...args], { home: emptyFolder(), environment })
    expect(code).toBe(64)
    expect(stderr).toContain(message)
  })

  test('ends with its input', async () => {
    const options = { home: emptyFolder(), stdin: '', offline: true }
    expect(await runEv(['mcp', '--sandbox'], options)).toMatchObject({ code: 0, stdout: '' })
  })
})

/** `ev mcp` with a fake clock, fake DNS and scripted mail servers. */
async function createFixture(options = {}, args: readonly string[] = SETTINGS) {
  const clock = fakeClock()
  const mx = scriptedMx({
    greeting: ({ to }) =>
      to.ip === BLOCKED_IP
        ? '554 5.7.1 Your IP is on a block list'
        : to.ip === SLOW_IP
          ? null
          : undefined,
    answer: line => {
      const recipient = recipientOf(line)
      if (recipient === '') return undefined
      return recipient.startsWith('user') ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
    },
  })
  const resolver = zone({
    ...mail('a.test', '192.0.2.1'),
    ...mail('blocked.test', BLOCKED_IP),
    ...mail('slow.test', SLOW_IP),
  })
  const { client, call } = await connectCli(
    args,
    {
      home: emptyFolder(),
      context: { clock, externalDeps: { dial: mx, ...(args === SETTINGS && { resolver }) } },
    },
    options,
  )
  /** Calls a tool, and returns its answer with the time that it took. */
  const timed = async (...call_: Parameters<typeof call>) => {
    const startedAt = clock.monotonicNow()
    const answer = await settled(call(...call_))
    return { ...answer, tookMs: clock.monotonicNow() - startedAt }
  }
  async function settled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const settle = () => {
      isSettled = true
    }
    promise.then(settle, settle)
    await letTimePass(clock, () => isSettled, { stepMs: 100, maxMs: 60 * SECOND, skips: false })
    return promise
  }
  return { client, clock, mx, call: timed, settled }
}

const rows = ({ value }: ToolAnswer) => value.results as Record<string, unknown>[]

describe.each(PROTOCOLS)('ev mcp with protocol %s', (_, options) => {
  test('says how to use it', async () => {
    const { client } = await createFixture(options)
    expect(client.getInstructions()).toContain('Every call answers within ten seconds')
    const { tools } = await client.listTools()
    expect(tools.every(({ outputSchema }) => outputSchema !== undefined)).toBe(true)
  })

  test('answers within ten seconds at a provider that blocks this machine', async () => {
    const { call } = await createFixture(options)
    const emails = ['user1@a.test', ...users(BLOCKED, 'blocked.test')]
    const list = await call('verify_list', { emails })
    expect(list.tookMs).toBeGreaterThan(5 * SECOND)
    expect(list.tookMs).toBeLessThan(10 * SECOND)
    const { job_id } = list.value
    expect(list.value).toMatchObject({
      status: 'processing',
      total: BLOCKED + 1,
      // The first rows met the block: they are unknown, not undeliverable.
      classes: { deliverable: 1, risky: 0, undeliverable: 0, unknown: expect.any(Number) },
      waiting_for: [
        expect.stringMatching(/^\d+ addresses at blocked\.test: the provider blocks this/),
      ],
      next_step: expect.stringContaining(`{"job_id": "${job_id}"}`),
      pending: expect.arrayContaining([expect.stringMatching(/@blocked\.test$/)]),
    })
    expect(rows(list)[0]).toMatchObject({ row: 1, email: 'user1@a.test', class: 'deliverable' })
    const now = await call('job_status', { job_id, wait_seconds: 0, limit: 1 })
    expect(now.tookMs).toBeLessThan(SECOND)
    expect(now.value).toMatchObject({ status: 'processing', next_after: 1 })
    expect((await call('cancel_job', { job_id })).value).toMatchObject({ status: 'cancelled' })
    expect((await call('job_status', { job_id })).tookMs).toBeLessThan(SECOND)
  })

  test('answers within ten seconds if the DNS cannot be trusted', async () => {
    // RCODE 3 (RFC 1035 §4.1.1): no name exists.
    const server = await nameServer(() => ({ flags: 3 }))
    onTestFinished(() => server.close())
    const { call } = await createFixture(options, ['--dns', server.address])
    const list = await call('verify_list', { emails: ['ann@gone.com'] })
    expect(list.tookMs).toBeLessThan(10 * SECOND)
    expect(list.value).toMatchObject({
      status: 'processing',
      processed: 0,
      pending: ['ann@gone.com'],
      waiting_for: [
        expect.stringMatching(
          /^The DNS server says that gmail\.com .*, run "ev doctor"\. Next check at /,
        ),
      ],
    })
  })

  test('answers one address within ten seconds as unknown at a server that does not answer', async () => {
    const { call } = await createFixture(options)
    const { value, tookMs, isError } = await call('verify', { email: 'user1@slow.test' })
    expect([isError, tookMs < 10 * SECOND]).toEqual([false, true])
    expect(value).toMatchObject({
      class: 'unknown',
      reason: 'timeout',
      means: 'There is no result after 8 seconds: the mail server or the DNS is slow.',
      what_to_do: expect.stringContaining('Call verify_list with this address'),
    })
  })

  test('sends the progress of a list of 500, and its results in pages', async () => {
    const { call } = await createFixture(options)
    const seen: number[] = []
    const emails = [...users(450), ...users(50, 'slow.test')]
    const onprogress = ({ progress }: { progress: number }) => void seen.push(progress)
    const list = await call('verify_list', { emails }, { onprogress })
    expect(seen.length).toBeGreaterThan(1)
    expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => a - b))
    expect(list.value).toMatchObject({
      status: 'processing',
      total: 500,
      processed: 450,
      next_after: 50,
      classes: { deliverable: 450, risky: 0, undeliverable: 0, unknown: 0 },
    })
    const { job_id } = list.value
    const page = await call('job_status', { job_id, after: 445, limit: 10, wait_seconds: 0 })
    expect(rows(page).map(({ row }) => row)).toEqual([446, 447, 448, 449, 450])
    expect(page.value).toMatchObject({ pending: users(5, 'slow.test'), next_after: 455 })
  })

  test('stops the list of a call that is cancelled', async () => {
    const { call, clock, settled, mx } = await createFixture(options)
    const cancelling = new AbortController()
    const run = call(
      'verify_list',
      { emails: users(BLOCKED, 'blocked.test') },
      { signal: cancelling.signal },
    )
    run.catch(() => {})
    await letTimePass(clock, () => mx.dialled.length > 0, { stepMs: 100, maxMs: SECOND * 5 })
    cancelling.abort()
    await expect(settled(run)).rejects.toThrow()
    const dialled = mx.dialled.length
    // The block ends after half an hour.
    await clock.advance(3_600 * SECOND)
    expect(mx.dialled.length).toBe(dialled)
  })

  test('has an error that says what to do for a list that it does not know', async () => {
    const { call } = await createFixture(options)
    expect(await call('job_status', { job_id: 'job_none' })).toMatchObject({
      isError: true,
      text: 'There is no list job_none. This server keeps its last 100 lists, and forgets them when it ends. Start the list again with verify_list.',
    })
  })
})

test('docs/mcp.md has every tool, and examples that are valid JSON', async () => {
  const page = readDoc('docs/mcp.md')
  const { client } = await createFixture()
  const { tools } = await client.listTools()
  const documented = [...page.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
  for (const { name } of tools) expect(documented).toContain(name)
  const examples = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => text)
  expect(examples.length).toBeGreaterThan(4)
  for (const text of examples) expect(JSON.parse(text)).toEqual(expect.any(Object))
})
