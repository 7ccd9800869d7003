import { expect, test } from 'vitest'
import { contractOf } from '../api/contract/contract.ts'
import { type Document, resolveRefs } from '../api/contract/document.ts'
import { xorshift } from '../support/random.ts'
import { type FuzzRequest, RequestFuzzer } from './openapi-requests.ts'
import { startChaosService } from './service.ts'

/** Use EV_FUZZ_REQUESTS=20000 before a release. */
const REQUESTS = Number(process.env.EV_FUZZ_REQUESTS ?? 2_000)
const SEED = Number(process.env.EV_SEED ?? 20_261_123)
/** Number of concurrent requests. */
const CLIENTS = 8

/** Applies only to a test that hangs. */
const TIMEOUT_MS = 300_000 + REQUESTS * 50

test('no request gets a 5xx, or a response whose status, type, headers or fields are not in the OpenAPI document', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { service, key, receiver } = await startChaosService({ args: ['--limits', 'off'] })
  const headers = { Authorization: `Bearer ${key}` }
  const get = async (path: string) => (await fetch(`${service.url}${path}`, { headers })).json()
  const document = resolveRefs((await get('/openapi.json')) as Document)
  const { data } = (await get('/v1/keys')) as { data: { keys: { id: string }[] } }
  const ownKey = data.keys[0]?.id ?? ''
  const fuzzer = new RequestFuzzer(document, {
    random: xorshift(SEED),
    texts: [
      ...ADDRESSES,
      receiver.url,
      'https://hook.d0.test/',
      'batch.completed',
      'verify:single',
    ],
  })
  const checkContract = contractOf(document)
  const statuses = new Map<number, number>()

  async function send(request: FuzzRequest): Promise<void> {
    const { method, path, body } = request
    const all = { ...headers, ...request.headers }
    const response = await fetch(`${service.url}${path}`, { method, headers: all, body })
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    const isEvents = response.headers.get('Content-Type')?.startsWith('text/event-stream')
    await checkContract(method, new URL(response.url).pathname, response)
    if (isEvents) return response.body?.cancel()
    const text = await response.text()
    if (response.status >= 500) expect(SIMULATED.test(text), text).toBe(true)
    fuzzer.learn(text, ownKey)
  }
  /** A download is aborted if another client deletes its job, so that it never looks complete. */
  async function isDeletedWhileRead({ path }: FuzzRequest, error: unknown): Promise<boolean> {
    const [, id] = /\/(job_\w+)\/download/.exec(path) ?? /\/download\/(job_\w+)/.exec(path) ?? []
    if (id === undefined || !(error instanceof TypeError)) return false
    return (await fetch(`${service.url}/v1/jobs/${id}`, { headers })).status === 404
  }
  let left = REQUESTS
  const client = async () => {
    while (left-- > 0) {
      const request = fuzzer.next()
      await send(request).catch(async cause => {
        if (await isDeletedWhileRead(request, cause)) return
        throw new Error(`seed ${SEED}: ${JSON.stringify(request)}`, { cause })
      })
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  console.log(`responses by status: ${JSON.stringify(Object.fromEntries(statuses))}`)
  // Many of the requests are meaningful to the service.
  for (const status of [200, 201, 204, 400, 401, 404])
    expect(statuses.get(status)).toBeGreaterThan(0)
  expect((await service.end('SIGTERM')).code).toBe(0)
})

/** Errors that the sandbox simulates for certain addresses (section 7 of the specification). */
const SIMULATED = /^\{"error":"(server_error|timeout)"/

const ADDRESSES = [
  ...['user1@d0.test', 'gone1@d1.test', 'user2@d7.test', 'user@nowhere.test', 'no address', '@'],
  ...['valid@x.example', 'error-server@x.example', 'error-timeout@x.example', 'risky@x.example'],
  ...['error-ratelimit@x.example', `${'a'.repeat(64)}@${'b'.repeat(63)}.test`, 'ü@ü.test'],
]
