// Clients that connect at the same time and send one verification each. Prints their measurements
// as JSON.
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'

/** Measurements of one client. */
export type ClientResult = {
  /** Null if no complete response arrived. */
  readonly status: number | null
  /** Whether a 429 or 503 had a Retry-After header. */
  readonly hasRetryAfter: boolean
  /** Time to connect; the kernel repeats a lost SYN after 1, 3 and 7 s. */
  readonly connectMs: number
  /** Time from the request to the end of the response. */
  readonly answerMs: number
  /** ECONNREFUSED, ECONNRESET and others, before or after the response. */
  readonly fault: string | null
}

/** Longer than any verification takes, so it ends only hanging requests. */
const TIMEOUT_MS = 60_000

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    key: { type: 'string' },
    clients: { type: 'string' },
    domains: { type: 'string' },
    name: { type: 'string' },
  },
})
const { hostname, port } = new URL(values.url ?? '')

function requestOf(client: number): string {
  const email = `user.${values.name}.${client}@d${client % Number(values.domains)}.example`
  const body = JSON.stringify({ email })
  const lines = [
    ...['POST /v1/verify/single HTTP/1.1', `Host: ${hostname}:${port}`, 'Connection: close'],
    ...[`Authorization: Bearer ${values.key}`, 'Content-Type: application/json'],
    `Content-Length: ${body.length}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** Sends one request and resolves when the connection is closed. */
function ask(client: number): Promise<ClientResult> {
  return new Promise(resolve => {
    const startedAt = performance.now()
    let [connectedAt, answeredAt] = [startedAt, Number.NaN]
    let received = ''
    let fault: string | null = null
    const socket: Socket = connect(Number(port), hostname)
    socket.setNoDelay()
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('silent')))
    socket.on('connect', () => {
      connectedAt = performance.now()
      socket.write(requestOf(client))
    })
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (Number.isNaN(answeredAt) && isComplete(received)) answeredAt = performance.now()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      fault = error.code ?? error.message
    })
    socket.on('close', () =>
      resolve({
        status: Number.isNaN(answeredAt) ? null : Number(received.split(' ', 2)[1]),
        hasRetryAfter: /\r\nretry-after: \d/i.test(received),
        connectMs: connectedAt - startedAt,
        answerMs: answeredAt - connectedAt,
        fault,
      }),
    )
  })
}

function isComplete(received: string): boolean {
  const head = received.indexOf('\r\n\r\n')
  const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1]
  return head !== -1 && length !== undefined && received.length >= head + 4 + Number(length)
}

const results = await Promise.all(Array.from({ length: Number(values.clients) }, (_, n) => ask(n)))
process.stdout.write(JSON.stringify(results))
