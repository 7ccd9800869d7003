import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { EV, emptyFolder } from '../support/ev-process.ts'
import { type ServiceProcess, startService } from '../support/service-process.ts'

// The client of the official SDK talks to `ev mcp` over stdio.

async function connect(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const home = emptyFolder()
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [EV, 'mcp', '--sandbox', ...args], cwd: home },
    ...{ env: { HOME: home, ...env }, stderr: 'pipe' },
  })
  const client = new Client({ name: 'test', version: '0.0.0' })
  await client.connect(transport)
  onTestFinished(() => client.close())
  const call = async (name: string, input: Record<string, unknown>) => {
    const { structuredContent, content, isError } = await client.callTool({
      ...{ name, arguments: input },
    })
    const [first] = content as { text: string }[]
    return { value: structuredContent as Record<string, unknown>, text: first?.text, isError }
  }
  return { client, call }
}

let service: ServiceProcess

beforeAll(async () => {
  service = await startService(emptyFolder(), [])
})

afterAll(() => service.end('SIGTERM'))

const LIST = ['valid@a.example', 'invalid@a.example', 'no address']
const LONG_LIST = Array.from({ length: 30 }, (_, n) => `valid${n}@a.example`)

describe.each([
  ['an engine', () => connect([])],
  ['a service', () => connect(['--url', service.url], { EV_KEY: service.key })],
])('ev mcp with %s', (_, open) => {
  test('lists its tools', async () => {
    const { client } = await open()
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      ...['verify', 'verify_list', 'job_status', 'explain'],
    ])
    expect(client.getServerVersion()).toMatchObject({ name: 'ev' })
  })

  test('verifies and explains an address', async () => {
    const { call } = await open()
    const email = 'invalid@a.example'
    const { value, text } = await call('verify', { email })
    expect(value).toMatchObject({ email, class: 'undeliverable', reason: 'rejected_email' })
    expect(JSON.parse(text ?? '')).toEqual(value)
    expect(value).not.toHaveProperty('evidence')
    expect((await call('explain', { email })).value).toMatchObject({
      ...{ email, means: 'The mail server says that this mailbox does not exist.' },
      ...{ what_to_do: expect.stringMatching(/\.$/), evidence: expect.any(Object) },
    })
    expect((await call('verify', { email: 'no address' })).value).toMatchObject({
      class: 'undeliverable',
    })
  })

  test('has no validity where the class is unknown', async () => {
    const { call } = await open()
    const unknown = { email: 'timeout@x.example' }
    expect((await call('verify', unknown)).value).toMatchObject({ class: 'unknown', valid: null })
    expect((await call('explain', unknown)).value).toMatchObject({ class: 'unknown', valid: null })
  })

  test('verifies a short list at once, and a longer one as a job', async () => {
    const { call } = await open()
    const short = (await call('verify_list', { emails: LIST })).value
    expect(short).toMatchObject({
      ...{ status: 'completed', total: 3, processed: 3, next_after: null },
      ...{ classes: { deliverable: 1, risky: 0, undeliverable: 2, unknown: 0 } },
      results: LIST.map((email, n) => ({ row: n + 1, email })),
    })
    const { job_id } = (await call('verify_list', { emails: LONG_LIST })).value
    await expect
      .poll(async () => (await call('job_status', { job_id })).value.status, { timeout: 30_000 })
      .toBe('completed')
    const { value } = await call('job_status', { job_id, after: 10, limit: 5 })
    expect(value).toMatchObject({ total: 30, processed: 30, next_after: 15 })
    expect(value.results).toMatchObject([11, 12, 13, 14, 15].map(row => ({ row })))
  })

  test('returns an error of a tool as its result', async () => {
    const { call } = await open()
    const { isError, text } = await call('job_status', { job_id: 'job_none' })
    expect(isError).toBe(true)
    expect(text).toMatch(/^(There is no list job_none|Job not found)/)
    const invalid = await call('verify_list', { emails: [] }).catch(error => error)
    expect(invalid).toMatchObject({ isError: true })
  })
})
